//! Tests against real servers. If a server is not installed, its tests are skipped with a message; with `CI` set they
//! fail.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped, and what a check saw")]
#![allow(clippy::disallowed_methods, reason = "tests start what they watch")]

#[path = "../support/at_end.rs"]
mod at_end;
#[cfg(feature = "mongodb")]
#[path = "../support/java_program.rs"]
mod java_program;
#[path = "../support/bulk.rs"]
mod loading;
#[path = "../support/made.rs"]
mod made;
mod own_columns;
mod put_back;
/// Tests that need an installed server: `./check --quick` leaves out modules of this name, and nothing else.
mod installed {
    use super::*;

    mod bulk;
    mod cassandra;
    mod conformance;
    mod deceptions;
    #[cfg(feature = "duckdb")]
    mod duckdb;
    mod etcd;
    #[cfg(feature = "mongodb")]
    mod ferretdb;
    mod inside;
    mod inspection;
    mod large;
    mod load;
    mod mariadb;
    mod memcached;
    mod misconfigured;
    #[cfg(feature = "mongodb")]
    mod mongodb;
    mod mysql;
    mod opensearch;
    mod postgres;
    mod redis;
    mod replay;
    mod restore;
    mod script;
    mod tpcc;
    mod versions;
    mod volumes;
}
mod sandbox;
#[path = "../support/seen_rows.rs"]
mod seen_rows;
mod shared;
#[path = "../support/small.rs"]
mod small;
#[path = "../support/tpcc.rs"]
mod support;
mod tested;

use std::sync::atomic::{AtomicU64, Ordering};

use sandbox::{Sandbox, protection};
use seen_rows::Seen;
use tithe_machine::{clock::Clock, observation::Observation};
use tithe_model::experiment::Protection as Chosen;
use tithe_plugin::{
    database::Connect,
    evidence::{Check, CheckContext, Control, claimed, judge, seen_by},
    session::{KeyValueSession, Request, Session, Table},
};

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

fn rows(session: &mut dyn KeyValueSession, request: &Request<'_>) -> String {
    let mut seen = Seen::default();
    let count = session.call(request, &mut seen).expect("an answer");
    format!("{count}{}", seen.0)
}

fn observe(sandbox: &Sandbox, protected: bool, check: &dyn Check) -> Observation {
    observe_and_claim(sandbox, protected, check).0
}

/// As [`observe`], and the claim as a run would record it.
fn observe_and_claim(sandbox: &Sandbox, protected: bool, check: &dyn Check) -> (Observation, String) {
    // Canaries of one check must differ from those of an earlier one: leftovers on the server would be found again.
    static NONCES: AtomicU64 = AtomicU64::new(0x7174_6865);
    let table = table();
    let mut context = CheckContext {
        database: sandbox.database,
        server: &sandbox.server,
        setup: &sandbox.setup,
        table: &table,
        protected,
        nonce: NONCES.fetch_add(1, Ordering::SeqCst),
        narrowed: None,
    };
    let observation = seen_by(check, &mut context);
    (observation, claimed(check, context.narrowed))
}

/// Runs every check of `chosen` on both servers; returns what they prove together, one per line.
fn verdicts(plain: &Sandbox, protected: &Sandbox, chosen: &Chosen) -> String {
    let on_protected = Looks::at_protected(protected, chosen);
    on_protected.beside(plain)
}

/// What every check of a protection observed on the server that has it.
struct Looks<'a> {
    chosen: &'a Chosen,
    seen: Vec<(Box<dyn Check>, Observation)>,
}

impl<'a> Looks<'a> {
    fn at_protected(protected: &Sandbox, chosen: &'a Chosen) -> Self {
        let checks = protection(protected.database, &chosen.id).evidence(chosen).into_iter();
        let concerned = checks.filter(|check| check.concerns(&protected.server.address));
        let seen = concerned.map(|check| {
            let observation = observe(protected, true, &*check);
            (check, observation)
        });
        Self { chosen, seen: seen.collect() }
    }

    /// Checks the `plain` server, too; returns what is proven, one check per line: `tls-negotiated Claim Holds`.
    fn beside(&self, plain: &Sandbox) -> String {
        let line = |(check, on_protected): &(Box<dyn Check>, Observation)| {
            let on_plain = (check.entry().control == Control::PlainArm).then(|| observe(plain, false, &**check));
            let verdict = judge(check.entry().control, on_protected, on_plain.as_ref());
            let id = format!("{} {}", self.chosen.id, check.id());
            eprintln!("{id}: {verdict:?}\n  protected: {on_protected:?}\n  plain: {on_plain:?}");
            format!("{} {:?} {verdict:?}\n", check.id(), check.entry().role)
        };
        self.seen.iter().map(line).collect()
    }
}

/// The first check of `asked` must be exposed on a server that was set up with less.
fn assert_exposed(sandbox: &Sandbox, asked: &Chosen) {
    let check = protection(sandbox.database, &asked.id).evidence(asked).remove(0);
    let observation = observe(sandbox, true, &*check);
    assert!(matches!(observation, Observation::Exposed(_)), "{asked:?}: {observation:?}");
}
