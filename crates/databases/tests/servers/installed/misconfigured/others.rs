//! The result for one account does not show that for others: each mistake here leaves the checking account as it was.

use super::*;

const LOOKED_AT: [Feature; 4] = [Feature::Authentication, Feature::Transport, Feature::AtRest, Feature::Auditing];

/// The result for one account does not show that for others: each mistake here leaves the checking account as it was.
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
        audit: enforced, this account
        as an account that may not read the rules:
        authentication: enforced, this account
        tls: enforced, this account
        at-rest: not offered by this product, this account
        audit: enforced, this account
        as the same account with the rights that it was told to need:
        authentication: enforced, whole server
        tls: enforced, whole server
        at-rest: not offered by this product, whole server
        audit: enforced, this account
        host accounts all 127.0.0.1/32 scram-sha-256
          tls: available but not enforced, whole server
        host all clerk 127.0.0.1/32 scram-sha-256
          tls: available but not enforced, whole server
        hostssl all chief 127.0.0.1/32 trust
          authentication: available but not enforced, whole server
        local all all trust
          authentication: available but not enforced, whole server
        ALTER ROLE auditor SET pgaudit.log = 'none'
          audit: available but not enforced, this account
        GRANT SET ON PARAMETER pgaudit.log TO auditor
          audit: available but not enforced, this account
    "#]]
    .assert_eq(&text);
}

/// The result of `observe` after the server has loaded the new file; until then it reports that it was not loaded.
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
    // Lets the account grant rights to other accounts by mistake.
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
        at-rest: available but not enforced, whole server
        audit: enforced, whole server
        as an account that may not read the list of accounts:
        authentication: enforced, this account
        tls: enforced, this account
        at-rest: available but not enforced, this account
        audit: enforced, whole server
        CREATE USER open@'%' REQUIRE SSL
          authentication: available but not enforced, whole server
        SET GLOBAL require_secure_transport = OFF; CREATE USER app@'%' IDENTIFIED BY 'secret'
          tls: available but not enforced, whole server
        CREATE TABLE test_m (a int) ENGINE=MyISAM
          at-rest: available but not enforced, whole server
        CREATE TABLE test_a (a int) ENGINE=Aria
          at-rest: available but not enforced, this account
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
        at-rest: enforced, this account
        audit: off, whole server
        CREATE USER open@'%' REQUIRE SSL
          authentication: available but not enforced, whole server
        SET GLOBAL require_secure_transport = OFF; CREATE USER app@'%' IDENTIFIED BY 'secret'
          tls: available but not enforced, whole server
        CREATE TABLE test_m (a int) ENGINE=MyISAM ENCRYPTION='N'
          at-rest: available but not enforced, this account
        SET GLOBAL general_log = ON
          at-rest: available but not enforced, this account
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
        authorisation: off, whole server
        tls: enforced, whole server
    "#]]
    .assert_eq(&text);
}
