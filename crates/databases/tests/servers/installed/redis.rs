//! Redis, or Valkey: what only they have.

use tithe_databases::redis::Redis;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    proc::ServerTask,
};
use tithe_model::experiment::Url;
use tithe_plugin::{
    database::Database,
    matrix::{Feature, State},
    session::{Discard, Request},
    setup::Setup,
};

use super::{how, key_value, sandbox::Sandbox, table};
use crate::tested::{Again, Tested, chosen, run};

pub static REDIS: Tested =
    Tested { database: &Redis, start: |protections| Sandbox::start(&Redis, protections), again: Again::Written };

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = (REDIS.start)(&[]) else { return };
    REDIS.serve(&sandbox, "CONFIG SET maxmemory 0", "NOTHING", |task| assert!(matches!(task, ServerTask::Unknown)));
    assert_eq!(Redis.wal_position(&sandbox.server, &sandbox.setup), None);
    Redis.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    assert!(sandbox.server.paths.data[0].join("dump.rdb").is_file());
    let facts = Redis.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("Redis ") || facts.version.starts_with("Valkey "), "{facts:?}");
    let told = |name: &str| facts.facts.get(name).map(String::as_str);
    assert_eq!((told("appendonly"), told("authentication")), (Some("no"), Some("none")));
    assert_eq!(told("tls as the client sees it"), Some("off"));
    REDIS.remove(&sandbox);
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let protections = [chosen!(REDIS, "tls" {}), chosen!(REDIS, "requirepass" {})];
    let Some(sandbox) = (REDIS.start)(&protections) else { return };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let credentials = &sandbox.setup.credentials;
    let url = format!(
        "rediss://:{}@127.0.0.1:{port}/2?ca={}",
        credentials.password.expose_text(),
        credentials.authority.display(),
    );
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(std::collections::BTreeMap::new(), credentials.clone());
    let facts = Redis.facts(&server, &setup).expect("facts");
    assert_eq!(facts.facts["authentication"], "password");
    Redis.create(&server, &setup, &table()).expect("a table");
    // A run that was killed leaves its records; the next one creates the table again.
    for _ in 0..2 {
        let mut session = key_value(Redis.connect(&server, &setup, &how(true)).expect("a session"));
        REDIS.exercise(&mut *session);
        let left = Request::Insert { key: b"left", values: &[(0, b"a")] };
        assert_eq!(session.call(&left, &mut Discard), Ok(1));
        Redis.create(&server, &setup, &table()).expect("a table again");
    }
    Redis.quiesce(&server, &setup, &table()).expect("quiesced");
    Redis.remove(&server, &setup, &table()).expect("removed");

    // Foreign keys with Tithe's name, in the database that launched servers use.
    let refused = |outcome: Result<(), Fault>| assert!(matches!(outcome, Err(Fault::Refused(_))), "{outcome:?}");
    let precious = |outcome: Result<(), Fault>| match outcome {
        Err(Fault::Refused(words)) => assert!(words.contains("Tithe did not make it"), "{words}"),
        other => panic!("a refusal was expected, not {other:?}"),
    };
    run(&REDIS, &sandbox, &["SELECT 2", "SET tithe:precious 1"]);
    precious(Redis.create(&server, &setup, &table()));
    precious(Redis.remove(&server, &setup, &table()));
    run(&REDIS, &sandbox, &["SELECT 2", "DEL tithe:precious", "SADD tithe 1"]);
    refused(Redis.create(&server, &setup, &table()));
    refused(Redis.remove(&server, &setup, &table()));
}

/// A server with many accounts is judged whole, each of them.
#[test]
fn ten_thousand_accounts_are_judged() {
    let Some(sandbox) = (REDIS.start)(&[chosen!(REDIS, "requirepass" {})]) else { return };
    let mut session = REDIS.connect(&sandbox, true);
    for number in 0..10_000 {
        let rights = if number % 1000 == 0 { "+config|get" } else { "+get" };
        let statement = format!("ACL SETUSER user{number} on >password{number} ~user{number}:* -@all {rights}");
        session.run_statement(&statement).expect("an account");
    }
    let begun = std::time::Instant::now();
    let seen = Redis.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
    eprintln!("10,000 accounts: {:?}", begun.elapsed());
    let cell = seen.iter().find(|cell| cell.feature == Feature::Authorisation).expect("a row");
    assert_eq!(cell.state, State::Available);
    assert!(cell.seen.starts_with("11 of 10001 accounts may do everything (ACL LIST): "), "{}", cell.seen);
    assert!(cell.seen.contains("user0 → default (config|get shows requirepass, its password)"), "{}", cell.seen);
}
