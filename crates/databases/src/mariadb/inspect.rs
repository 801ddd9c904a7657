//! The security matrix of a running MariaDB: what is its own.

use std::path::Path;

use tithe_harness::{
    database::Server,
    evidence::Evidence,
    fault::Fault,
    inspect::{CanaryChecks, State},
    protection::Setup,
    workload::Table,
};

use super::{
    evidence::{LOG, audit_complete::AuditComplete},
    flavour::{FLAVOUR, unencrypted},
};
use crate::mysql_family::{
    evidence::general_log::GeneralLogComplete,
    inspect::{Looks, files, setting},
    session::WireSession,
};

/// How MariaDB's own rows are looked at.
pub static LOOKS: Looks = Looks {
    open: |target| Ok(FLAVOUR.open(target)?.method().to_owned()),
    is_of_administrator: |grant| grant.contains("ALL PRIVILEGES ON *.*"),
    at_rest,
    auditing,
};

/// New tables, old tables and logs must be encrypted: each of them may be forgotten.
fn at_rest(session: &mut WireSession) -> Result<(State, String), Fault> {
    let Some(tables) = session.shown("GLOBAL VARIABLES", "innodb_encrypt_tables")? else {
        return Ok((State::Unseen, "the server does not show its setting innodb_encrypt_tables".to_owned()));
    };
    let log = setting(session, "innodb_encrypt_log")?;
    let binlog = setting(session, "encrypt_binlog")?;
    let logs_binary = setting(session, "log_bin")?;
    let open = unencrypted(session)?;
    let named = open.first().map_or_else(String::new, |first| format!(" ({first}, ...)"));
    let seen = format!(
        "innodb_encrypt_tables = {tables}, innodb_encrypt_log = {log}, encrypt_binlog = {binlog} (log_bin = {logs_binary}), \
         {} tablespaces are not encrypted{named}",
        open.len()
    );
    let complete = tables == "FORCE" && log == "ON" && (binlog == "ON" || logs_binary == "OFF") && open.is_empty();
    Ok(match (complete, tables.as_str()) {
        (true, _) => (State::Enforced, seen),
        (false, "OFF") if log != "ON" => (State::Off, seen),
        _ => (State::Available, seen),
    })
}

fn auditing(session: &mut WireSession) -> Result<(State, String), Fault> {
    let general = setting(session, "general_log")?;
    let logging = session.shown("GLOBAL VARIABLES", "server_audit_logging")?;
    let events = setting(session, "server_audit_events")?.to_ascii_uppercase();
    let excluded = setting(session, "server_audit_excl_users")?;
    let Some(logging) = logging else {
        let state = if general == "ON" { State::Available } else { State::Off };
        return Ok((state, format!("server_audit is not loaded, general_log = {general}")));
    };
    let seen = format!("server_audit_logging = {logging}, events = `{events}`, excluded accounts = `{excluded}`");
    // No list at all means every event.
    let both = events.is_empty() || events.split(',').any(|event| event == "QUERY" || event == "QUERY_DML");
    Ok(match (logging.as_str(), both && excluded.is_empty()) {
        ("ON", true) => (State::Enforced, format!("{seen}: reads and writes, as the settings say")),
        ("ON", false) => (State::Available, format!("{seen}: not all reads and writes")),
        _ => (State::Off, seen),
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
        let events = setting("server_audit_events")?.to_ascii_uppercase();
        // No list at all means every event.
        let events = if events.is_empty() { "CONNECT,QUERY".to_owned() } else { events };
        audit = Some(Box::new(AuditComplete::new(&events)));
        log = Some(setting("server_audit_file_path")?);
    } else if setting("general_log")? == "ON" {
        audit = Some(Box::new(GeneralLogComplete(&LOG)));
        log = Some(setting("general_log_file")?);
    }
    let folder = setting("datadir")?;
    let folder = Path::new(&folder);
    let journal = vec![folder.join("ib_logfile0")];
    Ok(CanaryChecks { paths: files(folder, journal, log.as_deref(), table).unwrap_or_default(), audit })
}
