//! PostgreSQL: what it alone has.

use tithe_databases::postgres::Postgres;
use tithe_machine::proc::ServerTask;
use tithe_plugin::database::Database;

use super::{sandbox::Sandbox, table};
use crate::tested::{Again, Tested};

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

/// A schema that Tithe would not know for its own later is not left.
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
