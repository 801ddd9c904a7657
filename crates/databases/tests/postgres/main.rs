//! Against real servers. Without PostgreSQL these tests say that they are skipped; with `CI` set they fail.

mod sandbox;

use sandbox::Sandbox;
use tithe_databases::postgres::Postgres;
use tithe_harness::{
    clock::Clock,
    database::{Connect, Database},
    session::{Discard, Fields, KeyValueSession, Request, Rows, ServerTask, Session},
    workload::Table,
};

fn table() -> Table {
    Table { name: "usertable".to_owned(), fields: 3, field_prefix: "field".to_owned() }
}

fn how(blocking: bool) -> Connect {
    Connect { blocking, lane: 0, clock: Clock::Real, table: table() }
}

fn key_value(session: Session) -> Box<dyn KeyValueSession> {
    match session {
        Session::KeyValue(session) => session,
        Session::Sql(_) => panic!("a key-value session"),
    }
}

/// Writes rows down as `key: field=value`, one a line.
#[derive(Default)]
struct Seen(String);

impl Rows for Seen {
    fn row(&mut self, key: Option<&[u8]>) {
        self.0 += &format!("\n{}:", key.map_or("-".into(), String::from_utf8_lossy));
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        self.0 += &format!(" {field}={}", value.map_or("null".into(), |value| value.escape_ascii().to_string()));
    }
}

fn rows(session: &mut dyn KeyValueSession, request: &Request<'_>) -> String {
    let mut seen = Seen::default();
    let count = session.call(request, &mut seen).expect("an answer");
    format!("{count}{}", seen.0)
}

/// Every kind of request, and what comes back.
fn exercise(session: &mut dyn KeyValueSession) {
    fn call(session: &mut dyn KeyValueSession, request: Request<'_>) -> u64 {
        session.call(&request, &mut Discard).expect("an answer")
    }
    let binary: &[u8] = &[0, 255, b'\'', b'\\', 10];
    let long = vec![b'x'; 300_000];
    for key in [b"user2", b"user1", b"user3"] {
        assert_eq!(call(session, Request::Insert { key, values: &[(0, b"a"), (1, binary), (2, b"")] }), 1);
    }
    let read = Request::Read { key: b"user1", fields: Fields::All };
    assert_eq!(rows(session, &read), "1\n-: 0=a 1=\\x00\\xff\\'\\\\\\n 2=");
    assert_eq!(call(session, Request::Update { key: b"user1", values: &[(2, &long)] }), 1);
    assert_eq!(call(session, Request::Update { key: b"nobody", values: &[(2, b"z")] }), 0);
    let one = Request::Read { key: b"user1", fields: Fields::One(2) };
    assert_eq!(rows(session, &one), format!("1\n-: 2={}", "x".repeat(300_000)));
    let scan = Request::Scan { start: b"user2", count: 5, fields: Fields::One(0) };
    assert_eq!(rows(session, &scan), "2\nuser2: 0=a\nuser3: 0=a");
    let scan = Request::Scan { start: b"", count: 2, fields: Fields::One(0) };
    assert_eq!(rows(session, &scan), "2\nuser1: 0=a\nuser2: 0=a");
    // An error leaves the session usable.
    let again = session.call(&Request::Insert { key: b"user1", values: &[(0, b""), (1, b""), (2, b"")] }, &mut Discard);
    assert!(again.expect_err("a duplicate").to_string().starts_with("server: 23505"));
    for key in [b"user1", b"user2", b"user3"] {
        assert_eq!(call(session, Request::Delete { key }), 1);
    }
    assert_eq!(rows(session, &read), "0");
    session.begin_bulk().expect("begun");
    session.end_bulk().expect("ended");
}

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = Sandbox::start(&[]) else { return };
    Postgres.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let session = Postgres.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        let mut session = key_value(session);
        exercise(&mut *session);
        let ServerTask::Process(process) = session.as_connection().server_task() else { panic!("a process") };
        assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
        let (sent, received) = session.as_connection().wire_bytes();
        assert!(sent > 300_000 && received > 300_000);
    }
    let before = Postgres.wal_position(&sandbox.server, &sandbox.setup).expect("a position");
    Postgres.settle(&sandbox.server, &sandbox.setup, &table()).expect("settled");
    assert!(Postgres.wal_position(&sandbox.server, &sandbox.setup).expect("a position") > before);
    let facts = Postgres.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("PostgreSQL 1"), "{facts:?}");
    assert_eq!((facts.facts["tls"].as_str(), facts.facts["autovacuum"].as_str()), ("off", "off"));
    Postgres.remove(&sandbox.server, &sandbox.setup, &table()).expect("removed");
    Postgres.remove(&sandbox.server, &sandbox.setup, &table()).expect("nothing left to remove");
    assert!(!sandbox.log().contains("unexpected EOF"), "{}", sandbox.log());
}
