//! PostgreSQL.

use expect_test::{Expect, expect};
use tithe_databases::postgres::Postgres;
use tithe_harness::{
    database::Database,
    fault::Fault,
    launch::{Address, Server},
    proc::ServerTask,
    secret::Secret,
    session::{Discard, Fields, KeyValueSession, Request},
    setup::{Authentication, Setup, TlsVersion, Transport},
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};

use super::{
    disprove, how, key_value, rows,
    sandbox::{self, Sandbox},
    table,
};

fn start(protections: &[Chosen]) -> Option<Sandbox> {
    Sandbox::start(&Postgres, protections)
}

fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    sandbox::chosen(&Postgres, id, options)
}

fn prove(chosen: &Chosen, expect: Expect) {
    super::prove(&Postgres, chosen, exercise, expect);
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
    let Some(sandbox) = start(&[]) else { return };
    Postgres.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let session = Postgres.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        let mut session = key_value(session);
        exercise(&mut *session);
        let ServerTask::Process(process) = session.server_task() else { panic!("a process") };
        assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
        session.run_statement("SET jit = on").expect("a statement");
        let fault = session.run_statement("SET nothing = on").expect_err("no such setting");
        assert!(matches!(fault, Fault::Server(_)), "{fault}");
        let (sent, received) = session.wire_bytes();
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
fn tls_1_2_with_client_certificates_is_proven() {
    let version = ("version", OptionValue::Text("1.2".to_owned()));
    prove(
        &chosen("tls", &[version, ("mutual", OptionValue::Flag(true))]),
        expect![[r#"
        tls-negotiated Claim Holds
        wire-canary Claim Holds
    "#]],
    );
}

#[test]
fn tls_1_3_with_client_certificates_is_proven() {
    prove(
        &chosen("tls", &[("mutual", OptionValue::Flag(true))]),
        expect![[r#"
        tls-negotiated Claim Holds
        wire-canary Claim Holds
    "#]],
    );
}

#[test]
fn pgaudit_is_proven() {
    prove(
        &chosen("pgaudit", &[]),
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Fails
        pgcrypto-trap Disclosure Fails
    "#]],
    );
}

#[test]
fn pgaudit_of_writes_without_parameters_is_proven() {
    let log = ("log", OptionValue::Text("write".to_owned()));
    prove(
        &chosen("pgaudit", &[log, ("parameter", OptionValue::Flag(false))]),
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Holds
        pgcrypto-trap Disclosure Fails
    "#]],
    );
}

#[test]
fn pgaudit_of_reads_is_proven() {
    prove(
        &chosen("pgaudit", &[("log", OptionValue::Text("read".to_owned()))]),
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Fails
        pgcrypto-trap Disclosure Fails
    "#]],
    );
}

#[test]
fn the_statement_log_is_proven() {
    prove(
        &chosen("log-statement", &[]),
        expect![[r#"
        statement-log Claim Holds
        logs-free Disclosure Fails
        pgcrypto-trap Disclosure Fails
    "#]],
    );
}

#[test]
fn scram_is_proven() {
    prove(
        &chosen("scram", &[]),
        expect![[r#"
        password-asked Claim Holds
    "#]],
    );
}

#[test]
fn checksums_are_proven() {
    prove(
        &chosen("checksums", &[]),
        expect![[r#"
        checksums-on Claim Holds
    "#]],
    );
}

#[test]
fn what_becomes_of_resumption_is_told() {
    for tls in sandbox::resuming(&Postgres) {
        prove(
            &tls,
            expect![[r#"
                tls-negotiated Claim Holds
                wire-canary Claim Holds
                tls-resumed Disclosure Fails
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
    let text = |name, value: &str| (name, OptionValue::Text(value.to_owned()));
    disprove(&Postgres, &chosen("pgaudit", &[]), &chosen("pgaudit", &[text("log", "read")]));
    disprove(&Postgres, &chosen("pgaudit", &[text("log", "write")]), &chosen("pgaudit", &[]));
    disprove(&Postgres, &chosen("tls", &[]), &chosen("tls", &[text("version", "1.2")]));
    disprove(&Postgres, &chosen("tls", &[("mutual", OptionValue::Flag(true))]), &chosen("tls", &[]));
    disprove(&Postgres, &chosen("scram", &[]), &chosen("tls", &[]));
}

/// What connecting comes to.
fn connect(server: &Server, setup: &Setup) -> Result<(), Fault> {
    Postgres.connect(server, setup, &how(true)).map(drop)
}

fn refusal(server: &Server, setup: &Setup) -> String {
    match connect(server, setup) {
        Err(Fault::Refused(words)) => words,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

#[test]
fn nothing_falls_back() {
    let (Some(plain), Some(tls), Some(scram)) =
        (start(&[]), start(&[chosen("tls", &[])]), start(&[chosen("scram", &[])]))
    else {
        return;
    };
    let mut asks_tls = plain.setup.clone();
    asks_tls.transport = Transport::Tls { version: TlsVersion::V1_3, mutual: false, resumption: false };
    expect!["TLS was asked for, and the server offers none"].assert_eq(&refusal(&plain.server, &asks_tls));

    let mut asks_plain = tls.setup.clone();
    asks_plain.transport = Transport::Plain;
    let words = refusal(&tls.server, &asks_plain);
    assert!(words.starts_with("28000: no pg_hba.conf entry"), "{words}");

    let mut asks_password = plain.setup.clone();
    asks_password.authentication = Authentication::Password { mechanism: "scram-sha-256".to_owned() };
    expect!["the server lets clients in without the password that was to be asked for"]
        .assert_eq(&refusal(&plain.server, &asks_password));

    let mut wrong = scram.setup.clone();
    wrong.materials.password = Secret::new("wrong");
    expect![[r#"28P01: password authentication failed for user "tithe""#]].assert_eq(&refusal(&scram.server, &wrong));
    let mut without = scram.setup.clone();
    without.authentication = Authentication::None;
    expect!["the server asks for a password, and none is given"].assert_eq(&refusal(&scram.server, &without));
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let Some(sandbox) = start(&[chosen("tls", &[]), chosen("scram", &[])]) else { return };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let materials = &sandbox.setup.materials;
    let url = format!(
        "postgres://tithe:{}@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={}",
        materials.password.expose_text(),
        materials.authority.display(),
    );
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(std::collections::BTreeMap::new(), materials.clone());
    let facts = Postgres.facts(&server, &setup).expect("facts");
    assert_eq!(facts.facts["authentication"], "scram-sha-256");
    Postgres.create(&server, &setup, &table()).expect("a table");
    // A run that was killed leaves its table behind; the next one makes it anew.
    Postgres.create(&server, &setup, &table()).expect("a table again");
    let mut session = key_value(Postgres.connect(&server, &setup, &how(true)).expect("a session"));
    assert!(matches!(session.server_task(), ServerTask::Unknown));
    exercise(&mut *session);
    Postgres.settle(&server, &setup, &table()).expect("settled");

    // Somebody else's table in our schema, then somebody else's schema of our name.
    run(&sandbox, &["CREATE TABLE tithe.precious (a int)"]);
    let refused = |outcome: Result<(), Fault>| assert!(matches!(outcome, Err(Fault::Refused(_))), "{outcome:?}");
    refused(Postgres.create(&server, &setup, &table()));
    refused(Postgres.remove(&server, &setup, &table()));
    run(&sandbox, &["DROP TABLE tithe.precious"]);
    Postgres.remove(&server, &setup, &table()).expect("removed");
    run(&sandbox, &["CREATE SCHEMA tithe", "CREATE TABLE tithe.usertable (a int)"]);
    refused(Postgres.create(&server, &setup, &table()));
    refused(Postgres.remove(&server, &setup, &table()));
    run(&sandbox, &["SELECT a FROM tithe.usertable"]);
}

/// Runs statements as the administrator of a launched server, before a table is made there, which may be refused.
fn run(sandbox: &Sandbox, statements: &[&str]) {
    let mut setup = sandbox.setup.clone();
    setup.statements = statements.iter().map(|statement| (*statement).to_owned()).collect();
    match Postgres.create(&sandbox.server, &setup, &table()) {
        Ok(()) | Err(Fault::Refused(_)) => {}
        Err(fault) => panic!("{fault}"),
    }
}
