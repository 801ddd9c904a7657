//! Redis, or Valkey.

use expect_test::{Expect, expect};
use tithe_databases::redis::Redis;
use tithe_harness::{
    database::Database,
    fault::Fault,
    launch::{Address, Server},
    proc::ServerTask,
    secret::Secret,
    session::{Discard, Fields, KeyValueSession, Request},
    setup::{Authentication, Setup, Transport},
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};

use super::{
    disprove, how, key_value, rows,
    sandbox::{self, Sandbox},
    table,
};

fn start(protections: &[Chosen]) -> Option<Sandbox> {
    Sandbox::start(&Redis, protections)
}

fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    sandbox::chosen(&Redis, id, options)
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

fn prove(chosen: &Chosen, expect: Expect) {
    super::prove(&Redis, chosen, exercise, expect);
}

/// Every kind of request, and what comes back.
fn exercise(session: &mut dyn KeyValueSession) {
    fn call(session: &mut dyn KeyValueSession, request: Request<'_>) -> u64 {
        session.call(&request, &mut Discard).expect("an answer")
    }
    let binary: &[u8] = &[0, 255, b'\r', b'\n', 10];
    let long = vec![b'x'; 300_000];
    for key in [b"user2", b"user1", b"user3"] {
        assert_eq!(call(session, Request::Insert { key, values: &[(0, b"a"), (1, binary), (2, b"")] }), 1);
    }
    let read = Request::Read { key: b"user1", fields: Fields::All };
    assert_eq!(rows(session, &read), "1\n-: 0=a 1=\\x00\\xff\\r\\n\\n 2=");
    assert_eq!(call(session, Request::Update { key: b"user1", values: &[(2, &long)] }), 1);
    let one = Request::Read { key: b"user1", fields: Fields::One(2) };
    assert_eq!(rows(session, &one), format!("1\n-: 2={}", "x".repeat(300_000)));
    let scan = Request::Scan { start: b"user2", count: 5, fields: Fields::One(0) };
    assert_eq!(rows(session, &scan), "2\nuser2: 0=a\nuser3: 0=a");
    let scan = Request::Scan { start: b"", count: 2, fields: Fields::One(0) };
    assert_eq!(rows(session, &scan), "2\nuser1: 0=a\nuser2: 0=a");
    let scan = Request::Scan { start: b"v", count: 2, fields: Fields::All };
    assert_eq!(rows(session, &scan), "0");
    // A record that is there already is no new row, and an update of none tells so, though Redis then makes one.
    assert_eq!(call(session, Request::Insert { key: b"user1", values: &[(0, b""), (1, b""), (2, b"")] }), 0);
    assert_eq!(call(session, Request::Update { key: b"nobody", values: &[(2, b"z")] }), 0);
    for key in [&b"user1"[..], b"user2", b"user3", b"nobody"] {
        assert_eq!(call(session, Request::Delete { key }), 1);
    }
    assert_eq!(call(session, Request::Delete { key: b"user1" }), 0);
    assert_eq!(rows(session, &read), "0");
}

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = start(&[]) else { return };
    Redis.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let session = Redis.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        let mut session = key_value(session);
        exercise(&mut *session);
        assert!(matches!(session.server_task(), ServerTask::Unknown));
        session.run_statement("CONFIG SET maxmemory 0").expect("a command");
        let fault = session.run_statement("NOTHING").expect_err("no such command");
        assert!(matches!(fault, Fault::Server(_)), "{fault}");
        // An error of the server leaves the session usable.
        exercise(&mut *session);
        let (sent, received) = session.wire_bytes();
        assert!(sent > 300_000 && received > 300_000);
    }
    assert_eq!(Redis.wal_position(&sandbox.server, &sandbox.setup), None);
    Redis.settle(&sandbox.server, &sandbox.setup, &table()).expect("settled");
    assert!(sandbox.server.paths.data[0].join("dump.rdb").is_file());
    let facts = Redis.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("Redis ") || facts.version.starts_with("Valkey "), "{facts:?}");
    let told = |name: &str| facts.facts.get(name).map(String::as_str);
    assert_eq!((told("appendonly"), told("authentication")), (Some("no"), Some("none")));
    assert_eq!(told("tls as the client sees it"), Some("off"));
    Redis.remove(&sandbox.server, &sandbox.setup, &table()).expect("removed");
    Redis.remove(&sandbox.server, &sandbox.setup, &table()).expect("nothing left to remove");
}

#[test]
fn tls_is_proven() {
    prove(
        &chosen("tls", &[]),
        expect![[r#"
        tls-negotiated Claim Holds
        wire-canary Claim Holds
    "#]],
    );
}

#[test]
fn tls_1_2_is_proven() {
    prove(
        &chosen("tls", &[("version", text("1.2"))]),
        expect![[r#"
        tls-negotiated Claim Holds
        wire-canary Claim Holds
    "#]],
    );
}

#[test]
fn tls_with_client_certificates_is_proven() {
    prove(
        &chosen("tls", &[("mutual", OptionValue::Flag(true))]),
        expect![[r#"
        tls-negotiated Claim Holds
        wire-canary Claim Holds
    "#]],
    );
}

#[test]
fn a_password_is_proven() {
    prove(
        &chosen("requirepass", &[]),
        expect![[r#"
        password-asked Claim Holds
    "#]],
    );
}

#[test]
fn accounts_are_proven() {
    prove(
        &chosen("acl", &[]),
        expect![[r#"
        password-asked Claim Holds
        rights-enforced Claim Holds
    "#]],
    );
}

#[test]
fn the_append_only_file_is_proven() {
    prove(
        &chosen("aof", &[]),
        expect![[r#"
        aof-written Claim Holds
    "#]],
    );
    prove(
        &chosen("aof", &[("fsync", text("always"))]),
        expect![[r#"
        aof-written Claim Holds
    "#]],
    );
}

#[test]
fn what_becomes_of_resumption_is_told() {
    for tls in sandbox::resuming(&Redis) {
        prove(
            &tls,
            expect![[r#"
                tls-negotiated Claim Holds
                wire-canary Claim Holds
                tls-resumed Disclosure Holds
            "#]],
        );
    }
}

#[test]
fn encrypted_columns_are_proven() {
    prove(
        &chosen("columns", &[]),
        expect![[r#"
        ciphertext-seen Claim Holds
        wrong-column-key Claim Holds
        disk-canary Claim Holds
        wire-canary Claim Holds
    "#]],
    );
}

#[test]
fn less_than_was_asked_for_is_no_proof() {
    let mutual = chosen("tls", &[("mutual", OptionValue::Flag(true))]);
    disprove(&Redis, &chosen("tls", &[]), &chosen("tls", &[("version", text("1.2"))]));
    disprove(&Redis, &mutual, &chosen("tls", &[]));
    disprove(&Redis, &chosen("acl", &[]), &chosen("tls", &[]));
    disprove(&Redis, &chosen("aof", &[("fsync", text("always"))]), &chosen("aof", &[]));
    disprove(&Redis, &chosen("aof", &[]), &chosen("tls", &[]));
}

fn refusal(server: &Server, setup: &Setup) -> String {
    match Redis.connect(server, setup, &how(true)).map(drop) {
        Err(Fault::Refused(words)) => words,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

#[test]
fn nothing_falls_back() {
    let (Some(plain), Some(tls), Some(password)) =
        (start(&[]), start(&[chosen("tls", &[])]), start(&[chosen("requirepass", &[])]))
    else {
        return;
    };
    let mut asks_plain = tls.setup.clone();
    asks_plain.transport = Transport::Plain;
    let words = refusal(&tls.server, &asks_plain);
    assert!(words.starts_with("at the first command"), "{words}");

    let mut asks_password = plain.setup.clone();
    asks_password.authentication = Authentication::Password { mechanism: "requirepass".to_owned() };
    expect!["the server lets clients in without the password that was to be asked for"]
        .assert_eq(&refusal(&plain.server, &asks_password));

    let mut wrong = password.setup.clone();
    wrong.materials.password = Secret::new("wrong");
    expect!["WRONGPASS invalid username-password pair or user is disabled."]
        .assert_eq(&refusal(&password.server, &wrong));
    let mut without = password.setup.clone();
    without.authentication = Authentication::None;
    expect!["NOAUTH Authentication required."].assert_eq(&refusal(&password.server, &without));
}

/// Runs commands as the administrator of a launched server, before a table is made there, which may be refused.
fn run(sandbox: &Sandbox, commands: &[&str]) {
    let mut setup = sandbox.setup.clone();
    setup.statements = commands.iter().map(|command| (*command).to_owned()).collect();
    match Redis.create(&sandbox.server, &setup, &table()) {
        Ok(()) | Err(Fault::Refused(_)) => {}
        Err(fault) => panic!("{fault}"),
    }
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let Some(sandbox) = start(&[chosen("tls", &[]), chosen("requirepass", &[])]) else { return };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let materials = &sandbox.setup.materials;
    let url = format!(
        "rediss://:{}@127.0.0.1:{port}/2?ca={}",
        materials.password.expose_text(),
        materials.authority.display(),
    );
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(std::collections::BTreeMap::new(), materials.clone());
    let facts = Redis.facts(&server, &setup).expect("facts");
    assert_eq!(facts.facts["authentication"], "password");
    Redis.create(&server, &setup, &table()).expect("a table");
    // A run that was killed leaves its records behind; the next one makes the table anew.
    for _ in 0..2 {
        let mut session = key_value(Redis.connect(&server, &setup, &how(true)).expect("a session"));
        exercise(&mut *session);
        let left = Request::Insert { key: b"left", values: &[(0, b"a")] };
        assert_eq!(session.call(&left, &mut Discard), Ok(1));
        Redis.create(&server, &setup, &table()).expect("a table again");
    }
    Redis.settle(&server, &setup, &table()).expect("settled");
    Redis.remove(&server, &setup, &table()).expect("removed");

    // Somebody else's keys of our name, in the database that launched servers use.
    let refused = |outcome: Result<(), Fault>| assert!(matches!(outcome, Err(Fault::Refused(_))), "{outcome:?}");
    let precious = |outcome: Result<(), Fault>| match outcome {
        Err(Fault::Refused(words)) => assert!(words.contains("Tithe did not make it"), "{words}"),
        other => panic!("a refusal was expected, not {other:?}"),
    };
    run(&sandbox, &["SELECT 2", "SET tithe:precious 1"]);
    precious(Redis.create(&server, &setup, &table()));
    precious(Redis.remove(&server, &setup, &table()));
    run(&sandbox, &["SELECT 2", "DEL tithe:precious", "SADD tithe 1"]);
    refused(Redis.create(&server, &setup, &table()));
    refused(Redis.remove(&server, &setup, &table()));
}
