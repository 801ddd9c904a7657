//! The security matrix of a running MySQL: what is its own.

use std::path::Path;

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
    evidence::LOG,
    flavour::{FLAVOUR, KEYRING_UNTOLD, keyring, unencrypted, unencrypted_databases, unencrypted_logs},
    launch::{BINLOG, REDO, REDO_FILES, TABLES, UNDO, UNDO_FILES},
};
use crate::mysql_family::{
    evidence::general_log::GeneralLogComplete,
    inspect::{Looks, files, setting},
    session::WireSession,
};

/// How MySQL's own rows are looked at.
pub static LOOKS: Looks = Looks {
    open: |target| Ok(FLAVOUR.open(target)?.method().to_owned()),
    // Where MariaDB says ALL PRIVILEGES, MySQL names every one of them.
    is_of_administrator: |grant| grant.contains(" ON *.* ") && grant.contains("CREATE USER"),
    at_rest,
    auditing,
};

/// New tables, old tables and logs must be encrypted, and no account may do without: each of them may be forgotten.
fn at_rest(session: &mut WireSession) -> Result<(State, String), Fault> {
    let mut words = Vec::new();
    let mut on = [false; 6];
    let names = [TABLES, "table_encryption_privilege_check", REDO, UNDO, BINLOG, "log_bin"];
    for (on, name) in on.iter_mut().zip(names) {
        let value = setting(session, name)?;
        words.push(format!("{name} = {value}"));
        *on = value == "ON";
    }
    let [tables, checked, redo, undo, binlog, logs] = on;
    let active =
        |told: &[(String, String)]| told.iter().any(|(name, value)| name == "Component_status" && value == "Active");
    words.push(match keyring(session)? {
        None => format!("keyring component: {KEYRING_UNTOLD}"),
        Some(told) if active(&told) => "a keyring component is active".to_owned(),
        Some(_) => "no keyring component is active".to_owned(),
    });
    let all = session.value("SELECT COUNT(*) FROM information_schema.INNODB_TABLESPACES WHERE ENCRYPTION = 'Y'")?;
    let open = [unencrypted(session, true)?, unencrypted_logs(session)?, unencrypted_databases(session)?];
    let named = |open: &[String]| open.first().map_or_else(String::new, |first| format!(" ({first}, ...)"));
    let kinds = ["tablespaces are not encrypted", "binary logs are not", "databases have new tables in the clear"];
    words.extend(open.iter().zip(kinds).map(|(open, kind)| format!("{} {kind}{}", open.len(), named(open))));
    let complete = open.iter().all(Vec::is_empty) && tables && checked && redo && undo && (binlog || !logs);
    let nothing = all == "0" && !(tables || redo || undo || binlog);
    let state = match (complete, nothing) {
        (true, _) => State::Enforced,
        (_, true) => State::Off,
        _ => State::Available,
    };
    Ok((state, words.join(", ")))
}

/// An audit log is a plugin of MySQL Enterprise, or a plugin or component of Percona Server. What such a one leaves out is not
/// known here, so it is never called enforced.
fn auditing(session: &mut WireSession) -> Result<(State, String), Fault> {
    let general = setting(session, "general_log")?;
    let plugins = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS \
                   WHERE PLUGIN_TYPE = 'AUDIT' AND PLUGIN_STATUS = 'ACTIVE' AND PLUGIN_NAME LIKE '%audit%'";
    let plugins: Vec<String> = session.run(plugins)?.into_iter().flatten().flatten().collect();
    if !plugins.is_empty() {
        let seen =
            format!("{} is active, general_log = {general}: what it leaves out is not known", plugins.join(", "));
        return Ok((State::Available, seen));
    }
    let state = if general == "ON" { State::Available } else { State::Off };
    let edition = setting(session, "version_comment")?;
    Ok((
        state,
        format!(
            "no audit plugin (MySQL Enterprise and Percona Server have one; this is {edition}), general_log = {general}"
        ),
    ))
}

/// Where canaries can be looked for: the table's own file, the redo and undo logs, and the general log.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = FLAVOUR.administrator(server, setup)?;
    let mut setting = |name: &str| setting(&mut session, name);
    let mut audit: Option<Box<dyn Evidence>> = None;
    let mut log = None;
    if setting("general_log")? == "ON" {
        audit = Some(Box::new(GeneralLogComplete(&LOG)));
        log = Some(setting("general_log_file")?);
    }
    let folder = setting("datadir")?;
    let folder = Path::new(&folder);
    let journal = REDO_FILES.iter().chain(&UNDO_FILES).map(|name| folder.join(name)).collect();
    Ok(CanaryChecks { paths: files(folder, journal, log.as_deref(), table).unwrap_or_default(), audit })
}
