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
