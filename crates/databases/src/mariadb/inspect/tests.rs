//! The whole matrix of a server that answers as configured, and which rows change with each single change to it.
//! The same for what a claim of encryption asks, and for where canaries are searched.

use std::fs;

use expect_test::expect;

use super::*;
use crate::{
    mariadb::{
        MariaDb,
        at_rest::{is_encrypted, write_table},
        evidence::encryption_in_force::EncryptionInForce,
    },
    mysql_family::{evidence::served::this_machine, told::server},
    test_setup::{plain, tried_in_plaintext},
    told::{Rows, Told},
};

/// An administrator of the operating system, and an account with a password over TLS.
const ROOT: &[&str] = &["root", "localhost", r#"{"access":18446744073709551615,"plugin":"unix_socket"}"#];
const APP: &[&str] = &["app", "%", r#"{"access":0,"plugin":"ed25519","authentication_string":"set","ssl_type":1}"#];

/// A server that encrypts everything, records every statement, and requires TLS of all accounts that come by TCP.
fn tight() -> Told {
    server(
        (&MariaDb, "10.11.6-MariaDB"),
        vec![
            ("require_secure_transport", "OFF"),
            ("skip_name_resolve", "OFF"),
            ("secure_file_priv", "/files/"),
            ("proxy_protocol_networks", ""),
            ("innodb_encrypt_tables", "FORCE"),
            ("innodb_encrypt_log", "ON"),
            ("aria_encrypt_tables", "ON"),
            ("encrypt_tmp_disk_tables", "ON"),
            ("encrypt_tmp_files", "ON"),
            ("innodb_encrypt_temporary_tables", "ON"),
            ("innodb_encryption_threads", "4"),
            ("encrypt_binlog", "ON"),
            ("log_bin", "ON"),
            ("binlog_format", "ROW"),
            ("file_key_management_filename", "/keys/keys.enc"),
            ("file_key_management_encryption_algorithm", "AES_CTR"),
            ("datadir", "/data/"),
            ("general_log", "OFF"),
            ("log_output", "FILE"),
            ("slow_query_log", "OFF"),
            ("server_audit_logging", "ON"),
            ("server_audit_events", ""),
            ("server_audit_output_type", "file"),
        ],
        vec![
            ("mysql.global_priv", Ok(&[APP, ROOT])),
            ("SHOW GRANTS", Ok(&[&["GRANT ALL PRIVILEGES ON *.* TO `ann`@`%`"]])),
            ("mysql.roles_mapping", Ok(&[])),
            ("FROM mysql.db", Ok(&[])),
            ("mysql.tables_priv", Ok(&[])),
            ("mysql.columns_priv", Ok(&[])),
            ("mysql.proxies_priv", Ok(&[])),
            ("mysql.procs_priv", Ok(&[])),
            ("information_schema.ROUTINES", Ok(&[])),
            ("information_schema.VIEWS", Ok(&[])),
            ("information_schema.TABLES ", Ok(&[])),
            ("INNODB_SYS_TABLESPACES", Ok(&[])),
            ("SHOW BINARY LOGS", Ok(&[&["mariadb-bin.000001", "330"]])),
            ("SHOW BINLOG EVENTS", Ok(&[&["Format_desc"], &["Start_encryption"]])),
            ("SHOW RELAYLOG EVENTS", Ok(&[&["Format_desc"], &["Start_encryption"]])),
            ("SHOW ALL SLAVES STATUS", Ok(&[])),
            ("mysql.general_log", Ok(&[])),
            ("mysql.slow_log", Ok(&[])),
            ("mysql.column_stats", Ok(&[&["0"]])),
            ("information_schema.PLUGINS", Ok(&[&["file_key_management"]])),
            ("Binlog Dump", Ok(&[])),
            ("CREATE TABLE `tithe`.`unencrypted`", Err(("1005", "encryption is forced"))),
        ],
    )
}

/// A source at `10.0.0.9` in `SHOW ALL SLAVES STATUS`, with TLS and the check of its certificate.
const fn source(tls: &'static str, verified: &'static str) -> [&'static str; 37] {
    let mut row = [""; 37];
    (row[3], row[28], row[35]) = ("10.0.0.9", tls, verified);
    row
}

const CHECKED: Rows = &[&source("Yes", "Yes")];
const UNCHECKED: Rows = &[&source("Yes", "No")];
const PLAIN: Rows = &[&source("No", "Yes")];

const ONE: &[&str] = &["log"];
const FORTY: Rows = &[ONE; 40];
const FORTY_ONE: Rows = &[ONE; 41];

#[test]
fn a_server_that_leaves_nothing_open() {
    expect![[r#"
        authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
        tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: no exception
        client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: no exception
        authorisation: enforced, whole server: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*)
        at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        audit: enforced, whole server: server_audit_logging = ON, events = `` (left out: values of prepared statements): reads and writes, by the settings
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
fn each_change_shows_in_its_rows() {
    let accounts = |accounts: Rows| tight().telling("mysql.global_priv", accounts);
    let changes = [
        ("no password", Told { password: false, ..tight() }),
        ("no TLS", Told { tls: false, ..tight() }),
        (
            "TLS that something ends",
            tight()
                .telling("'Ssl_version'", &[&["Ssl_version", "TLSv1.3"]])
                .telling("'Ssl_cipher'", &[&["Ssl_cipher", "TLS_AES_256_GCM_SHA384"]]),
        ),
        ("all by TLS", tight().with("require_secure_transport", "ON")),
        ("no access control", tight().failing("SHOW GRANTS", ("1290", "running with the --skip-grant-tables option"))),
        ("no right to the accounts", tight().refusing("mysql.global_priv").telling("FROM mysql.user", &[&["1"]])),
        (
            "no right to the accounts, and no privileges",
            tight()
                .refusing("mysql.global_priv")
                .refusing("FROM mysql.user")
                .telling("SHOW GRANTS", &[&["GRANT USAGE ON *.* TO `ann`@`%`"]]),
        ),
        (
            "no right to the accounts, and a privilege to read them",
            tight()
                .refusing("mysql.global_priv")
                .telling("FROM mysql.user", &[&["1"]])
                .telling("SHOW GRANTS", &[&["GRANT SELECT ON *.* TO `ann`@`%`"]]),
        ),
        (
            "an account without a password",
            accounts(&[&["guest", "%", r#"{"access":0,"plugin":"mysql_native_password","ssl_type":1}"#], ROOT]),
        ),
        (
            "an account in plaintext",
            accounts(&[&["guest", "%", r#"{"access":0,"plugin":"ed25519","authentication_string":"set"}"#], ROOT]),
        ),
        (
            "an administrator more",
            accounts(&[
                APP,
                ROOT,
                &[
                    "boss",
                    "%",
                    r#"{"access":18446744073709551615,"plugin":"ed25519","authentication_string":"set","ssl_type":1}"#,
                ],
            ]),
        ),
        ("nobody but administrators", accounts(&[ROOT])),
        (
            "a role",
            accounts(&[APP, ROOT, &["dba", "", r#"{"access":18446744073709551615,"is_role":true}"#]])
                .telling("mysql.roles_mapping", &[&["app", "%", "dba"]]),
        ),
        (
            "a right to write rights",
            tight().telling("FROM mysql.db", &[&["app", "%", "mysql", "Y", "N", "N", "N", "N", "N", "N", "N"]]),
        ),
        ("a table of rights", tight().telling("mysql.tables_priv", &[&["app", "%", "global_priv", "Insert,Update"]])),
        (
            "files of the server",
            accounts(&[
                &["app", "%", r#"{"access":512,"plugin":"ed25519","authentication_string":"set","ssl_type":1}"#],
                ROOT,
            ])
            .with("secure_file_priv", ""),
        ),
        (
            "files of the server, by a folder above it",
            accounts(&[
                &["app", "%", r#"{"access":512,"plugin":"ed25519","authentication_string":"set","ssl_type":1}"#],
                ROOT,
            ])
            .with("secure_file_priv", "/"),
        ),
        (
            "SUPER, which is all until 11.0",
            accounts(&[
                &["app", "%", r#"{"access":32768,"plugin":"ed25519","authentication_string":"set","ssl_type":1}"#],
                ROOT,
            ]),
        ),
        (
            "SUPER on 11.0",
            Told {
                version: "11.0.2-MariaDB",
                ..accounts(&[
                    &["app", "%", r#"{"access":32768,"plugin":"ed25519","authentication_string":"set","ssl_type":1}"#],
                    ROOT,
                ])
            },
        ),
        (
            "a proxy of another service",
            accounts(&[&["app", "%", r#"{"access":0,"plugin":"pam","ssl_type":1}"#], ROOT])
                .telling("mysql.proxies_priv", &[&["app", "%", "root", "localhost"]]),
        ),
        ("a proxy that no plugin maps", tight().telling("mysql.proxies_priv", &[&["app", "%", "root", "localhost"]])),
        (
            "a routine of an administrator",
            tight()
                .telling("information_schema.ROUTINES", &[&["shop", "pay", "root@localhost"]])
                .telling("mysql.procs_priv", &[&["app", "%", "shop.pay", "Execute"]]),
        ),
        (
            "a routine that nobody may call",
            tight().telling("information_schema.ROUTINES", &[&["shop", "pay", "root@localhost"]]),
        ),
        ("no right to the roles", tight().refusing("mysql.roles_mapping")),
        ("any address", tight().with("proxy_protocol_networks", "*")),
        ("no settings", tight().refusing("SHOW GLOBAL VARIABLES").telling("VARIABLES LIKE", &[&["x", "OFF"]])),
        ("no setting of encryption", tight().without("innodb_encrypt_tables")),
        ("nothing of InnoDB encrypted", tight().with("innodb_encrypt_tables", "OFF").with("innodb_encrypt_log", "OFF")),
        (
            "nothing encrypted but a table",
            tight()
                .with("innodb_encrypt_tables", "OFF")
                .with("innodb_encrypt_log", "OFF")
                .telling("COUNT(*) FROM information_schema.INNODB_TABLESPACES_ENCRYPTION", &[&["1"]]),
        ),
        ("only the log encrypted", tight().with("innodb_encrypt_tables", "OFF")),
        ("tables on request", tight().with("innodb_encrypt_tables", "ON")),
        ("no log", tight().with("innodb_encrypt_log", "OFF")),
        ("no temporary files", tight().with("encrypt_tmp_files", "OFF")),
        ("an old tablespace", tight().telling("INNODB_SYS_TABLESPACES", &[&["shop/old"]])),
        (
            "an old tablespace that nobody encrypts",
            tight().telling("INNODB_SYS_TABLESPACES", &[&["shop/old"]]).with("innodb_encryption_threads", "0"),
        ),
        (
            "an old tablespace of a server that does not encrypt",
            tight()
                .telling("INNODB_SYS_TABLESPACES", &[&["shop/old"]])
                .with("innodb_encryption_threads", "0")
                .with("innodb_encrypt_tables", "OFF"),
        ),
        ("no right to the tablespaces", tight().refusing("INNODB_SYS_TABLESPACES")),
        ("a table of another engine", tight().telling("information_schema.TABLES ", &[&["shop.a", "MyISAM", "Fixed"]])),
        (
            "an account that is shown few tables",
            tight().telling("SHOW GRANTS", &[&["GRANT SELECT ON `shop`.* TO `ann`@`%`"]]),
        ),
        ("no binary log", tight().with("log_bin", "OFF").with("encrypt_binlog", "OFF")),
        ("a binary log in the clear", tight().with("encrypt_binlog", "OFF")),
        (
            "a binary log in the clear with statements",
            tight().with("encrypt_binlog", "OFF").with("binlog_format", "MIXED"),
        ),
        ("an old binary log", tight().telling("SHOW BINLOG EVENTS", &[&["Format_desc"], &["Gtid_list"]])),
        ("no right to the binary logs", tight().refusing("SHOW BINARY LOGS")),
        ("40 binary logs", tight().telling("SHOW BINARY LOGS", FORTY)),
        ("41 binary logs", tight().telling("SHOW BINARY LOGS", FORTY_ONE)),
        ("it follows another, checked", tight().telling("SHOW ALL SLAVES STATUS", CHECKED)),
        ("it follows another, not checked", tight().telling("SHOW ALL SLAVES STATUS", UNCHECKED)),
        (
            "it follows in plaintext, and its relay log is old",
            tight().telling("SHOW ALL SLAVES STATUS", PLAIN).telling("SHOW RELAYLOG EVENTS", &[&["Format_desc"]]),
        ),
        (
            "it follows, and its relay log is not shown",
            tight().telling("SHOW ALL SLAVES STATUS", CHECKED).refusing("SHOW RELAYLOG EVENTS"),
        ),
        (
            "it follows, and its relay log is in the clear",
            tight().telling("SHOW ALL SLAVES STATUS", CHECKED).with("encrypt_binlog", "OFF"),
        ),
        ("no right to the sources", tight().refusing("SHOW ALL SLAVES STATUS")),
        (
            "a replica by TLS",
            tight()
                .telling("Binlog Dump", &[&["7", "repl", "10.0.0.2"]])
                .telling("performance_schema.threads", &[&["SSL/TLS"]]),
        ),
        (
            "a replica in plaintext",
            tight()
                .telling("Binlog Dump", &[&["7", "repl", "10.0.0.2"]])
                .telling("performance_schema.threads", &[&["TCP/IP"]]),
        ),
        (
            "a replica on this machine",
            tight()
                .telling("Binlog Dump", &[&["7", "repl", "localhost"]])
                .telling("performance_schema.threads", &[&["Socket"]]),
        ),
        ("a replica in an unknown way", tight().telling("Binlog Dump", &[&["7", "repl", "10.0.0.2"]])),
        (
            "a replica of a server that requires TLS",
            tight()
                .telling("Binlog Dump", &[&["7", "repl", "10.0.0.2"]])
                .telling("GLOBAL_VALUE_ORIGIN", &[&["CONFIG"]])
                .with("require_secure_transport", "ON"),
        ),
        (
            "a replica that may be older than the setting",
            tight()
                .telling("Binlog Dump", &[&["7", "repl", "10.0.0.2"]])
                .telling("GLOBAL_VALUE_ORIGIN", &[&["SQL"]])
                .with("require_secure_transport", "ON"),
        ),
        ("no right to the replicas", tight().refusing("Binlog Dump")),
        (
            "a cluster in plaintext",
            tight()
                .with("wsrep_on", "ON")
                .with("wsrep_provider", "/galera.so")
                .with("wsrep_provider_options", "socket.ssl = no"),
        ),
        (
            "a cluster by TLS",
            tight()
                .with("wsrep_on", "ON")
                .with("wsrep_provider", "/galera.so")
                .with("wsrep_provider_options", "a = b; socket.ssl = YES"),
        ),
        ("statistics of columns", tight().telling("mysql.column_stats", &[&["3"]])),
        ("no right to the statistics", tight().refusing("mysql.column_stats")),
        ("old rows of the general log", tight().telling("mysql.general_log", &[&["1"]])),
        ("no right to the slow log", tight().refusing("mysql.slow_log")),
        ("the keys beside the data", tight().with("file_key_management_filename", "/data/keys")),
        ("the keys elsewhere", tight().with("file_key_management_filename", "")),
        (
            "keys that anybody can work out",
            tight()
                .with("file_key_management_filename", "")
                .telling("information_schema.PLUGINS", &[&["example_key_management"]]),
        ),
        ("no plugin for keys", tight().telling("information_schema.PLUGINS", &[])),
        ("no right to the plugins", tight().refusing("information_schema.PLUGINS")),
        ("no audit plugin", tight().without("server_audit_logging")),
        ("no audit plugin, but a general log", tight().without("server_audit_logging").with("general_log", "ON")),
        ("an audit log that is off", tight().with("server_audit_logging", "OFF")),
        (
            "an audit log that is off, and a general log",
            tight().with("server_audit_logging", "OFF").with("general_log", "ON"),
        ),
        ("an audit log of changes alone", tight().with("server_audit_events", "QUERY_DDL,QUERY_DCL")),
        ("an audit log with filters", tight().with("server_audit_reload_filters", "OFF")),
        ("an audit log in syslog", tight().with("server_audit_output_type", "SYSLOG")),
        ("an audit log that failed", tight().with("Server_audit_active", "OFF")),
    ];
    expect![[r#"
        no password
          authentication: off, whole server [MY-AUTHN-REPEATS-PASSWORDS]: let in without a password; 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          authentication-caching: not offered by this product, this account: not by none
        no TLS
          tls: off, whole server: plaintext: served; the server has no TLS
          client-to-node: off, whole server: plaintext: served; the server has no TLS
        TLS that something ends
          authentication: enforced, this account [MY-AUTHN-REPEATS-PASSWORDS]: something ends TLS before the server: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; not judged: which other clients it accepts (its own configuration); passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          tls: available but not enforced, this account [MY-TLS-OPTIONAL]: something ends TLS before the server; to it: plaintext: served; the server has TLS as well
          client-to-node: enforced, this account: something ends TLS before the server; behind it SHOW SESSION STATUS of this session reports: TLSv1.3 TLS_AES_256_GCM_SHA384
        all by TLS
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
        no access control
          authentication: off, whole server [MY-AUTHN-NOBODY-ASKED] [MY-AUTHN-REPEATS-PASSWORDS]: the server runs with skip_grant_tables: everybody comes in and may do everything; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          authorisation: off, whole server [MY-AUTHN-NOBODY-ASKED]: the server runs with skip_grant_tables: everybody comes in and may do everything
          at-rest: cannot tell, this account: server: 1290 (42000): running with the --skip-grant-tables option
        no right to the accounts
          authentication: enforced, this account [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          authorisation: cannot tell, this account: the account has all privileges: nothing is refused to it
          proxy-roles: cannot tell, this account: refused: 1142 (42000): denied to this account
        no right to the accounts, and no privileges
          authentication: enforced, this account [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          authorisation: enforced, this account: the table of accounts: refused: 1142 (42000): denied to this account
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: tables that this account is not shown (it needs GRANT SELECT ON *.*)
          node-to-node: cannot tell, this account: no other server is connected; not judged: replicas (GRANT PROCESS ON *.*)
          proxy-roles: cannot tell, this account: refused: 1142 (42000): denied to this account
        no right to the accounts, and a privilege to read them
          authentication: enforced, this account [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; others were not judged (refused: 1142 (42000): denied to this account): the account needs GRANT SELECT ON `mysql`.*
          authorisation: available but not enforced, this account: an account without all privileges reads the table of accounts
          node-to-node: cannot tell, this account: no other server is connected; not judged: replicas (GRANT PROCESS ON *.*)
          proxy-roles: cannot tell, this account: refused: 1142 (42000): denied to this account
        an account without a password
          authentication: available but not enforced, whole server [MY-AUTHN-NO-PROOF] [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by local socket, 1 by nothing): 1 exception: 'guest'@'%' has no password: ALTER USER … IDENTIFIED BY, REQUIRE SUBJECT, DISCARD OLD PASSWORD, or DROP USER; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
        an account in plaintext
          tls: available but not enforced, whole server [MY-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: 1 exception: 'guest'@'%' may speak plaintext: set require_secure_transport = ON, or ALTER USER … REQUIRE SSL
          client-to-node: available but not enforced, whole server [MY-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 2 accounts: 1 exception: 'guest'@'%' may speak plaintext: set require_secure_transport = ON, or ALTER USER … REQUIRE SSL
        an administrator more
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 3 accounts (2 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 3 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 3 accounts: no exception
          authorisation: available but not enforced, whole server [MY-AUTHZ-ADMINISTRATORS]: 2 of 3 accounts may do everything: 'boss'@'%' → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        nobody but administrators
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 1 account (1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 1 account: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = OFF, 1 account: no exception
          authorisation: off, whole server [MY-AUTHZ-ADMINISTRATORS]: 1 of 1 account may do everything: 'root'@'localhost' → everything (rights on *.*)
        a role
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → role dba (role) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → role dba (role)
        a right to write rights
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (INSERT ON `mysql`.* writes the tables of rights); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        a table of rights
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (Insert,Update ON mysql.global_priv); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        files of the server
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (FILE writes into the server's folder: secure_file_priv allows it); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        files of the server, by a folder above it
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (FILE writes into the server's folder: secure_file_priv allows it); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        SUPER, which is all until 11.0
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → everything (SUPER writes rows of any table by BINLOG); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
        SUPER on 11.0
          authorisation: available but not enforced, whole server [MY-AUTHZ-SWITCHES-PROTECTIONS]: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); 'app'@'%' → protections switched off (sets the server's variables)
        a proxy of another service
          authentication: enforced, this account [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by local socket, 1 by pam): no exception; not judged: 'app'@'%': pam asks another service; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          authorisation: off, whole server [MY-AUTHZ-REACHABLE-ADMINISTRATOR] [MY-AUTHZ-ADMINISTRATORS]: 2 of 2 accounts may do everything: 'app'@'%' → 'root'@'localhost' (GRANT PROXY) → everything (rights on *.*); 'root'@'localhost' → everything (rights on *.*): REVOKE what leads there
          proxy-roles: available but not enforced, whole server: 1 way by which an account may act as another or as a role: 'app'@'%' → 'root'@'localhost' (GRANT PROXY)
        a proxy that no plugin maps
        a routine of an administrator
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: what shop.pay does, which 'app'@'%' may call and which runs as 'root'@'localhost'
        a routine that nobody may call
        no right to the roles
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: roles (GRANT SELECT ON mysql.roles_mapping: refused: 1142 (42000): denied to this account)
          proxy-roles: cannot tell, this account: no way is shown by which an account may act as another or as a role; not judged: roles (GRANT SELECT ON mysql.roles_mapping: refused: 1142 (42000): denied to this account)
        any address
          authentication: available but not enforced, whole server [MY-AUTHN-NO-PROOF] [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; proxy_protocol_networks = *: every client may claim any address, so that the hosts of accounts restrict no client; passwords that statements set are kept in the clear, by the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
        no settings
          authentication: enforced, whole server: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception
          at-rest: cannot tell, this account: refused: 1142 (42000): denied to this account
          audit: cannot tell, this account: refused: 1142 (42000): denied to this account
          node-to-node: cannot tell, this account: refused: 1142 (42000): denied to this account
        no setting of encryption
          at-rest: cannot tell, this account: the server does not show its setting innodb_encrypt_tables
        nothing of InnoDB encrypted
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = OFF, innodb_encrypt_log = OFF, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 3 exceptions: innodb_encrypt_tables is not FORCE; innodb_encrypt_log is not ON; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        nothing encrypted but a table
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = OFF, innodb_encrypt_log = OFF, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 3 exceptions: innodb_encrypt_tables is not FORCE; innodb_encrypt_log is not ON; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        only the log encrypted
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = OFF, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: innodb_encrypt_tables is not FORCE; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        tables on request
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = ON, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: innodb_encrypt_tables is not FORCE; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no log
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = OFF, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: innodb_encrypt_log is not ON; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no temporary files
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = OFF, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: encrypt_tmp_files is not ON; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        an old tablespace
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 1 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: tablespace shop/old; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        an old tablespace that nobody encrypts
          at-rest: available but not enforced, whole server [MY-REST-NOBODY-ENCRYPTS] [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 1 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 3 exceptions: innodb_encryption_threads = 0: nothing will ever encrypt the tablespaces that were there before: SET GLOBAL innodb_encryption_threads = 4; tablespace shop/old; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        an old tablespace of a server that does not encrypt
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = OFF, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 1 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 3 exceptions: innodb_encrypt_tables is not FORCE; tablespace shop/old; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no right to the tablespaces
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: tablespaces (GRANT PROCESS ON *.*: refused: 1142 (42000): denied to this account)
        a table of another engine
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 1 tables of other engines, no dumps: 2 exceptions: MyISAM table shop.a; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        an account that is shown few tables
          authorisation: enforced, this account: 1 of 2 accounts may do everything: 'root'@'localhost' → everything (rights on *.*); not judged: routines that this account is not shown (GRANT SELECT ON *.*); views that this account is not shown (GRANT SELECT, SHOW VIEW ON *.*)
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: tables that this account is not shown (it needs GRANT SELECT ON *.*)
          node-to-node: cannot tell, this account: no other server is connected; not judged: replicas (GRANT PROCESS ON *.*)
        no binary log
          authentication: enforced, whole server: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = OFF (log_bin = OFF), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        a binary log in the clear
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = OFF (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the binary log is not encrypted; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        a binary log in the clear with statements
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = OFF (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the binary log is not encrypted, and repeats statements with the keys in them (binlog_format = MIXED); server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        an old binary log
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: binary log mariadb-bin.000001, older than encrypt_binlog = ON: PURGE BINARY LOGS; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no right to the binary logs
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: binary logs (GRANT BINLOG MONITOR ON *.*: refused: 1142 (42000): denied to this account)
        40 binary logs
        41 binary logs
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: 1 newer binary logs
        it follows another, checked
          node-to-node: enforced, this account: changes come from 10.0.0.9 by TLS, its certificate checked
        it follows another, not checked
          node-to-node: available but not enforced, this account [MY-TLS-REPLICATION]: changes come from 10.0.0.9 by TLS, its certificate not checked
        it follows in plaintext, and its relay log is old
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the oldest relay log is older than encrypt_binlog = ON: RESET SLAVE; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          node-to-node: off, this account [MY-TLS-REPLICATION]: changes come from 10.0.0.9 in plaintext
        it follows, and its relay log is not shown
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: relay logs (GRANT REPLICA MONITOR ON *.*: refused: 1142 (42000): denied to this account)
          node-to-node: enforced, this account: changes come from 10.0.0.9 by TLS, its certificate checked
        it follows, and its relay log is in the clear
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the binary log
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = OFF (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 3 exceptions: the binary log is not encrypted; relay logs, which hold the changes of others, are not encrypted (encrypt_binlog); server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          node-to-node: enforced, this account: changes come from 10.0.0.9 by TLS, its certificate checked
        no right to the sources
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: whether there are relay logs (refused: 1142 (42000): denied to this account)
          node-to-node: cannot tell, this account: no other server is connected; not judged: whether this is a replica (GRANT REPLICATION CLIENT or SLAVE MONITOR ON *.*: refused: 1142 (42000): denied to this account)
        a replica by TLS
          node-to-node: enforced, this account: changes go to repl at 10.0.0.2 by TLS
        a replica in plaintext
          node-to-node: off, this account [MY-TLS-REPLICATION]: changes go to repl at 10.0.0.2 in plaintext
        a replica on this machine
          node-to-node: enforced, this account: changes go to repl at localhost on this machine
        a replica in an unknown way
          node-to-node: cannot tell, this account: changes go to repl at 10.0.0.2 in an unknown way: start the server with performance_schema = ON
        a replica of a server that requires TLS
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          node-to-node: enforced, this account: changes go to repl at 10.0.0.2 by TLS, as require_secure_transport = ON asks of all
        a replica that may be older than the setting
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well; require_secure_transport = ON, 2 accounts: no exception
          node-to-node: cannot tell, this account: changes go to repl at 10.0.0.2 in an unknown way: start the server with performance_schema = ON
        no right to the replicas
          node-to-node: cannot tell, this account: no other server is connected; not judged: replicas (refused: 1142 (42000): denied to this account)
        a cluster in plaintext
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the cluster's cache of changes (galera.cache) is in the clear; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          node-to-node: off, this account [MY-TLS-REPLICATION]: the cluster's bus has socket.ssl = no
        a cluster by TLS
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the cluster's cache of changes (galera.cache) is in the clear; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          node-to-node: enforced, this account: the cluster's bus has socket.ssl = yes
        statistics of columns
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: mysql.column_stats, a table of Aria, has the least and greatest values of 3 columns, and aria_log has them in the clear: remove the rows, and analyze without PERSISTENT; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no right to the statistics
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: mysql.column_stats (GRANT SELECT ON mysql.*: refused: 1142 (42000): denied to this account)
        old rows of the general log
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: server_audit_logging = ON, events = `` writes statements in the clear; mysql.general_log holds statements in the clear: TRUNCATE it: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no right to the slow log
          at-rest: available but not enforced, this account [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off; not judged: mysql.slow_log (GRANT SELECT ON mysql.slow_log: refused: 1142 (42000): denied to this account)
        the keys beside the data
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/data/keys); settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the keys are in the folder of the data: file_key_management_filename = /data/keys; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        the keys elsewhere
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        keys that anybody can work out
          at-rest: available but not enforced, whole server [MY-REST-NOT-ENCRYPTED] [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by example_key_management; settings, tablespaces, logs and 0 tables of other engines, no dumps: 2 exceptions: the keys are those of a plugin for tests, which anybody can work out; server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no plugin for keys
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, no plugin has keys; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no right to the plugins
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, which plugin has the keys: refused: 1142 (42000): denied to this account; settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
        no audit plugin
          at-rest: enforced, whole server: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception
          audit: off, whole server [MY-AUDIT-OFF]: server_audit is not loaded, general_log = OFF, slow_query_log = OFF
        no audit plugin, but a general log
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the general log, the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: general_log = ON, log_output = FILE writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: server_audit is not loaded, general_log = ON, log_output = FILE (left out: sessions that SET sql_log_off), slow_query_log = OFF
        an audit log that is off
          at-rest: enforced, whole server: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception
          audit: off, whole server [MY-AUDIT-OFF]: server_audit_logging = OFF, events = ``, general_log = OFF, slow_query_log = OFF
        an audit log that is off, and a general log
          authentication: enforced, whole server [MY-AUTHN-REPEATS-PASSWORDS]: by mysql_native_password; without a password: refused (1045 (42000): Access denied (using password: NO)); 2 accounts (1 by ed25519, 1 by local socket): no exception; passwords that statements set are kept in the clear, by the general log, the binary log (encrypted; replicas and SHOW BINLOG EVENTS have it in the clear)
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: general_log = ON, log_output = FILE writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: server_audit_logging = OFF, events = ``, general_log = ON, log_output = FILE (left out: sessions that SET sql_log_off), slow_query_log = OFF
        an audit log of changes alone
          at-rest: available but not enforced, whole server [MY-REST-REPEATS-VALUES]: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: 1 exception: server_audit_logging = ON, events = `QUERY_DDL,QUERY_DCL` writes statements in the clear: set what is not, ALTER TABLE … ENGINE = InnoDB ENCRYPTED = YES, switch the log off
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: server_audit_logging = ON, events = `QUERY_DDL,QUERY_DCL` (left out: reads by CREATE TABLE … SELECT and compound statements, and all that no event names; SELECT; values of prepared statements): not all reads and writes
        an audit log with filters
          audit: available but not enforced, whole server [MY-AUDIT-PARTIAL]: server_audit_logging = ON, events = `` (left out: what the filters in mysql.server_audit_filters leave out, which is not known; values of prepared statements)
        an audit log in syslog
          audit: enforced, this account: server_audit_logging = ON, events = `` (left out: values of prepared statements): reads and writes, by the settings; not judged: what syslog keeps of it (server_audit_output_type)
        an audit log that failed
          at-rest: enforced, whole server: innodb_encrypt_tables = FORCE, innodb_encrypt_log = ON, aria_encrypt_tables = ON, encrypt_tmp_disk_tables = ON, encrypt_tmp_files = ON, innodb_encrypt_temporary_tables = ON, encrypt_binlog = ON (log_bin = ON), 0 tablespaces are not encrypted, undo and doublewrite as their tablespaces, keys by file_key_management (/keys/keys.enc); settings, tablespaces, logs and 0 tables of other engines, no dumps: no exception
          audit: off, whole server [MY-AUDIT-OFF]: server_audit_logging = ON, events = ``, Server_audit_active = OFF: nothing is written, general_log = OFF, slow_query_log = OFF
    "#]].assert_eq(&tight().changed_rows(&changes));
}

#[test]
fn encryption_is_off_where_nothing_at_all_is_seen_to_be_encrypted() {
    const ENCRYPTED: &str = "COUNT(*) FROM information_schema.INNODB_TABLESPACES_ENCRYPTION";
    let bare = || {
        let told = tight().with("encrypt_binlog", "OFF").telling(ENCRYPTED, &[&["0"]]);
        SWITCHES.iter().fold(told, |told, (name, _)| told.with(name, "OFF"))
    };
    let state = |told: Told| {
        let row = told.matrix().into_iter().find(|row| row.starts_with("at-rest: ")).expect("a row");
        row.split(", ").next().expect("a state").to_owned()
    };
    assert_eq!(state(bare()), "at-rest: off");
    let without_keys = bare().refusing(ENCRYPTED).telling("information_schema.PLUGINS", &[]);
    assert_eq!(state(without_keys), "at-rest: off", "an account that is shown no tablespaces");
    let binlog = || bare().with("encrypt_binlog", "ON");
    assert_eq!(state(binlog().with("log_bin", "OFF")), "at-rest: off");
    for told in [
        bare().with("aria_encrypt_tables", "ON"),
        bare().with("encrypt_tmp_files", "ON"),
        binlog(),
        bare().telling(ENCRYPTED, &[&["1"]]),
        bare().refusing(ENCRYPTED),
    ] {
        assert_eq!(state(told), "at-rest: available but not enforced");
    }
}

#[test]
fn encryption_is_in_force_where_nothing_is_left_out() {
    let mut text = String::new();
    for (name, told) in [
        ("everything", tight()),
        ("another cipher", tight().with("file_key_management_encryption_algorithm", "AES_CBC")),
        ("no cipher", tight().without("file_key_management_encryption_algorithm")),
        ("tables on request", tight().with("innodb_encrypt_tables", "ON")),
        ("another way of writing", tight().with("innodb_encrypt_log", "on")),
        ("no binary log", tight().with("encrypt_binlog", "OFF")),
        ("an old tablespace", tight().telling("INNODB_SYS_TABLESPACES", &[&["a"], &["b"], &["c"], &["d"]])),
        (
            "a table in the clear",
            tight().telling("CREATE TABLE `tithe`.`unencrypted`", &[]).telling("DROP TABLE `tithe`.`unencrypted`", &[]),
        ),
        ("no right to the tablespaces", tight().refusing("INNODB_SYS_TABLESPACES")),
    ] {
        text += &format!("{name}\n  {}\n", told.observed(&EncryptionInForce::new("AES_CTR")));
    }
    expect![[r#"
        everything
          protected: not encrypted: none; switches that are off: none; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: AES_CTR
        another cipher
          exposed: not encrypted: none; switches that are off: file_key_management_encryption_algorithm = AES_CBC; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: AES_CBC
        no cipher
          exposed: not encrypted: none; switches that are off: file_key_management_encryption_algorithm = UNKNOWN; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: none
        tables on request
          exposed: not encrypted: none; switches that are off: innodb_encrypt_tables = ON; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: AES_CTR
        another way of writing
          protected: not encrypted: none; switches that are off: none; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: AES_CTR
        no binary log
          exposed: not encrypted: none; switches that are off: encrypt_binlog = OFF; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: AES_CTR
        an old tablespace
          exposed: not encrypted: a, b, c and 1 more; switches that are off: none; an unencrypted table: refused (1005 (42000): encryption is forced); cipher as the server reports it: AES_CTR
        a table in the clear
          exposed: not encrypted: none; switches that are off: none; an unencrypted table: made; cipher as the server reports it: AES_CTR
        no right to the tablespaces
          refused: 1142 (42000): denied to this account
    "#]].assert_eq(&text);
}

#[test]
fn canaries_are_searched_for_where_the_server_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("tithe")).expect("made");
    fs::create_dir(folder.path().join("redo")).expect("made");
    for name in ["tithe/usertable.ibd", "ib_logfile0", "redo/ib_logfile1", "redo/ib_logfile0", "redo/other"] {
        fs::write(folder.path().join(name), b"").expect("written");
    }
    let datadir: &'static str = folder.path().to_string_lossy().into_owned().leak();
    let usual = || {
        tight()
            .with("hostname", this_machine().leak())
            .with("datadir", datadir)
            .with("server_audit_file_path", "audit.log")
            .with("server_audit_query_log_limit", "1024")
            .with("general_log_file", "general.log")
            .with("server_audit_output_type", "file")
    };
    let mut text = String::new();
    for (name, told) in [
        ("every event", usual()),
        ("the redo log elsewhere", usual().with("innodb_log_group_home_dir", "redo")),
        ("a server on another machine", usual().with("hostname", "elsewhere.example")),
        ("in syslog", usual().with("server_audit_output_type", "syslog")),
        ("definitions too", usual().with("server_audit_events", "query_ddl, QUERY_DML")),
        ("definitions alone", usual().with("server_audit_events", "QUERY_DDL")),
        (
            "short definitions",
            usual().with("server_audit_events", "QUERY_DDL,QUERY").with("server_audit_query_log_limit", "99"),
        ),
        (
            "definitions that just fit",
            usual().with("server_audit_events", "QUERY_DDL,QUERY").with("server_audit_query_log_limit", "100"),
        ),
        ("no audit log", usual().with("server_audit_logging", "OFF")),
        ("a general log", usual().with("server_audit_logging", "OFF").with("general_log", "ON")),
        (
            "a general log in a table",
            usual().with("server_audit_logging", "OFF").with("general_log", "ON").with("log_output", "TABLE"),
        ),
        ("a file that is not here", usual().with("datadir", "/nowhere")),
        ("no right", usual().refusing("SHOW GLOBAL VARIABLES")),
    ] {
        text += &format!("{name}\n  {}\n", told.canaries(folder.path()));
    }
    expect![[r#"
        every event
          data tithe/usertable.ibd; journal ib_logfile0; logs audit.log; audit-complete: every event of CONNECT,QUERY is in the audit log once, and no other
        the redo log elsewhere
          data tithe/usertable.ibd; journal redo/ib_logfile0 redo/ib_logfile1; logs audit.log; audit-complete: every event of CONNECT,QUERY is in the audit log once, and no other
        a server on another machine
          data ; journal ; logs ; audit-complete: every event of CONNECT,QUERY is in the audit log once, and no other
        in syslog
          data tithe/usertable.ibd; journal ib_logfile0; logs ; audit-complete: every event of CONNECT,QUERY is in the audit log once, and no other
        definitions too
          data tithe/usertable.ibd; journal ib_logfile0; logs audit.log; definitions-logged: statements that define tables are in the audit log; audit-complete: every event of QUERY_DML is in the audit log once, and no other
        definitions alone
          data tithe/usertable.ibd; journal ib_logfile0; logs audit.log; definitions-logged: statements that define tables are in the audit log
        short definitions
          data tithe/usertable.ibd; journal ib_logfile0; logs audit.log; audit-complete: every event of QUERY is in the audit log once, and no other
        definitions that just fit
          data tithe/usertable.ibd; journal ib_logfile0; logs audit.log; definitions-logged: statements that define tables are in the audit log; audit-complete: every event of QUERY is in the audit log once, and no other
        no audit log
          data tithe/usertable.ibd; journal ib_logfile0; logs ; 
        a general log
          data tithe/usertable.ibd; journal ib_logfile0; logs general.log; statement-log: every statement is in the log once, with its values
        a general log in a table
          data tithe/usertable.ibd; journal ib_logfile0; logs ; statement-log: every statement is in the log once, with its values
        a file that is not here
          data ; journal ; logs ; audit-complete: every event of CONNECT,QUERY is in the audit log once, and no other
        no right
          refused: 1142 (42000): denied to this account
    "#]].assert_eq(&text);
}

/// The result of `look` with an administrator's session on a server.
fn with_session<T>(told: &Told, look: impl FnOnce(&mut WireSession) -> Result<T, Fault>) -> Result<T, String> {
    told.seen(|server| {
        let mut session = ACCESS.administrator(server, &plain()).expect("a session");
        look(&mut session).map_err(|fault| fault.to_string())
    })
}

#[test]
fn a_server_encrypts_until_nothing_is_left_or_no_thread_would() {
    let is_done = |told: Told| with_session(&told, is_encrypted);
    let old = || tight().telling("INNODB_SYS_TABLESPACES", &[&["shop/old"], &["shop/older"]]);
    let (threads, tables) = ("innodb_encryption_threads", "innodb_encrypt_tables");
    assert_eq!([tight(), tight().with(threads, "0")].map(is_done), [Ok(true), Ok(true)]);
    assert_eq!(is_done(old()), Ok(false));
    let stuck = format!("wrong answer: 2 tablespaces are not encrypted; {NOBODY_ENCRYPTS}");
    assert_eq!(is_done(old().with(threads, "0")), Err(stuck));
    // A server that does not encrypt tables has nothing to wait for.
    for told in [old().with(tables, "OFF"), old().with(tables, "OFF").with(threads, "0"), old().without(tables)] {
        assert_eq!(is_done(told), Ok(true));
    }
}

#[test]
fn a_table_is_written_when_the_server_has_written_it_and_let_go_of_it() {
    let is_written = |told: Told| with_session(&told, |session| write_table(session, "`tithe`.`t`")).is_ok();
    let exported = || tight().telling("FLUSH TABLES `tithe`.`t` FOR EXPORT", &[]);
    assert!(is_written(exported().telling("UNLOCK TABLES", &[])));
    assert!(!is_written(exported()) && !is_written(tight().telling("UNLOCK TABLES", &[])));
}

#[test]
fn tables_of_other_engines() {
    let judged = |engine: &str, row_format: &str, encrypts: bool| {
        let table = OtherTable { name: "a.b".to_owned(), engine: engine.to_owned(), row_format: row_format.to_owned() };
        let (mut exceptions, mut doubts) = (Vec::new(), Vec::new());
        judge_table(&table, encrypts, &mut exceptions, &mut doubts);
        (exceptions.len(), doubts.len())
    };
    assert_eq!(judged("MyISAM", "Dynamic", true), (1, 0));
    assert_eq!(judged("Aria", "Page", false), (1, 0));
    assert_eq!(judged("Aria", "Fixed", true), (1, 0));
    assert_eq!(judged("Aria", "Page", true), (1, 1));
}

/// An attacker who relays the proof of a password can log in with it.
#[test]
fn no_proof_of_a_password_is_sent_in_plaintext() {
    let greeting = b"\x0a11.4.0-MariaDB\0\x01\0\0\x0012345678\0\xfe\xff\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0";
    let packet = |number: u8, body: &[u8]| [&[body.len() as u8, 0, 0, number], body].concat();
    let said = |refusal: &[u8]| [packet(0, greeting), packet(2, refusal)].concat();
    let (judged, sent) = tried_in_plaintext(&said(b"\xff\x57\x0c#HY000TLS is required"), QUERIES.plaintext);
    assert!(sent.ends_with(b"ann\0\0mysql_native_password\0"), "an empty proof: {sent:?}");
    expect!["enforced: TLSv1.3; plaintext: refused (3159 (HY000): TLS is required)"].assert_eq(&judged);
    let (judged, sent) =
        tried_in_plaintext(&said(b"\xff\x15\x04#28000Access denied for user 'ann'"), QUERIES.plaintext);
    assert!(sent.ends_with(b"ann\0\0mysql_native_password\0"), "an empty proof: {sent:?}");
    // As it is requested over TLS.
    assert!(judged.starts_with("cannot tell: TLSv1.3; plaintext: connection: "), "{judged}");
}
