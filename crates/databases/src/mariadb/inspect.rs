//! The security matrix of a running MariaDB: what is its own.

use std::path::Path;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{evidence::Check, matrix::State, product::CanaryChecks, session::Table, setup::Setup};

use super::{
    access::ACCESS,
    accounts,
    at_rest::unencrypted,
    evidence::{LOG, audit_complete::AuditComplete},
};
use crate::{
    inspect::{Judgement, Rules},
    mysql_family::{
        evidence::general_log::GeneralLogComplete,
        inspect::{InspectionQueries, OtherTable, files, logs_in_the_clear, other_tables},
        session::WireSession,
    },
};

/// How MariaDB's own rows are looked at.
pub static QUERIES: InspectionQueries = InspectionQueries {
    open: |target| Ok(ACCESS.open(target)?.method().to_owned()),
    plaintext: |target| ACCESS.plaintext(target),
    accounts: accounts::read,
    is_of_administrator: |grant| grant.contains("ALL PRIVILEGES ON *.*"),
    at_rest,
    auditing,
};

/// What must be as it says for everything to be encrypted; the binary log apart, which may be off.
const SWITCHES: [(&str, &str); 6] = [
    ("innodb_encrypt_tables", "FORCE"),
    ("innodb_encrypt_log", "ON"),
    ("aria_encrypt_tables", "ON"),
    ("encrypt_tmp_disk_tables", "ON"),
    ("encrypt_tmp_files", "ON"),
    ("innodb_encrypt_temporary_tables", "ON"),
];

/// New tables, old tables of all engines, temporary files and logs must be encrypted: each of them may be forgotten.
fn at_rest(session: &mut WireSession) -> Result<Judgement, Fault> {
    let Some(tables) = session.shown("GLOBAL VARIABLES", "innodb_encrypt_tables")? else {
        return Ok(Judgement::unseen("the server does not show its setting innodb_encrypt_tables"));
    };
    let binlog = [session.setting("encrypt_binlog")?, session.setting("log_bin")?];
    let mut words = Vec::new();
    let mut exceptions = Vec::new();
    for (name, wanted) in SWITCHES {
        let value = session.setting(name)?;
        words.push(format!("{name} = {value}"));
        if value != wanted {
            exceptions.push(format!("{name} is not {wanted}"));
        }
    }
    words.push(format!("encrypt_binlog = {} (log_bin = {})", binlog[0], binlog[1]));
    if binlog == ["OFF", "ON"] {
        exceptions.push("the binary log is not encrypted".to_owned());
    }
    let off = tables == "OFF" && session.setting("innodb_encrypt_log")? != "ON";
    exceptions.extend(logs_in_the_clear(session)?);
    let (others, mut doubts) = other_tables(session)?;
    let encrypts_aria = session.setting("aria_encrypt_tables")? == "ON";
    others.iter().for_each(|table| judge_table(table, encrypts_aria, &mut exceptions, &mut doubts));
    match unencrypted(session) {
        Ok(open) => {
            words.push(format!("{} tablespaces are not encrypted", open.len()));
            exceptions.extend(open.iter().map(|name| format!("tablespace {name}")));
        }
        Err(fault) => doubts.push(format!("tablespaces (GRANT PROCESS ON *.*: {fault})")),
    }
    if session.setting("server_audit_logging")? == "ON" {
        words.push("the audit log beside it is in the clear".to_owned());
    }
    let state = if off { State::Off } else { State::Enforced };
    let rules = Rules {
        read: format!("settings, tablespaces and {} tables of other engines", others.len()),
        exceptions,
        remedy: "set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off",
        doubts,
        ..Rules::default()
    };
    Ok(Judgement::account(state, words.join(", ")).with_rules(Ok(rules), ""))
}

/// Of other engines, Aria alone encrypts, and it alone does not tell of which table.
fn judge_table(table: &OtherTable, encrypts_aria: bool, exceptions: &mut Vec<String>, doubts: &mut Vec<String>) {
    let name = format!("{} table {}", table.engine, table.name);
    if table.engine != "Aria" || !encrypts_aria || table.row_format != "Page" {
        exceptions.push(name);
    } else {
        doubts.push(format!("{name} (the server does not tell whether it was made before aria_encrypt_tables was ON)"));
    }
}

fn auditing(session: &mut WireSession) -> Result<Judgement, Fault> {
    let general = session.setting("general_log")?;
    let logging = session.shown("GLOBAL VARIABLES", "server_audit_logging")?;
    let events = session.setting("server_audit_events")?.to_ascii_uppercase();
    let excluded = session.setting("server_audit_excl_users")?;
    let included = session.setting("server_audit_incl_users")?;
    let Some(logging) = logging else {
        let state = if general == "ON" { State::Available } else { State::Off };
        return Ok(Judgement::whole(state, format!("server_audit is not loaded, general_log = {general}")));
    };
    let mut seen = format!("server_audit_logging = {logging}, events = `{events}`, excluded accounts = `{excluded}`");
    if !included.is_empty() {
        seen.push_str(&format!(", no accounts but `{included}`"));
    }
    // No list at all means every event.
    let both = events.is_empty() || events.split(',').any(|event| event == "QUERY" || event == "QUERY_DML");
    Ok(match (logging.as_str(), both && excluded.is_empty() && included.is_empty()) {
        ("ON", true) => Judgement::whole(State::Enforced, format!("{seen}: reads and writes, as the settings say")),
        ("ON", false) => Judgement::whole(State::Available, format!("{seen}: not all reads and writes")),
        _ => Judgement::whole(State::Off, seen),
    })
}

/// Where canaries can be looked for: the table's own file and the redo log, and the log that the settings name.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = ACCESS.administrator(server, setup)?;
    let mut setting = |name: &str| session.setting(name);
    let mut audit: Option<Box<dyn Check>> = None;
    let mut log = None;
    if setting("server_audit_logging")? == "ON" {
        let output = setting("server_audit_output_type")?;
        let events = setting("server_audit_events")?.to_ascii_uppercase();
        // No list at all means every event.
        let events = if events.is_empty() { "CONNECT,QUERY".to_owned() } else { events };
        audit = Some(Box::new(AuditComplete::new(&events)));
        log = Some(setting("server_audit_file_path")?).filter(|_| output == "file");
    } else if setting("general_log")? == "ON" {
        audit = Some(Box::new(GeneralLogComplete(&LOG)));
        // Where the log is a table, or nothing, the file is an old one.
        let output = setting("log_output")?;
        log = Some(setting("general_log_file")?).filter(|_| output.contains("FILE"));
    }
    let folder = setting("datadir")?;
    let folder = Path::new(&folder);
    let journal = vec![folder.join("ib_logfile0")];
    Ok(CanaryChecks { paths: files(folder, journal, log.as_deref(), table).unwrap_or_default(), audit })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::test_setup::tried_in_plaintext;

    #[test]
    fn tables_of_other_engines() {
        let judged = |engine: &str, row_format: &str, encrypts: bool| {
            let table =
                OtherTable { name: "a.b".to_owned(), engine: engine.to_owned(), row_format: row_format.to_owned() };
            let (mut exceptions, mut doubts) = (Vec::new(), Vec::new());
            judge_table(&table, encrypts, &mut exceptions, &mut doubts);
            (exceptions.len(), doubts.len())
        };
        assert_eq!(judged("MyISAM", "Dynamic", true), (1, 0));
        assert_eq!(judged("Aria", "Page", false), (1, 0));
        assert_eq!(judged("Aria", "Fixed", true), (1, 0));
        assert_eq!(judged("Aria", "Page", true), (0, 1));
    }

    /// The proof of a password is as good as the password for whoever passes it on.
    #[test]
    fn no_proof_of_a_password_is_sent_in_plaintext() {
        let greeting = b"\x0a11.4.0-MariaDB\0\x01\0\0\x0012345678\0\xfe\xff\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0";
        let packet = |number: u8, body: &[u8]| [&[body.len() as u8, 0, 0, number], body].concat();
        let said = |refusal: &[u8]| [packet(0, greeting), packet(2, refusal)].concat();
        let (judged, sent) = tried_in_plaintext(&said(b"\xff\x57\x0c#HY000TLS is required"), QUERIES.plaintext);
        assert!(sent.ends_with(b"ann\0\0mysql_native_password\0"), "an empty proof: {sent:?}");
        expect!["enforced: TLSv1.3; plaintext: refused (3159 (HY000): TLS is required)"].assert_eq(&judged);
        let (judged, sent) =
            tried_in_plaintext(&said(b"\xff\x15\x04#28000Access denied for user 'ann'"), QUERIES.plaintext);
        assert!(sent.ends_with(b"ann\0\0mysql_native_password\0"), "an empty proof: {sent:?}");
        // What would be asked over TLS.
        assert!(judged.starts_with("cannot tell: TLSv1.3; plaintext: connection: "), "{judged}");
    }
}
