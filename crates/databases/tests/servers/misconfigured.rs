//! Servers that were set up wrongly, as administrators do it: `tithe inspect` and the evidence say so.
//!
//! Each server is launched as Tithe launches it, with a mistake in its files or after its start.

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_harness::{
    database::Database,
    evidence::{Evidence, Sight},
    inspect::Feature,
    workload::Table,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen};

use super::{
    look,
    sandbox::{Sandbox, chosen, protection},
    table,
};

fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

/// The first check of `asked`, which a server with this mistake must not pass; what it says.
pub fn caught(sandbox: &Sandbox, asked: &Chosen) -> String {
    let check = protection(sandbox.database, &asked.id).evidence(asked).remove(0);
    caught_by(sandbox, &*check)
}

fn caught_by(sandbox: &Sandbox, check: &dyn Evidence) -> String {
    match look(sandbox, true, check) {
        Sight::Exposed(words) => words,
        other => panic!("{} does not see the mistake: {other:?}", check.id()),
    }
}

/// How the matrix shows `features`, a line each, beginning with the state.
pub fn shown(sandbox: &Sandbox, features: &[Feature]) -> String {
    let seen = sandbox.database.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
    let cells = seen.iter().filter(|cell| features.contains(&cell.feature));
    cells.map(|cell| format!("{}: {}\n", cell.feature.id(), cell.state.words())).collect()
}

fn start(database: &'static dyn Database, protections: &[Chosen], mistakes: &[(&str, &str)]) -> Option<Sandbox> {
    let sandbox = Sandbox::start_wrong(database, protections, mistakes)?;
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    Some(sandbox)
}

/// TLS is there and plaintext is served beside it.
fn tls_is_optional(database: &'static dyn Database, mistakes: &[(&str, &str)], expected: Expect) {
    let asked = chosen(database, "tls", &[]);
    let Some(sandbox) = start(database, std::slice::from_ref(&asked), mistakes) else { return };
    let words = caught(&sandbox, &asked);
    eprintln!("{}: {words}", database.id());
    assert!(words.contains("plaintext: served") || words.contains("a plaintext port beside it"), "{words}");
    expected.assert_eq(&shown(&sandbox, &[Feature::Transport]));
}

/// The audit log is on and leaves reads out.
fn audit_skips_reads(database: &'static dyn Database, asked: &Chosen, given: &Chosen, expected: Expect) {
    let Some(sandbox) = start(database, std::slice::from_ref(given), &[]) else { return };
    eprintln!("{}: {}", database.id(), caught(&sandbox, asked));
    expected.assert_eq(&shown(&sandbox, &[Feature::Auditing]));
}

#[test]
fn postgres_with_optional_tls() {
    tls_is_optional(
        &Postgres,
        &[("hostssl all all", "host all all")],
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

#[test]
fn mariadb_with_optional_tls() {
    let mistakes = [("require_secure_transport = ON", "require_secure_transport = OFF"), (" REQUIRE SSL", "")];
    tls_is_optional(
        &MariaDb,
        &mistakes,
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

#[test]
fn mysql_with_optional_tls() {
    let mistakes = [("require_secure_transport = ON", "require_secure_transport = OFF"), (" REQUIRE SSL", "")];
    tls_is_optional(
        &MySql,
        &mistakes,
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
}

#[test]
fn redis_with_a_plaintext_port_beside_tls() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    tls_is_optional(
        &Redis,
        &[("\nport 0\n", &format!("\nport {free}\n"))],
        expect![[r#"
        tls: available but not enforced
    "#]],
    );
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

/// Encryption was switched on when there were tables already, and nobody encrypts these.
#[test]
fn mariadb_with_encryption_of_new_tables_only() {
    let asked = chosen(&MariaDb, "encryption", &[]);
    let mistakes = [
        ("innodb_encrypt_tables = FORCE", "innodb_encrypt_tables = OFF"),
        ("innodb_encryption_threads = 2", "innodb_encryption_threads = 0"),
    ];
    let Some(mut sandbox) = start(&MariaDb, std::slice::from_ref(&asked), &mistakes) else { return };
    // The table that was made first is now an old one.
    sandbox.setup.statements = vec!["SET GLOBAL innodb_encrypt_tables = 'FORCE'".to_owned()];
    let later = Table { name: "later".to_owned(), ..table() };
    MariaDb.create(&sandbox.server, &sandbox.setup, &later).expect("a table");
    let words = caught(&sandbox, &asked);
    eprintln!("mariadb: {words}");
    // Every switch stands as it should; the old tables give it away.
    assert!(!words.contains("not encrypted: none") && words.contains("switches that are off: none"), "{words}");
    expect![[r#"
        at-rest: available but not enforced
    "#]]
    .assert_eq(&shown(&sandbox, &[Feature::AtRest]));
}

/// Encryption was switched on when there were tables already, and nobody encrypts these; nor the new ones in a database that was
/// there.
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

/// Nothing of Redis encrypts or audits; what an administrator gets wrong there is who may do what, and when a write is safe.
#[test]
fn redis_with_an_account_that_may_do_everything() {
    let asked = chosen(&Redis, "acl", &[]);
    let rights = "resetkeys ~tithe ~tithe:* -@all +@read +@write +@connection -@dangerous";
    let Some(sandbox) = start(&Redis, std::slice::from_ref(&asked), &[(rights, "~* +@all")]) else { return };
    eprintln!("redis: {}", caught_by(&sandbox, &*protection(&Redis, "acl").evidence(&asked).remove(1)));
    expect![[r#"
        authorisation: available but not enforced
    "#]]
    .assert_eq(&shown(&sandbox, &[Feature::Authorisation]));
}
