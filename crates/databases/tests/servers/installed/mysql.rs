//! MySQL.

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql};
use tithe_harness::{
    database::Database,
    fault::Fault,
    launch::{Address, Server},
    proc::ServerTask,
    product::Product,
    secret::Secret,
    setup::{Authentication, Setup, TlsVersion, Transport},
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};

use super::{
    disprove, how, key_value,
    mariadb::exercise,
    sandbox::{self, Sandbox},
    table,
};

fn start(protections: &[Chosen]) -> Option<Sandbox> {
    Sandbox::start(&MySql, protections)
}

fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    sandbox::chosen(&MySql, id, options)
}

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

fn off(names: &[&'static str]) -> Chosen {
    let options: Vec<_> = names.iter().map(|name| (*name, OptionValue::Flag(false))).collect();
    chosen("encryption", &options)
}

fn prove(chosen: &Chosen, expect: Expect) {
    super::prove(&MySql, chosen, exercise, expect);
}

#[test]
fn a_plain_server_serves_every_request() {
    let Some(sandbox) = start(&[]) else { return };
    MySql.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    for blocking in [true, false] {
        let session = MySql.connect(&sandbox.server, &sandbox.setup, &how(blocking)).expect("a session");
        let mut session = key_value(session);
        exercise(&mut *session);
        let ServerTask::Thread { process, thread } = session.server_task() else { panic!("a thread") };
        assert!(std::path::Path::new(&format!("/proc/{process}/task/{thread}")).exists());
    }
    let before = MySql.wal_position(&sandbox.server, &sandbox.setup).expect("a position");
    exercise(&mut *key_value(MySql.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session")));
    MySql.settle(&sandbox.server, &sandbox.setup, &table()).expect("settled");
    assert!(MySql.wal_position(&sandbox.server, &sandbox.setup).expect("a position") > before);
    assert!(MySql.cache_use(&sandbox.server, &sandbox.setup).expect("a use").asked > 0);
    let facts = MySql.facts(&sandbox.server, &sandbox.setup).expect("facts");
    assert!(facts.version.starts_with("MySQL 8"), "{facts:?}");
    assert_eq!((facts.facts["tls"].as_str(), facts.facts["authentication"].as_str()), ("off", "none"));
    assert_eq!((facts.facts["log_bin"].as_str(), facts.facts["sync_binlog"].as_str()), ("ON", "0"));
    MySql.remove(&sandbox.server, &sandbox.setup, &table()).expect("removed");
    MySql.remove(&sandbox.server, &sandbox.setup, &table()).expect("nothing left to remove");
    assert!(!sandbox.log().contains("Aborted connection"), "{}", sandbox.log());
}

#[test]
fn encryption_is_proven() {
    prove(
        &chosen("encryption", &[]),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        keyring-apart Claim Holds
        journal-canary Claim Holds
    "#]],
    );
}

#[test]
fn encryption_of_some_parts_is_proven_of_these() {
    prove(
        &off(&["binlog"]),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        keyring-apart Claim Holds
        journal-canary Claim Holds
    "#]],
    );
    prove(
        &off(&["redo", "undo", "binlog"]),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        keyring-apart Claim Holds
    "#]],
    );
}

#[test]
fn encryption_is_proven_without_a_binary_log() {
    prove_with(
        ("log_bin", "OFF"),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        keyring-apart Claim Holds
        journal-canary Claim Holds
    "#]],
    );
}

/// Such a server says neither whether its keyring is active nor where that keeps its keys.
#[test]
fn encryption_is_proven_without_the_performance_schema() {
    prove_with(
        ("performance_schema", "OFF"),
        expect![[r#"
        encryption-in-force Claim Holds
        disk-canary Claim Holds
        keyring-apart Claim Holds
        journal-canary Claim Holds
    "#]],
    );
}

/// Encryption on a server with another setting than usual, which the plain one has, too.
fn prove_with(setting: (&str, &str), expect: Expect) {
    let asked = [chosen("encryption", &[])];
    let search = tithe_harness::launch::Search::default();
    let start = |asked: &[Chosen]| Sandbox::start_of(&MySql, &search, asked, &[], &[setting]);
    let (Some(plain), Some(guarded)) = (start(&[]), start(&asked)) else { return };
    super::prove_between(&plain, &guarded, &asked[0], exercise, expect);
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
    for version in ["1.2", "1.3"] {
        let asked = chosen("tls", &[("version", text(version)), ("mutual", OptionValue::Flag(true))]);
        prove(
            &asked,
            expect![[r#"
                tls-negotiated Claim Holds
                wire-canary Claim Holds
            "#]],
        );
    }
}

#[test]
fn what_becomes_of_resumption_is_told() {
    for tls in sandbox::resuming(&MySql) {
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
        &chosen("password", &[("plugin", text("mysql_native_password"))]),
        expect![[r#"
        password-asked Claim Holds
    "#]],
    );
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
    let all = chosen("encryption", &[]);
    disprove(&MySql, &all, &off(&["redo"]));
    disprove(&MySql, &all, &off(&["undo"]));
    disprove(&MySql, &all, &off(&["binlog"]));
    disprove(&MySql, &chosen("tls", &[]), &chosen("tls", &[("version", text("1.2"))]));
    disprove(&MySql, &chosen("tls", &[("mutual", OptionValue::Flag(true))]), &chosen("tls", &[]));
}

fn refusal(database: &dyn Product, server: &Server, setup: &Setup) -> String {
    match database.connect(server, setup, &how(true)).map(drop) {
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
    expect!["TLS was asked for, and the server offers none"].assert_eq(&refusal(&MySql, &plain.server, &asks_tls));
    let mut asks_plain = tls.setup.clone();
    asks_plain.transport = Transport::Plain;
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: NO)"].assert_eq(&refusal(
        &MySql,
        &tls.server,
        &asks_plain,
    ));
    let mut asks_password = plain.setup.clone();
    asks_password.authentication = Authentication::Password { mechanism: "caching_sha2_password".to_owned() };
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: YES)"].assert_eq(&refusal(
        &MySql,
        &plain.server,
        &asks_password,
    ));
    let mut wrong = password.setup.clone();
    wrong.materials.password = Secret::new("wrong");
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: YES)"].assert_eq(&refusal(
        &MySql,
        &password.server,
        &wrong,
    ));
    let mut without = password.setup.clone();
    without.authentication = Authentication::None;
    expect!["1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: NO)"].assert_eq(&refusal(
        &MySql,
        &password.server,
        &without,
    ));
}

/// The server remembers a proof once it has seen the password, which it does over TLS, or under its own key.
#[test]
fn passwords_are_sent_under_the_servers_key_once_and_then_proven() {
    let Some(sandbox) = start(&[chosen("password", &[])]) else { return };
    for _ in 0..3 {
        let facts = MySql.facts(&sandbox.server, &sandbox.setup).expect("facts");
        assert_eq!(facts.facts["authentication"], "caching_sha2_password");
    }
}

fn attached(scheme: &str, sandbox: &Sandbox, options: &str) -> Server {
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let password = sandbox.setup.materials.password.expose_text();
    let url = format!("{scheme}://tithe:{password}@127.0.0.1:{port}/{options}");
    Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() }
}

#[test]
fn a_server_of_the_other_product_is_told_from_ours() {
    let (Some(mysql), Some(mariadb)) = (start(&[]), Sandbox::start(&MariaDb, &[])) else { return };
    let setup = Setup::bare();
    let words = refusal(&MariaDb, &attached("mariadb", &mysql, ""), &setup);
    assert!(words.starts_with("the server says that it is 8."), "{words}");
    assert!(words.ends_with("which is not MariaDB: for MySQL write `database = \"mysql\"` and mysql://"), "{words}");
    let words = refusal(&MySql, &attached("mysql", &mariadb, ""), &setup);
    assert!(
        words.contains("MariaDB, which is not MySQL") || words.contains("which is not MySQL: for MariaDB"),
        "{words}"
    );
}

#[test]
fn an_attached_server_keeps_what_is_not_ours() {
    let Some(sandbox) = start(&[chosen("tls", &[]), chosen("password", &[])]) else { return };
    let materials = &sandbox.setup.materials;
    let options = format!("?ssl-mode=verify_identity&ssl-ca={}", materials.authority.display());
    let server = attached("mysql", &sandbox, &options);
    let setup = Setup::plain(std::collections::BTreeMap::new(), materials.clone());
    let facts = MySql.facts(&server, &setup).expect("facts");
    assert_eq!(facts.facts["authentication"], "caching_sha2_password");
    MySql.create(&server, &setup, &table()).expect("a table");
    MySql.create(&server, &setup, &table()).expect("a table again");
    let mut session = key_value(MySql.connect(&server, &setup, &how(true)).expect("a session"));
    assert!(matches!(session.server_task(), ServerTask::Unknown));
    exercise(&mut *session);
    MySql.settle(&server, &setup, &table()).expect("settled");
    let mut foreign = sandbox.setup.clone();
    foreign.statements = vec!["CREATE TABLE tithe.precious (a int)".to_owned()];
    assert!(matches!(MySql.create(&sandbox.server, &foreign, &table()), Err(Fault::Refused(_))));
    assert!(matches!(MySql.remove(&server, &setup, &table()), Err(Fault::Refused(_))));
    foreign.statements = vec!["DROP TABLE tithe.precious".to_owned()];
    MySql.create(&sandbox.server, &foreign, &table()).expect("a table");
    MySql.remove(&server, &setup, &table()).expect("removed");
}
