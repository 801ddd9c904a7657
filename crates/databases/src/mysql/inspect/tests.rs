//! The whole matrix of a server that answers as configured, and which rows change with each single change to it.
//! The same for what a claim of encryption asks, for where canaries are searched, and for what is removed.

use std::fs;

use expect_test::expect;
use tithe_plugin::database::Database as _;

use super::*;
use crate::{
    evidence::whole::{Exception, Whole},
    mysql::{
        MySql,
        evidence::{PROBES, encryption_in_force::EncryptionInForce, parts::EncryptedLogs},
    },
    mysql_family::{evidence::served::this_machine, schema::MARK, told::server},
    test_setup::{as_arm, plain},
    told::{Rows, Told},
};

/// A row of `mysql.user`: names, plugin, whether a password is stored, the TLS that it needs, and which of the eleven
/// rights that lead further it has.
macro_rules! account {
    ($user:expr, $host:expr, $plugin:expr, $secret:expr, $tls:expr, $rights:expr) => {
        &[$user, $host, $plugin, $secret, $tls, "", "", "N", "0", "", $rights]
    };
}

const ALL: &str = "YYYYYYYYYYY";
const NONE: &str = "NNNNNNNNNNN";
const SHA: &str = "caching_sha2_password";
const ROOT: &[&str] = account!("root", "localhost", "auth_socket", "", "", ALL);
const APP: &[&str] = account!("app", "%", SHA, "set", "ANY", NONE);
const VIEWS: &str = "information_schema.VIEWS";
const SOURCES: &str = "performance_schema.replication_connection_configuration";
const CHECKED_SOURCE: Rows = &[&["10.0.0.9", "YES", "YES"]];

/// A server that encrypts all that MySQL can, and requires TLS of all accounts that come by TCP.
fn tight() -> Told {
    server(
        (&MySql, "8.0.39"),
        vec![
            ("require_secure_transport", "OFF"),
            ("skip_name_resolve", "OFF"),
            ("secure_file_priv", "NULL"),
            ("check_proxy_users", "OFF"),
            ("mysql_native_password_proxy_users", "OFF"),
            ("sha256_password_proxy_users", "OFF"),
            ("partial_revokes", "OFF"),
            ("mandatory_roles", ""),
            ("performance_schema", "ON"),
            (TABLES, "ON"),
            (CHECKED, "ON"),
            (REDO, "ON"),
            (UNDO, "ON"),
            (BINLOG, "ON"),
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("datadir", "/data/"),
            ("tmpdir", "/tmp"),
            ("general_log", "OFF"),
            ("log_output", "FILE"),
            ("log_raw", "OFF"),
            ("slow_query_log", "OFF"),
            ("version_comment", "MySQL Community Server"),
        ],
        vec![
            ("FROM mysql.user ORDER BY", Ok(&[APP, ROOT])),
            ("mysql.global_grants", Ok(&[&["root", "localhost", "SYSTEM_USER"]])),
            ("mysql.role_edges", Ok(&[])),
            ("SHOW GRANTS", Ok(&[&["GRANT SELECT, CREATE USER, PROCESS ON *.* TO `ann`@`%`"]])),
            ("FROM mysql.db", Ok(&[])),
            ("mysql.tables_priv", Ok(&[])),
            ("mysql.columns_priv", Ok(&[])),
            ("mysql.proxies_priv", Ok(&[])),
            ("mysql.procs_priv", Ok(&[])),
            ("information_schema.ROUTINES", Ok(&[])),
            (VIEWS, Ok(&[])),
            ("information_schema.TABLES ", Ok(&[])),
            ("keyring_component_status", Ok(&[&["Component_status", "Active"], &["Data_file", "/keys/file"]])),
            ("INNODB_TABLES WHERE SPACE = 0", Ok(&[])),
            ("COUNT(*) FROM information_schema.INNODB_TABLESPACES", Ok(&[&["9"]])),
            ("INNODB_TABLESPACES WHERE ENCRYPTION", Ok(&[])),
            ("SHOW BINARY LOGS", Ok(&[&["binlog.000001", "157", "Yes"]])),
            ("information_schema.SCHEMATA", Ok(&[])),
            (SOURCES, Ok(&[])),
            ("Binlog Dump", Ok(&[])),
            ("mysql.general_log", Ok(&[])),
            ("mysql.slow_log", Ok(&[])),
            ("information_schema.PLUGINS", Ok(&[])),
            ("mysql.component", Ok(&[])),
        ],
    )
}

#[test]
fn a_server_that_leaves_nothing_open() {
    expect![[r#"
        authentication: enforced, whole server: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by caching_sha2_password, 1 by local socket): no exception
        tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: no exception
        client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: no exception
        authorisation: enforced, whole server: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*)
        at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is MySQL Community Server), general_log = OFF, slow_query_log = OFF
        node-to-node: cannot tell, this account: no other server is connected
        proxy-roles: off, whole server: no account may act as another or as a role
        authentication-caching: not offered by this product, this account: not by mysql_native_password
        jmx-authentication: not offered by this product, whole server: no Java virtual machine
    "#]].assert_eq(&tight().matrix().concat());
}

#[test]
fn old_versions_of_tls_are_not_tried() {
    let doubted = |versions: &'static str| {
        let rows = tight().with("tls_version", versions).matrix();
        rows.iter().filter(|row| row.contains("not judged: whether clients speak TLS before version 1.2")).count()
    };
    // The rows about the client and about the node.
    assert_eq!(["TLSv1.1,TLSv1.2,TLSv1.3", "TLSv1"].map(doubted), [2; 2]);
    assert_eq!(doubted("TLSv1.2,TLSv1.3"), 0);
}

#[test]
fn tables_of_users_are_named_in_the_system_tablespace() {
    let tables: Rows = &[&["SYS_FOREIGN"], &["mysql/db"], &["sys_shop/orders"]];
    let rows = tight().telling("INNODB_TABLES WHERE SPACE = 0", tables).matrix().concat();
    let told = "1 exception: table in the system tablespace, which MySQL does not encrypt: sys_shop/orders: ";
    assert!(rows.contains(told), "{rows}");
}

#[test]
fn the_system_tablespace_may_hold_entries_of_indexes() {
    let is_doubted = |told: Told| {
        let rows = told.matrix().concat();
        rows.contains("not judged: entries of secondary indexes in the system tablespace")
    };
    let buffered = || tight().with("innodb_change_buffering", "all");
    assert!(is_doubted(buffered()));
    assert!(!is_doubted(buffered().with("innodb_sys_tablespace_encrypt", "ON")));
    assert!(!is_doubted(tight().with("innodb_change_buffering", "none")));
}

#[test]
fn plugins_that_keep_keys_are_named() {
    let without = tight().telling("keyring_component_status", &[]);
    let rows = without.with("keyring_vault_config", "/etc/vault.conf").matrix().concat();
    let told = "no keyring component is active, the plugin keyring_vault is loaded (keyring_vault_config = \
                /etc/vault.conf), ";
    assert!(rows.contains(told), "{rows}");
}

#[test]
fn accounts_that_read_hashes_of_passwords_are_named_unless_they_ask() {
    const READER: Rows = &[account!("ann", "%", SHA, "set", "ANY", "YNNNNNNNNNN"), ROOT];
    let told = || tight().telling("FROM mysql.user ORDER BY", READER);
    let everything = "1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*)";
    let by_others = format!(
        "authorisation: available but not enforced, whole server [MY-AUTHZ-READS-PASSWORDS]: {everything}; 'ann'@'%' → \
         hashes of all passwords (SELECT ON *.*)"
    );
    let by_itself =
        format!("authorisation: enforced, whole server: {everything}; this account reads the hashes of all passwords");
    let asking = |account: Rows| told().telling("SELECT CURRENT_USER()", account).matrix().concat();
    for (rows, expected) in [
        (told().matrix().concat(), &by_others),
        (asking(&[&["bob@%"]]), &by_others),
        (asking(&[&["ann@%"]]), &by_itself),
    ] {
        assert!(rows.contains(expected.as_str()), "{rows}");
    }
}

#[test]
fn doublewrite_files_are_encrypted_from_a_version_on() {
    let is_doubted = |version: &'static str| {
        let rows = tight().with("version", version).matrix().concat();
        let is_doubted = rows.contains("not judged: doublewrite files, which MySQL encrypts from version 8.0.23 on");
        assert_ne!(is_doubted, rows.contains("doublewrite as its tablespaces"), "{rows}");
        is_doubted
    };
    assert_eq!(["8.0.22", "8.0.22-13"].map(is_doubted), [true; 2]);
    assert_eq!(["8.0.23", "8.4.2", "8.0.mysql_aurora.3"].map(is_doubted), [false; 3]);
}

#[test]
fn each_change_shows_in_its_rows() {
    const ACCOUNTS: &str = "FROM mysql.user ORDER BY";
    let accounts = |accounts: Rows| tight().telling(ACCOUNTS, accounts);
    let further = |rows: Rows| tight().telling("mysql.global_grants", rows);
    let replica = |kind: Rows| {
        tight().telling("Binlog Dump", &[&["7", "repl", "10.0.0.2"]]).telling("performance_schema.threads", kind)
    };
    let changes = [
        ("no password", Told { password: false, ..tight() }),
        ("all by TLS", tight().with("require_secure_transport", "ON")),
        ("no access control", tight().failing("SHOW GRANTS", ("1290", "running with the --skip-grant-tables option"))),
        ("no right to the accounts", tight().refusing(ACCOUNTS)),
        (
            "no right to the accounts, and no privileges",
            tight()
                .telling("SHOW GRANTS", &[&["GRANT USAGE ON *.* TO `ann`@`%`"]])
                .refusing(ACCOUNTS)
                .refusing("FROM mysql.user"),
        ),
        (
            "no right to the list, and one to the table",
            tight()
                .telling("SHOW GRANTS", &[&["GRANT SELECT ON `mysql`.* TO `ann`@`%`"]])
                .telling("COUNT(*) FROM mysql.user", &[&["3"]])
                .refusing(ACCOUNTS),
        ),
        ("no password of an account", accounts(&[account!("app", "%", SHA, "", "ANY", NONE), ROOT])),
        ("an account in plaintext", accounts(&[account!("app", "%", SHA, "set", "", NONE), ROOT])),
        (
            "an account in plaintext that is locked",
            accounts(&[APP, ROOT, &["old", "%", SHA, "set", "", "", "", "Y", "0", "", NONE]]),
        ),
        (
            "an account with a second password",
            accounts(&[ROOT, &["old", "%", SHA, "set", "ANY", "", "", "N", "1", "", NONE]]),
        ),
        (
            "an account with any certificate",
            accounts(&[ROOT, &["old", "%", SHA, "", "SPECIFIED", "", "set", "N", "0", "", NONE]]),
        ),
        (
            "an account with a named certificate",
            accounts(&[ROOT, &["old", "%", SHA, "", "SPECIFIED", "set", "", "N", "0", "", NONE]]),
        ),
        ("an administrator more", accounts(&[APP, ROOT, account!("boss", "%", SHA, "set", "ANY", ALL)])),
        ("a right to write", accounts(&[account!("app", "%", SHA, "set", "ANY", "NYNNNNNNNNN"), ROOT])),
        (
            "a right to write that leaves rights out",
            accounts(&[
                &[
                    "app",
                    "%",
                    SHA,
                    "set",
                    "ANY",
                    "",
                    "",
                    "N",
                    "0",
                    r#"[{"Database": "mysql", "Privileges": ["INSERT"]}]"#,
                    "NYNNNNNNNNN",
                ],
                ROOT,
            ]),
        ),
        ("a right to delete", accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNYNNNNNNN"), ROOT])),
        ("a right to files", accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNNYNNNNNN"), ROOT])),
        (
            "a right to files of a server that keeps none",
            accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNNYNNNNNN"), ROOT]).with("secure_file_priv", ""),
        ),
        ("SUPER", accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNNNYNNNNN"), ROOT])),
        (
            "CREATE USER, which reaches no system user",
            accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNNNNNNYNN"), ROOT]),
        ),
        (
            "CREATE USER of a system user",
            accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNNNNNNYNN"), ROOT])
                .telling("mysql.global_grants", &[&["root", "localhost", "SYSTEM_USER"], &["app", "%", "SYSTEM_USER"]]),
        ),
        (
            "CREATE USER without system users",
            accounts(&[account!("app", "%", SHA, "set", "ANY", "NNNNNNNNYNN"), ROOT])
                .telling("mysql.global_grants", &[]),
        ),
        ("roles to give", further(&[&["app", "%", "ROLE_ADMIN"]])),
        ("code as another without code", further(&[&["app", "%", "SET_USER_ID"]])),
        (
            "code as another",
            further(&[&["app", "%", "SET_ANY_DEFINER"]])
                .telling("FROM mysql.db", &[&["app", "%", "shop", "N", "N", "Y", "N", "N", "N", "N", "N"]]),
        ),
        ("rows by BINLOG", further(&[&["app", "%", "BINLOG_ADMIN"]])),
        ("another source", further(&[&["app", "%", "REPLICATION_SLAVE_ADMIN"]])),
        ("a right of another account", further(&[&["app", "localhost", "BINLOG_ADMIN"]])),
        ("variables", further(&[&["app", "%", "SYSTEM_VARIABLES_ADMIN"]])),
        (
            "variables of a replica",
            further(&[&["app", "%", "SYSTEM_VARIABLES_ADMIN"]]).telling(SOURCES, CHECKED_SOURCE),
        ),
        ("what is recorded", further(&[&["app", "%", "AUDIT_ADMIN"]])),
        ("tables without encryption", further(&[&["app", "%", "TABLE_ENCRYPTION_ADMIN"]])),
        ("a binary log without encryption", further(&[&["app", "%", "BINLOG_ENCRYPTION_ADMIN"]])),
        ("connections and keys", further(&[&["app", "%", "CONNECTION_ADMIN"], &["app", "%", "ENCRYPTION_KEY_ADMIN"]])),
        ("a role", tight().telling("mysql.role_edges", &[&["app", "%", "root", "localhost"]])),
        ("a mandatory role", tight().with("mandatory_roles", "`root`@`localhost`")),
        ("no right to the roles", tight().refusing("mysql.role_edges")),
        (
            "rights of a pattern",
            tight().telling("FROM mysql.db", &[&["app", "%", "my%", "N", "Y", "N", "N", "N", "N", "N", "N"]]),
        ),
        (
            "rights of a name that looks like a pattern",
            tight()
                .telling("FROM mysql.db", &[&["app", "%", "my%", "N", "Y", "N", "N", "N", "N", "N", "N"]])
                .with("partial_revokes", "ON"),
        ),
        ("rights to a column", tight().telling("mysql.columns_priv", &[&["app", "%", "user", "Update"]])),
        ("rights to a table of no rights", tight().telling("mysql.tables_priv", &[&["app", "%", "plugin", "Insert"]])),
        (
            "a proxy that passwords map",
            tight()
                .telling("mysql.proxies_priv", &[&["app", "%", "root", "localhost"]])
                .with("check_proxy_users", "ON")
                .with("sha256_password_proxy_users", "ON"),
        ),
        (
            "a proxy that is not asked for",
            tight()
                .telling("mysql.proxies_priv", &[&["app", "%", "root", "localhost"]])
                .with("sha256_password_proxy_users", "ON"),
        ),
        (
            "a proxy that a service maps",
            accounts(&[account!("app", "%", "authentication_ldap_simple", "set", "ANY", "NNNNNNNNNNN"), ROOT])
                .telling("mysql.proxies_priv", &[&["app", "%", "root", "localhost"]]),
        ),
        (
            "a routine of an administrator",
            tight()
                .telling("information_schema.ROUTINES", &[&["shop", "pay", "root@localhost"]])
                .telling("FROM mysql.db", &[&["app", "%", "shop", "N", "N", "N", "N", "N", "Y", "N", "N"]]),
        ),
        ("a view of rights", tight().telling(VIEWS, &[&["shop", "logins", "root@localhost", "0"]])),
        ("a view of rights of an ordinary account", tight().telling(VIEWS, &[&["shop", "logins", "app@%", "0"]])),
        ("views that are not shown", tight().telling(VIEWS, &[&["shop", "logins", "app@%", "1"]])),
        ("no settings", tight().refusing("SHOW GLOBAL VARIABLES").telling("VARIABLES LIKE", &[&["x", "OFF"]])),
        ("nothing encrypted", {
            let off = [TABLES, REDO, UNDO, BINLOG].iter().fold(tight(), |told, name| told.with(name, "OFF"));
            off.telling("COUNT(*) FROM information_schema.INNODB_TABLESPACES", &[&["0"]])
        }),
        ("no performance schema", tight().with("performance_schema", "OFF")),
        ("no keyring", tight().telling("keyring_component_status", &[])),
        ("a tablespace", tight().telling("INNODB_TABLESPACES WHERE ENCRYPTION", &[&["shop/old", "Single"]])),
        ("a tablespace of undo logs", tight().telling("INNODB_TABLESPACES WHERE ENCRYPTION", &[&["undo_1", "Undo"]])),
        ("no right to the tablespaces", tight().refusing("INNODB_TABLESPACES")),
        ("a table of the system tablespace", tight().telling("INNODB_TABLES WHERE SPACE = 0", &[&["shop/t"]])),
        ("a binary log", tight().telling("SHOW BINARY LOGS", &[&["l.1", "157", "No"], &["l.2", "157", "Yes"]])),
        (
            "no binary log",
            tight().with("log_bin", "OFF").with(BINLOG, "OFF").telling("SHOW BINARY LOGS", &[&["l.1", "157", "No"]]),
        ),
        ("new tables", tight().telling("information_schema.SCHEMATA", &[&["shop"]])),
        ("a table of another engine", tight().telling("information_schema.TABLES ", &[&["shop.a", "MyISAM", "Fixed"]])),
        (
            "the keys beside the data",
            tight().telling("keyring_component_status", &[&["Component_status", "Active"], &["Data_file", "keys"]]),
        ),
        (
            "the keys of the plugin beside the data",
            tight().telling("keyring_component_status", &[]).with("keyring_file_data", "/data/keyring"),
        ),
        (
            "the keys of the plugin elsewhere",
            tight().telling("keyring_component_status", &[]).with("keyring_file_data", "/keyring/keyring"),
        ),
        ("old rows of the slow log", tight().telling("mysql.slow_log", &[&["1"]])),
        ("it follows another, checked", tight().telling(SOURCES, CHECKED_SOURCE)),
        ("it follows another, not checked", tight().telling(SOURCES, &[&["10.0.0.9", "YES", "NO"]])),
        (
            "it follows another in plaintext",
            tight().telling(SOURCES, &[&["10.0.0.9", "NO", "YES"]]).with(BINLOG, "OFF"),
        ),
        ("a replica by TLS", replica(&[&["SSL/TLS"]])),
        ("a replica in plaintext", replica(&[&["TCP/IP"]])),
        ("a replica from before TLS was required", replica(&[&["TCP/IP"]]).with("require_secure_transport", "ON")),
        ("a replica on this machine", replica(&[&["Socket"]]).with("require_secure_transport", "ON")),
        (
            "a group in plaintext",
            tight().with("group_replication_group_name", "g").with("group_replication_ssl_mode", "DISABLED"),
        ),
        (
            "a group by TLS",
            tight()
                .with("group_replication_group_name", "g")
                .with("group_replication_ssl_mode", "VERIFY_CA")
                .with("group_replication_recovery_use_ssl", "ON")
                .with("group_replication_recovery_ssl_verify_server_cert", "ON"),
        ),
        (
            "a group by TLS, not checked",
            tight()
                .with("group_replication_group_name", "g")
                .with("group_replication_ssl_mode", "REQUIRED")
                .with("group_replication_recovery_use_ssl", "ON")
                .with("group_replication_recovery_ssl_verify_server_cert", "OFF"),
        ),
        ("an audit plugin", tight().telling("information_schema.PLUGINS", &[&["audit_log"]])),
        ("an audit component", tight().telling("mysql.component", &[&["file://component_audit_log_filter"]])),
        ("no right to the components", tight().refusing("mysql.component")),
        ("a general log", tight().with("general_log", "ON")),
        ("a general log with passwords", tight().with("general_log", "ON").with("log_raw", "ON")),
    ];
    expect![[r#"
        no password
          authentication: off, whole server: let in without a password; 2 accounts (1 by caching_sha2_password, 1 by local socket): no exception
          authentication-caching: not offered by this product, this account: not by none
        all by TLS
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
        no access control
          authentication: off, whole server [MY-AUTHN-NOBODY-ASKED]: the server runs with skip_grant_tables: everybody comes in and may do everything
          authorisation: off, whole server [MY-AUTHN-NOBODY-ASKED]: the server runs with skip_grant_tables: everybody comes in and may do everything
          at-rest: cannot tell, this account: server: 1290 (42000): running with the --skip-grant-tables option
        no right to the accounts
          authentication: enforced, this account: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          authorisation: cannot tell, this account: the account has all privileges: nothing is refused to it
          proxy-roles: cannot tell, this account: refused: 1142 (42000): denied to this account
        no right to the accounts, and no privileges
          authentication: enforced, this account: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          authorisation: enforced, this account: the table of accounts: refused: 1142 (42000): denied to this account
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: tables that this account is not shown (it needs GRANT SELECT ON *.*); not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
          node-to-node: cannot tell, this account: no other server is connected; not judged: replicas (GRANT PROCESS ON *.*)
          proxy-roles: cannot tell, this account: refused: 1142 (42000): denied to this account
        no right to the list, and one to the table
          authentication: enforced, this account: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          authorisation: available but not enforced, this account: an account without all privileges reads the table of accounts
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: tables that this account is not shown (it needs GRANT SELECT ON *.*); not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
          node-to-node: cannot tell, this account: no other server is connected; not judged: replicas (GRANT PROCESS ON *.*)
          proxy-roles: cannot tell, this account: refused: 1142 (42000): denied to this account
        no password of an account
          authentication: available but not enforced, whole server [MY-AUTHN-NO-PROOF]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by local socket, 1 by nothing): 1 exception: 'app'@'%' has no password: ALTER USER … IDENTIFIED BY, REQUIRE SUBJECT, DISCARD OLD PASSWORD, or DROP USER
        an account in plaintext
          tls: available but not enforced, whole server [MY-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: 1 exception: 'app'@'%' may speak plaintext: set require_secure_transport = ON, or ALTER USER … REQUIRE SSL
          client-to-node: available but not enforced, whole server [MY-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: 1 exception: 'app'@'%' may speak plaintext: set require_secure_transport = ON, or ALTER USER … REQUIRE SSL
        an account in plaintext that is locked
        an account with a second password
          authentication: available but not enforced, whole server [MY-AUTHN-NO-PROOF]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by caching_sha2_password, 1 by local socket): 1 exception: 'old'@'%' is opened by a password that it had before, too: ALTER USER … IDENTIFIED BY, REQUIRE SUBJECT, DISCARD OLD PASSWORD, or DROP USER
        an account with any certificate
          authentication: available but not enforced, whole server [MY-AUTHN-NO-PROOF]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by certificate, 1 by local socket): 1 exception: 'old'@'%' takes any certificate of the server's authority and no password: ALTER USER … IDENTIFIED BY, REQUIRE SUBJECT, DISCARD OLD PASSWORD, or DROP USER
        an account with a named certificate
          authentication: enforced, whole server: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by certificate, 1 by local socket): no exception
        an administrator more
          authentication: enforced, whole server: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 3 accounts (2 by caching_sha2_password, 1 by local socket): no exception
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 3 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 3 accounts: no exception
          authorisation: available but not enforced, whole server [MY-AUTHZ-ADMINISTRATORS]: 2 of 3 accounts may do everything: 'boss'@'%' → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        a right to write
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (INSERT ON *.* writes the tables of rights); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        a right to write that leaves rights out
        a right to delete
          authorisation: available but not enforced, whole server [MY-AUTHZ-SWITCHES-PROTECTIONS]: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); 'app'@'%' → protections switched off (DELETE ON *.* uninstalls plugins)
        a right to files
        a right to files of a server that keeps none
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (FILE writes into the server's folder: secure_file_priv allows it); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        SUPER
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (SUPER writes rows of any table by BINLOG); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        CREATE USER, which reaches no system user
        CREATE USER of a system user
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → any account, system users included (CREATE USER sets its password) → 'root'@'localhost' (one of them) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        CREATE USER without system users
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → any account (CREATE USER sets its password) → 'root'@'localhost' (one of them) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        roles to give
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → any account (ROLE_ADMIN makes it a role) → 'root'@'localhost' (one of them) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        code as another without code
        code as another
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → any account (code that runs as it) → 'root'@'localhost' (one of them) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        rows by BINLOG
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (writes rows of any table by BINLOG); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        another source
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (chooses the server from which changes are taken); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        a right of another account
        variables
          authorisation: available but not enforced, whole server [MY-AUTHZ-SWITCHES-PROTECTIONS]: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); 'app'@'%' → protections switched off (sets the server's variables)
        variables of a replica
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (sets init_replica, which runs with all rights); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting; not judged: relay logs from before binlog_encryption was ON
          node-to-node: enforced, this account: changes come from 10.0.0.9 by TLS, its certificate checked
        what is recorded
          authorisation: available but not enforced, whole server [MY-AUTHZ-SWITCHES-PROTECTIONS]: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); 'app'@'%' → protections switched off (AUDIT_ADMIN sets what is recorded)
        tables without encryption
          authorisation: available but not enforced, whole server [MY-AUTHZ-SWITCHES-PROTECTIONS]: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); 'app'@'%' → protections switched off (TABLE_ENCRYPTION_ADMIN makes tables without encryption)
        a binary log without encryption
          authorisation: available but not enforced, whole server [MY-AUTHZ-SWITCHES-PROTECTIONS]: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); 'app'@'%' → protections switched off (BINLOG_ENCRYPTION_ADMIN sets whether the binary log is encrypted)
        connections and keys
        a role
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → 'root'@'localhost' (role) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → 'root'@'localhost' (role)
        a mandatory role
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → 'root'@'localhost' (mandatory role) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → 'root'@'localhost' (mandatory role)
        no right to the roles
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: roles (GRANT SELECT ON mysql.role_edges: refused: 1142 (42000): denied to this account)
          proxy-roles: cannot tell, this account: no way is shown by which an account may act as another or as a role; not judged: roles (GRANT SELECT ON mysql.role_edges: refused: 1142 (42000): denied to this account)
        rights of a pattern
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (UPDATE ON `my%`.* writes the tables of rights); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        rights of a name that looks like a pattern
        rights to a column
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (Update ON mysql.user); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        rights to a table of no rights
        a proxy that passwords map
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → 'root'@'localhost' (GRANT PROXY) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → 'root'@'localhost' (GRANT PROXY)
        a proxy that is not asked for
        a proxy that a service maps
          authentication: enforced, this account: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by authentication_ldap_simple, 1 by local socket): no exception; not judged: 'app'@'%': authentication_ldap_simple asks another service
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → 'root'@'localhost' (GRANT PROXY) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → 'root'@'localhost' (GRANT PROXY)
        a routine of an administrator
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: what shop.pay does, which 'app'@'%' may call and which runs as 'root'@'localhost'
        a view of rights
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: what shop.logins shows of `mysql` as 'root'@'localhost', and to whom
        a view of rights of an ordinary account
        views that are not shown
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: views that this account is not shown (GRANT SELECT, SHOW VIEW ON *.*)
        no settings
          at-rest: cannot tell, this account: refused: 1142 (42000): denied to this account
          audit: cannot tell, this account: refused: 1142 (42000): denied to this account
          node-to-node: cannot tell, this account: refused: 1142 (42000): denied to this account
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → 'OFF'@'%' (mandatory role)
        nothing encrypted
          at-rest: off, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = OFF, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = OFF, innodb_undo_log_encrypt = OFF, binlog_encryption = OFF, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 4 exceptions: default_table_encryption is not ON; innodb_redo_log_encrypt is not ON; innodb_undo_log_encrypt is not ON; binlog_encryption is not ON: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        no performance schema
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, keyring component: unknown, performance_schema is off, doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        no keyring
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, no keyring component is active, doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        a tablespace
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: tablespace shop/old: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        a tablespace of undo logs
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: tablespace undo_1: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        no right to the tablespaces
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: tablespaces (GRANT PROCESS, REPLICATION CLIENT ON *.*: refused: 1142 (42000): denied to this account); not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        a table of the system tablespace
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: table in the system tablespace, which MySQL does not encrypt: shop/t: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        a binary log
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: binary log l.1: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        no binary log
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = OFF, log_bin = OFF, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        new tables
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: new tables in database shop: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        a table of another engine
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 1 tables of other engines, no dumps: 1 exception: MyISAM table shop.a: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        the keys beside the data
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in keys), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: the keys are in the folder of the data: keys: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        the keys of the plugin beside the data
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, no keyring component is active, the plugin keyring_file is loaded (keys in /data/keyring), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: the keys are in the folder of the data: /data/keyring: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        the keys of the plugin elsewhere
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, no keyring component is active, the plugin keyring_file is loaded (keys in /keyring/keyring), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        old rows of the slow log
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: mysql.slow_log holds statements in the clear: TRUNCATE it: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
        it follows another, checked
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting; not judged: relay logs from before binlog_encryption was ON
          node-to-node: enforced, this account: changes come from 10.0.0.9 by TLS, its certificate checked
        it follows another, not checked
          at-rest: enforced, this account: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting; not judged: relay logs from before binlog_encryption was ON
          node-to-node: available but not enforced, this account [MY-TLS-REPLICATION]: changes come from 10.0.0.9 by TLS, its certificate not checked
        it follows another in plaintext
          at-rest: available but not enforced, this account [MY-REST-NOT-ENCRYPTED]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = OFF, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: binlog_encryption is not ON; relay logs, which hold the changes of others, are not encrypted (binlog_encryption): set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
          node-to-node: off, this account [MY-TLS-REPLICATION]: changes come from 10.0.0.9 in plaintext
        a replica by TLS
          node-to-node: enforced, this account: changes go to repl at 10.0.0.2 by TLS
        a replica in plaintext
          node-to-node: off, this account [MY-TLS-REPLICATION]: changes go to repl at 10.0.0.2 in plaintext
        a replica from before TLS was required
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          node-to-node: off, this account [MY-TLS-REPLICATION]: changes go to repl at 10.0.0.2 in plaintext, since before require_secure_transport was ON
        a replica on this machine
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          node-to-node: enforced, this account: changes go to repl at 10.0.0.2 on this machine
        a group in plaintext
          node-to-node: off, this account [MY-TLS-REPLICATION]: group_replication_ssl_mode = DISABLED; group_replication_recovery_use_ssl = , group_replication_recovery_ssl_verify_server_cert = 
        a group by TLS
          node-to-node: enforced, this account: group_replication_ssl_mode = VERIFY_CA; group_replication_recovery_use_ssl = ON, group_replication_recovery_ssl_verify_server_cert = ON
        a group by TLS, not checked
          node-to-node: available but not enforced, this account [MY-TLS-REPLICATION]: group_replication_ssl_mode = REQUIRED; group_replication_recovery_use_ssl = ON, group_replication_recovery_ssl_verify_server_cert = OFF
        an audit plugin
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: audit_log is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        an audit component
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: file://component_audit_log_filter is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        no right to the components
          audit: cannot tell, this account: no audit plugin (MySQL Enterprise and Percona Server have one; this is MySQL Community Server), general_log = OFF, slow_query_log = OFF; whether a component audits is unknown (refused: 1142 (42000): denied to this account): GRANT SELECT ON mysql.component
        a general log
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: general_log = ON, log_output = FILE writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is MySQL Community Server), general_log = ON, log_output = FILE (left out: sessions that SET sql_log_off), slow_query_log = OFF
        a general log with passwords
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by caching_sha2_password, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the general log
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: default_table_encryption = ON, table_encryption_privilege_check = ON, innodb_redo_log_encrypt = ON, innodb_undo_log_encrypt = ON, binlog_encryption = ON, log_bin = ON, a keyring component is active (keys in /keys/file), doublewrite as its tablespaces; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: general_log = ON, log_output = FILE, log_raw = ON: passwords too writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off; not judged: temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is MySQL Community Server), general_log = ON, log_output = FILE, log_raw = ON: passwords too (left out: sessions that SET sql_log_off), slow_query_log = OFF
    "#]].assert_eq(&tight().changed_rows(&changes));
}

#[test]
fn accounts_without_tls_are_exceptions_where_it_is_not_required_of_all() {
    let whole = |told: Told| {
        told.seen(|server| as_arm(&MySql, server, |context| (PROBES.others)(context).expect("the table of accounts")))
    };
    let plain = || {
        tight().telling(
            "FROM mysql.user ORDER BY",
            &[account!("app", "%", SHA, "set", "", NONE), account!("near", "localhost", SHA, "set", "", NONE), ROOT],
        )
    };
    let exception = |account: &str, loopback| Exception { text: format!("{account} without REQUIRE SSL"), loopback };
    let exceptions = vec![exception("'app'@'%'", false), exception("'near'@'localhost'", true)];
    assert_eq!(whole(plain()), Whole::of("the table of accounts", exceptions));
    assert_eq!(whole(tight()), Whole::of("the table of accounts", Vec::new()));
    let required = plain().with("require_secure_transport", "ON");
    assert_eq!(whole(required), Whole::of("require_secure_transport = ON", Vec::new()));
}

#[test]
fn what_a_server_lacks_is_named_with_its_remedy() {
    const GRANTS: &str = "SHOW GRANTS";
    const READ_ONLY: &str = "SELECT @@GLOBAL.read_only";
    const TIMEOUT: &str = "SELECT @@SESSION.wait_timeout";
    let ready = || {
        let told = tight().with("general_log", "ON").with("log_output", "TABLE").with("sql_log_off", "ON");
        told.telling(READ_ONLY, &[&["0"]])
            .telling(TIMEOUT, &[&["60"]])
            .telling("SELECT CURRENT_USER()", &[&["ann@%"]])
            .telling(GRANTS, &[&["GRANT SELECT, CONNECTION_ADMIN ON *.* TO `ann`@`%`"]])
    };
    let remedies = |told: Told| {
        let all = told.seen(|server| MySql.lacks(server, &plain()).expect("an answer")).into_iter();
        // Its process is that of the test.
        let all = all.filter(|lack| !lack.why.starts_with("the processor time of the server"));
        all.map(|lack| lack.remedy.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(remedies(ready()), [""; 0]);
    for told in [
        ready().telling(GRANTS, &[&["GRANT SUPER ON *.* TO `ann`@`%`"]]),
        ready().telling(GRANTS, &[&["GRANT ALL PRIVILEGES ON *.* TO `ann`@`%`"]]),
        ready().telling(READ_ONLY, &[&["OFF"]]),
    ] {
        assert_eq!(remedies(told), [""; 0]);
    }
    for (told, remedy) in [
        (
            ready().telling(READ_ONLY, &[&["1"]]),
            "name the server that it replicates, or run `SET GLOBAL read_only = OFF` where it replicates none",
        ),
        (ready().telling(TIMEOUT, &[&["59"]]), "run `SET GLOBAL wait_timeout = 28800`"),
        (ready().refusing("INSERT INTO"), "run `GRANT INSERT ON `tithe%`.* TO 'ann'@'%'`"),
        (ready().refusing("tithe_is_not_here"), "run `GRANT ALL ON `tithe%`.* TO 'ann'@'%'`"),
        (
            ready().with("have_ssl", "DISABLED"),
            "give it a certificate (ssl_cert, ssl_key in its file of settings) and restart it",
        ),
        (ready().with("general_log", "OFF"), "run `SET GLOBAL general_log = ON`"),
        (ready().with("sql_log_off", "OFF"), "run `SET GLOBAL sql_log_off = ON`"),
        (ready().with("log_output", "NONE"), "run `SET GLOBAL log_output = 'TABLE'`"),
        (ready().refusing("FROM mysql.general_log"), "run `GRANT SELECT ON mysql.general_log TO 'ann'@'%'`"),
        (
            ready().refusing("FROM performance_schema.threads"),
            "run `GRANT SELECT ON performance_schema.threads TO 'ann'@'%'`",
        ),
        (
            ready().telling(GRANTS, &[&["GRANT SELECT ON *.* TO `ann`@`%`"]]),
            "run `GRANT CONNECTION_ADMIN ON *.* TO 'ann'@'%'`",
        ),
    ] {
        assert_eq!(remedies(told), [remedy]);
    }
}

#[test]
fn encryption_is_in_force_where_nothing_that_was_asked_for_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("binlog.000001"), b"\xfdbin\x02").expect("written");
    fs::write(folder.path().join("binlog.000002"), b"\xfebin\x02").expect("written");
    let base: &'static str = folder.path().join("binlog").to_string_lossy().into_owned().leak();
    let told = || tight().with("log_bin_basename", base);
    let tables = EncryptedLogs { redo: false, undo: false, binlog: false };
    let all = EncryptedLogs { redo: true, undo: true, binlog: true };
    let mut text = String::new();
    for (name, parts, told) in [
        ("everything", all, told()),
        ("tables alone", tables, [REDO, UNDO, BINLOG].iter().fold(told(), |told, name| told.with(name, "OFF"))),
        ("no tables", tables, told().with(TABLES, "OFF")),
        ("no redo log", all, told().with(REDO, "OFF")),
        ("no undo log", all, told().with(UNDO, "OFF")),
        ("no binary log", all, told().with(BINLOG, "OFF")),
        ("an undo log", all, told().telling("INNODB_TABLESPACES WHERE ENCRYPTION", &[&["undo_1", "Undo"]])),
        (
            "an undo log that counts not",
            tables,
            told().telling("INNODB_TABLESPACES WHERE ENCRYPTION", &[&["undo_1", "Undo"]]),
        ),
        ("a log that says no", all, told().telling("SHOW BINARY LOGS", &[&["binlog.000001", "157", "No"]])),
        (
            "a log that is not what it says",
            all,
            told().telling("SHOW BINARY LOGS", &[&["binlog.000002", "157", "Yes"]]),
        ),
        ("no log at all", all, told().without("log_bin_basename").without("log_bin")),
        (
            "a keyring that is off",
            all,
            told().telling("keyring_component_status", &[&["Component_status", "Disabled"]]),
        ),
        ("no keyring", all, told().telling("keyring_component_status", &[])),
        ("a keyring that is not told", all, told().with("performance_schema", "OFF")),
        ("no right to the tablespaces", all, told().refusing("INNODB_TABLESPACES")),
    ] {
        text += &format!("{name}\n  {}\n", told.observed(&EncryptionInForce(parts)));
    }
    expect![[r#"
        everything
          protected: keyring: none is Active; not encrypted: none; switches that are off: none
        tables alone
          protected: keyring: none is Active; not encrypted: none; switches that are off: none
        no tables
          exposed: keyring: none is Active; not encrypted: none; switches that are off: default_table_encryption = OFF
        no redo log
          exposed: keyring: none is Active; not encrypted: none; switches that are off: innodb_redo_log_encrypt = OFF
        no undo log
          exposed: keyring: none is Active; not encrypted: none; switches that are off: innodb_undo_log_encrypt = OFF
        no binary log
          exposed: keyring: none is Active; not encrypted: none; switches that are off: binlog_encryption = OFF
        an undo log
          exposed: keyring: none is Active; not encrypted: undo_1; switches that are off: none
        an undo log that counts not
          protected: keyring: none is Active; not encrypted: none; switches that are off: none
        a log that says no
          exposed: keyring: none is Active; not encrypted: binlog.000001; switches that are off: none
        a log that is not what it says
          exposed: keyring: none is Active; not encrypted: binlog.000002 begins with \xfebin; switches that are off: none
        no log at all
          protected: keyring: none is Active; not encrypted: none; switches that are off: none
        a keyring that is off
          exposed: keyring: none is Disabled; not encrypted: none; switches that are off: none
        no keyring
          exposed: keyring: none is none; not encrypted: none; switches that are off: none
        a keyring that is not told
          protected: keyring: unknown, performance_schema is off; not encrypted: none; switches that are off: none
        no right to the tablespaces
          refused: 1142 (42000): denied to this account
    "#]].assert_eq(&text);
}

#[test]
fn canaries_are_searched_for_where_the_server_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["tithe", "redo"] {
        fs::create_dir(folder.path().join(name)).expect("made");
    }
    for name in ["tithe/usertable.ibd", "redo/ib_logfile1"] {
        fs::write(folder.path().join(name), b"").expect("written");
    }
    let datadir: &'static str = folder.path().to_string_lossy().into_owned().leak();
    let usual = || {
        tight().with("hostname", this_machine().leak()).with("datadir", datadir).with("general_log_file", "general.log")
    };
    let mut text = String::new();
    for (name, told) in [
        ("no log", usual()),
        ("a general log", usual().with("general_log", "ON")),
        ("a general log in a table", usual().with("general_log", "ON").with("log_output", "TABLE")),
        (
            "logs elsewhere, of an older version",
            usual().with("innodb_log_group_home_dir", "redo").with("innodb_undo_directory", "./"),
        ),
        ("a file that is not here", usual().with("datadir", "/nowhere")),
    ] {
        text += &format!("{name}\n  {}\n", told.canaries(folder.path()));
    }
    expect![[r#"
        no log
          data tithe/usertable.ibd; journal #innodb_redo undo_001 undo_002; logs ; 
        a general log
          data tithe/usertable.ibd; journal #innodb_redo undo_001 undo_002; logs general.log; statement-log: every statement is in the log once, with its values
        a general log in a table
          data tithe/usertable.ibd; journal #innodb_redo undo_001 undo_002; logs ; statement-log: every statement is in the log once, with its values
        logs elsewhere, of an older version
          data tithe/usertable.ibd; journal redo/#innodb_redo redo/ib_logfile1 undo_001 undo_002; logs ; 
        a file that is not here
          data ; journal ; logs ; 
    "#]].assert_eq(&text);
}

/// A server that encrypts everything, and each single part that can be forgotten.
#[test]
fn encryption_at_rest_has_no_exception_that_is_not_named() {
    use super::Told;

    let all_on = [
        (TABLES, "ON"),
        (CHECKED, "ON"),
        (REDO, "ON"),
        (UNDO, "ON"),
        (BINLOG, "ON"),
        ("log_bin", "ON"),
        ("datadir", "/data/"),
        ("tmpdir", "/tmp"),
    ];
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let kept = |file: &str| Some([("Component_status", "Active"), ("Data_file", file)].map(pair).to_vec());
    let told = || Told {
        keyring: kept("/keys/file"),
        others: Vec::new(),
        leaks: Vec::new(),
        lists: ["table", "tablespace", "log", "database"].map(|kind| (kind, Ok(Vec::new()))),
        none_encrypted: false,
        sources: Ok(Vec::new()),
        doubts: Vec::new(),
    };
    let source = || Source { host: "s".to_owned(), tls: true, verified: true };
    let judged = |told: Told, settings: &[(&str, &str)]| {
        let judged = encryption(told, &Settings::of(settings));
        // The text that is the same in every line is left out.
        let (_, seen) = judged.seen.split_once("log_bin = ").expect("the last setting");
        let seen = [", doublewrite as its tablespaces; settings, tablespaces, logs", " of other engines, no dumps"]
            .iter()
            .fold(seen.to_owned(), |seen, same| seen.replace(same, ""));
        let seen =
            seen.replace("set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTION = 'Y', switch the log off", "…");
        let seen =
            seen.replace("temporary tables (ibtmp1) and files in /tmp, for which MySQL has no setting", "temporary");
        format!("{}, {} findings: {seen}\n", judged.state.words(), judged.findings.len())
    };
    let mut text = judged(told(), &all_on);
    for forgotten in 0..5 {
        let mut settings = all_on;
        settings[forgotten].1 = "OFF";
        text += &judged(told(), &settings);
        settings[5].1 = "OFF";
        text += &judged(Told { none_encrypted: true, ..told() }, &settings);
    }
    let off: Vec<(&str, &str)> = all_on.iter().map(|(name, _)| (*name, "OFF")).collect();
    text += &judged(told(), &off);
    text += &judged(Told { none_encrypted: true, ..told() }, &off);
    text += &judged(Told { sources: Ok(vec![source()]), ..told() }, &off);
    let table = OtherTable { name: "a.b".to_owned(), engine: "MyISAM".to_owned(), row_format: String::new() };
    let refused = || Fault::Refused("no".to_owned());
    for told in [
        Told { keyring: None, ..told() },
        Told { keyring: kept("/data/keys"), ..told() },
        Told { keyring: Some(vec![pair(("Component_status", "Active"))]), ..told() },
        Told { keyring: Some(vec![pair(("Component_status", "Disabled"))]), ..told() },
        Told { keyring: Some(vec![pair(("Other", "Active"))]), ..told() },
        Told { others: vec![table], ..told() },
        Told { leaks: vec!["general_log = ON".to_owned()], ..told() },
        Told { lists: ["t", "u", "v", "w"].map(|kind| (kind, Ok(vec!["x".to_owned()]))), ..told() },
        Told { lists: ["t", "u", "v", "w"].map(|kind| (kind, Err(refused()))), ..told() },
        Told { sources: Ok(vec![source()]), ..told() },
        Told { sources: Err(refused()), ..told() },
        Told { doubts: vec!["the rest".to_owned()], ..told() },
    ] {
        text += &judged(told, &all_on);
    }
    expect![[r#"
        enforced, 0 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: no exception; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: default_table_encryption is not ON: …; not judged: temporary
        available but not enforced, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: default_table_encryption is not ON: …; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: table_encryption_privilege_check is not ON: …; not judged: temporary
        available but not enforced, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: table_encryption_privilege_check is not ON: …; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: innodb_redo_log_encrypt is not ON: …; not judged: temporary
        available but not enforced, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: innodb_redo_log_encrypt is not ON: …; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: innodb_undo_log_encrypt is not ON: …; not judged: temporary
        available but not enforced, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: innodb_undo_log_encrypt is not ON: …; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: binlog_encryption is not ON: …; not judged: temporary
        enforced, 0 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: no exception; not judged: temporary
        available but not enforced, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 4 exceptions: default_table_encryption is not ON; table_encryption_privilege_check is not ON; innodb_redo_log_encrypt is not ON; innodb_undo_log_encrypt is not ON: …; not judged: temporary tables (ibtmp1) and files in OFF, for which MySQL has no setting
        off, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 4 exceptions: default_table_encryption is not ON; table_encryption_privilege_check is not ON; innodb_redo_log_encrypt is not ON; innodb_undo_log_encrypt is not ON: …; not judged: temporary tables (ibtmp1) and files in OFF, for which MySQL has no setting
        available but not enforced, 1 findings: OFF, a keyring component is active (keys in /keys/file) and 0 tables: 5 exceptions: default_table_encryption is not ON; table_encryption_privilege_check is not ON; innodb_redo_log_encrypt is not ON; innodb_undo_log_encrypt is not ON; relay logs, which hold the changes of others, are not encrypted (binlog_encryption): …; not judged: temporary tables (ibtmp1) and files in OFF, for which MySQL has no setting
        enforced, 0 findings: ON, keyring component: unknown, performance_schema is off and 0 tables: no exception; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /data/keys) and 0 tables: 1 exception: the keys are in the folder of the data: /data/keys: …; not judged: temporary
        enforced, 0 findings: ON, a keyring component is active and 0 tables: no exception; not judged: temporary
        enforced, 0 findings: ON, no keyring component is active and 0 tables: no exception; not judged: temporary
        enforced, 0 findings: ON, no keyring component is active and 0 tables: no exception; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 1 tables: 1 exception: MyISAM table a.b: …; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 1 exception: general_log = ON: …; not judged: temporary
        available but not enforced, 1 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: 4 exceptions: t x; u x; v x; w x: …; not judged: temporary
        enforced, 0 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: no exception; not judged: ts (GRANT PROCESS, REPLICATION CLIENT ON *.*: refused: no); not judged: us (GRANT PROCESS, REPLICATION CLIENT ON *.*: refused: no); not judged: vs (GRANT PROCESS, REPLICATION CLIENT ON *.*: refused: no); not judged: ws (GRANT PROCESS, REPLICATION CLIENT ON *.*: refused: no); not judged: temporary
        enforced, 0 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: no exception; not judged: temporary; not judged: relay logs from before binlog_encryption was ON
        enforced, 0 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: no exception; not judged: whether there are relay logs (refused: no); not judged: temporary
        enforced, 0 findings: ON, a keyring component is active (keys in /keys/file) and 0 tables: no exception; not judged: the rest; not judged: temporary
    "#]].assert_eq(&text);
}

#[test]
fn audit_logs_are_plugins_or_components() {
    let refused = || Err(Fault::Refused("1142 (42000): SELECT command denied".to_owned()));
    let component = || Ok(vec!["file://component_audit_log_filter".to_owned()]);
    let mut text = String::new();
    for (plugins, components, general) in [
        (vec!["audit_log".to_owned()], refused(), "OFF"),
        (Vec::new(), component(), "OFF"),
        (Vec::new(), Ok(Vec::new()), "OFF"),
        (Vec::new(), Ok(Vec::new()), "ON"),
        (Vec::new(), refused(), "ON"),
        (Vec::new(), refused(), "OFF"),
    ] {
        let state = if general == "ON" { State::Available } else { State::Off };
        let Judgement { state, scope, seen, .. } =
            audited(plugins, components, &[], &(state, format!("general_log = {general}")), "X");
        text += &format!("{}, {}: {seen}\n", state.words(), scope.words());
    }
    expect![[r#"
        available but not enforced, whole server: audit_log is active, general_log = OFF: what it leaves out is not known
        available but not enforced, whole server: file://component_audit_log_filter is active, general_log = OFF: what it leaves out is not known
        off, whole server: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is X), general_log = OFF
        available but not enforced, whole server: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is X), general_log = ON
        available but not enforced, whole server: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is X), general_log = ON
        cannot tell, this account: no audit plugin (MySQL Enterprise and Percona Server have one; this is X), general_log = OFF; whether a component audits is unknown (refused: 1142 (42000): SELECT command denied): GRANT SELECT ON mysql.component
    "#]].assert_eq(&text);
}

#[test]
fn the_channels_of_a_group_are_no_connections_in_plaintext() {
    let group = |sources: Rows| {
        let told = tight().with("group_replication_group_name", "g").with("group_replication_ssl_mode", "VERIFY_CA");
        let told = told.with("group_replication_recovery_use_ssl", "ON");
        let told = told.with("group_replication_recovery_ssl_verify_server_cert", "ON").telling(SOURCES, sources);
        told.matrix().into_iter().find(|row| row.starts_with("node-to-node: ")).unwrap_or_default()
    };
    let row = group(&[&["<NULL>", "NO", "NO"], &["<NULL>", "NO", "NO"]]);
    assert!(row.starts_with("node-to-node: enforced, this account: group_replication_ssl_mode = VERIFY_CA;"), "{row}");
    // A member that is recovering has a connection.
    assert!(group(&[&["10.0.0.9", "NO", "NO"]]).starts_with("node-to-node: off"));
}

#[test]
fn an_audit_log_that_is_there_may_be_disabled() {
    const PLUGINS: &str = "information_schema.PLUGINS";
    let judged = |told: Told| told.matrix().into_iter().find(|row| row.starts_with("audit: ")).unwrap_or_default();
    let component = tight().telling("mysql.component", &[&["file://component_audit_log_filter"]]);
    let without_policy = || tight().telling(PLUGINS, &[&["audit_log"]]).with("audit_log_policy", "NONE");
    let events = |events| tight().with("server_audit_logging", "ON").with("server_audit_events", events);
    let text = [
        judged(tight().telling(PLUGINS, &[&["audit_log"]]).with("audit_log_disable", "ON")),
        judged(without_policy()),
        judged(without_policy().with("audit_log_filter_id", "1")),
        judged(component.clone().with("audit_log_filter.disable", "ON")),
        judged(component.with("audit_log_filter.disable", "OFF").with("audit_log_disable", "ON")),
        judged(tight().telling(PLUGINS, &[&["SERVER_AUDIT"]]).with("server_audit_logging", "OFF")),
        judged(events("CONNECT,QUERY").telling(PLUGINS, &[&["SERVER_AUDIT"]])),
        // Aurora has no plugin for it.
        judged(events("CONNECT,QUERY")),
        judged(events("")),
        judged(tight().with("audit_log_enabled", "ON")),
        judged(tight().with("audit_log_enabled", "OFF")),
    ];
    expect![[r#"
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is on (audit_log is disabled), general_log = OFF, slow_query_log = OFF
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is on (audit_log is disabled), general_log = OFF, slow_query_log = OFF
        audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: audit_log is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is on (file://component_audit_log_filter is disabled), general_log = OFF, slow_query_log = OFF
        audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: file://component_audit_log_filter is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is on (SERVER_AUDIT is disabled), general_log = OFF, slow_query_log = OFF
        audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: SERVER_AUDIT is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: server_audit (built in) is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is MySQL Community Server), general_log = OFF, slow_query_log = OFF
        audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: audit_log (built in) is active, general_log = OFF, slow_query_log = OFF: what it leaves out is not known
        audit: off, whole server [MY-AUDIT-OFF]: no audit plugin or component is seen (MySQL Enterprise and Percona Server have one; this is MySQL Community Server), general_log = OFF, slow_query_log = OFF
    "#]].assert_eq(&text.concat());
}

/// A server whose database `tithe` has these tables with their comments.
fn with_tables(tables: Rows) -> Told {
    tight()
        .telling("information_schema.SCHEMATA", &[&["1"]])
        .telling("information_schema.TABLES WHERE TABLE_SCHEMA", tables)
        .telling("ROUTINE_SCHEMA", &[&["0"]])
        .telling("DROP TABLE", &[])
}

#[test]
fn a_database_is_removed_if_tithe_made_it_and_nothing_else_is_left_in_it() {
    const GOES: (&str, &str) = ("1051", "it goes");
    let table = Table { name: "usertable".to_owned(), fields: 1, field_prefix: "field".to_owned() };
    let removed =
        |told: Told| told.seen(|server| MySql.remove(server, &plain(), &table)).map_err(|fault| fault.to_string());
    let goes = |told: Told| removed(told).is_err_and(|words| words.contains("it goes"));
    let nothing = with_tables(&[]).telling("information_schema.SCHEMATA", &[&["0"]]);
    assert_eq!(removed(nothing.failing("DROP", GOES)), Ok(()));
    let foreign: [(Rows, &str); 4] = [
        (&[], "a database `tithe`"),
        (&[&["usertable", MARK]], "a database `tithe`"),
        (&[&["made_by_tithe", MARK], &["orders", ""]], "a table `tithe.orders`"),
        (&[&["made_by_tithe", "mine"]], "a table `tithe.made_by_tithe`"),
    ];
    for (tables, what) in foreign {
        let words = format!("refused: {what} is on this server, and Tithe did not make it");
        assert_eq!(removed(with_tables(tables).failing("DROP", GOES)), Err(words));
    }
    let left = |tables: Rows| with_tables(tables).failing("DROP DATABASE", GOES);
    let ours: Rows = &[&["made_by_tithe", MARK]];
    assert!(goes(with_tables(ours).failing("DROP TABLE", GOES)));
    assert!(goes(left(ours)));
    assert_eq!(removed(left(&[&["made_by_tithe", MARK], &["other", MARK]])), Ok(()));
    assert_eq!(removed(left(ours).telling("ROUTINE_SCHEMA", &[&["1"]])), Ok(()));
    let held = removed(with_tables(ours).failing("DROP TABLE", ("1205", "Lock wait timeout exceeded")));
    assert!(held.is_err_and(|words| words.starts_with("refused: `DROP TABLE") && words.contains("PROCESSLIST")));
}
