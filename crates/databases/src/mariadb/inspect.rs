//! The security matrix of a running MariaDB: what is its own.

use std::path::Path;

use serde_json::Value;
use tithe_harness::{
    database::Server,
    evidence::Evidence,
    fault::Fault,
    inspect::{CanaryChecks, State},
    protection::Setup,
    session::SqlSession as _,
    workload::Table,
};

use super::{
    evidence::{LOG, audit_complete::AuditComplete},
    flavour::{FLAVOUR, unencrypted},
};
use crate::{
    inspect::{Judgement, Rules},
    mysql_family::{
        evidence::general_log::GeneralLogComplete,
        inspect::{Looks, OtherTable, accounts::Account, files, logs_in_the_clear, other_tables, setting},
        proof::{ED25519, NATIVE},
        session::WireSession,
    },
};

/// How MariaDB's own rows are looked at.
pub static LOOKS: Looks = Looks {
    open: |target| Ok(FLAVOUR.open(target)?.method().to_owned()),
    accounts,
    is_of_administrator: |grant| grant.contains("ALL PRIVILEGES ON *.*"),
    at_rest,
    auditing,
};

/// Accounts that may log in. Proofs are in `Priv`; what they are made of never leaves the server.
fn accounts(session: &mut WireSession) -> Result<Vec<Account>, Fault> {
    let sql = r#"SELECT User, Host, REGEXP_REPLACE(Priv, '"authentication_string": ?"[^"]+"', '"authentication_string":"set"')
                 FROM mysql.global_priv ORDER BY User, Host"#;
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 3]>::try_from(row).unwrap_or_default());
    let accounts = rows.map(|row| account(row.map(Option::unwrap_or_default)));
    Ok(accounts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The account in a row of `mysql.global_priv`; none for a role and for an account that is locked.
fn account([user, host, rights]: [String; 3]) -> Result<Option<Account>, Fault> {
    let rights: Value = serde_json::from_str(&rights)
        .map_err(|error| Fault::Protocol(format!("mysql.global_priv of '{user}'@'{host}': {error}")))?;
    let is = |name: &str| rights[name].as_bool() == Some(true);
    if is("is_role") || is("account_locked") {
        return Ok(None);
    }
    // One of several proofs is enough; an empty one stands for the first.
    let others = rights["auth_or"].as_array().into_iter().flatten().filter(|proof| proof["plugin"].is_string());
    let proves = std::iter::once(&rights).chain(others).all(proves);
    let access = rights["access"].as_u64().unwrap_or_default();
    Ok(Some(Account {
        user,
        host,
        proves,
        speaks_tls: rights["ssl_type"].as_u64().unwrap_or_default() > 0,
        unlimited: access & EVERYTHING == EVERYTHING,
    }))
}

/// Bits of the rights SELECT, INSERT, UPDATE, DELETE and CREATE USER (MariaDB's `sql/privilege.h`).
const EVERYTHING: u64 = 1 | 2 | 4 | 8 | 1 << 25;

/// Proofs that compare a password need one that is set.
fn proves(proof: &Value) -> bool {
    let plugin = proof["plugin"].as_str().unwrap_or(NATIVE);
    let compares = [NATIVE, ED25519, "mysql_old_password", "parsec"].contains(&plugin);
    !compares || proof["authentication_string"].as_str().is_some_and(|set| !set.is_empty())
}

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
    let binlog = [setting(session, "encrypt_binlog")?, setting(session, "log_bin")?];
    let mut words = Vec::new();
    let mut exceptions = Vec::new();
    for (name, wanted) in SWITCHES {
        let value = setting(session, name)?;
        words.push(format!("{name} = {value}"));
        if value != wanted {
            exceptions.push(format!("{name} is not {wanted}"));
        }
    }
    words.push(format!("encrypt_binlog = {} (log_bin = {})", binlog[0], binlog[1]));
    if binlog == ["OFF", "ON"] {
        exceptions.push("the binary log is not encrypted".to_owned());
    }
    let off = tables == "OFF" && setting(session, "innodb_encrypt_log")? != "ON";
    exceptions.extend(logs_in_the_clear(session)?);
    let (others, mut doubts) = other_tables(session)?;
    let encrypts_aria = setting(session, "aria_encrypt_tables")? == "ON";
    others.iter().for_each(|table| judge_table(table, encrypts_aria, &mut exceptions, &mut doubts));
    match unencrypted(session) {
        Ok(open) => {
            words.push(format!("{} tablespaces are not encrypted", open.len()));
            exceptions.extend(open.iter().map(|name| format!("tablespace {name}")));
        }
        Err(fault) => doubts.push(format!("tablespaces (GRANT PROCESS ON *.*: {fault})")),
    }
    if setting(session, "server_audit_logging")? == "ON" {
        words.push("the audit log beside it is in the clear".to_owned());
    }
    let state = if off { State::Off } else { State::Enforced };
    let rules = Rules {
        read: format!("settings, tablespaces and {} tables of other engines", others.len()),
        exceptions,
        remedy: "set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off",
        doubts,
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
    let general = setting(session, "general_log")?;
    let logging = session.shown("GLOBAL VARIABLES", "server_audit_logging")?;
    let events = setting(session, "server_audit_events")?.to_ascii_uppercase();
    let excluded = setting(session, "server_audit_excl_users")?;
    let included = setting(session, "server_audit_incl_users")?;
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
    let mut session = FLAVOUR.administrator(server, setup)?;
    let mut setting = |name: &str| setting(&mut session, name);
    let mut audit: Option<Box<dyn Evidence>> = None;
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

    #[test]
    fn rows_of_accounts_are_understood() {
        let rows = [
            // As `mariadb-install-db` leaves them, and as accounts are made.
            ("root", "localhost", r#"{"access":18446744073709551615}"#),
            (
                "mysql",
                "localhost",
                r#"{"access":18446744073709551615,"plugin":"mysql_native_password","authentication_string":"set","auth_or":[{},{"plugin":"unix_socket"}]}"#,
            ),
            (
                "mariadb.sys",
                "localhost",
                r#"{"access":0,"plugin":"mysql_native_password","authentication_string":"","account_locked":true}"#,
            ),
            (
                "app",
                "%",
                r#"{"access":0,"version_id":101119,"plugin":"mysql_native_password","authentication_string":"set","ssl_type":1}"#,
            ),
            (
                "open",
                "%",
                r#"{"access":0,"plugin":"ed25519","authentication_string":"set","auth_or":[{},{"plugin":"mysql_native_password","authentication_string":""}]}"#,
            ),
            ("clerk", "", r#"{"access":0,"is_role":true}"#),
        ];
        let mut text = String::new();
        for (user, host, rights) in rows {
            let account = account([user, host, rights].map(str::to_owned)).expect("a row");
            let words = account
                .map(|found| format!("proves {}, TLS {}, all {}", found.proves, found.speaks_tls, found.unlimited));
            text += &format!("{user}: {}\n", words.as_deref().unwrap_or("no login"));
        }
        expect![[r#"
            root: proves false, TLS false, all true
            mysql: proves true, TLS false, all true
            mariadb.sys: no login
            app: proves true, TLS true, all false
            open: proves false, TLS false, all false
            clerk: no login
        "#]]
        .assert_eq(&text);
    }

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
}
