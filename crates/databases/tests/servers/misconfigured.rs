//! Servers that were set up wrongly, as administrators do it: `tithe inspect` and the evidence say so.
//!
//! Each server is launched as Tithe launches it, with a mistake in its files or after its start.

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_harness::{
    database::{Address, Database, Server},
    evidence::{Evidence, Sight},
    inspect::Feature,
    workload::Table,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};

use super::{
    look, look_and_claim,
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

/// Our account needs TLS and another does not. An account that may read who is let in sees it; for one that may not, the claim
/// is about itself alone. `made` are statements for the administrator, `url` is how the account `app` comes.
fn plaintext_for_others(
    database: &'static dyn Database,
    mistakes: &[(&str, &str)],
    made: &[&str],
    url: fn(u16, &str) -> String,
    expected: Expect,
) {
    let asked = chosen(database, "tls", &[]);
    let Some(mut sandbox) = Sandbox::start_wrong(database, std::slice::from_ref(&asked), mistakes) else { return };
    sandbox.setup.statements = made.iter().map(|statement| (*statement).to_owned()).collect();
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut text = brief(&sandbox, &asked);
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let address = Address::Attached(Url::new(url(port, &sandbox.setup.materials.authority.display().to_string())));
    sandbox.server = Server { address, process: None, ..sandbox.server.clone() };
    text += &brief(&sandbox, &asked);
    expected.assert_eq(&text);
}

/// What the check of TLS claims, and what it says of everybody else.
fn brief(sandbox: &Sandbox, asked: &Chosen) -> String {
    let check = protection(sandbox.database, "tls").evidence(asked).remove(0);
    let (sight, claim) = look_and_claim(sandbox, true, &*check);
    eprintln!("{}: {claim}: {sight:?}", sandbox.database.id());
    assert!(sight.quotation().contains("plaintext: refused"), "our own account: {sight:?}");
    let word = match &sight {
        Sight::Protected(_) => "protected",
        Sight::Exposed(_) => "exposed",
        Sight::Unknown(_) => "unknown",
    };
    let claim = claim.split("; ").nth(1).unwrap_or_default();
    let others = sight.quotation().split("everybody else: ").nth(1).unwrap_or_default();
    // The server's own words about a right that is missing differ from version to version.
    let others = if others.starts_with("not seen (refused: ") { "not seen (refused)" } else { others };
    format!("{claim}\n{word}: {others}\n")
}

#[test]
fn postgres_with_plaintext_for_others() {
    let ours = "hostssl all all 127.0.0.1/32 trust\n";
    let others = format!("{ours}host otherdb all 10.0.0.0/8 scram-sha-256\nhost all other 127.0.0.1/32 trust\n");
    plaintext_for_others(
        &Postgres,
        &[(ours, &others)],
        &["CREATE ROLE app LOGIN"],
        |port, authority| {
            format!("postgres://app@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={authority}")
        },
        expect![[r#"
            plaintext, other versions and unknown authorities are refused
            exposed: served in plaintext: line 2: host otherdb all 10.0.0.0/8 scram-sha-256; line 3: host all other 127.0.0.1/32 trust (pg_hba_file_rules)
            plaintext, other versions and unknown authorities are refused (for this account: the others could not be seen)
            protected: not seen (refused)
        "#]],
    );
}

const NEEDS_NO_TLS: [&str; 2] = ["CREATE USER other@'10.%'", "CREATE USER app@'127.0.0.1' REQUIRE SSL"];

#[test]
fn mariadb_with_plaintext_for_others() {
    plaintext_for_others(
        &MariaDb,
        &[("require_secure_transport = ON", "require_secure_transport = OFF")],
        &NEEDS_NO_TLS,
        |port, authority| format!("mariadb://app@127.0.0.1:{port}/?ssl-mode=verify_identity&ssl-ca={authority}"),
        expect![[r#"
            plaintext, other versions and unknown authorities are refused
            exposed: served in plaintext: 'other'@'10.%' without REQUIRE SSL (the table of accounts)
            plaintext, other versions and unknown authorities are refused (for this account: the others could not be seen)
            protected: not seen (refused)
        "#]],
    );
}

#[test]
fn mysql_with_plaintext_for_others() {
    plaintext_for_others(
        &MySql,
        &[("require_secure_transport = ON", "require_secure_transport = OFF")],
        &NEEDS_NO_TLS,
        |port, authority| format!("mysql://app@127.0.0.1:{port}/?ssl-mode=verify_identity&ssl-ca={authority}"),
        expect![[r#"
            plaintext, other versions and unknown authorities are refused
            exposed: served in plaintext: 'other'@'10.%' without REQUIRE SSL (the table of accounts)
            plaintext, other versions and unknown authorities are refused (for this account: the others could not be seen)
            protected: not seen (refused)
        "#]],
    );
}

/// The log holds everything but the parameters that the arm asks for: by them alone its records are told from others'.
#[test]
fn postgres_with_an_audit_log_without_parameters() {
    let given = chosen(&Postgres, "pgaudit", &[("parameter", OptionValue::Flag(false))]);
    let Some(sandbox) = start(&Postgres, std::slice::from_ref(&given), &[]) else { return };
    let check = protection(&Postgres, "pgaudit").evidence(&chosen(&Postgres, "pgaudit", &[])).remove(0);
    expect!["sent: DELETE 100, INSERT 100, SELECT 100, UPDATE 100; in the log with parameters: none, and with <not logged> in their place: DELETE 100, INSERT 100, SELECT 100, UPDATE 100: set `pgaudit.log_parameter = on` (for an attached server in the arm's `on`), or give the protection `parameter = false`"].assert_eq(match &look(&sandbox, true, &*check) {
        Sight::Unknown(words) => words,
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
