//! PostgreSQL: what only PostgreSQL has.

use tithe_databases::postgres::Postgres;
use tithe_machine::{observation::Observation, proc::ServerTask};
use tithe_plugin::database::Database;

use super::{
    how, observe,
    sandbox::{Sandbox, protection},
    table,
};
use crate::tested::{Again, Tested, chosen};

pub static POSTGRES: Tested = Tested {
    database: &Postgres,
    start: |protections| Sandbox::start(&Postgres, protections),
    again: Again::Refused("23505"),
};

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = (POSTGRES.start)(&[]) else { return };
    POSTGRES.serve(&sandbox, "SET jit = on", "SET nothing = on", |task| {
        let ServerTask::Process(process) = task else { panic!("a process") };
        assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
    });
    let before = Postgres.wal_position(&sandbox.server, &sandbox.setup).expect("a position");
    POSTGRES.exercise(&mut *POSTGRES.connect(&sandbox, true));
    Postgres.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    assert!(Postgres.wal_position(&sandbox.server, &sandbox.setup).expect("a position") > before);
    let facts = Postgres.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("PostgreSQL 1"), "{facts:?}");
    assert_eq!((facts.facts["tls"].as_str(), facts.facts["autovacuum"].as_str()), ("off", "off"));
    POSTGRES.remove(&sandbox);
    assert!(!sandbox.log().contains("unexpected EOF"), "{}", sandbox.log());
}

/// A schema that Tithe would not recognise as its own later is not left behind.
#[test]
fn a_schema_that_cannot_be_marked_is_not_made() {
    let Some(sandbox) = (POSTGRES.start)(&[]) else { return };
    let create = |statements: &[&str]| {
        let mut setup = sandbox.setup.clone();
        setup.statements = statements.iter().map(|statement| (*statement).to_owned()).collect();
        Postgres.create(&sandbox.server, &setup, &table())
    };
    let no_comments = [
        "CREATE FUNCTION public.no_comments() RETURNS event_trigger LANGUAGE plpgsql \
         AS 'BEGIN RAISE EXCEPTION ''no comments''; END'",
        "CREATE EVENT TRIGGER no_comments ON ddl_command_start WHEN TAG IN ('COMMENT') \
         EXECUTE FUNCTION public.no_comments()",
    ];
    create(&no_comments).expect_err("no mark");
    create(&["DROP EVENT TRIGGER no_comments"]).expect("nothing unknown is left");
    POSTGRES.remove(&sandbox);
}

/// Row-level security that one of the server's lists shows as on, although it is not: an administrator's statements,
/// those that undo them, and the text of the check.
const NOT_HELD: [(&[&str], &[&str], &str); 6] = [
    // Its policies are still listed.
    (
        &["ALTER TABLE tithe.usertable DISABLE ROW LEVEL SECURITY"],
        &["ALTER TABLE tithe.usertable ENABLE ROW LEVEL SECURITY"],
        "no policy holds the account, another tenant sees 1 of 1 rows, another tenant changes a row, a row can be put in",
    ),
    // The table shows it as on, and forced.
    (
        &["ALTER ROLE tithe_client BYPASSRLS"],
        &["ALTER ROLE tithe_client NOBYPASSRLS"],
        "as tithe_client, which has BYPASSRLS: usertable: no policy holds the account",
    ),
    // Policies apply to the owner only if they are forced.
    (
        &[
            "GRANT CREATE ON SCHEMA tithe TO tithe_client",
            "ALTER TABLE tithe.usertable OWNER TO tithe_client",
            "ALTER TABLE tithe.usertable NO FORCE ROW LEVEL SECURITY",
        ],
        &[
            "ALTER TABLE tithe.usertable OWNER TO tithe",
            "ALTER TABLE tithe.usertable FORCE ROW LEVEL SECURITY",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON tithe.usertable TO tithe_client",
        ],
        "no policy holds the account",
    ),
    // One permissive policy more is enough.
    (
        &["CREATE POLICY everybody ON tithe.usertable FOR SELECT USING (true)"],
        &["DROP POLICY everybody ON tithe.usertable"],
        "usertable: another tenant sees 1 of 1 rows",
    ),
    // No client sees rows of others, and each may write them.
    (
        &["CREATE POLICY additions ON tithe.usertable FOR INSERT WITH CHECK (true)"],
        &["DROP POLICY additions ON tithe.usertable"],
        "usertable: a row can be put in as another tenant's",
    ),
    // A setting that no policy reads: the policy names the tenant itself.
    (
        &["ALTER POLICY of_tenant ON tithe.usertable USING (tithe_tenant = 'one')"],
        &["ALTER POLICY of_tenant ON tithe.usertable USING (tithe_tenant = current_setting('tithe.tenant'))"],
        "usertable: another tenant sees 1 of 1 rows",
    ),
];

#[test]
fn row_security_that_does_not_hold_the_clients_is_no_proof() {
    let chosen = chosen!(POSTGRES, "row-security" {});
    let Some(sandbox) = (POSTGRES.start)(std::slice::from_ref(&chosen)) else { return };
    Postgres.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let say = |statements: &[&str]| {
        let mut setup = sandbox.setup.clone();
        setup.session_statements.clear();
        let sql = Postgres.sql().expect("SQL");
        let mut session = sql.connect(&sandbox.server, &setup, &how(true)).expect("the administrator");
        statements.iter().for_each(|statement| drop(session.run(statement).expect(statement)));
    };
    let checks = protection(&Postgres, "row-security").evidence(&chosen);
    let look = |id: &str| {
        let check = checks.iter().find(|check| check.id() == id).expect("a check");
        observe(&sandbox, true, &**check)
    };
    for (statements, undo, words) in NOT_HELD {
        say(statements);
        let seen = look("rows-apart");
        assert!(matches!(&seen, Observation::Exposed(seen) if seen.contains(words)), "{statements:?}: {seen:?}");
        say(undo);
        assert!(matches!(look("rows-apart"), Observation::Protected(_)), "{undo:?}");
    }
    let Observation::Protected(plans) = look("row-plan") else { panic!("reads go by the index") };
    let policy = "Filter: (tithe_tenant = current_setting('tithe.tenant'::text)) | without: Index Scan";
    assert!(plans.contains(policy), "{plans}");
}
