//! MariaDB.

use expect_test::{Expect, expect};
use tithe_databases::mariadb::MariaDb;
use tithe_harness::{
    database::Database,
    fault::Fault,
    launch::{Address, Server},
    proc::ServerTask,
    secret::Secret,
    session::{Discard, Fields, KeyValueSession, Request},
    setup::{Authentication, Setup, TlsVersion, Transport},
    sight::Sight,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};

use super::{
    disprove, how, key_value, look, rows,
    sandbox::{self, Sandbox},
    table,
};

fn start(protections: &[Chosen]) -> Option<Sandbox> {
    Sandbox::start(&MariaDb, protections)
}

fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    sandbox::chosen(&MariaDb, id, options)
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

fn prove(chosen: &Chosen, expect: Expect) {
    super::prove(&MariaDb, chosen, exercise, expect);
}

/// Every kind of request, and what comes back.
pub fn exercise(session: &mut dyn KeyValueSession) {
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
    assert!(again.expect_err("a duplicate").to_string().starts_with("server: 1062"));
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
    MariaDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let session = MariaDb.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        let mut session = key_value(session);
        exercise(&mut *session);
        let ServerTask::Thread { process, thread } = session.server_task() else { panic!("a thread") };
        assert!(std::path::Path::new(&format!("/proc/{process}/task/{thread}")).exists());
        session.run_statement("SET SESSION sort_buffer_size = 1000000").expect("a statement");
        let fault = session.run_statement("SET nothing = 1").expect_err("no such variable");
        assert!(matches!(fault, Fault::Server(_)), "{fault}");
        let (sent, received) = session.wire_bytes();
        assert!(sent > 300_000 && received > 300_000);
    }
    let before = MariaDb.wal_position(&sandbox.server, &sandbox.setup).expect("a position");
    exercise(&mut *key_value(MariaDb.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session")));
    MariaDb.settle(&sandbox.server, &sandbox.setup, &table()).expect("settled");
    assert!(MariaDb.wal_position(&sandbox.server, &sandbox.setup).expect("a position") > before);
    let facts = MariaDb.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("MariaDB 1"), "{facts:?}");
    assert_eq!((facts.facts["tls"].as_str(), facts.facts["authentication"].as_str()), ("off", "none"));
    MariaDb.remove(&sandbox.server, &sandbox.setup, &table()).expect("removed");
    MariaDb.remove(&sandbox.server, &sandbox.setup, &table()).expect("nothing left to remove");
    assert!(!sandbox.log().contains("Aborted connection"), "{}", sandbox.log());
}

#[test]
fn encryption_is_proven() {
    prove(
        &chosen("encryption", &[]),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        journal-canary Claim Holds
        key-apart Claim Holds
    "#]],
    );
    prove(
        &chosen("encryption", &[("cipher", text("AES_CBC"))]),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        journal-canary Claim Holds
        key-apart Claim Holds
    "#]],
    );
}

#[test]
fn keys_that_are_rotated_are_proven() {
    for cipher in ["AES_CTR", "AES_CBC"] {
        prove(
            &chosen("encryption", &[("cipher", text(cipher)), ("rotate", OptionValue::Flag(true))]),
            expect![[r#"
                encryption-in-force Claim Holds
                disk-canary Claim Holds
                journal-canary Claim Holds
                key-apart Claim Holds
                key-rotated Claim Holds
            "#]],
        );
    }
}

#[test]
fn a_key_that_cannot_be_changed_is_found_out() {
    let rotating = chosen("encryption", &[("rotate", OptionValue::Flag(true))]);
    let Some(one_key) = start(&[chosen("encryption", &[])]) else { return };
    MariaDb.create(&one_key.server, &one_key.setup, &table()).expect("a table");
    let checks = sandbox::protection(&MariaDb, "encryption").evidence(&rotating);
    let check = checks.iter().find(|check| check.id() == "key-rotated").expect("the check");
    let sight = look(&one_key, true, check.as_ref());
    expect!["the server does not change the key: 1478 (HY000): Table storage engine 'InnoDB' does not support the create option 'ENCRYPTION_KEY_ID'"]
        .assert_eq(sight.quotation());
    assert!(matches!(sight, Sight::Exposed(_)));
    let mut rotator = MariaDb.rotator(&one_key.server, &one_key.setup).expect("a rotator");
    assert!(matches!(rotator.rotate(), Err(Fault::Server(_))));
    let Some(plain) = start(&[]) else { return };
    assert!(matches!(MariaDb.rotator(&plain.server, &plain.setup), Err(Fault::Refused(_))));
    MariaDb.create(&plain.server, &plain.setup, &table()).expect("a table");
    let mut rotator = MariaDb.rotator(&plain.server, &plain.setup).expect("a rotator");
    assert!(matches!(rotator.rotate(), Err(Fault::Wrong(_))));
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
    prove(
        &chosen("tls", &[("version", text("1.2")), ("mutual", OptionValue::Flag(true))]),
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
fn the_audit_log_is_proven() {
    prove(
        &chosen("server-audit", &[]),
        expect![[r#"
            audit-complete Claim Holds
            logs-free Disclosure Fails
        "#]],
    );
    prove(
        &chosen("server-audit", &[("events", text("QUERY_DML"))]),
        expect![[r#"
            audit-complete Claim Holds
            logs-free Disclosure Fails
        "#]],
    );
}

#[test]
fn an_audit_log_of_some_events_is_proven() {
    prove(
        &chosen("server-audit", &[("events", text("QUERY_DML_NO_SELECT"))]),
        expect![[r#"
            audit-complete Claim Holds
            logs-free Disclosure Fails
        "#]],
    );
    prove(
        &chosen("server-audit", &[("events", text("CONNECT"))]),
        expect![[r#"
        audit-complete Claim Holds
        logs-free Disclosure Holds
    "#]],
    );
}

#[test]
fn the_general_log_is_proven() {
    prove(
        &chosen("general-log", &[]),
        expect![[r#"
        statement-log Claim Holds
        logs-free Disclosure Fails
    "#]],
    );
}

#[test]
fn passwords_are_proven() {
    prove(
        &chosen("password", &[]),
        expect![[r#"
        password-asked Claim Holds
    "#]],
    );
    prove(
        &chosen("password", &[("plugin", text("ed25519"))]),
        expect![[r#"
        password-asked Claim Holds
    "#]],
    );
}

#[test]
fn what_becomes_of_resumption_is_told() {
    for tls in sandbox::resuming(&MariaDb) {
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
    let events = |events: &str| chosen("server-audit", &[("events", text(events))]);
    disprove(&MariaDb, &events("QUERY"), &events("QUERY_DML_NO_SELECT"));
    disprove(&MariaDb, &events("QUERY_DML_NO_SELECT"), &events("QUERY"));
    disprove(&MariaDb, &chosen("encryption", &[]), &chosen("encryption", &[("cipher", text("AES_CBC"))]));
    disprove(&MariaDb, &chosen("tls", &[]), &chosen("tls", &[("version", text("1.2"))]));
    disprove(&MariaDb, &chosen("tls", &[("mutual", OptionValue::Flag(true))]), &chosen("tls", &[]));
    disprove(&MariaDb, &chosen("password", &[]), &chosen("tls", &[]));
}

fn refusal(server: &Server, setup: &Setup) -> String {
    match MariaDb.connect(server, setup, &how(true)).map(drop) {
        Err(Fault::Refused(words)) => words,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

#[test]
fn nothing_falls_back() {
    let (Some(plain), Some(tls), Some(password)) =
        (start(&[]), start(&[chosen("tls", &[])]), start(&[chosen("password", &[])]))
    else {
        return;
    };
    let mut asks_tls = plain.setup.clone();
    asks_tls.transport = Transport::Tls { version: TlsVersion::V1_3, mutual: false, resumption: false };
    expect!["TLS was asked for, and the server offers none"].assert_eq(&refusal(&plain.server, &asks_tls));
    let mut asks_plain = tls.setup.clone();
    asks_plain.transport = Transport::Plain;
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: NO)"]
        .assert_eq(&refusal(&tls.server, &asks_plain));
    let mut asks_password = plain.setup.clone();
    asks_password.authentication = Authentication::Password { mechanism: "mysql_native_password".to_owned() };
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: YES)"]
        .assert_eq(&refusal(&plain.server, &asks_password));
    let mut wrong = password.setup.clone();
    wrong.materials.password = Secret::new("wrong");
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: YES)"]
        .assert_eq(&refusal(&password.server, &wrong));
    let mut without = password.setup.clone();
    without.authentication = Authentication::None;
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: NO)"]
        .assert_eq(&refusal(&password.server, &without));
}

/// Runs statements as the administrator of a launched server, before a table is made there, which may be refused.
fn run(sandbox: &Sandbox, statements: &[&str]) {
    let mut setup = sandbox.setup.clone();
    setup.statements = statements.iter().map(|statement| (*statement).to_owned()).collect();
    match MariaDb.create(&sandbox.server, &setup, &table()) {
        Ok(()) | Err(Fault::Refused(_)) => {}
        Err(fault) => panic!("{fault}"),
    }
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let Some(sandbox) = start(&[chosen("tls", &[]), chosen("password", &[("plugin", text("ed25519"))])]) else {
        return;
    };
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let materials = &sandbox.setup.materials;
    let url = format!(
        "mariadb://tithe:{}@127.0.0.1:{port}/?ssl-mode=verify_identity&ssl-ca={}",
        materials.password.expose_text(),
        materials.authority.display(),
    );
    let server = Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() };
    let setup = Setup::plain(std::collections::BTreeMap::new(), materials.clone());
    let facts = MariaDb.facts(&server, &setup).expect("facts");
    assert_eq!(facts.facts["authentication"], "client_ed25519");
    MariaDb.create(&server, &setup, &table()).expect("a table");
    // A run that was killed leaves its table behind; the next one makes it anew.
    MariaDb.create(&server, &setup, &table()).expect("a table again");
    let mut session = key_value(MariaDb.connect(&server, &setup, &how(true)).expect("a session"));
    assert!(matches!(session.server_task(), ServerTask::Unknown));
    exercise(&mut *session);
    MariaDb.settle(&server, &setup, &table()).expect("settled");

    // Somebody else's table in our database, then somebody else's database of our name.
    run(&sandbox, &["CREATE TABLE tithe.precious (a int)"]);
    let refused = |outcome: Result<(), Fault>| assert!(matches!(outcome, Err(Fault::Refused(_))), "{outcome:?}");
    refused(MariaDb.create(&server, &setup, &table()));
    refused(MariaDb.remove(&server, &setup, &table()));
    run(&sandbox, &["DROP TABLE tithe.precious"]);
    MariaDb.remove(&server, &setup, &table()).expect("removed");
    run(&sandbox, &["CREATE DATABASE tithe", "CREATE TABLE tithe.usertable (a int)"]);
    refused(MariaDb.create(&server, &setup, &table()));
    refused(MariaDb.remove(&server, &setup, &table()));
    run(&sandbox, &["SELECT a FROM tithe.usertable"]);
}
