//! The security matrix of a running PostgreSQL.

mod audit;
mod hops;
mod login;
mod recorders;
mod rights;

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};
use tithe_plugin::{
    evidence::Check,
    matrix::{Feature, FeatureStatus},
    product::CanaryChecks,
    recording::{Recording, Sent},
    session::{Connection as _, SqlSession as _, Table},
    setup::{SPACE, Setup},
};

use super::{
    evidence::{
        audit_complete::{AuditComplete, definitions_logged},
        statement_log::StatementLog,
    },
    hba::{self, Hba},
    peer,
    schema::{POOLED, YCSB_DIALECT, folder_here, hops_of},
    session::PostgresSession,
    target::PRODUCT,
};
use crate::{
    inspect::{Judgement, Rules, client_rows, inspect_feature, not_offered},
    target::Target,
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = PRODUCT.target(server, setup)?;
    let mut session = PostgresSession::open(&target, false)?;
    // If the server takes longer, the row is not judged, in place of hanging. A pooler might lend the connection, with
    // its settings, to others.
    let hops = hops_of(&mut session);
    let is_direct = hops.as_ref().is_ok_and(|hops| hops.between != Some(POOLED));
    prepare(&mut session, is_direct)?;
    let method = peer::method(&mut session, &target);
    let hba = hba::read(&mut session);
    let rules = |of: fn(&Hba) -> Rules| hba.as_ref().map(of).map_err(Clone::clone);
    let log = audit::read(&mut session);
    let authentication = login::authentication(&mut session, &target, method, (hba.as_ref(), hops.as_ref()));
    let authentication = match &log {
        Ok(log) => log.of_passwords(authentication),
        Err(_) => authentication,
    };
    let mut seen = vec![authentication.of(Feature::Authentication)];
    match hops.and_then(|hops| hops::clients(&mut session, &target, &hops, rules(Hba::of_transport))) {
        Ok(rows) => seen.extend(rows),
        Err(fault) => {
            let fault = needing(fault, "GRANT SELECT ON pg_stat_ssl");
            seen.extend(client_rows(Judgement::unseen(fault.to_string())));
        }
    }
    match rights::read(&mut session) {
        Ok(mut rights) => {
            let readers = rights::readers_of_passwords(&mut session);
            rights.read_others(&mut session, |name| session_in(&target, name, is_direct));
            seen.push(rights.authorisation(readers).of(Feature::Authorisation));
            seen.push(rights.roles().of(Feature::ProxyRoles));
        }
        Err(fault) => {
            let unseen = Judgement::unseen(fault.to_string());
            seen.extend([Feature::Authorisation, Feature::ProxyRoles].map(|feature| unseen.clone().of(feature)));
        }
    }
    seen.push(inspect_feature(Feature::Auditing, || log.as_ref().map(audit::Log::judge).map_err(Clone::clone)));
    let is_logical = session.value("SHOW wal_level").is_ok_and(|level| level == "logical");
    let of_replication = if is_logical { Hba::of_logical_replication } else { Hba::of_replication };
    let replication = hops::replication(&mut session, rules(of_replication))
        .map_err(|fault| needing(fault, "GRANT SELECT ON pg_stat_replication, pg_stat_ssl, pg_subscription"));
    seen.push(inspect_feature(Feature::NodeToNode, || replication));
    seen.push(audit::Log::at_rest(log.as_ref()).of(Feature::AtRest));
    seen.extend(not_offered(&[
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "every login is checked again"),
    ]));
    Ok(seen)
}

/// Has the server abort slow statements and take names from its own schema alone, because others may make views and
/// functions of the same names (CVE-2018-1058). For a `session` that `is_direct` only.
fn prepare(session: &mut PostgresSession, is_direct: bool) -> Result<(), Fault> {
    const SETTINGS: [&str; 2] = ["SET statement_timeout = '4s'", "SET search_path = pg_catalog"];
    SETTINGS.into_iter().filter(|_| is_direct).try_for_each(|setting| session.run(setting).map(drop))
}

/// A session in the database `name` of the server at `target`, [prepared](prepare).
fn session_in(target: &Target, name: &str, is_direct: bool) -> Result<PostgresSession, Fault> {
    let mut session = PostgresSession::open(&Target { database: name.to_owned(), ..target.clone() }, false)?;
    prepare(&mut session, is_direct)?;
    Ok(session)
}

/// A refusal with the `right` that would do.
fn needing(fault: Fault, right: &str) -> Fault {
    match fault {
        Fault::Refused(words) => Fault::Refused(format!("{words}: {right}")),
        other => other,
    }
}

fn open(target: &Target) -> Result<String, Fault> {
    Ok(PostgresSession::open(target, false)?.greeting().method.clone())
}

/// As [`open`], [`Target::in_plaintext`].
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    match open(&target.in_plaintext()) {
        // A pooler that requires TLS refuses with a protocol violation.
        Err(Fault::Server(words)) if words.starts_with("08P01: ") => Err(Fault::Refused(words)),
        outcome => outcome,
    }
}

/// Which recorders of the server, and of the sessions of `setup`, repeat the text that is `sent`.
///
/// # Errors
/// When the server refuses.
pub fn recording(server: &Server, setup: &Setup, sent: Sent) -> Result<Recording, Fault> {
    let mut session = PostgresSession::open(&PRODUCT.target(server, setup)?, false)?;
    let log = audit::read(&mut session)?;
    for statement in &setup.session_statements {
        session.run_statement(statement)?;
    }
    Ok(log.with_session(&mut session)?.recording(sent))
}

/// Where canaries can be searched: the table's own file, the journal, and the log that the settings name.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = PostgresSession::open(&PRODUCT.target(server, setup)?, false)?;
    let mut audit: Vec<Box<dyn Check>> = Vec::new();
    let pgaudit =
        "SELECT concat(nullif(current_setting('pgaudit.log', true), 'none'), current_setting('pgaudit.role', true))";
    let is_audited = !session.value(pgaudit)?.is_empty();
    let by_duration = session.value("SHOW log_min_duration_statement")? == "0";
    if session.value("SHOW log_statement")? == "all" || (by_duration && !is_audited) {
        audit.push(Box::new(StatementLog));
    } else if is_audited {
        let parameter = session.value("SHOW pgaudit.log_parameter")? == "on";
        audit.push(Box::new(AuditComplete { read: true, write: true, parameter, by_object: false, sink: None }));
        let list = session.value("SELECT current_setting('pgaudit.log', true)")?;
        // Without its text a definition is not found in the log.
        if recorders::classes(&list).contains("ddl") && session.value("SHOW pgaudit.log_statement")? == "on" {
            audit.push(Box::new(definitions_logged()));
        }
    }
    Ok(CanaryChecks { paths: files(&mut session, table).unwrap_or_default(), audit })
}

/// The files of `table` and the journal; `None` if they cannot be read from here, or are not those of this server.
fn files(session: &mut PostgresSession, table: &Table) -> Option<Paths> {
    let folder = folder_here(session)?;
    let name = YCSB_DIALECT.qualified(SPACE, table).replace('\'', "''");
    let file = session.value(&format!("SELECT pg_relation_filepath('{name}')")).ok()?;
    Some(Paths { data: vec![folder.join(file)], journal: vec![folder.join("pg_wal")], logs: Vec::new() })
}

#[cfg(test)]
mod tests;
