//! The security matrix of a running PostgreSQL.

use tithe_harness::{
    database::Server,
    fault::Fault,
    inspect::{Feature, Observation, State},
    protection::Setup,
    session::SqlSession as _,
};

use super::{schema::tls_of, session::PostgresSession, target::PRODUCT};
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
