//! The security matrix of a running PostgreSQL.

use std::{fs::File, io::Read as _, path::Path};

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
    evidence::{audit_complete::AuditComplete, statement_log::StatementLog},
    schema::{DIALECT, tls_of},
    session::PostgresSession,
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
    let mut session = PostgresSession::open(&target, true, false)?;
    let method = session.greeting().method.clone();
    let tls = tls_of(&mut session)?;
    let offers = session.value("SHOW ssl").map(|value| value == "on");
    let mut seen = vec![authentication(&target, &method, open)];
    seen.extend(transport(&target, &tls, offers, open));
    seen.push(observe(Feature::Authorisation, || authorisation(&mut session)));
    seen.push(observe(Feature::Auditing, || auditing(&mut session)));
    seen.push(observe(Feature::ProxyRoles, || roles(&mut session)));
    seen.push(observe(Feature::NodeToNode, || replication(&mut session)));
    seen.extend(not_offered(&[
        (Feature::AtRest, "PostgreSQL encrypts no file; a volume below it may"),
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "every login is checked anew"),
    ]));
    Ok(seen)
}

fn open(target: &Target) -> Result<String, Fault> {
    Ok(PostgresSession::open(target, true, false)?.greeting().method.clone())
}

/// Passwords of accounts are readable by superusers only.
fn authorisation(session: &mut PostgresSession) -> Result<(State, String), Fault> {
    if session.value("SHOW is_superuser")? == "on" {
        return Ok((State::Unseen, "the account is a superuser, to whom nothing is refused".to_owned()));
    }
    Ok(match session.run("SELECT count(rolpassword) FROM pg_authid") {
        Err(fault) => (State::Enforced, format!("the table of passwords: {fault}")),
        Ok(_) => (State::Available, "an account without superuser's rights reads the table of passwords".to_owned()),
    })
}

fn auditing(session: &mut PostgresSession) -> Result<(State, String), Fault> {
    let statements = session.value("SHOW log_statement")?;
    let pgaudit = session.value("SELECT coalesce(current_setting('pgaudit.log', true), 'not loaded')")?;
    let seen = format!("log_statement = {statements}, pgaudit.log = {pgaudit}");
    let classes: Vec<_> = pgaudit.split(',').map(|class| class.trim().to_ascii_lowercase()).collect();
    let has = |class: &str| classes.iter().any(|name| name == class || name == "all");
    let excludes = classes.iter().any(|name| name.starts_with('-'));
    Ok(match (statements.as_str(), has("read") && has("write") && !excludes) {
        ("all", _) | (_, true) => (State::Enforced, format!("{seen}: reads and writes, as the settings say")),
        _ if statements != "none" || has("read") || has("write") || has("ddl") || has("role") => {
            (State::Available, format!("{seen}: not all reads and writes"))
        }
        _ => (State::Off, seen),
    })
}

fn roles(session: &mut PostgresSession) -> Result<(State, String), Fault> {
    let count = session.value("SELECT count(*) FROM pg_auth_members WHERE roleid >= 16384")?;
    let state = if count == "0" { State::Off } else { State::Available };
    Ok((state, format!("{count} memberships that let an account act as another (SET ROLE)")))
}

fn replication(session: &mut PostgresSession) -> Result<(State, String), Fault> {
    let sql =
        "SELECT count(*), count(*) FILTER (WHERE NOT s.ssl) FROM pg_stat_replication JOIN pg_stat_ssl s USING (pid)";
    let row = session.run(sql)?.into_iter().next().unwrap_or_default();
    let count = |number: usize| row.get(number).cloned().flatten().unwrap_or_default();
    Ok(match (count(0).as_str(), count(1).as_str()) {
        ("0" | "", _) => (State::Unseen, "no other server is connected".to_owned()),
        (all, "0") => (State::Enforced, format!("all {all} connected servers speak TLS")),
        (all, plain) => (State::Available, format!("{plain} of {all} connected servers speak plaintext")),
    })
}

/// Where canaries can be looked for: the table's own file and the journal, and the log that the settings name.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = PostgresSession::open(&PRODUCT.target(server, setup)?, true, false)?;
    let mut audit: Option<Box<dyn Evidence>> = None;
    let pgaudit = session.value("SELECT coalesce(current_setting('pgaudit.log', true), 'none')")?;
    if session.value("SHOW log_statement")? == "all" {
        audit = Some(Box::new(StatementLog));
    } else if !matches!(pgaudit.as_str(), "none" | "") {
        let parameter = session.value("SHOW pgaudit.log_parameter")? == "on";
        audit = Some(Box::new(AuditComplete::new(true, true, parameter)));
    }
    Ok(CanaryChecks { paths: files(&mut session, table).unwrap_or_default(), audit })
}

/// The files of `table` and the journal; `None` where they cannot be read from here, or are not those of this server.
fn files(session: &mut PostgresSession, table: &Table) -> Option<Paths> {
    let folder = session.value("SHOW data_directory").ok()?;
    let folder = Path::new(&folder);
    let identifier: u64 = session.value("SELECT system_identifier FROM pg_control_system()").ok()?.parse().ok()?;
    // A forwarded port may lead to another machine, whose folder has the same name here. The first member of
    // `ControlFileData` (PostgreSQL's pg_control.h) tells the servers apart.
    let mut begins = [0; 8];
    File::open(folder.join("global/pg_control")).ok()?.read_exact(&mut begins).ok()?;
    if u64::from_ne_bytes(begins) != identifier {
        return None;
    }
    let name = DIALECT.qualified(table).replace('\'', "''");
    let file = session.value(&format!("SELECT pg_relation_filepath('{name}')")).ok()?;
    Some(Paths { data: vec![folder.join(file)], journal: vec![folder.join("pg_wal")], logs: Vec::new() })
}
