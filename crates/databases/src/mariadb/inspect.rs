//! The security matrix of a running MariaDB or MySQL.

use std::path::Path;

use tithe_harness::{
    database::{Paths, Server},
    evidence::Evidence,
    fault::Fault,
    inspect::{CanaryChecks, Feature, Observation, State},
    protection::Setup,
    session::SqlSession as _,
    workload::Table,
};

use super::{
    evidence::{audit_complete::AuditComplete, general_log::GeneralLogComplete},
    proof::CACHING_SHA2,
    schema::{tls_of, unencrypted},
    session::MariaDbSession,
    target::PRODUCT,
};
use crate::{
    inspect::{authentication, not_offered, observe, transport},
    target::Target,
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<Observation>, Fault> {
    let target = PRODUCT.target(server, setup)?;
    let mut session = MariaDbSession::open(&target)?;
    let method = session.method().to_owned();
    let tls = tls_of(&mut session)?;
    let offers = session.shown("GLOBAL VARIABLES", "have_ssl").map(|value| value.as_deref() == Some("YES"));
    let mut seen = vec![authentication(&target, &method, open)];
    seen.extend(transport(&target, &tls, offers, open));
    seen.push(observe(Feature::Authorisation, || authorisation(&mut session)));
    seen.push(observe(Feature::AtRest, || at_rest(&mut session)));
    seen.push(observe(Feature::Auditing, || auditing(&mut session)));
    seen.push(observe(Feature::ProxyRoles, || proxies(&mut session)));
    seen.push(observe(Feature::NodeToNode, || {
        Ok((State::Unseen, "what replicas speak is known to them, not to this server".to_owned()))
    }));
    seen.push(if method == CACHING_SHA2 {
        Observation::new(Feature::AuthenticationCaching, State::Enforced, format!("by {method}"))
    } else {
        Observation::new(Feature::AuthenticationCaching, State::NotOffered, format!("not by {method}"))
    });
    seen.extend(not_offered(&[(Feature::JmxAuthentication, "no Java virtual machine")]));
    Ok(seen)
}

fn open(target: &Target) -> Result<String, Fault> {
    Ok(MariaDbSession::open(target)?.method().to_owned())
}

/// The table of accounts is readable by administrators only.
fn authorisation(session: &mut MariaDbSession) -> Result<(State, String), Fault> {
    let grants = session.run("SHOW GRANTS")?;
    let all = grants.iter().flatten().flatten().any(|grant| grant.contains("ALL PRIVILEGES ON *.*"));
    if all {
        return Ok((State::Unseen, "the account has all privileges: nothing is refused to it".to_owned()));
    }
    Ok(match session.run("SELECT COUNT(*) FROM mysql.user") {
        Err(fault @ Fault::Refused(_)) => (State::Enforced, format!("the table of accounts: {fault}")),
        Err(fault) => (State::Unseen, fault.to_string()),
        Ok(_) => (State::Available, "an account without all privileges reads the table of accounts".to_owned()),
    })
}

/// New tables, old tables and logs must be encrypted: each of them may be forgotten.
fn at_rest(session: &mut MariaDbSession) -> Result<(State, String), Fault> {
    let Some(tables) = session.shown("GLOBAL VARIABLES", "innodb_encrypt_tables")? else {
        return Ok((State::Unseen, "this product's settings are not known here".to_owned()));
    };
    let log = session.shown("GLOBAL VARIABLES", "innodb_encrypt_log")?.unwrap_or_default();
    let binlog = session.shown("GLOBAL VARIABLES", "encrypt_binlog")?.unwrap_or_default();
    let logs_binary = session.shown("GLOBAL VARIABLES", "log_bin")?.unwrap_or_default();
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

fn auditing(session: &mut MariaDbSession) -> Result<(State, String), Fault> {
    let general = session.shown("GLOBAL VARIABLES", "general_log")?.unwrap_or_default();
    let logging = session.shown("GLOBAL VARIABLES", "server_audit_logging")?;
    let events = session.shown("GLOBAL VARIABLES", "server_audit_events")?.unwrap_or_default().to_ascii_uppercase();
    let excluded = session.shown("GLOBAL VARIABLES", "server_audit_excl_users")?.unwrap_or_default();
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

fn proxies(session: &mut MariaDbSession) -> Result<(State, String), Fault> {
    let count = session.value("SELECT COUNT(*) FROM mysql.proxies_priv WHERE User <> 'root'")?;
    let state = if count == "0" { State::Off } else { State::Available };
    Ok((state, format!("{count} grants that let an account act as another (GRANT PROXY)")))
}

/// Where canaries can be looked for: the table's own file and the redo log, and the log that the settings name.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = MariaDbSession::open(&PRODUCT.target(server, setup)?)?;
    let mut setting = |name: &str| session.shown("GLOBAL VARIABLES", name).map(|value| value.unwrap_or_default());
    let mut audit: Option<Box<dyn Evidence>> = None;
    let mut log = None;
    if setting("server_audit_logging")? == "ON" {
        let events = setting("server_audit_events")?.to_ascii_uppercase();
        // No list at all means every event.
        let events = if events.is_empty() { "CONNECT,QUERY".to_owned() } else { events };
        audit = Some(Box::new(AuditComplete::new(&events)));
        log = Some(setting("server_audit_file_path")?);
    } else if setting("general_log")? == "ON" {
        audit = Some(Box::new(GeneralLogComplete));
        log = Some(setting("general_log_file")?);
    }
    let folder = setting("datadir")?;
    Ok(CanaryChecks { paths: files(Path::new(&folder), log.as_deref(), table).unwrap_or_default(), audit })
}

/// The file of `table` in `folder`, the redo log and the `log`; `None` where the file cannot be seen from here. Its name is
/// unlike that of every other server's, so that it is the one of this server.
fn files(folder: &Path, log: Option<&str>, table: &Table) -> Option<Paths> {
    let file = folder.join("tithe").join(format!("{}.ibd", table.name));
    file.metadata().ok()?;
    Some(Paths {
        data: vec![file],
        journal: vec![folder.join("ib_logfile0")],
        logs: log.map(|log| folder.join(log)).into_iter().collect(),
    })
}
