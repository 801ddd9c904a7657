//! The security matrix of a running MariaDB: the rows that only MariaDB has.

use std::path::Path;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    evidence::Check,
    matrix::State,
    product::CanaryChecks,
    session::{SqlSession as _, Table},
    setup::Setup,
};

use super::{
    access::ACCESS,
    accounts,
    at_rest::{NOBODY_ENCRYPTS, encrypts_some, unencrypted},
    evidence::{
        LOG,
        audit_complete::{AuditComplete, definitions_logged},
    },
};
use crate::{
    findings::MY_REST_NOBODY_ENCRYPTS,
    inspect::{Judgement, Rules},
    mysql_family::{
        evidence::{general_log::GeneralLogComplete, served::is_this_machine},
        inspect::{
            InspectionQueries, OtherTable, files, lies_in, log_tables, of_files, other_files, other_tables, recorded,
            redo_files,
        },
        recorders::{self, Kept, Settings},
        replication::Source,
        session::WireSession,
    },
};

/// How MariaDB's own rows are checked.
pub static QUERIES: InspectionQueries = InspectionQueries {
    open: |target| Ok(ACCESS.open(target)?.method().to_owned()),
    plaintext: |target| ACCESS.plaintext(target),
    accounts: accounts::read,
    roles: accounts::read_roles,
    is_of_administrator: |grant| grant.contains("ALL PRIVILEGES ON *.*"),
    at_rest,
    auditing,
    hurry: "SET SESSION max_statement_time = 4",
    sources,
};

/// The values with which everything is encrypted, except the binary log, which may be off.
const SWITCHES: [(&str, &str); 6] = [
    ("innodb_encrypt_tables", "FORCE"),
    ("innodb_encrypt_log", "ON"),
    ("aria_encrypt_tables", "ON"),
    ("encrypt_tmp_disk_tables", "ON"),
    ("encrypt_tmp_files", "ON"),
    ("innodb_encrypt_temporary_tables", "ON"),
];

/// Plugins whose keys follow from their numbers (MariaDB's source, `plugin/example_key_management` and
/// `plugin/debug_key_management`).
const KNOWN_KEYS: [&str; 2] = ["example_key_management", "debug_key_management"];

/// New tables, old tables of all engines, temporary files and logs must be encrypted: each of them may have been
/// forgotten.
fn at_rest(session: &mut WireSession, settings: &Settings) -> Result<Judgement, Fault> {
    let Some(tables) = settings.get("innodb_encrypt_tables") else {
        return Ok(Judgement::unseen("the server does not show its setting innodb_encrypt_tables"));
    };
    let mut words = Vec::new();
    let mut exceptions = Vec::new();
    let mut nobody_encrypts = false;
    for (name, wanted) in SWITCHES {
        let value = settings.value(name);
        words.push(format!("{name} = {value}"));
        if value != wanted {
            exceptions.push(format!("{name} is not {wanted}"));
        }
    }
    words.push(format!(
        "encrypt_binlog = {} (log_bin = {})",
        settings.value("encrypt_binlog"),
        settings.value("log_bin")
    ));
    let is_set = SWITCHES.iter().any(|(name, _)| !["", "OFF"].contains(&settings.value(name)));
    let encrypts_binlog = settings.is_on("encrypt_binlog") && settings.is_on("log_bin");
    let key = settings.value("file_key_management_filename");
    let kept = keys(session, key);
    // Which tablespaces are encrypted is not shown to every account. Without keys none is.
    let off = !is_set && !encrypts_binlog && !encrypts_some(session).unwrap_or(kept != NO_KEYS);
    let (others, mut doubts) = other_tables(session)?;
    let encrypts_aria = settings.is_on("aria_encrypt_tables");
    others.iter().for_each(|table| judge_table(table, encrypts_aria, &mut exceptions, &mut doubts));
    match unencrypted(session) {
        Ok(open) => {
            words.push(format!("{} tablespaces are not encrypted", open.len()));
            exceptions.extend(open.iter().map(|name| format!("tablespace {name}")));
            if !open.is_empty() && tables != "OFF" && settings.value("innodb_encryption_threads") == "0" {
                exceptions.insert(0, NOBODY_ENCRYPTS.to_owned());
                nobody_encrypts = true;
            }
        }
        Err(fault) => doubts.push(format!("tablespaces (GRANT PROCESS ON *.*: {fault})")),
    }
    match session.value("SELECT COUNT(*) FROM mysql.column_stats") {
        Ok(count) if count == "0" => {}
        Ok(count) => exceptions.push(format!(
            "mysql.column_stats, a table of Aria, has the least and greatest values of {count} columns, and aria_log has \
             them in the clear: remove the rows, and analyze without PERSISTENT"
        )),
        Err(fault) => doubts.push(format!("mysql.column_stats (GRANT SELECT ON mysql.*: {fault})")),
    }
    words.push("undo and doublewrite as their tablespaces".to_owned());
    binary_logs(session, settings, &mut exceptions, &mut doubts);
    let takes = sources(session);
    if takes.as_ref().is_ok_and(|sources| !sources.is_empty()) && settings.is_on("encrypt_binlog") {
        relay_logs(session, &mut exceptions, &mut doubts);
    }
    let logs = ("encrypt_binlog", settings.is_on("encrypt_binlog"));
    other_files(takes, logs, settings, &mut exceptions, &mut doubts);
    let mut leaks = recorders::in_the_clear(settings);
    log_tables(session, &mut leaks, &mut doubts);
    if KNOWN_KEYS.iter().any(|plugin| kept.contains(plugin)) {
        exceptions.push("the keys are those of a plugin for tests, which anybody can work out".to_owned());
    }
    words.push(kept);
    if !key.is_empty() && lies_in(key, settings.value("datadir")) {
        exceptions.push(format!("the keys are in the folder of the data: file_key_management_filename = {key}"));
    }
    let state = if off { State::Off } else { State::Enforced };
    let mut findings = of_files(&exceptions, &leaks);
    if nobody_encrypts {
        findings.insert(0, &MY_REST_NOBODY_ENCRYPTS);
    }
    exceptions.extend(leaks);
    let rules = Rules {
        read: format!("settings, tablespaces, logs and {} tables of other engines, no dumps", others.len()),
        exceptions,
        remedy: "set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off",
        doubts,
        findings,
    };
    Ok(Judgement::account(state, words.join(", ")).with_rules(Ok(rules), ""))
}

/// Longest statement of a canary that creates a table.
const DEFINITION_BYTES: u32 = 100;

/// Binary logs that are read, the oldest first. On a server with more, the newest are assumed to be the same.
const LOGS_READ: usize = 40;

/// The binary log, including logs older than the setting. An encrypted one has a mark at its start.
fn binary_logs(session: &mut WireSession, settings: &Settings, exceptions: &mut Vec<String>, doubts: &mut Vec<String>) {
    if !settings.is_on("log_bin") {
        return;
    }
    if !settings.is_on("encrypt_binlog") {
        let repeats = recorders::statements_in_binary_log(settings);
        let repeats =
            repeats.map_or(String::new(), |by| format!(", and repeats statements with the keys in them ({by})"));
        exceptions.push(format!("the binary log is not encrypted{repeats}"));
        return;
    }
    let read = |session: &mut WireSession| -> Result<(Vec<String>, usize), Fault> {
        let logs: Vec<String> =
            session.run("SHOW BINARY LOGS")?.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        let mut open = Vec::new();
        for log in logs.iter().take(LOGS_READ) {
            if !begins_encrypted(session, &format!("SHOW BINLOG EVENTS IN '{log}' LIMIT 2"))? {
                open.push(format!("binary log {log}, older than encrypt_binlog = ON: PURGE BINARY LOGS"));
            }
        }
        Ok((open, logs.len().saturating_sub(LOGS_READ)))
    };
    match read(session) {
        Ok((open, unread)) => {
            exceptions.extend(open);
            if unread > 0 {
                doubts.push(format!("{unread} newer binary logs"));
            }
        }
        Err(fault) => doubts.push(format!("binary logs (GRANT BINLOG MONITOR ON *.*: {fault})")),
    }
}

/// True if the first `events` of a log show that it is encrypted.
fn begins_encrypted(session: &mut WireSession, events: &str) -> Result<bool, Fault> {
    Ok(session.run(events)?.iter().flatten().flatten().any(|value| value == "Start_encryption"))
}

/// The oldest relay log, which may be from before the setting.
fn relay_logs(session: &mut WireSession, exceptions: &mut Vec<String>, doubts: &mut Vec<String>) {
    match begins_encrypted(session, "SHOW RELAYLOG EVENTS LIMIT 2") {
        Ok(true) => {}
        Ok(false) => exceptions.push("the oldest relay log is older than encrypt_binlog = ON: RESET SLAVE".to_owned()),
        Err(fault) => doubts.push(format!("relay logs (GRANT REPLICA MONITOR ON *.*: {fault})")),
    }
}

/// What is said of a server that cannot encrypt anything.
const NO_KEYS: &str = "no plugin has keys";

/// Which plugin has the keys, and the file that holds them.
fn keys(session: &mut WireSession, file: &str) -> String {
    let sql = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'ENCRYPTION' AND PLUGIN_STATUS = \
               'ACTIVE'";
    match session.run(sql) {
        Ok(rows) if rows.is_empty() => NO_KEYS.to_owned(),
        Ok(rows) => {
            let names: Vec<String> = rows.into_iter().flatten().flatten().collect();
            let place = if file.is_empty() { String::new() } else { format!(" ({file})") };
            format!("keys by {}{place}", names.join(", "))
        }
        Err(fault) => format!("which plugin has the keys: {fault}"),
    }
}

/// Of the other engines only Aria encrypts, and its log is in plaintext even then.
fn judge_table(table: &OtherTable, encrypts_aria: bool, exceptions: &mut Vec<String>, doubts: &mut Vec<String>) {
    let name = format!("{} table {}", table.engine, table.name);
    if table.engine != "Aria" || !encrypts_aria || table.row_format != "Page" {
        exceptions.push(name);
    } else {
        exceptions.push(format!("{name}, whose rows aria_log holds in the clear"));
        doubts.push(format!("{name} (the server does not show whether it was made before aria_encrypt_tables was ON)"));
    }
}

/// The audit plugin if it records; otherwise the logs that record without being an audit log.
fn auditing(_: &mut WireSession, settings: &Settings) -> Result<Judgement, Fault> {
    let (state, others) = recorded(settings);
    let Some(audit) = recorders::server_audit(settings) else {
        return Ok(Judgement::whole(state, format!("server_audit is not loaded, {others}")));
    };
    let audited = match audit.kept {
        Kept::Every => State::Enforced,
        Kept::Some => State::Available,
        Kept::Nothing => State::Off,
    };
    let seen = audit.seen();
    let judged = match (audited, state) {
        (State::Enforced, _) => Judgement::whole(audited, format!("{seen}: reads and writes, by the settings")),
        (State::Available, _) if recorders::has_filters(settings) => Judgement::whole(audited, seen),
        (State::Available, _) => Judgement::whole(audited, format!("{seen}: not all reads and writes")),
        (_, State::Off) => Judgement::whole(State::Off, format!("{seen}, {others}")),
        _ => Judgement::whole(state, format!("{seen}, {others}")),
    };
    let by_syslog = settings.value("server_audit_output_type").eq_ignore_ascii_case("syslog");
    Ok(match audited {
        State::Enforced | State::Available if by_syslog => {
            judged.doubted("what syslog keeps of it (server_audit_output_type)")
        }
        _ => judged,
    })
}

/// The servers that this one replicates from. Columns have fixed positions in MariaDB's `SHOW ALL SLAVES STATUS`; later
/// versions added columns at the end.
fn sources(session: &mut WireSession) -> Result<Vec<Source>, Fault> {
    const HOST: usize = 3;
    const TLS: usize = 28;
    const VERIFIED: usize = 35;
    let is = |row: &[Option<String>], place: usize| row.get(place).and_then(Option::as_deref) == Some("Yes");
    let rows = session.run("SHOW ALL SLAVES STATUS")?.into_iter();
    Ok(rows
        .map(|row| Source {
            host: row.get(HOST).cloned().flatten().unwrap_or_default(),
            tls: is(&row, TLS),
            verified: is(&row, VERIFIED),
        })
        .collect())
}

/// Where canaries can be searched: the table's own file, the redo log, and the log that the settings name.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = ACCESS.administrator(server, setup)?;
    let mut setting = |name: &str| session.setting(name);
    let mut audit: Vec<Box<dyn Check>> = Vec::new();
    let mut log = None;
    if setting("server_audit_logging")? == "ON" {
        let output = setting("server_audit_output_type")?;
        let events = setting("server_audit_events")?.to_ascii_uppercase();
        // No list at all means every event.
        let events = if events.is_empty() { "CONNECT,QUERY".to_owned() } else { events };
        // A table's name must be whole in the log to be found there.
        let limit = setting("server_audit_query_log_limit")?.parse().unwrap_or(0);
        if events.split(',').any(|kind| kind.trim() == "QUERY_DDL") && limit >= DEFINITION_BYTES {
            audit.push(Box::new(definitions_logged()));
        }
        let complete = AuditComplete::new(&events);
        if complete.tries_some() {
            audit.push(Box::new(complete));
        }
        log = Some(setting("server_audit_file_path")?).filter(|_| output == "file");
    } else if setting("general_log")? == "ON" {
        audit.push(Box::new(GeneralLogComplete(&LOG)));
        // If the log is a table or off, the file is an old one.
        let output = setting("log_output")?;
        log = Some(setting("general_log_file")?).filter(|_| output.contains("FILE"));
    }
    let folder = setting("datadir")?;
    let folder = Path::new(&folder);
    // A file that was left where the log was before proves nothing.
    let journal = redo_files(&folder.join(setting("innodb_log_group_home_dir")?));
    let here = is_this_machine(&setting("hostname")?).then(|| files(folder, journal, log.as_deref(), table));
    Ok(CanaryChecks { paths: here.flatten().unwrap_or_default(), audit })
}

#[cfg(test)]
mod tests;
