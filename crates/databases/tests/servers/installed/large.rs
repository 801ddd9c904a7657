//! Servers with thousands of roles, rules and files, and servers that show little: each row of the matrix degrades by
//! itself.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use tithe_databases::{cassandra::Cassandra, postgres::Postgres};
use tithe_machine::launch::Address;
use tithe_plugin::{database::Database as _, session::SqlSession, setup::Setup};

use super::{
    deceptions::{attached, until},
    how, key_value,
    sandbox::{Sandbox, chosen},
    table,
};

fn administrator(sandbox: &Sandbox) -> Box<dyn SqlSession> {
    sandbox.database.sql().expect("SQL").connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session")
}

/// What `rows`, or all if none is named, report to the account of `url`.
fn check(sandbox: &Sandbox, url: String, rows: &[&str], expected: Expect) {
    let server = attached(sandbox, &url);
    let mut text = String::new();
    let began = std::time::Instant::now();
    let cells = sandbox.database.inspect(&server, &Setup::bare()).expect("a matrix");
    eprintln!("{}: {:.2} s", sandbox.database.title(), began.elapsed().as_secs_f64());
    for cell in cells {
        if rows.is_empty() || rows.contains(&cell.feature.id()) {
            let (row, state, scope) = (cell.feature.id(), cell.state.words(), cell.scope.words());
            let _ = writeln!(text, "{row}: {state}, {scope}: {}", cell.seen);
        }
    }
    expected.assert_eq(&text);
}

/// The URL of `account`, with the `rest` after host and port.
fn url(sandbox: &Sandbox, account: &str, rest: &str) -> String {
    let Address::Tcp { host, port } = &sandbox.server.address else { panic!("a TCP server") };
    let credentials = &sandbox.setup.credentials;
    let rest = rest.replace("@AUTHORITY@", &credentials.authority.display().to_string());
    let scheme = sandbox.database.id();
    format!("{scheme}://{account}:{}@{host}:{port}/{rest}", credentials.password.expose_text())
}

#[test]
fn postgres_with_thousands_of_roles_rules_and_tablespaces_and_with_revoked_views() {
    let asked = ["tls", "scram"].map(|id| chosen(&Postgres, id, &[]));
    let Some(sandbox) = Sandbox::start(&Postgres, &asked) else { return };
    let mut session = administrator(&sandbox);
    let mut run = |statement: &str| session.run(statement).expect("done");
    run("DO $$ BEGIN FOR i IN 0..9999 LOOP EXECUTE format('CREATE ROLE r%s LOGIN', i); END LOOP; \
         FOR i IN 1..9999 LOOP EXECUTE format('GRANT r%s TO r%s', i / 10, i); END LOOP; \
         FOR i IN 0..999 LOOP EXECUTE format('ALTER ROLE r%s SET log_statement = ''all''', i); END LOOP; END $$");
    // Without it, a plan made for an empty server can take longer than the inspection waits.
    run("ANALYZE");
    run("GRANT tithe TO r7");
    run("GRANT pg_read_all_data TO r8");
    run("SET allow_in_place_tablespaces = on");
    (0..2_000).for_each(|number| drop(run(&format!("CREATE TABLESPACE t{number} LOCATION ''"))));
    let rule = |number: usize| format!("hostssl db{} r{number} 10.0.0.0/8 scram-sha-256\n", number % 50);
    let rules: String = (0..5_000).map(rule).collect();
    let path = sandbox.server.folder.join("data/pg_hba.conf");
    let here = "hostssl all all 127.0.0.1/32 scram-sha-256\n";
    let text = format!("{here}{rules}host db7 r7 10.0.0.0/9 trust\nhost db8 r7 10.0.0.0/9 trust\n");
    // Written into the file that is there, which keeps its owner.
    std::fs::write(&path, text).expect("rules");
    // If the file changed at the moment of loading, the view regards it as newer than what was loaded.
    let before = run("SELECT pg_conf_load_time()");
    run("SELECT pg_reload_conf()");
    until("the server does not load its rules", || Ok(run("SELECT pg_conf_load_time()") != before)).expect("rules");
    let postgres = |account| url(&sandbox, account, "postgres?sslmode=verify-full&sslrootcert=@AUTHORITY@");
    let rows = ["authentication", "authorisation", "tls", "audit", "proxy-roles"];
    check(
        &sandbox,
        postgres("tithe"),
        &rows,
        expect![[r#"
            authentication: available but not enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 5003 rules of pg_hba.conf: 2 exceptions: line 5002 (host db7 r7 10.0.0.0/9 trust) lets everyone in; line 5003 (host db8 r7 10.0.0.0/9 trust) lets everyone in: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
            tls: available but not enforced, whole server: TLSv1.3 TLS_AES_256_GCM_SHA384 256 bit; plaintext: refused (28000: no pg_hba.conf entry for host "127.0.0.1", user "tithe", database "postgres", no encryption); 5003 rules of pg_hba.conf: 2 exceptions: line 5002 (host db7 r7 10.0.0.0/9 trust) serves plaintext; line 5003 (host db8 r7 10.0.0.0/9 trust) serves plaintext: change host to hostssl and reload
            authorisation: available but not enforced, whole server: 1112 of 10001 accounts may do everything (superusers, and who can become one): r7 → tithe (membership); r70 → r7 (membership) → tithe (membership); r71 → r7 (membership) → tithe (membership); r72 → r7 (membership) → tithe (membership); r73 → r7 (membership) → tithe (membership) and 1107 more: REVOKE tithe FROM r7; 1111 read the hashes of all passwords: r8; r80; r81; r82; r83 and 1106 more: REVOKE SELECT ON pg_authid, pg_shadow, or pg_read_all_data
            proxy-roles: available but not enforced, whole server: 10000 memberships by which an account may act as another (SET ROLE): r7 → tithe (membership); r1 → r0 (membership); r2 → r0 (membership); r3 → r0 (membership); r4 → r0 (membership) and 9995 more
            audit: available but not enforced, this account: nothing that clients do is recorded; values are in the log in the clear, by log_statement; some roles or databases are recorded: log_statement = all: every statement that the server understands; 1000 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
        "#]],
    );

    // What every account may read by default, and this one may not.
    let password = sandbox.setup.credentials.password.expose_text().to_owned();
    run(&format!("ALTER ROLE r5 PASSWORD '{password}'"));
    run("REVOKE SELECT ON pg_roles, pg_settings, pg_db_role_setting, pg_parameter_acl, pg_auth_members, pg_database, \
         pg_proc, pg_class, pg_attribute, pg_language, pg_event_trigger, pg_trigger, pg_subscription, pg_stat_ssl, \
         pg_stat_replication FROM PUBLIC");
    check(
        &sandbox,
        postgres("r5"),
        &[],
        expect![[r#"
            authentication: enforced, this account: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); others were not judged (refused: 42501: permission denied for view pg_hba_file_rules): the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), pg_stat_file(text), and the role pg_read_all_settings
            tls: cannot tell, this account: refused: 42501: permission denied for view pg_stat_ssl: GRANT SELECT ON pg_stat_ssl
            client-to-node: cannot tell, this account: refused: 42501: permission denied for view pg_stat_ssl: GRANT SELECT ON pg_stat_ssl
            authorisation: cannot tell, this account: refused: 42501: permission denied for view pg_roles: GRANT SELECT ON pg_roles, pg_auth_members
            proxy-roles: cannot tell, this account: refused: 42501: permission denied for view pg_roles: GRANT SELECT ON pg_roles, pg_auth_members
            audit: cannot tell, this account: refused: 42501: permission denied for view pg_settings: GRANT SELECT ON pg_settings
            node-to-node: cannot tell, this account: refused: 42501: permission denied for view pg_stat_replication: GRANT SELECT ON pg_stat_replication, pg_stat_ssl, pg_subscription
            at-rest: not offered by this product, whole server: PostgreSQL encrypts no file; a volume below it may; not judged: whether the log repeats values (refused: 42501: permission denied for view pg_settings: GRANT SELECT ON pg_settings)
            jmx-authentication: not offered by this product, whole server: no Java virtual machine
            authentication-caching: not offered by this product, whole server: every login is checked again
        "#]],
    );
}

#[test]
fn cassandra_with_thousands_of_roles() {
    let Some(sandbox) = Sandbox::start(&Cassandra, &[chosen(&Cassandra, "password", &[])]) else { return };
    Cassandra.create(&sandbox.server, &sandbox.setup, &table()).expect("accounts");
    let administrator = url(&sandbox, "tithe_administrator", "");
    let server = attached(&sandbox, &administrator);
    let mut session = key_value(Cassandra.connect(&server, &Setup::bare(), &how(true)).expect("a session"));
    let mut run = |statement: &str| session.run_statement(statement).expect("done");
    for number in 1..2_000 {
        // A role created by its statement has a hash that takes long to compute.
        let group = number / 10;
        run(&format!(
            "INSERT INTO system_auth.roles (role, can_login, is_superuser, member_of, salted_hash) VALUES \
             ('r{number}', true, false, {{'r{group}'}}, 'x')"
        ));
        run(&format!("INSERT INTO system_auth.role_members (role, member) VALUES ('r{group}', 'r{number}')"));
    }
    run("GRANT tithe_administrator TO r7");
    check(
        &sandbox,
        administrator,
        &["authentication", "authorisation", "proxy-roles"],
        expect![[r#"
        authentication: enforced, whole server: by PasswordAuthenticator; without a password: refused (the server asks for a password (PasswordAuthenticator)); authenticator = PasswordAuthenticator: no exception
        authorisation: available but not enforced, whole server: 112 of 2001 accounts may do everything (system_auth.roles): r791 → r79 (granted to it) → r7 (granted to it) → tithe_administrator (granted to it); r759 → r75 (granted to it) → r7 (granted to it) → tithe_administrator (granted to it); r776 → r77 (granted to it) → r7 (granted to it) → tithe_administrator (granted to it); r701 → r70 (granted to it) → r7 (granted to it) → tithe_administrator (granted to it); r733 → r73 (granted to it) → r7 (granted to it) → tithe_administrator (granted to it) and 107 more: REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
        proxy-roles: not offered by this product, whole server: roles are granted to roles, but no account acts for another
    "#]],
    );
}
