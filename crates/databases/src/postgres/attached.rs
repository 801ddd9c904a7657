//! What prevents Tithe from measuring a server that it did not start, or from proving a protection there.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{IDLE_AT_LEAST_S, Lack, Remedy, Without},
    session::{Connection as _, SqlSession as _, rows},
    setup::Setup,
};

use super::{
    ENTRY,
    evidence::logs_free,
    own_tables::may_create,
    schema::{AUDITOR, administrator, auditor, audits_by_object, hops_of},
    session::PostgresSession,
    startup::NO_PASSWORD,
};
use crate::attached::unseen_process;

/// Protections that are proven by the server's log.
const LOGGED: &[&str] = &["pgaudit", "log-statement"];

/// Everything that `server` and the account lack.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut session = administrator(server, setup).map_err(denied)?;
    let mut all = obstacles(&mut session, setup)?;
    if let Err(Fault::Refused(why)) = check_pooler(&mut session, &mut administrator(server, setup)?) {
        let remedy = Remedy::Words("name the server itself, or a pool with `pool_mode = session`".to_owned());
        all.push(Lack { why, remedy, without: Without::Measurement });
    }
    all.extend(unproven(&mut session)?);
    // Nothing is granted on the user's own tables.
    if audits_by_object(setup) && !setup.tables.is_in_place() {
        all.extend(lacks_of_auditor(&asked_of_auditor(&mut session)?));
    }
    if let Some(descriptor) = session.descriptor() {
        all.extend(unseen_process(descriptor, ENTRY.server_programs, session.greeting().process));
    }
    Ok(all)
}

/// What prevents the server from being measured.
fn obstacles(session: &mut PostgresSession, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let mut all = Vec::new();
    // Statements on the user's own tables do not need Tithe's tables, and some proofs do not need them either.
    let needed = |is_spared| if is_spared { Without::Proof(LOGGED) } else { Without::Measurement };
    let in_place = setup.tables.is_in_place();
    let reads_only = setup.tables.reads_only();
    let mut lack = |why: &str, remedy: Remedy, without| all.push(Lack { why: why.to_owned(), remedy, without });
    let account = session.value("SELECT quote_ident(current_user)")?;
    if session.value("SELECT pg_is_in_recovery()")? == "t" {
        lack(
            "it is a standby, which takes no writes, and Tithe loads records of its own",
            Remedy::Words("name its primary".to_owned()),
            needed(reads_only),
        );
    } else if session.value("SHOW transaction_read_only")? == "on" {
        lack(
            &format!("its transactions are read-only for {account}, and Tithe loads records of its own"),
            Remedy::Statement(format!("ALTER ROLE {account} SET default_transaction_read_only = off")),
            needed(reads_only),
        );
    }
    if !may_create(session, &setup.space)? {
        let right =
            session.value("SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user)");
        let why = format!("Tithe works in a schema of its own, `{}`", setup.space);
        lack(&why, Remedy::Statement(right?), needed(in_place));
    }
    // Versions before 14 close no idle sessions.
    let idle_ms = "SELECT coalesce(max(setting), '0') FROM pg_settings WHERE name = 'idle_session_timeout'";
    let idle_ms: u64 = session.value(idle_ms)?.parse().unwrap_or(0);
    if (1..IDLE_AT_LEAST_S * 1000).contains(&idle_ms) {
        lack(
            &format!(
                "it closes connections that are idle for {} s, and an arm's connections are idle while others are measured",
                idle_ms as f64 / 1e3
            ),
            Remedy::Statement(format!("ALTER ROLE {account} SET idle_session_timeout = 0")),
            Without::Measurement,
        );
    }
    if let Some(expiry) = expiry(session)? {
        lack(
            &format!(
                "the password of {account} expires at {expiry}, which is within a day, and connections are opened as long \
                 as a run lasts"
            ),
            Remedy::Statement(format!("ALTER ROLE {account} VALID UNTIL 'infinity'")),
            Without::Measurement,
        );
    }
    Ok(all)
}

/// When the password expires, if that is within a day. A run opens connections until its end and checks evidence after
/// it. A login without a password is not affected.
fn expiry(session: &mut PostgresSession) -> Result<Option<String>, Fault> {
    if session.greeting().method == NO_PASSWORD {
        return Ok(None);
    }
    let expiry = session.value(
        "SELECT coalesce(max(rolvaliduntil::text), '') FROM pg_roles \
         WHERE rolname = current_user AND rolvaliduntil < now() + interval '1 day'",
    )?;
    Ok(Some(expiry).filter(|expiry| !expiry.is_empty()))
}

/// What prevents arms with some protection from being measured or proven.
fn unproven(session: &mut PostgresSession) -> Result<Vec<Lack>, Fault> {
    let mut all = Vec::new();
    let account = session.value("SELECT quote_ident(current_user)")?;
    let mut lack = |why: &str, remedy, without| all.push(Lack { why: why.to_owned(), remedy, without });
    let statement = |text: &str| Remedy::Statement(text.to_owned());
    // Clients of a pooler use TLS with the pooler, whatever the server has.
    if session.value("SHOW ssl")? != "on" && hops_of(session)?.between.is_none() {
        let remedy = "give it a certificate (ssl_cert_file, ssl_key_file), then ALTER SYSTEM SET ssl = on and SELECT \
                      pg_reload_conf()";
        lack("the server speaks no TLS", Remedy::Words(remedy.to_owned()), Without::Proof(&["tls"]));
    }
    if session.value("SHOW logging_collector")? != "on" {
        let why = "Tithe counts records of the log, and the server keeps no log file; restart it afterwards";
        lack(why, statement("ALTER SYSTEM SET logging_collector = on"), Without::Proof(LOGGED));
    }
    let destination = session.value("SHOW log_destination")?;
    if logs_free::format(&destination).is_none() {
        let why =
            format!("Tithe counts records of the log, which goes to {destination}; SELECT pg_reload_conf() afterwards");
        lack(&why, statement("ALTER SYSTEM SET log_destination = 'stderr'"), Without::Proof(LOGGED));
    }
    if let Some(missing) = logs_free::unreadable(session)? {
        let why = "Tithe counts records of the log, and the account may not read it; with this right it can read every \
                   file of the server: revoke it afterwards";
        lack(why, Remedy::Statement(logs_free::grant(&missing, &account)), Without::Proof(LOGGED));
    }
    if let Some((why, remedy)) = pgaudit(session)? {
        lack(&why, remedy, Without::Proof(&["pgaudit"]));
    }
    const SWITCHED: [(&[&str], &[&str]); 2] = [
        (&["pgaudit.log", "pgaudit.log_parameter", "pgaudit.log_catalog"], &["pgaudit"]),
        (&["log_statement"], &["log-statement"]),
    ];
    for (settings, protections) in SWITCHED {
        let mut missing = Vec::new();
        for setting in settings {
            if !may_set(session, setting)? {
                missing.push(*setting);
            }
        }
        if !missing.is_empty() {
            let why = format!("arms on one server switch {} per session, and the account may not", protections[0]);
            let grant = format!("GRANT SET ON PARAMETER {} TO {account}", missing.join(", "));
            lack(&why, Remedy::Statement(grant), Without::Switch(protections));
        }
    }
    if session.value("SELECT pg_has_role('pg_read_all_stats', 'USAGE')")? != "t" {
        let why =
            "`tithe witness` and `tithe inspect` check how other clients are connected; the account may not see that";
        let grant = Remedy::Statement(format!("GRANT pg_read_all_stats TO {account}"));
        lack(why, grant, Without::Figures("information on other clients in `tithe witness` and `tithe inspect`"));
    }
    Ok(all)
}

/// What decides whether pgaudit can log by the privileges of a role on Tithe's tables.
#[derive(Debug, Default)]
struct AskedOfAuditor {
    /// The account, as SQL writes it.
    account: String,
    /// The role, likewise: the one that the server names, or Tithe's own.
    role: String,
    /// The server names it.
    is_named: bool,
    /// It exists.
    exists: bool,
    /// The account may create roles.
    may_create: bool,
    /// The account may name a role in its sessions.
    may_set: bool,
}

fn asked_of_auditor(session: &mut PostgresSession) -> Result<AskedOfAuditor, Fault> {
    let sql = format!(
        "SELECT quote_ident(current_user), quote_ident(auditor), coalesce(current_setting('pgaudit.role', true), '') <> \
         '', EXISTS (SELECT FROM pg_roles WHERE rolname = auditor), rolsuper OR rolcreaterole FROM pg_roles, (SELECT {} \
         AS auditor) AS named WHERE rolname = current_user",
        auditor()
    );
    let [account, role, is_named, exists, may_create] =
        rows(session, &sql)?.into_iter().next().ok_or_else(|| Fault::Wrong("the account has no role".to_owned()))?;
    let [is_named, exists, may_create] = [is_named, exists, may_create].map(|value| value == "t");
    Ok(AskedOfAuditor { account, role, is_named, exists, may_create, may_set: may_set(session, "pgaudit.role")? })
}

/// What the account lacks for that. Privileges can be granted only to a role that exists, and Tithe creates no role but
/// its own.
fn lacks_of_auditor(asked: &AskedOfAuditor) -> Vec<Lack> {
    let AskedOfAuditor { account, role, .. } = asked;
    let mut all = Vec::new();
    if !asked.exists && (role != AUDITOR || !asked.may_create) {
        let and = if role == AUDITOR { ", and the account lacks CREATEROLE to create it" } else { "" };
        all.push(Lack {
            why: format!("object auditing logs statements on tables of the role {role}, which does not exist{and}"),
            remedy: Remedy::Statement(format!("CREATE ROLE {role} NOLOGIN")),
            without: Without::Measurement,
        });
    }
    if !asked.is_named && !asked.may_set {
        all.push(Lack {
            why: "arms on one server name the role of object auditing per session, and the account may not".to_owned(),
            remedy: Remedy::Statement(format!("GRANT SET ON PARAMETER pgaudit.role TO {account}")),
            without: Without::Switch(&["pgaudit"]),
        });
    }
    all
}

/// What to do if pgaudit is not loaded.
fn pgaudit(session: &mut PostgresSession) -> Result<Option<(String, Remedy)>, Fault> {
    match session.value("SHOW pgaudit.log_level") {
        Ok(_) => return Ok(None),
        Err(Fault::Server(_)) => {}
        Err(fault) => return Err(fault),
    }
    if session.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pgaudit'")? == "0" {
        let install = Remedy::Words("install the package of pgaudit on its machine and check again".to_owned());
        return Ok(Some(("pgaudit is not installed there".to_owned(), install)));
    }
    let why = "pgaudit is not loaded; restart the server afterwards".to_owned();
    let remedy = match session.value("SHOW shared_preload_libraries") {
        Ok(others) => {
            let others = others.split(',').map(str::trim).filter(|name| !name.is_empty());
            let all: Vec<String> = others.chain(["pgaudit"]).map(|name| format!("'{name}'")).collect();
            Remedy::Statement(format!("ALTER SYSTEM SET shared_preload_libraries = {}", all.join(", ")))
        }
        // Only administrators can read which other libraries are loaded.
        Err(_) => Remedy::Words("add `pgaudit` to `shared_preload_libraries`".to_owned()),
    };
    Ok(Some((why, remedy)))
}

/// True if the account may set `setting` in its sessions. From version 15 on the server reports it, because it can be
/// granted; before, it is tried in a transaction that is rolled back.
fn may_set(session: &mut PostgresSession, setting: &str) -> Result<bool, Fault> {
    match session.value(&format!("SELECT has_parameter_privilege('{setting}', 'SET')")) {
        Ok(may) => return Ok(may == "t"),
        Err(Fault::Server(_)) => {}
        Err(fault) => return Err(fault),
    }
    session.run("BEGIN")?;
    let tried = session.run(&format!("SET LOCAL {setting} TO DEFAULT"));
    session.run("ROLLBACK")?;
    match tried {
        // If the setting does not exist, no privilege helps.
        Ok(_) | Err(Fault::Server(_)) => Ok(true),
        Err(Fault::Refused(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// The refusal of a login that may be caused by an expired password: the server writes the expiry to its log and does
/// not report it to the client.
fn denied(fault: Fault) -> Fault {
    /// "invalid_password", in the documentation's table of error codes.
    const INVALID_PASSWORD: &str = "28P01: ";
    match fault {
        Fault::Refused(words) if words.starts_with(INVALID_PASSWORD) => Fault::Refused(format!(
            "{words}; where the password is the right one, it has expired (`rolvaliduntil` of `pg_roles`), and an \
             administrator runs `ALTER ROLE … VALID UNTIL 'infinity'`"
        )),
        fault => fault,
    }
}

/// Refuses a pooler that lends its connections per transaction. With such a pooler, two open sessions share one server
/// process, or one session uses several. A server sends its process number in the greeting; a pooler sends a number of
/// its own. The question is repeated because other clients of a busy pooler use its connections in between.
fn check_pooler(one: &mut PostgresSession, other: &mut PostgresSession) -> Result<(), Fault> {
    const PROCESS: &str = "SELECT pg_backend_pid()";
    const QUESTIONS: usize = 50;
    let (first, second) = (one.value(PROCESS)?, other.value(PROCESS)?);
    let greeted = |session: &PostgresSession, process: &str| {
        session.greeting().process.is_some_and(|greeted| greeted.to_string() == process)
    };
    if first != second && greeted(one, &first) && greeted(other, &second) {
        return Ok(());
    }
    let mut lent = first == second;
    for _ in 0..QUESTIONS {
        // One session is asked twice: with strict turns, each session would always get the same one of two connections.
        lent = lent || one.value(PROCESS)? != first || one.value(PROCESS)? != first;
        lent = lent || other.value(PROCESS)? != second;
    }
    if !lent {
        return Ok(());
    }
    Err(Fault::Refused(
        "a pooler in front of it lends one connection to several clients in turn (pgbouncer with `pool_mode` \
         transaction or statement): what switches a protection for a session would reach others, and prepared statements \
         be lost"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::postgres::told::server;

    #[test]
    fn object_auditing_needs_a_role_and_the_right_to_name_it() {
        let lacks = |role: &str, change: fn(&mut AskedOfAuditor)| {
            let mut asked = AskedOfAuditor { account: "ann".to_owned(), role: role.to_owned(), ..Default::default() };
            change(&mut asked);
            let lacks = lacks_of_auditor(&asked).into_iter();
            lacks.map(|lack| format!("{lack}; {}\n", lack.without)).collect::<String>() + "--\n"
        };
        expect![[r#"
            object auditing logs statements on tables of the role tithe_auditor, which does not exist, and the account lacks CREATEROLE to create it: run `CREATE ROLE tithe_auditor NOLOGIN`; without it nothing can be measured
            arms on one server name the role of object auditing per session, and the account may not: run `GRANT SET ON PARAMETER pgaudit.role TO ann`; without it no session can switch pgaudit
            --
            --
            --
            object auditing logs statements on tables of the role rds_pgaudit, which does not exist: run `CREATE ROLE rds_pgaudit NOLOGIN`; without it nothing can be measured
            --
            --
        "#]]
        .assert_eq(&[
            lacks(AUDITOR, |_| ()),
            lacks(AUDITOR, |asked| (asked.may_create, asked.may_set) = (true, true)),
            lacks(AUDITOR, |asked| (asked.exists, asked.may_set) = (true, true)),
            lacks("rds_pgaudit", |asked| (asked.is_named, asked.may_create) = (true, true)),
            lacks("rds_pgaudit", |asked| (asked.is_named, asked.exists) = (true, true)),
        ].concat());
    }

    #[test]
    fn the_role_of_object_auditing_and_rights_on_it_are_asked_for_at_once() {
        let told = server(
            Vec::new(),
            vec![
                ("rolcreaterole", Ok(&[&["ann", "tithe_auditor", "f", "t", "f"]])),
                ("has_parameter_privilege('pgaudit.role', 'SET')", Ok(&[&["t"]])),
            ],
        );
        let asked = told.seen(|server| {
            let mut session = administrator(server, &crate::test_setup::plain()).expect("a session");
            asked_of_auditor(&mut session).expect("an answer")
        });
        expect![[
            r#"AskedOfAuditor { account: "ann", role: "tithe_auditor", is_named: false, exists: true, may_create: false, may_set: true }"#
        ]]
        .assert_eq(&format!("{asked:?}"));
    }
}
