//! Servers with mistakes that administrators make: `tithe inspect` and the evidence report them.
//!
//! Each server is launched as Tithe launches it, with a mistake in its files or after its start.

mod others;
mod transport;

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_machine::{
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};
use tithe_plugin::{
    database::Database,
    evidence::Check,
    matrix::Feature,
    product::Product,
    session::{SqlSession, Table},
    setup::Setup,
};

use super::{
    how, observe, observe_and_claim,
    sandbox::{Sandbox, chosen, protection},
    table,
};

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

/// The first check of `asked`, which a server with this mistake must not pass; returns its text.
pub fn caught(sandbox: &Sandbox, asked: &Chosen) -> String {
    let check = protection(sandbox.database, &asked.id).evidence(asked).remove(0);
    caught_by(sandbox, &*check)
}

fn caught_by(sandbox: &Sandbox, check: &dyn Check) -> String {
    match observe(sandbox, true, check) {
        Observation::Exposed(words) => words,
        other => panic!("{} does not see the mistake: {other:?}", check.id()),
    }
}

/// How the matrix shows `features`, a line each, beginning with the state.
pub fn shown(sandbox: &Sandbox, features: &[Feature]) -> String {
    let seen = sandbox.database.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
    let cells = seen.iter().filter(|cell| features.contains(&cell.feature));
    cells.map(|cell| format!("{}: {}\n", cell.feature.id(), cell.state.words())).collect()
}

/// How the matrix shows `feature` on `server`, with its scope.
fn judged(database: &dyn Product, server: &Server, setup: &Setup, feature: Feature) -> String {
    let seen = database.inspect(server, setup).expect("a matrix");
    let cell = seen.iter().find(|cell| cell.feature == feature).expect("a cell");
    eprintln!("{}: {}: {}", database.id(), feature.id(), cell.seen);
    format!("{}: {}, {}\n", feature.id(), cell.state.words(), cell.scope.words())
}

/// The server of `sandbox` as its `user` sees it, with TLS by `options`. All accounts have one password, but for the
/// administrator of Redis.
fn attached(sandbox: &Sandbox, scheme: &str, user: &str, options: &str) -> Server {
    let Address::Tcp { host, port } = &sandbox.server.address else { panic!("a TCP server") };
    let password = sandbox.setup.credentials.password.expose_text();
    let authority = sandbox.setup.credentials.authority.display();
    let own = if user == "tithe-administrator" { format!("-{user}") } else { String::new() };
    let url = format!("{scheme}://{user}:{password}{own}@{host}:{port}/{options}{authority}");
    Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() }
}

/// An administrator's session, which makes the mistakes.
fn administrator(sandbox: &Sandbox) -> Box<dyn SqlSession> {
    sandbox.database.sql().expect("SQL").connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session")
}

/// Makes each mistake, which the check of its feature must show, and undoes it.
fn mistakes(sandbox: &Sandbox, mistakes: &[(Feature, &str, &str)]) -> String {
    let mut session = administrator(sandbox);
    let mut text = String::new();
    for (feature, wrong, right) in mistakes {
        wrong.split("; ").for_each(|statement| drop(session.run(statement).expect("a mistake")));
        let seen = judged(sandbox.database, &sandbox.server, &sandbox.setup, *feature);
        right.split("; ").for_each(|statement| drop(session.run(statement).expect("undone")));
        text += &format!("{wrong}\n  {seen}");
    }
    text
}

fn start(database: &'static dyn Product, protections: &[Chosen], mistakes: &[(&str, &str)]) -> Option<Sandbox> {
    let sandbox = Sandbox::start_wrong(database, protections, mistakes)?;
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    Some(sandbox)
}

/// The audit log is on and leaves reads out.
fn audit_skips_reads(database: &'static dyn Product, asked: &Chosen, given: &Chosen, expected: Expect) {
    let Some(sandbox) = start(database, std::slice::from_ref(given), &[]) else { return };
    eprintln!("{}: {}", database.id(), caught(&sandbox, asked));
    expected.assert_eq(&shown(&sandbox, &[Feature::Auditing]));
}

/// The log holds everything except the parameters that the arm requests: without them its records cannot be
/// distinguished from others.
#[test]
fn postgres_with_an_audit_log_without_parameters() {
    let given = chosen(&Postgres, "pgaudit", &[("parameter", OptionValue::Flag(false))]);
    let Some(sandbox) = start(&Postgres, std::slice::from_ref(&given), &[]) else { return };
    let check = protection(&Postgres, "pgaudit").evidence(&chosen(&Postgres, "pgaudit", &[])).remove(0);
    expect!["sent: DELETE 100, INSERT 100, SELECT 100, UPDATE 100; in the log with parameters: none, and with <not logged> in their place: DELETE 100, INSERT 100, SELECT 100, UPDATE 100: set `pgaudit.log_parameter = on` (for an attached server in the arm's `on`), or give the protection `parameter = false`"].assert_eq(match &observe(&sandbox, true, &*check) {
        Observation::Unknown(words) => words,
        other => panic!("{other:?}"),
    });
}

#[test]
fn postgres_with_an_audit_log_of_writes_alone() {
    let audit = |options: &[(&str, OptionValue)]| chosen(&Postgres, "pgaudit", options);
    audit_skips_reads(
        &Postgres,
        &audit(&[]),
        &audit(&[("log", text("write"))]),
        expect![[r#"
        audit: available but not enforced
    "#]],
    );
}

#[test]
fn mariadb_with_an_audit_log_of_writes_alone() {
    let audit = |events: &str| chosen(&MariaDb, "server-audit", &[("events", text(events))]);
    audit_skips_reads(
        &MariaDb,
        &audit("QUERY"),
        &audit("QUERY_DML_NO_SELECT"),
        expect![[r#"
        audit: available but not enforced
    "#]],
    );
}

/// Encryption was switched on after tables existed, and no thread encrypts them.
#[test]
fn mariadb_with_encryption_of_new_tables_only() {
    let asked = chosen(&MariaDb, "encryption", &[]);
    let mistakes = [
        ("innodb_encrypt_tables = FORCE", "innodb_encrypt_tables = OFF"),
        ("innodb_encryption_threads = 2", "innodb_encryption_threads = 0"),
    ];
    let Some(mut sandbox) = start(&MariaDb, std::slice::from_ref(&asked), &mistakes) else { return };
    // The table that was created first is now an old one.
    sandbox.setup.statements = vec!["SET GLOBAL innodb_encrypt_tables = 'FORCE'".to_owned()];
    let later = Table { name: "later".to_owned(), ..table() };
    MariaDb.create(&sandbox.server, &sandbox.setup, &later).expect("a table");
    let words = caught(&sandbox, &asked);
    eprintln!("mariadb: {words}");
    // Tithe does not wait for encryption that will not happen.
    let fault = MariaDb.quiesce(&sandbox.server, &sandbox.setup, &later).expect_err("nobody encrypts the old tables");
    assert!(fault.to_string().contains("innodb_encryption_threads = 0: nothing will ever encrypt"), "{fault}");
    // Every switch is set correctly; the old tables show the mistake.
    assert!(!words.contains("not encrypted: none") && words.contains("switches that are off: none"), "{words}");
    expect![[r#"
        at-rest: available but not enforced
    "#]]
    .assert_eq(&shown(&sandbox, &[Feature::AtRest]));
}

/// Encryption was switched on after tables existed, and they are not encrypted; nor are new ones in an existing
/// database.
#[test]
fn mysql_with_encryption_of_new_tables_only() {
    let asked = chosen(&MySql, "encryption", &[]);
    let mistakes = [
        ("default_table_encryption = ON", "default_table_encryption = OFF"),
        ("ALTER TABLESPACE mysql ENCRYPTION = 'Y';\n", ""),
    ];
    let Some(mut sandbox) = start(&MySql, std::slice::from_ref(&asked), &mistakes) else { return };
    sandbox.setup.statements = vec!["SET GLOBAL default_table_encryption = ON".to_owned()];
    let later = Table { name: "later".to_owned(), ..table() };
    MySql.create(&sandbox.server, &sandbox.setup, &later).expect("a table");
    let words = caught(&sandbox, &asked);
    eprintln!("mysql: {words}");
    assert!(!words.contains("not encrypted: none") && words.contains("switches that are off: none"), "{words}");
    expect![[r#"
        at-rest: available but not enforced
    "#]]
    .assert_eq(&shown(&sandbox, &[Feature::AtRest]));
}

/// Redis neither encrypts nor audits; possible mistakes of its administrator are who may do what, and when a write is
/// safe.
#[test]
fn redis_with_an_account_that_may_do_everything() {
    let asked = chosen(&Redis, "acl", &[]);
    let rights = "resetkeys ~tithe ~tithe:* -@all +@read +@write +@connection -@dangerous";
    let Some(sandbox) = start(&Redis, std::slice::from_ref(&asked), &[(rights, "~* +@all")]) else { return };
    eprintln!("redis: {}", caught_by(&sandbox, &*protection(&Redis, "acl").evidence(&asked).remove(1)));
    expect![[r#"
        authorisation: off
    "#]]
    .assert_eq(&shown(&sandbox, &[Feature::Authorisation]));
}
