//! Against real servers. What is not installed is skipped, loudly; with `CI` set it fails.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped, and what a check saw")]
#![allow(clippy::disallowed_methods, reason = "tests start what they look at")]

/// What needs something that is installed: `./check --quick` leaves out modules of this name, and nothing else.
mod installed {
    use super::*;

    mod cassandra;
    mod inspection;
    mod load;
    mod mariadb;
    mod misconfigured;
    #[cfg(feature = "mongodb")]
    mod mongodb;
    mod mysql;
    mod postgres;
    mod redis;
    mod tpcc;
    mod volumes;
}
mod sandbox;
#[path = "../support/tpcc.rs"]
mod support;

use expect_test::Expect;
use sandbox::{Sandbox, protection};
use tithe_harness::{
    clock::Clock,
    database::Connect,
    evidence::{Control, Evidence, Scene, claimed, judge, seen_by},
    product::Product,
    session::{KeyValueSession, Request, Rows, Session, Table},
    sight::Sight,
};
use tithe_model::experiment::Protection as Chosen;

fn table() -> Table {
    Table { name: "usertable".to_owned(), fields: 3, field_prefix: "field".to_owned() }
}

fn how(blocking: bool) -> Connect {
    how_for(table(), blocking)
}

fn how_for(table: Table, blocking: bool) -> Connect {
    Connect { blocking, lane: 0, clock: Clock::Real, table }
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

fn look(sandbox: &Sandbox, guarded: bool, check: &dyn Evidence) -> Sight {
    look_and_claim(sandbox, guarded, check).0
}

/// As [`look`], and the claim as a run would record it.
fn look_and_claim(sandbox: &Sandbox, guarded: bool, check: &dyn Evidence) -> (Sight, String) {
    let table = table();
    let mut scene = Scene {
        database: sandbox.database,
        server: &sandbox.server,
        setup: &sandbox.setup,
        table: &table,
        guarded,
        nonce: 0x7174_6865,
        narrowed: None,
    };
    let sight = seen_by(check, &mut scene);
    (sight, claimed(check, scene.narrowed))
}

/// Starts a plain server and one with `chosen`, serves every request on the latter, and looks at every check of it on
/// both. Compares the verdicts.
fn prove(database: &'static dyn Product, chosen: &Chosen, exercise: fn(&mut dyn KeyValueSession), expect: Expect) {
    let Some(plain) = Sandbox::start(database, &[]) else { return };
    let Some(guarded) = Sandbox::start(database, std::slice::from_ref(chosen)) else { return };
    prove_between(&plain, &guarded, chosen, exercise, expect);
}

/// As [`prove`], between two servers that run.
fn prove_between(
    plain: &Sandbox,
    guarded: &Sandbox,
    chosen: &Chosen,
    exercise: fn(&mut dyn KeyValueSession),
    expect: Expect,
) {
    let database = guarded.database;
    for sandbox in [plain, guarded] {
        database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    }
    for blocking in [true, false] {
        let session = database.connect(&guarded.server, &guarded.setup, &how(blocking)).expect("a session");
        exercise(&mut *key_value(session));
    }
    let mut lines = String::new();
    for check in protection(database, &chosen.id).evidence(chosen) {
        let on_guarded = look(guarded, true, &*check);
        let on_plain = (check.entry().control == Control::PlainArm).then(|| look(plain, false, &*check));
        let verdict = judge(check.entry().control, &on_guarded, on_plain.as_ref());
        eprintln!("{} {}: {verdict:?}\n  guarded: {on_guarded:?}\n  plain: {on_plain:?}", chosen.id, check.id());
        lines += &format!("{} {:?} {verdict:?}\n", check.id(), check.entry().role);
    }
    expect.assert_eq(&lines);
}

/// Checks for `asked` on a server that was set up as `given` must fail.
fn disprove(database: &'static dyn Product, asked: &Chosen, given: &Chosen) {
    let Some(sandbox) = Sandbox::start(database, std::slice::from_ref(given)) else { return };
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let check = protection(database, &asked.id).evidence(asked).remove(0);
    let sight = look(&sandbox, true, &*check);
    assert!(matches!(sight, Sight::Exposed(_)), "{sight:?}");
}
