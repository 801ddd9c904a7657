//! The security matrix of a running PostgreSQL.

mod audit;

use tithe_machine::{fault::Fault, launch::Server, paths::Paths};
use tithe_plugin::{
    evidence::Check,
    matrix::{Feature, FeatureStatus, State},
    product::CanaryChecks,
    session::{SqlSession as _, Table},
    setup::{SPACE, Setup},
};

use super::{
    evidence::{audit_complete::AuditComplete, statement_log::StatementLog},
    hba::{self, Hba},
    schema::{YCSB_DIALECT, folder_here, tls_of},
    session::PostgresSession,
    target::PRODUCT,
};
use crate::{
    inspect::{Judgement, Rules, authentication, client_rows, inspect_feature, limited, not_offered, transport},
    target::Target,
};

/// Looks at every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = PRODUCT.target(server, setup)?;
    let mut session = PostgresSession::open(&target, true, false)?;
    let method = session.greeting().method.clone();
    let tls = tls_of(&mut session)?;
    let offers = session.value("SHOW ssl").map(|value| value == "on");
    let hba = hba::read(&mut session);
    let rules = |of: fn(&Hba) -> Rules| hba.as_ref().map(of).map_err(Clone::clone);
    let authentication = authentication(&target, &method, open).with_rules(rules(Hba::of_authentication), hba::RIGHT);
    let mut transport = transport(&target, &tls, offers, plaintext);
    // Where the server has no TLS at all, every rule says the same.
    if transport.state != State::Off {
        transport = transport.with_rules(rules(Hba::of_transport), hba::RIGHT);
    }
    let mut seen = vec![authentication.of(Feature::Authentication)];
    seen.extend(client_rows(transport));
    seen.push(inspect_feature(Feature::Authorisation, || authorisation(&mut session)));
    seen.push(inspect_feature(Feature::Auditing, || audit::judge_log(&mut session)));
    seen.push(inspect_feature(Feature::ProxyRoles, || roles(&mut session)));
    seen.push(inspect_feature(Feature::NodeToNode, || replication(&mut session, rules(Hba::of_replication))));
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

/// As [`open`], [`Target::in_plaintext`].
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    open(&target.in_plaintext())
}

/// Who may do everything stands in a list that everybody may read. Passwords of accounts are readable by superusers
/// only.
fn authorisation(session: &mut PostgresSession) -> Result<Judgement, Fault> {
    // Who may run programs or write files as the server may become a superuser.
    let sql = "SELECT rolname, rolsuper OR pg_has_role(oid, 'pg_execute_server_program', 'MEMBER') \
               OR pg_has_role(oid, 'pg_write_server_files', 'MEMBER') FROM pg_roles WHERE rolcanlogin ORDER BY oid";
    let rows: Vec<_> = session.run(sql)?.into_iter().map(|row| <[_; 2]>::try_from(row).unwrap_or_default()).collect();
    let unlimited = rows.iter().filter(|[_, all]| all.as_deref() == Some("t"));
    let unlimited: Vec<String> = unlimited.filter_map(|[name, _]| name.clone()).collect();
    let list = limited(&unlimited, rows.len(), "superusers in pg_roles, and who may become one");
    if session.value("SHOW is_superuser")? == "on" {
        return Ok(list);
    }
    Ok(match session.run("SELECT count(rolpassword) FROM pg_authid") {
        Err(fault) => Judgement { seen: format!("{}; the table of passwords: {fault}", list.seen), ..list },
        Ok(_) => Judgement::whole(
            State::Available,
            format!("{}; an account without superuser's rights reads the table of passwords", list.seen),
        ),
    })
}

fn roles(session: &mut PostgresSession) -> Result<Judgement, Fault> {
    let count = session.value("SELECT count(*) FROM pg_auth_members WHERE roleid >= 16384")?;
    let state = if count == "0" { State::Off } else { State::Available };
    Ok(Judgement::whole(state, format!("{count} memberships that let an account act as another (SET ROLE)")))
}

fn replication(session: &mut PostgresSession, rules: Result<Rules, Fault>) -> Result<Judgement, Fault> {
    // An account that may not look at other sessions is shown nothing of their TLS.
    let sql = "SELECT count(*), count(*) FILTER (WHERE NOT s.ssl), count(*) FILTER (WHERE s.ssl IS NULL) \
               FROM pg_stat_replication JOIN pg_stat_ssl s USING (pid)";
    let row = session.run(sql)?.into_iter().next().unwrap_or_default();
    let count = |number: usize| row.get(number).cloned().flatten().unwrap_or_default();
    let connected = match (count(0).as_str(), count(1).as_str(), count(2).as_str()) {
        ("0" | "", ..) => Judgement::unseen("no other server is connected"),
        (all, "0", "0") => Judgement::account(State::Enforced, format!("all {all} connected servers speak TLS")),
        (all, "0", unseen) => Judgement::unseen(format!(
            "of {unseen} of {all} connected servers this account is not shown what they speak: it needs pg_monitor"
        )),
        (all, plain, _) => {
            Judgement::account(State::Available, format!("{plain} of {all} connected servers speak plaintext"))
        }
    };
    Ok(connected.with_rules(rules, hba::RIGHT))
}

/// Where canaries can be looked for: the table's own file and the journal, and the log that the settings name.
///
/// # Errors
/// When the server refuses.
pub fn canary_checks(server: &Server, setup: &Setup, table: &Table) -> Result<CanaryChecks, Fault> {
    let mut session = PostgresSession::open(&PRODUCT.target(server, setup)?, true, false)?;
    let mut audit: Option<Box<dyn Check>> = None;
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
    let folder = folder_here(session)?;
    let name = YCSB_DIALECT.qualified(SPACE, table).replace('\'', "''");
    let file = session.value(&format!("SELECT pg_relation_filepath('{name}')")).ok()?;
    Some(Paths { data: vec![folder.join(file)], journal: vec![folder.join("pg_wal")], logs: Vec::new() })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::test_setup::{asked_in_plaintext, tried_in_plaintext};

    #[test]
    fn a_password_asked_for_in_plaintext_is_not_sent() {
        for asks in [&b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"[..], b"R\0\0\0\x08\0\0\0\x03"] {
            assert_eq!(
                asked_in_plaintext(asks, plaintext),
                "available but not enforced: TLSv1.3; plaintext: served too"
            );
        }
        let refuses = b"E\0\0\0\x1bSFATAL\0C28000\0Mno TLS\0\0";
        expect!["enforced: TLSv1.3; plaintext: refused (28000: no TLS)"]
            .assert_eq(&tried_in_plaintext(refuses, plaintext).0);
    }
}
