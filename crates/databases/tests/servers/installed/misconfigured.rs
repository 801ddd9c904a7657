//! Servers that were set up wrongly, as administrators do it: `tithe inspect` and the evidence say so.
//!
//! Each server is launched as Tithe launches it, with a mistake in its files or after its start.

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_machine::{
    clock::Clock,
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::experiment::{OptionValue, Protection as Chosen, Url};
use tithe_plugin::{
    database::{Connect, Database},
    evidence::Evidence,
    matrix::Feature,
    product::Product,
    session::{SqlSession, Table},
    setup::Setup,
};

use super::{
    observe, observe_and_claim,
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

/// The server of `sandbox` as `user` of it sees it, with the password of all accounts and TLS as `options` ask for it.
fn attached(sandbox: &Sandbox, scheme: &str, user: &str, options: &str) -> Server {
    let Address::Tcp { host, port } = &sandbox.server.address else { panic!("a TCP server") };
    let password = sandbox.setup.credentials.password.expose_text();
    let authority = sandbox.setup.credentials.authority.display();
    let url = format!("{scheme}://{user}:{password}@{host}:{port}/{options}{authority}");
    Server { address: Address::Attached(Url::new(url)), process: None, ..sandbox.server.clone() }
}

/// An administrator's session, in which mistakes are made.
fn administrator(sandbox: &Sandbox) -> Box<dyn SqlSession> {
    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: table() };
    sandbox.database.sql().expect("SQL").connect(&sandbox.server, &sandbox.setup, &how).expect("a session")
}

/// Makes each mistake, which the look at its feature must show, and undoes it.
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

/// TLS is there and plaintext is served beside it.
fn tls_is_optional(database: &'static dyn Product, mistakes: &[(&str, &str)], expected: Expect) {
    let asked = chosen(database, "tls", &[]);
    let Some(sandbox) = start(database, std::slice::from_ref(&asked), mistakes) else { return };
    let words = caught(&sandbox, &asked);
    eprintln!("{}: {words}", database.id());
    assert!(words.contains("plaintext: served") || words.contains("a plaintext port beside it"), "{words}");
    expected.assert_eq(&shown(&sandbox, &[Feature::Transport]));
}

/// The audit log is on and leaves reads out.
fn audit_skips_reads(database: &'static dyn Product, asked: &Chosen, given: &Chosen, expected: Expect) {
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

/// Our account needs TLS and another does not. An account that may read who is let in sees it; for one that may not,
/// the claim is about itself alone. `made` are statements for the administrator, `url` is how the account `app` comes.
fn plaintext_for_others(
    database: &'static dyn Product,
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
    let address = Address::Attached(Url::new(url(port, &sandbox.setup.credentials.authority.display().to_string())));
    sandbox.server = Server { address, process: None, ..sandbox.server.clone() };
    text += &brief(&sandbox, &asked);
    expected.assert_eq(&text);
}

/// What the check of TLS claims, and what it says of everybody else.
fn brief(sandbox: &Sandbox, asked: &Chosen) -> String {
    let check = protection(sandbox.database, "tls").evidence(asked).remove(0);
    let (observation, claim) = observe_and_claim(sandbox, true, &*check);
    eprintln!("{}: {claim}: {observation:?}", sandbox.database.id());
    assert!(observation.quotation().contains("plaintext: refused"), "our own account: {observation:?}");
    let word = match &observation {
        Observation::Protected(_) => "protected",
        Observation::Exposed(_) => "exposed",
        Observation::Unknown(_) => "unknown",
    };
    let claim = claim.split("; ").nth(1).unwrap_or_default();
    let others = observation.quotation().split("everybody else: ").nth(1).unwrap_or_default();
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

/// Encryption was switched on when there were tables already, and nobody encrypts these; nor the new ones in a database
/// that was there.
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

/// Nothing of Redis encrypts or audits; what an administrator gets wrong there is who may do what, and when a write is
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

const LOOKED_AT: [Feature; 4] = [Feature::Authentication, Feature::Transport, Feature::AtRest, Feature::Auditing];

/// What one account meets says nothing of others: each mistake here leaves the account that looks as it was.
#[test]
fn postgres_that_lets_others_do_what_this_account_may_not() {
    let asked = ["tls", "scram", "pgaudit"].map(|id| chosen(&Postgres, id, &[]));
    let Some(sandbox) = start(&Postgres, &asked, &[]) else { return };
    let observe = |feature| judged(&Postgres, &sandbox.server, &sandbox.setup, feature);
    let mut text: String = ["careful:\n".to_owned()].into_iter().chain(LOOKED_AT.map(observe)).collect();

    let mut session = administrator(&sandbox);
    let password = sandbox.setup.credentials.password.expose_text().to_owned();
    session.run(&format!("CREATE ROLE auditor LOGIN PASSWORD '{password}'")).expect("a role");
    let server = attached(&sandbox, "postgres", "auditor", "postgres?sslmode=verify-full&sslrootcert=");
    text += "as an account that may not read the rules:\n";
    text += &LOOKED_AT.map(|feature| judged(&Postgres, &server, &Setup::bare(), feature)).concat();
    for right in [
        "GRANT SELECT ON pg_hba_file_rules TO auditor",
        "GRANT EXECUTE ON FUNCTION pg_hba_file_rules(), pg_stat_file(text) TO auditor",
        "GRANT pg_read_all_settings TO auditor",
    ] {
        session.run(right).expect("a right");
    }
    text += "as the same account with the rights that it was told to need:\n";
    text += &LOOKED_AT.map(|feature| judged(&Postgres, &server, &Setup::bare(), feature)).concat();

    let file = sandbox.server.folder.join("data/pg_hba.conf");
    let careful = std::fs::read_to_string(&file).expect("rules");
    for (feature, line) in [
        (Feature::Transport, "host accounts all 127.0.0.1/32 scram-sha-256"),
        (Feature::Transport, "host all clerk 127.0.0.1/32 scram-sha-256"),
        (Feature::Authentication, "hostssl all chief 127.0.0.1/32 trust"),
        (Feature::Authentication, "local all all trust"),
    ] {
        std::fs::write(&file, format!("{line}\n{careful}")).expect("written");
        session.run("SELECT pg_reload_conf()").expect("reloaded");
        text += &format!("{line}\n  {}", await_reload(|| observe(feature)));
    }
    std::fs::write(&file, careful).expect("written");
    session.run("SELECT pg_reload_conf()").expect("reloaded");
    await_reload(|| observe(Feature::Transport));
    text += &mistakes(
        &sandbox,
        &[
            (Feature::Auditing, "ALTER ROLE auditor SET pgaudit.log = 'none'", "ALTER ROLE auditor RESET ALL"),
            (Feature::Auditing, "GRANT SET ON PARAMETER pgaudit.log TO auditor", "SELECT 1"),
        ],
    );
    expect![[r#"
        careful:
        authentication: enforced, whole server
        tls: enforced, whole server
        at-rest: not offered by this product, whole server
        audit: enforced, whole server
        as an account that may not read the rules:
        authentication: enforced, this account
        tls: enforced, this account
        at-rest: not offered by this product, whole server
        audit: enforced, this account
        as the same account with the rights that it was told to need:
        authentication: enforced, whole server
        tls: enforced, whole server
        at-rest: not offered by this product, whole server
        audit: enforced, whole server
        host accounts all 127.0.0.1/32 scram-sha-256
          tls: available but not enforced, whole server
        host all clerk 127.0.0.1/32 scram-sha-256
          tls: available but not enforced, whole server
        hostssl all chief 127.0.0.1/32 trust
          authentication: available but not enforced, whole server
        local all all trust
          authentication: available but not enforced, whole server
        ALTER ROLE auditor SET pgaudit.log = 'none'
          audit: available but not enforced, whole server
        GRANT SET ON PARAMETER pgaudit.log TO auditor
          audit: available but not enforced, whole server
    "#]]
    .assert_eq(&text);
}

/// What `observe` says once the server has loaded the file that was just written: until then, that it was not.
fn await_reload(observe: impl Fn() -> String) -> String {
    let waited = std::iter::repeat_with(|| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        observe()
    });
    waited.take(400).find(|seen| seen.ends_with("whole server\n")).expect("the file is loaded")
}

#[test]
fn mariadb_that_lets_others_do_what_this_account_may_not() {
    let asked = ["tls", "password", "encryption", "server-audit"].map(|id| chosen(&MariaDb, id, &[]));
    // So that mistakes with other accounts' rights can be made.
    let grants = [("TO tithe@'127.0.0.1';", "TO tithe@'127.0.0.1' WITH GRANT OPTION;")];
    let Some(sandbox) = start(&MariaDb, &asked, &grants) else { return };
    let observe = |feature| judged(&MariaDb, &sandbox.server, &sandbox.setup, feature);
    let mut text: String = ["careful:\n".to_owned()].into_iter().chain(LOOKED_AT.map(observe)).collect();

    let mut session = administrator(&sandbox);
    let password = sandbox.setup.credentials.password.expose_text().to_owned();
    session.run(&format!("CREATE USER auditor@'127.0.0.1' IDENTIFIED BY '{password}'")).expect("an account");
    session.run("GRANT ALL ON tithe.* TO auditor@'127.0.0.1'").expect("rights");
    let server = attached(&sandbox, "mariadb", "auditor", "?ssl-mode=verify_identity&ssl-ca=");
    text += "as an account that may not read the list of accounts:\n";
    text += &LOOKED_AT.map(|feature| judged(&MariaDb, &server, &Setup::bare(), feature)).concat();
    text += &mistakes(
        &sandbox,
        &[
            (Feature::Authentication, "CREATE USER open@'%' REQUIRE SSL", "DROP USER open@'%'"),
            (
                Feature::Transport,
                "SET GLOBAL require_secure_transport = OFF; CREATE USER app@'%' IDENTIFIED BY 'secret'",
                "SET GLOBAL require_secure_transport = ON; DROP USER app@'%'",
            ),
            (Feature::AtRest, "CREATE TABLE test_m (a int) ENGINE=MyISAM", "DROP TABLE test_m"),
            (Feature::AtRest, "CREATE TABLE test_a (a int) ENGINE=Aria", "DROP TABLE test_a"),
            (Feature::AtRest, "SET GLOBAL aria_encrypt_tables = OFF", "SET GLOBAL aria_encrypt_tables = ON"),
            (Feature::AtRest, "SET GLOBAL encrypt_tmp_disk_tables = OFF", "SET GLOBAL encrypt_tmp_disk_tables = ON"),
            (Feature::AtRest, "SET GLOBAL general_log = ON", "SET GLOBAL general_log = OFF"),
            (
                Feature::Auditing,
                "SET GLOBAL server_audit_incl_users = 'tithe'",
                "SET GLOBAL server_audit_incl_users = ''",
            ),
        ],
    );
    expect![[r#"
        careful:
        authentication: enforced, whole server
        tls: enforced, whole server
        at-rest: enforced, whole server
        audit: enforced, whole server
        as an account that may not read the list of accounts:
        authentication: enforced, this account
        tls: enforced, this account
        at-rest: enforced, this account
        audit: enforced, whole server
        CREATE USER open@'%' REQUIRE SSL
          authentication: available but not enforced, whole server
        SET GLOBAL require_secure_transport = OFF; CREATE USER app@'%' IDENTIFIED BY 'secret'
          tls: available but not enforced, whole server
        CREATE TABLE test_m (a int) ENGINE=MyISAM
          at-rest: available but not enforced, whole server
        CREATE TABLE test_a (a int) ENGINE=Aria
          at-rest: enforced, this account
        SET GLOBAL aria_encrypt_tables = OFF
          at-rest: available but not enforced, whole server
        SET GLOBAL encrypt_tmp_disk_tables = OFF
          at-rest: available but not enforced, whole server
        SET GLOBAL general_log = ON
          at-rest: available but not enforced, whole server
        SET GLOBAL server_audit_incl_users = 'tithe'
          audit: available but not enforced, whole server
    "#]]
    .assert_eq(&text);
}

#[test]
fn mysql_that_lets_others_do_what_this_account_may_not() {
    let asked = ["tls", "password", "encryption"].map(|id| chosen(&MySql, id, &[]));
    let Some(sandbox) = start(&MySql, &asked, &[]) else { return };
    let observe = |feature| judged(&MySql, &sandbox.server, &sandbox.setup, feature);
    let mut text: String = ["careful:\n".to_owned()].into_iter().chain(LOOKED_AT.map(observe)).collect();
    text += &mistakes(
        &sandbox,
        &[
            (Feature::Authentication, "CREATE USER open@'%' REQUIRE SSL", "DROP USER open@'%'"),
            (
                Feature::Transport,
                "SET GLOBAL require_secure_transport = OFF; CREATE USER app@'%' IDENTIFIED BY 'secret'",
                "SET GLOBAL require_secure_transport = ON; DROP USER app@'%'",
            ),
            (Feature::AtRest, "CREATE TABLE test_m (a int) ENGINE=MyISAM ENCRYPTION='N'", "DROP TABLE test_m"),
            (Feature::AtRest, "SET GLOBAL general_log = ON", "SET GLOBAL general_log = OFF"),
        ],
    );
    expect![[r#"
        careful:
        authentication: enforced, whole server
        tls: enforced, whole server
        at-rest: enforced, whole server
        audit: off, whole server
        CREATE USER open@'%' REQUIRE SSL
          authentication: available but not enforced, whole server
        SET GLOBAL require_secure_transport = OFF; CREATE USER app@'%' IDENTIFIED BY 'secret'
          tls: available but not enforced, whole server
        CREATE TABLE test_m (a int) ENGINE=MyISAM ENCRYPTION='N'
          at-rest: available but not enforced, whole server
        SET GLOBAL general_log = ON
          at-rest: available but not enforced, whole server
    "#]]
    .assert_eq(&text);
}

#[test]
fn redis_that_lets_others_do_what_this_account_may_not() {
    let asked = ["tls", "acl"].map(|id| chosen(&Redis, id, &[]));
    let features = [Feature::Authentication, Feature::Authorisation, Feature::Transport];
    let mut text = String::new();
    for wrong in ["", "user open on nopass resetkeys ~app:* -@all +get\n", "user second on nopass ~* &* +@all\n"] {
        let Some(sandbox) = start(&Redis, &asked, &[("user default", &format!("{wrong}user default"))]) else { return };
        let server = attached(&sandbox, "rediss", "tithe-administrator", "0?ca=");
        text += &format!("{}\n", if wrong.is_empty() { "careful" } else { wrong.trim() });
        text += &features.map(|feature| judged(&Redis, &server, &Setup::bare(), feature)).concat();
        if wrong.is_empty() {
            text += "as an account that may not read the list of accounts:\n";
            text += &features.map(|feature| judged(&Redis, &sandbox.server, &sandbox.setup, feature)).concat();
        }
    }
    expect![[r#"
        careful
        authentication: enforced, whole server
        authorisation: enforced, whole server
        tls: enforced, whole server
        as an account that may not read the list of accounts:
        authentication: enforced, this account
        authorisation: enforced, this account
        tls: cannot tell, this account
        user open on nopass resetkeys ~app:* -@all +get
        authentication: available but not enforced, whole server
        authorisation: enforced, whole server
        tls: enforced, whole server
        user second on nopass ~* &* +@all
        authentication: available but not enforced, whole server
        authorisation: available but not enforced, whole server
        tls: enforced, whole server
    "#]]
    .assert_eq(&text);
}
