//! The whole matrix of a server that answers as configured, and which rows change with each single change to it.

use expect_test::expect;

use super::*;
use crate::{
    postgres::{
        Postgres,
        evidence::{PROBES, scram_iterations::ScramIterations},
        told::{PROCESS, server},
    },
    test_setup::{as_arm, asked_in_plaintext, tried_in_plaintext},
    told::{Rows, Told},
};

const RULES: &str = "to_jsonb(r) FROM pg_hba_file_rules";
const ROLES: &str = "SELECT rolname, rolsuper, rolcanlogin, rolcreaterole";
const MEMBERS: &str = "FROM pg_auth_members";
const DATABASES: &str = "FROM pg_database d WHERE";
const OVERRIDES: &str = "FROM pg_db_role_setting";
const BY_PASSWORD: &str = r#"{"line_number": 1, "type": "hostssl", "database": ["all"], "user_name": ["all"],
    "address": "all", "auth_method": "scram-sha-256"}"#;
const OF_REPLICAS: &str = r#"{"line_number": 2, "type": "hostssl", "database": ["replication"], "user_name": ["repl"],
    "address": "10.0.0.0", "netmask": "255.0.0.0", "auth_method": "scram-sha-256"}"#;

/// A server that asks every client for a password over TLS and logs all statements, with one superuser.
fn tight() -> Told {
    server(
        vec![
            ("server_version_num", "160003"),
            ("ssl", "on"),
            ("password_encryption", "scram-sha-256"),
            ("log_statement", "all"),
            ("logging_collector", "on"),
            ("log_destination", "stderr"),
            ("log_parameter_max_length", "0"),
            ("shared_preload_libraries", ""),
        ],
        vec![
            (RULES, Ok(&[&[BY_PASSWORD], &[OF_REPLICAS]])),
            ("pg_conf_load_time", Ok(&[&["f"]])),
            ("pg_read_file(f.name)", Ok(&[&[""]])),
            ("FROM pg_stat_ssl WHERE pid = pg_backend_pid()", Ok(&[&["off"]])),
            (OVERRIDES, Ok(&[])),
            ("to_regclass('pg_parameter_acl')", Ok(&[&["f"]])),
            ("' may set '", Ok(&[])),
            ("rolpassword LIKE 'md5%'", Ok(&[])),
            ("pg_ident_file_mappings", Ok(&[])),
            (ROLES, Ok(&[&["postgres", "t", "t", "t"], &["app", "f", "t", "f"], &["repl", "f", "t", "f"]])),
            (MEMBERS, Ok(&[])),
            (DATABASES, Ok(&[])),
            ("pg_read_binary_file", Ok(&[])),
            ("' of ' || parname", Ok(&[])),
            ("pg_event_trigger", Ok(&[])),
            ("owns what a superuser runs", Ok(&[])),
            ("FROM pg_language", Ok(&[])),
            ("p.prosecdef", Ok(&[])),
            ("aclexplode(nspacl)", Ok(&[])),
            ("FROM pg_user_mappings", Ok(&[])),
            ("JOIN pg_rewrite", Ok(&[])),
            ("WHERE rolreplication", Ok(&[])),
            ("pg_catalog.pg_shadow", Ok(&[&["pg_read_all_data"]])),
            ("pg_is_in_recovery()", Ok(&[&["f"]])),
            ("FROM pg_stat_replication", Ok(&[&["0", "0", "0"]])),
            ("count(subname)", Ok(&[&["0"]])),
        ],
    )
}

#[test]
fn a_server_that_leaves_nothing_open() {
    expect![[r#"
        authentication: enforced, whole server [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
        tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception
        client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception
        authorisation: enforced, whole server: 1 of 3 accounts may do everything (superusers, and who can become one)
        proxy-roles: off, whole server: 0 memberships by which an account may act as another (SET ROLE)
        audit: enforced, whole server [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception
        node-to-node: cannot tell, this account: no other server is connected; 2 rules of pg_hba.conf: no exception
        at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by log_statement, with those that are encrypted by pgcrypto, and their keys
        jmx-authentication: not offered by this product, whole server: no Java virtual machine
        authentication-caching: not offered by this product, whole server: every login is checked again
    "#]].assert_eq(&tight().matrix().concat());
}

#[test]
fn old_versions_of_tls_are_not_tried() {
    let doubted = |least: &'static str| {
        let rows = tight().with("ssl_min_protocol_version", least).matrix();
        rows.iter().filter(|row| row.contains("not judged: whether clients speak TLS before version 1.2")).count()
    };
    // The rows about the client and about the node. Without a value every version is allowed.
    assert_eq!(["TLSv1", "TLSv1.1", ""].map(doubted), [2; 3]);
    assert_eq!(["TLSv1.2", "TLSv1.3"].map(doubted), [0; 2]);
}

#[test]
fn a_map_may_let_one_user_be_every_account() {
    const MAPPED: &str = r#"{"line_number": 9, "type": "local", "database": ["all"], "user_name": ["all"],
        "auth_method": "peer", "options": ["map=ops"]}"#;
    const LINES: Rows = &[&["ops", "alice", "all", "f", "f", "t"], &["unused", "bob", "all", "f", "f", "t"]];
    let told = tight().telling(RULES, &[&[BY_PASSWORD], &[MAPPED]]).telling("pg_ident_file_mappings", LINES);
    let rows = told.matrix().concat();
    let told = ": 1 exception: map ops of pg_ident.conf lets alice be every account (all): ";
    assert!(rows.contains(told), "{rows}");
}

#[test]
fn a_library_that_is_not_shown_may_encrypt_files() {
    let rows = tight().without("shared_preload_libraries").matrix().concat();
    let told = "at-rest: not offered by this product, this account [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no \
                file; a volume below it may; not judged: whether a library encrypts files (shared_preload_libraries: \
                GRANT pg_read_all_settings); ";
    assert!(rows.contains(told), "{rows}");
}

#[test]
fn each_change_shows_in_its_rows() {
    const TRUST: &str = r#"{"line_number": 9, "type": "host", "database": ["all"], "user_name": ["guest"],
        "address": "all", "auth_method": "trust"}"#;
    const MD5: &str = r#"{"line_number": 9, "type": "hostssl", "database": ["all"], "user_name": ["all"],
        "address": "all", "auth_method": "md5"}"#;
    const ITSELF: &str = r#"{"line_number": 9, "type": "hostssl", "database": ["all"], "user_name": ["all"],
        "address": "all", "auth_method": "password"}"#;
    const MAPPED: &str = r#"{"line_number": 9, "type": "local", "database": ["all"], "user_name": ["all"],
        "auth_method": "peer", "options": ["map=ops"]}"#;
    const OPEN_REPLICAS: &str = r#"{"line_number": 9, "type": "host", "database": ["replication"],
        "user_name": ["repl"], "address": "10.0.0.0", "netmask": "255.0.0.0", "auth_method": "scram-sha-256"}"#;
    const BROKEN: &str = r#"{"line_number": 9, "error": "invalid authentication method"}"#;
    const FOR_EVERYBODY: Rows = &[&["ops", "/.*", "postgres", "t", "t", "f"], &["dev", "/.*", "app", "f", "t", "f"]];
    let rules = |rules: Rows| tight().telling(RULES, rules);
    let roles = |roles: Rows| tight().telling(ROLES, roles);
    let standby =
        |rows: Rows| tight().telling("pg_is_in_recovery()", &[&["t"]]).telling("FROM pg_stat_wal_receiver", rows);
    let waiting = |rows: Rows| standby(&[]).telling("name = 'primary_conninfo'", rows);
    let pooled = |told: Told| told.telling("SELECT pg_backend_pid()", &[&["78"]]);
    let replicas = |counts: Rows| tight().telling("FROM pg_stat_replication", counts);
    let subscribed =
        |rows: Rows| tight().telling("count(subname)", &[&["1"]]).telling("AS mode FROM pg_subscription", rows);
    let unlogged = || tight().with("log_statement", "none");
    let changes = [
        ("no password", Told { password: false, ..tight() }),
        ("everybody", rules(&[&[BY_PASSWORD], &[TRUST], &[OF_REPLICAS]])),
        ("quoted words", tight().telling("pg_read_file(f.name)", &[&["/etc/pg_hba.conf"]])),
        ("no right to the files", tight().refusing("pg_read_file(f.name)")),
        (
            "logical replicas in plaintext",
            rules(&[&[BY_PASSWORD], &[TRUST], &[OF_REPLICAS]]).with("wal_level", "logical"),
        ),
        ("everybody, after a rule for all", rules(&[&[TRUST], &[BY_PASSWORD], &[OF_REPLICAS]])),
        ("a method that takes old hashes", rules(&[&[MD5], &[OF_REPLICAS]])),
        ("an old hash", rules(&[&[MD5], &[OF_REPLICAS]]).telling("rolpassword LIKE 'md5%'", &[&["old"], &["older"]])),
        (
            "an old hash, and a method that takes the password itself",
            rules(&[&[ITSELF], &[OF_REPLICAS]]).telling("rolpassword LIKE 'md5%'", &[&["old"]]),
        ),
        ("an old hash that no method takes", tight().telling("rolpassword LIKE 'md5%'", &[&["old"]])),
        ("new old hashes", rules(&[&[MD5], &[OF_REPLICAS]]).with("password_encryption", "md5")),
        ("hashes that are not shown", rules(&[&[MD5], &[OF_REPLICAS]]).refusing("rolpassword LIKE 'md5%'")),
        ("a map", rules(&[&[BY_PASSWORD], &[MAPPED], &[OF_REPLICAS]])),
        (
            "a map that was changed",
            rules(&[&[BY_PASSWORD], &[MAPPED], &[OF_REPLICAS]])
                .telling("current_setting('ident_file')", &[&["t"]])
                .telling("position(chr(92)", &[]),
        ),
        (
            "a map for everybody",
            rules(&[&[BY_PASSWORD], &[MAPPED], &[OF_REPLICAS]]).telling("pg_ident_file_mappings", FOR_EVERYBODY),
        ),
        (
            "a map for everybody to be an account",
            rules(&[&[BY_PASSWORD], &[MAPPED], &[OF_REPLICAS]])
                .telling("pg_ident_file_mappings", &[&["ops", "/.*", "app", "f", "t", "f"]]),
        ),
        (
            "maps that are not shown",
            rules(&[&[BY_PASSWORD], &[MAPPED], &[OF_REPLICAS]]).refusing("pg_ident_file_mappings"),
        ),
        ("rules that are broken", rules(&[&[BROKEN], &[BY_PASSWORD], &[OF_REPLICAS]])),
        ("rules that are not shown", tight().refusing(RULES)),
        ("rules that were changed", tight().telling("pg_conf_load_time", &[&["t"]])),
        ("rules of an unknown age", tight().refusing("pg_conf_load_time")),
        ("no TLS", tight().with("ssl", "off")),
        ("TLS that something ends", tight().telling("FROM pg_stat_ssl WHERE pid", &[&["TLSv1.3 AES 256 bit"]])),
        ("a pooler", pooled(tight())),
        ("a pooler with TLS behind it", pooled(tight().telling("FROM pg_stat_ssl WHERE pid", &[&["TLSv1.3 AES"]]))),
        ("transport that is not shown", tight().refusing("FROM pg_stat_ssl WHERE pid")),
        ("a superuser more", roles(&[&["postgres", "t", "t", "t"], &["boss", "t", "t", "f"], &["app", "f", "t", "f"]])),
        ("superusers alone", roles(&[&["postgres", "t", "t", "t"]])),
        ("a member", tight().telling(MEMBERS, &[&["app", "postgres", "true", "f"]])),
        ("a member without SET", tight().telling(MEMBERS, &[&["app", "postgres", "false", "f"]])),
        ("a member that may grant", tight().telling(MEMBERS, &[&["app", "postgres", "false", "t"]])),
        (
            "a member of a role of the server",
            tight().telling(MEMBERS, &[&["app", "pg_read_server_files", "true", "f"]]),
        ),
        (
            "CREATEROLE",
            roles(&[&["postgres", "t", "t", "t"], &["app", "f", "t", "t"]]).with("server_version_num", "150007"),
        ),
        ("CREATEROLE from 16 on", roles(&[&["postgres", "t", "t", "t"], &["app", "f", "t", "t"]])),
        ("a function of the server", tight().telling("pg_read_binary_file", &[&["app", "EXECUTE on lo_import"]])),
        ("a function of the server, for all", tight().telling("pg_read_binary_file", &[&["", "EXECUTE on lo_import"]])),
        ("a setting", tight().telling("' of ' || parname", &[&["app", "SET of archive_command"]])),
        (
            "a setting before 15",
            tight()
                .telling("' of ' || parname", &[&["app", "SET of archive_command"]])
                .with("server_version_num", "140000"),
        ),
        ("a trigger", tight().telling("pg_event_trigger", &[&["app", "owns the function of event trigger t"]])),
        ("a trigger that is not shown", tight().refusing("pg_event_trigger")),
        ("a function of a superuser", tight().telling("p.prosecdef", &[&["pay", "postgres"]])),
        (
            "a function of a role that becomes one",
            tight()
                .telling(MEMBERS, &[&["dba", "pg_execute_server_program", "true", "f"]])
                .telling("p.prosecdef", &[&["run", "dba"]]),
        ),
        ("a function of an ordinary role", tight().telling("p.prosecdef", &[&["sum", "app"]])),
        ("a function that is not shown", tight().refusing("p.prosecdef")),
        ("a view of the passwords", tight().telling("JOIN pg_rewrite", &[&["shop.logins"]])),
        ("views that are not shown", tight().refusing("JOIN pg_rewrite")),
        ("an account of replicas", tight().telling("WHERE rolreplication", &[&["repl"]])),
        ("a reader of hashes", tight().telling("pg_catalog.pg_shadow", &[&["app"]])),
        ("all read hashes", tight().telling("pg_catalog.pg_shadow", &[&[""]])),
        ("a reader of hashes by a role", tight().telling(MEMBERS, &[&["app", "pg_read_all_data", "true", "f"]])),
        ("readers that are not shown", tight().refusing("pg_catalog.pg_shadow")),
        ("no right to the roles", tight().refusing(ROLES)),
        ("no right to the members", tight().refusing(MEMBERS)),
        ("nothing logged", unlogged()),
        ("not even failures logged", unlogged().with("log_min_error_statement", "panic")),
        ("changes logged", tight().with("log_statement", "mod")),
        ("every duration logged", unlogged().with("log_min_duration_statement", "0")),
        ("long statements logged", unlogged().with("log_min_duration_statement", "100")),
        (
            "one of two statements logged",
            unlogged().with("log_min_duration_sample", "0").with("log_statement_sample_rate", "0.5"),
        ),
        ("audited", unlogged().with("shared_preload_libraries", "pgaudit").with("pgaudit.log", "all")),
        (
            "audited with values",
            unlogged()
                .with("shared_preload_libraries", "pgaudit")
                .with("pgaudit.log", "all")
                .with("pgaudit.log_parameter", "on"),
        ),
        ("reads audited", unlogged().with("shared_preload_libraries", "pgaudit").with("pgaudit.log", "read")),
        ("audited, as is not seen", unlogged().with("shared_preload_libraries", "other").with("pgaudit.log", "all")),
        (
            "audited by tables",
            unlogged()
                .with("shared_preload_libraries", "pgaudit")
                .with("pgaudit.log", "none")
                .with("pgaudit.role", "auditor")
                .telling("has_table_privilege", &[&["3", "2", "9"]]),
        ),
        ("an extension that encrypts", unlogged().with("shared_preload_libraries", "pg_stat_statements, pg_tde")),
        ("a server that encrypts", unlogged().telling("data_encryption_version", &[&["1"]])),
        ("values logged", tight().with("log_parameter_max_length", "-1")),
        ("terse", tight().with("log_error_verbosity", "terse")),
        ("rotation that may empty the log", tight().with("log_truncate_on_rotation", "on")),
        ("no collector", tight().with("logging_collector", "off")),
        ("syslog", tight().with("log_destination", "syslog")),
        ("texts kept", tight().with("pg_stat_statements.track", "all").with("pg_stat_statements.track_utility", "on")),
        ("an account without a log", tight().telling(OVERRIDES, &[&["", "app", "log_statement=none"]])),
        ("a database without a log", tight().telling(OVERRIDES, &[&["shop", "", "log_statement=none"]])),
        (
            "an account without a log, but with one in a database",
            tight().telling(OVERRIDES, &[&["", "app", "log_statement=none"], &["shop", "app", "log_statement=all"]]),
        ),
        ("an account with a log", unlogged().telling(OVERRIDES, &[&["", "app", "log_statement=all"]])),
        ("an account with another setting", tight().telling(OVERRIDES, &[&["", "app", "work_mem=1MB"]])),
        ("no right to the overrides", tight().refusing(OVERRIDES)),
        ("an account that may set it", tight().telling("' may set '", &[&["app may set log_statement"]])),
        (
            "an account that may set it, before 15",
            tight().telling("' may set '", &[&["app may set log_statement"]]).telling("to_regclass", &[&["t"]]),
        ),
        (
            "a session with its own setting",
            tight()
                .telling("FROM pg_settings WHERE name IN (", &[&["log_statement", "none", "user", "none"]])
                .telling("FROM pg_file_settings", &[&["all"]]),
        ),
        (
            "a session with its own setting, and none in the file",
            tight()
                .telling("FROM pg_settings WHERE name IN (", &[&["log_statement", "all", "session", "none"]])
                .telling("FROM pg_file_settings", &[]),
        ),
        (
            "a session with its own setting, and no right to the file",
            tight()
                .telling("FROM pg_settings WHERE name IN (", &[&["log_statement", "all", "client", "none"]])
                .refusing("FROM pg_file_settings"),
        ),
        ("no right to the settings", tight().refusing("FROM pg_settings")),
        ("replicas by TLS", replicas(&[&["2", "0", "0"]])),
        ("a replica in plaintext", replicas(&[&["2", "1", "0"]])),
        ("replicas that are not shown", replicas(&[&["2", "0", "2"]])),
        ("replicas by a rule for plaintext", rules(&[&[BY_PASSWORD], &[OPEN_REPLICAS]])),
        ("no right to the replicas", tight().refusing("FROM pg_stat_replication")),
        ("a subscription by TLS", subscribed(&[&["f", "s (sslmode=require)"]])),
        ("subscriptions by TLS, and replicas", {
            subscribed(&[&["f", "s (sslmode=require)"], &["f", "t (sslmode=require)"]])
                .telling("FROM pg_stat_replication", &[&["2", "1", "0"]])
        }),
        (
            "a subscription by TLS, and replicas that are not shown",
            subscribed(&[&["f", "s (sslmode=require)"]]).telling("FROM pg_stat_replication", &[&["2", "0", "2"]]),
        ),
        ("a subscription in plaintext", subscribed(&[&["t", "s (sslmode=prefer)"], &["f", "t (sslmode=require)"]])),
        (
            "subscriptions that are not shown",
            tight().telling("count(subname)", &[&["1"]]).refusing("AS mode FROM pg_subscription"),
        ),
        ("a standby, checked", standby(&[&["verify-full"]])),
        ("a standby by TLS", standby(&[&["require"]])),
        ("a standby in plaintext", standby(&[&["disable"]])),
        ("a standby as it happens", standby(&[&["prefer"]])),
        ("a standby that is not shown", standby(&[&[""]])),
        (
            "a standby that sends on in plaintext",
            standby(&[&["verify-full"]]).telling("FROM pg_stat_replication", &[&["2", "1", "0"]]),
        ),
        (
            "a standby that sends on by TLS",
            standby(&[&["verify-full"]]).telling("FROM pg_stat_replication", &[&["1", "0", "0"]]),
        ),
        (
            "a standby that is not shown to whom it sends",
            standby(&[&["verify-full"]]).telling("FROM pg_stat_replication", &[&["1", "0", "1"]]),
        ),
        ("a standby that waits", waiting(&[])),
        ("a standby that waits for plaintext", waiting(&[&["disable"]])),
        ("a standby that waits for either", waiting(&[&["allow"]])),
        ("a standby that waits for TLS", waiting(&[&["verify-ca"]])),
    ];
    expect![[r#"
        no password
          authentication: off, whole server [PG-AUTHN-NO-PASSWORD] [PG-AUTHN-REPEATS-PASSWORDS]: let in without a password; 2 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
        everybody
          authentication: available but not enforced, whole server [PG-AUTHN-NO-PASSWORD] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) lets everyone in: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves plaintext: change host to hostssl and reload
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves plaintext: change host to hostssl and reload
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        quoted words
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; not judged: quoted words of /etc/pg_hba.conf, which are names and look like keywords; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: quoted words of /etc/pg_hba.conf, which are names and look like keywords
          client-to-node: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: quoted words of /etc/pg_hba.conf, which are names and look like keywords
          node-to-node: cannot tell, this account: no other server is connected; 2 rules of pg_hba.conf: no exception; not judged: quoted words of /etc/pg_hba.conf, which are names and look like keywords
        no right to the files
        logical replicas in plaintext
          authentication: available but not enforced, whole server [PG-AUTHN-NO-PASSWORD] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) lets everyone in: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves plaintext: change host to hostssl and reload
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves plaintext: change host to hostssl and reload
          node-to-node: available but not enforced, whole server [PG-TLS-REPLICATION]: no other server is connected; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves replicas plaintext: change host to hostssl and reload
        everybody, after a rule for all
          authentication: available but not enforced, whole server [PG-AUTHN-NO-PASSWORD] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) lets everyone in: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves plaintext: change host to hostssl and reload
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: 1 exception: line 9 (host all guest all trust) serves plaintext: change host to hostssl and reload
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        a method that takes old hashes
        an old hash
          authentication: available but not enforced, whole server [PG-AUTHN-WEAK-HASH] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: 2 exceptions: the password of old is kept as an MD5 hash; the password of older is kept as an MD5 hash: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
        an old hash, and a method that takes the password itself
          authentication: available but not enforced, whole server [PG-AUTHN-WEAK-HASH] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: 1 exception: the password of old is kept as an MD5 hash: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
        an old hash that no method takes
        new old hashes
          authentication: available but not enforced, whole server [PG-AUTHN-WEAK-HASH] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: 1 exception: new passwords are kept as MD5 hashes (password_encryption = md5): write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
        hashes that are not shown
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; not judged: whose password is kept as an MD5 hash (SELECT ON pg_authid: refused: 42501: denied to this account); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
        a map
          authentication: enforced, whole server [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        a map that was changed
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: no exception; not judged: pg_ident.conf was changed after it was loaded (SELECT pg_reload_conf()); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        a map for everybody
          authentication: available but not enforced, whole server [PG-AUTHN-MAP] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: 1 exception: map ops of pg_ident.conf lets everybody (/.*) be postgres, a superuser: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        a map for everybody to be an account
          authentication: available but not enforced, whole server [PG-AUTHN-MAP] [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: 1 exception: map ops of pg_ident.conf lets everybody (/.*) be app: write scram-sha-256 for them and reload; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        maps that are not shown
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 3 rules of pg_hba.conf: no exception; not judged: maps of pg_ident.conf (ops; SELECT ON pg_ident_file_mappings: refused: 42501: denied to this account); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          client-to-node: available but not enforced, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 3 rules of pg_hba.conf: no exception
          node-to-node: cannot tell, this account: no other server is connected; 3 rules of pg_hba.conf: no exception
        rules that are broken
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; not judged: line 9 (invalid authentication method): the file was not loaded; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: line 9 (invalid authentication method): the file was not loaded
          client-to-node: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: line 9 (invalid authentication method): the file was not loaded
          node-to-node: cannot tell, this account: no other server is connected; 2 rules of pg_hba.conf: no exception; not judged: line 9 (invalid authentication method): the file was not loaded
        rules that are not shown
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); others were not judged (refused: 42501: denied to this account): the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), pg_stat_file(text), and the role pg_read_all_settings; passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; others were not judged (refused: 42501: denied to this account): the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), pg_stat_file(text), and the role pg_read_all_settings
          client-to-node: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; others were not judged (refused: 42501: denied to this account): the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), pg_stat_file(text), and the role pg_read_all_settings
          node-to-node: cannot tell, this account: no other server is connected; others were not judged (refused: 42501: denied to this account): the account needs SELECT ON pg_hba_file_rules, EXECUTE ON FUNCTION pg_hba_file_rules(), pg_stat_file(text), and the role pg_read_all_settings
        rules that were changed
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; not judged: pg_hba.conf was changed after it was loaded (SELECT pg_reload_conf()); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: pg_hba.conf was changed after it was loaded (SELECT pg_reload_conf())
          client-to-node: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: pg_hba.conf was changed after it was loaded (SELECT pg_reload_conf())
          node-to-node: cannot tell, this account: no other server is connected; 2 rules of pg_hba.conf: no exception; not judged: pg_hba.conf was changed after it was loaded (SELECT pg_reload_conf())
        rules of an unknown age
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; not judged: whether pg_hba.conf is the one that is loaded (pg_stat_file: refused: 42501: denied to this account); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: whether pg_hba.conf is the one that is loaded (pg_stat_file: refused: 42501: denied to this account)
          client-to-node: available but not enforced, this account [PG-TLS-OPTIONAL]: plaintext: served; the server has TLS as well; 2 rules of pg_hba.conf: no exception; not judged: whether pg_hba.conf is the one that is loaded (pg_stat_file: refused: 42501: denied to this account)
          node-to-node: cannot tell, this account: no other server is connected; 2 rules of pg_hba.conf: no exception; not judged: whether pg_hba.conf is the one that is loaded (pg_stat_file: refused: 42501: denied to this account)
        no TLS
          tls: off, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has no TLS
          client-to-node: off, whole server [PG-TLS-OPTIONAL]: plaintext: served; the server has no TLS
        TLS that something ends
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: something ends TLS before the server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); not judged: which other clients it accepts (its own configuration); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: something ends TLS before the server; to it: plaintext: served; whether TLS is there: protocol: the server does not answer the request for TLS
          client-to-node: enforced, whole server: something ends TLS before the server; behind it pg_stat_ssl of this session reports: TLSv1.3 AES 256 bit; 2 rules of pg_hba.conf: no exception
        a pooler
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: a pooler answers: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); not judged: which other clients it accepts (its own configuration); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: a pooler answers; to it: plaintext: served; whether TLS is there: protocol: the server does not answer the request for TLS
          client-to-node: off, this account [PG-TLS-BEHIND-POOLER]: a pooler answers; behind it pg_stat_ssl of this session reports: off
        a pooler with TLS behind it
          authentication: enforced, this account [PG-AUTHN-REPEATS-PASSWORDS]: a pooler answers: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); not judged: which other clients it accepts (its own configuration); passwords that ALTER ROLE sets are kept in the clear, by log_statement: set them by \password of psql
          tls: available but not enforced, this account [PG-TLS-OPTIONAL]: a pooler answers; to it: plaintext: served; whether TLS is there: protocol: the server does not answer the request for TLS
          client-to-node: enforced, whole server: a pooler answers; behind it pg_stat_ssl of this session reports: TLSv1.3 AES; 2 rules of pg_hba.conf: no exception
        transport that is not shown
          tls: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_stat_ssl
          client-to-node: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_stat_ssl
        a superuser more
          authorisation: available but not enforced, whole server [PG-AUTHZ-SUPERUSERS]: 2 of 3 accounts may do everything (superusers, and who can become one): postgres; boss
        superusers alone
          authorisation: off, whole server: 1 of 1 account may do everything (superusers, and who can become one)
        a member
          authorisation: available but not enforced, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (membership); postgres: REVOKE postgres FROM app
          proxy-roles: available but not enforced, whole server: 1 membership by which an account may act as another (SET ROLE): app → postgres (membership)
        a member without SET
        a member that may grant
          authorisation: available but not enforced, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (ADMIN option); postgres: REVOKE postgres FROM app
          proxy-roles: available but not enforced, whole server: 1 membership by which an account may act as another (SET ROLE): app → postgres (ADMIN option)
        a member of a role of the server
          authorisation: available but not enforced, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 3 accounts may do everything (superusers, and who can become one): app → pg_read_server_files (membership) → postgres (reads files as the server); postgres: REVOKE pg_read_server_files FROM app
        CREATEROLE
          authorisation: off, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 2 accounts may do everything (superusers, and who can become one): app → pg_execute_server_program (CREATEROLE) → postgres (runs programs as the server); postgres: ALTER ROLE app NOCREATEROLE
        CREATEROLE from 16 on
          authorisation: enforced, whole server: 1 of 2 accounts may do everything (superusers, and who can become one)
        a function of the server
          authorisation: available but not enforced, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (EXECUTE on lo_import); postgres: REVOKE EXECUTE on lo_import
        a function of the server, for all
          authorisation: off, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 3 of 3 accounts may do everything (superusers, and who can become one): app → postgres (EXECUTE on lo_import, to PUBLIC); repl → postgres (EXECUTE on lo_import, to PUBLIC); postgres: REVOKE EXECUTE on lo_import, to PUBLIC
        a setting
          authorisation: available but not enforced, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (SET of archive_command); postgres: REVOKE SET of archive_command
        a setting before 15
        a trigger
          authorisation: available but not enforced, whole server [PG-AUTHZ-REACHABLE-SUPERUSER]: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (owns the function of event trigger t); postgres: ALTER FUNCTION … OWNER TO a superuser
        a trigger that is not shown
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: event triggers (refused: 42501: denied to this account)
        a function of a superuser
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: functions that run with the rights of superusers, or of accounts that can become one (SECURITY DEFINER): pay
        a function of a role that becomes one
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: functions that run with the rights of superusers, or of accounts that can become one (SECURITY DEFINER): run
        a function of an ordinary role
        a function that is not shown
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: functions that run with the rights of others (refused: 42501: denied to this account)
        a view of the passwords
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: what views that others may read show of the table of passwords: shop.logins
        views that are not shown
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: what views that others may read show of the table of passwords (refused: 42501: denied to this account)
        an account of replicas
          authorisation: enforced, whole server: 1 of 3 accounts may do everything (superusers, and who can become one); for replicas, which read all data, hashes of passwords too: repl
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: 1 exception: repl may take a BASE_BACKUP (log_replication_commands = off): set log_replication_commands = on
        a reader of hashes
          authorisation: available but not enforced, whole server [PG-AUTHZ-READS-PASSWORDS]: 1 of 3 accounts may do everything (superusers, and who can become one); 1 read the hashes of all passwords: app: REVOKE SELECT ON pg_authid, pg_shadow, or pg_read_all_data
        all read hashes
          authorisation: available but not enforced, whole server [PG-AUTHZ-READS-PASSWORDS]: 1 of 3 accounts may do everything (superusers, and who can become one); 2 read the hashes of all passwords: app; repl: REVOKE SELECT ON pg_authid, pg_shadow, or pg_read_all_data
        a reader of hashes by a role
          authorisation: available but not enforced, whole server [PG-AUTHZ-READS-PASSWORDS]: 1 of 3 accounts may do everything (superusers, and who can become one); 1 read the hashes of all passwords: app: REVOKE SELECT ON pg_authid, pg_shadow, or pg_read_all_data
        readers that are not shown
          authorisation: enforced, this account: 1 of 3 accounts may do everything (superusers, and who can become one); not judged: which accounts read the hashes of passwords (refused: 42501: denied to this account)
        no right to the roles
          authorisation: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_roles, pg_auth_members
          proxy-roles: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_roles, pg_auth_members
        no right to the members
          authorisation: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_roles, pg_auth_members
          proxy-roles: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_roles, pg_auth_members
        nothing logged
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: off, whole server [PG-AUDIT-OFF]: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error)
        not even failures logged
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: off, whole server [PG-AUDIT-OFF]: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server: PostgreSQL encrypts no file; a volume below it may
        changes logged
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: log_statement = mod: what changes data or definitions, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception
        every duration logged
          authentication: enforced, whole server [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by the log of durations: set them by \password of psql
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: all statements that end, by log_min_duration_statement = 0, without statements that fail or hang, parameters (log_parameter_max_length = 0); values are in the log in the clear, by the log of durations; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by the log of durations, with those that are encrypted by pgcrypto, and their keys
        long statements logged
          authentication: enforced, whole server [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by the log of durations: set them by \password of psql
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: statements that take 100 ms or longer (log_min_duration_statement), without statements that fail or hang, parameters (log_parameter_max_length = 0); values are in the log in the clear, by the log of durations; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by the log of durations, with those that are encrypted by pgcrypto, and their keys
        one of two statements logged
          authentication: enforced, whole server [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by the log of durations: set them by \password of psql
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: a share of 0.5 of the statements that take 0 ms or longer (log_min_duration_sample), without statements that fail or hang, parameters (log_parameter_max_length = 0); values are in the log in the clear, by the log of durations; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by the log of durations, with those that are encrypted by pgcrypto, and their keys
        audited
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: enforced, whole server [PG-AUDIT-REPEATS-VALUES]: pgaudit.log = all: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by pgaudit.log_statement, with those that are encrypted by pgcrypto, and their keys
        audited with values
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: enforced, whole server [PG-AUDIT-REPEATS-VALUES]: pgaudit.log = all: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_parameter; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by pgaudit.log_parameter, with those that are encrypted by pgcrypto, and their keys
        reads audited
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: pgaudit.log = read: these classes alone, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by pgaudit.log_statement, with those that are encrypted by pgcrypto, and their keys
        audited, as is not seen
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: pgaudit.log = all: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception; not judged: whether pgaudit is loaded for everybody (it is not seen in shared_preload_libraries)
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by pgaudit.log_statement, with those that are encrypted by pgcrypto, and their keys
        audited by tables
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: object auditing as role auditor (pgaudit.role), without denied statements; of 9 tables of this database reads of 3 and writes of 2 are recorded for auditor; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by pgaudit.log_statement, with those that are encrypted by pgcrypto, and their keys
        an extension that encrypts
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: off, whole server [PG-AUDIT-OFF]: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
          at-rest: cannot tell, this account: pg_tde of shared_preload_libraries: which files it encrypts, and where its keys are, is not judged; the log has the text of statements that fail (log_min_error_statement = error)
        a server that encrypts
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: off, whole server [PG-AUDIT-OFF]: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
          at-rest: cannot tell, this account: data_encryption_version = 1: which files it encrypts, and where its keys are, is not judged; the log has the text of statements that fail (log_min_error_statement = error)
        values logged
          audit: enforced, whole server [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands; values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception
        terse
          audit: enforced, whole server [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_error_verbosity = terse); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception
        rotation that may empty the log
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: whether each rotation empties the only log file (log_filename: GRANT pg_read_all_settings)
        no collector
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
        syslog
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: what syslog keeps of it, which cannot be read from here (syslog_facility = local0)
          at-rest: not offered by this product, whole server [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by log_statement, with those that are encrypted by pgcrypto, and their keys; not judged: what syslog keeps of it, which cannot be read from here (syslog_facility = local0)
        texts kept
          authentication: enforced, whole server [PG-AUTHN-REPEATS-PASSWORDS]: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception; passwords that ALTER ROLE sets are kept in the clear, by log_statement, pg_stat_statements: set them by \password of psql
        an account without a log
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 1 setting of single roles and databases: 1 exception: role app: nothing that clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER
        a database without a log
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 1 setting of single roles and databases: 1 exception: database shop: nothing that clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER
        an account without a log, but with one in a database
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 2 settings of single roles and databases: 1 exception: role app: nothing that clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER
        an account with a log
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: nothing that clients do is recorded; values are in the log in the clear, by log_statement; some roles or databases are recorded: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); 1 setting of single roles and databases: no exception
        an account with another setting
        no right to the overrides
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: single roles and databases (SELECT ON pg_db_role_setting, pg_database, pg_roles: refused: 42501: denied to this account)
        an account that may set it
          audit: available but not enforced, whole server [PG-AUDIT-PARTIAL] [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands, without parameters (log_parameter_max_length = 0); values are in the log in the clear, by log_statement; 0 settings of single roles and databases: 1 exception: app may set log_statement: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER
        an account that may set it, before 15
        a session with its own setting
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands; values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
          at-rest: not offered by this product, this account [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; not judged: whether a library encrypts files (shared_preload_libraries: GRANT pg_read_all_settings); the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by log_statement, with those that are encrypted by pgcrypto, and their keys
        a session with its own setting, and none in the file
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: off, whole server [PG-AUDIT-OFF]: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
          at-rest: not offered by this product, this account: PostgreSQL encrypts no file; a volume below it may; not judged: whether a library encrypts files (shared_preload_libraries: GRANT pg_read_all_settings); the log has the text of statements that fail (log_min_error_statement = error)
        a session with its own setting, and no right to the file
          audit: enforced, this account [PG-AUDIT-REPEATS-VALUES]: log_statement = all: every statement that the server understands; values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: log_statement of others (this account has its own, and pg_file_settings: refused: 42501: denied to this account); not judged: what keeps the server's standard error (logging_collector = off)
          at-rest: not offered by this product, this account [PG-AUDIT-REPEATS-VALUES]: PostgreSQL encrypts no file; a volume below it may; not judged: whether a library encrypts files (shared_preload_libraries: GRANT pg_read_all_settings); the log has the text of statements that fail (log_min_error_statement = error); the log repeats values in the clear, by log_statement, with those that are encrypted by pgcrypto, and their keys
        no right to the settings
          authentication: enforced, whole server: by scram-sha-256; without a password: refused (the server asks for a password, and none is given); 2 rules of pg_hba.conf: no exception
          audit: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_settings
          at-rest: not offered by this product, whole server: PostgreSQL encrypts no file; a volume below it may; not judged: whether the log repeats values (refused: 42501: denied to this account: GRANT SELECT ON pg_settings)
        replicas by TLS
          node-to-node: enforced, whole server: all 2 connected servers speak TLS; 2 rules of pg_hba.conf: no exception
        a replica in plaintext
          node-to-node: available but not enforced, whole server [PG-TLS-REPLICATION]: 1 of 2 connected servers speak plaintext; 2 rules of pg_hba.conf: no exception
        replicas that are not shown
          node-to-node: cannot tell, this account: of 2 of 2 connected servers this account is not shown what they speak: it needs pg_monitor; 2 rules of pg_hba.conf: no exception
        replicas by a rule for plaintext
          node-to-node: available but not enforced, whole server [PG-TLS-REPLICATION]: no other server is connected; 2 rules of pg_hba.conf: 1 exception: line 9 (host replication repl 10.0.0.0/8 scram-sha-256) serves replicas plaintext: change host to hostssl and reload
        no right to the replicas
          node-to-node: cannot tell, this account: refused: 42501: denied to this account: GRANT SELECT ON pg_stat_replication, pg_stat_ssl, pg_subscription
        a subscription by TLS
          node-to-node: enforced, this account: no other server is connected; 2 rules of pg_hba.conf: no exception; 1 subscription receives by TLS
        subscriptions by TLS, and replicas
          node-to-node: available but not enforced, whole server [PG-TLS-REPLICATION]: 1 of 2 connected servers speak plaintext; 2 rules of pg_hba.conf: no exception; 2 subscriptions receive by TLS
        a subscription by TLS, and replicas that are not shown
          node-to-node: cannot tell, this account: of 2 of 2 connected servers this account is not shown what they speak: it needs pg_monitor; 2 rules of pg_hba.conf: no exception; 1 subscription receives by TLS
        a subscription in plaintext
          node-to-node: available but not enforced, this account [PG-TLS-REPLICATION]: no other server is connected; 2 rules of pg_hba.conf: no exception; subscriptions that may receive in plaintext: s (sslmode=prefer)
        subscriptions that are not shown
          node-to-node: cannot tell, this account: no other server is connected; 2 rules of pg_hba.conf: no exception; not judged: subscriptions (SELECT ON pg_subscription: refused: 42501: denied to this account)
        a standby, checked
          node-to-node: enforced, this account: a standby that receives by TLS and checks its primary's certificate
        a standby by TLS
          node-to-node: enforced, this account: a standby that receives by TLS and does not check its primary's certificate (sslmode=require)
        a standby in plaintext
          node-to-node: off, this account [PG-TLS-REPLICATION]: a standby that receives in plaintext: set sslmode=verify-full in primary_conninfo
        a standby as it happens
          node-to-node: available but not enforced, this account [PG-TLS-REPLICATION]: a standby that may receive in plaintext (sslmode=prefer): set sslmode=verify-full in primary_conninfo
        a standby that is not shown
          node-to-node: cannot tell, this account: a standby; its primary is shown only with pg_monitor
        a standby that sends on in plaintext
          node-to-node: available but not enforced, this account [PG-TLS-REPLICATION]: a standby that receives by TLS and checks its primary's certificate; 1 of 2 connected servers speak plaintext
        a standby that sends on by TLS
          node-to-node: enforced, this account: a standby that receives by TLS and checks its primary's certificate; all 1 connected servers speak TLS
        a standby that is not shown to whom it sends
          node-to-node: cannot tell, this account: a standby that receives by TLS and checks its primary's certificate; of 1 of 1 connected servers this account is not shown what they speak: it needs pg_monitor
        a standby that waits
          node-to-node: cannot tell, this account: a standby that receives from no server now
        a standby that waits for plaintext
          node-to-node: off, this account [PG-TLS-REPLICATION]: a standby that receives from no server now, and may in plaintext (primary_conninfo has sslmode=disable): set verify-full
        a standby that waits for either
          node-to-node: available but not enforced, this account [PG-TLS-REPLICATION]: a standby that receives from no server now, and may in plaintext (primary_conninfo has sslmode=allow): set verify-full
        a standby that waits for TLS
          node-to-node: cannot tell, this account: a standby that receives from no server now; primary_conninfo has sslmode=verify-ca
    "#]].assert_eq(&tight().changed_rows(&changes));
}

#[test]
fn an_audit_log_that_is_not_judged_is_not_one_that_is_off() {
    let audit = |told: Told| {
        let told = told.with("log_statement", "none");
        told.matrix().into_iter().find(|row| row.starts_with("audit: ")).unwrap_or_default()
    };
    let text = [
        audit(tight().with("shared_preload_libraries", "pg_stat_statements, pg_proaudit")),
        audit(tight().telling("name = 'edb_audit'", &[&["csv"]])),
        audit(tight().telling("name = 'edb_audit'", &[&["none"]])),
    ];
    expect![[r#"
        audit: cannot tell, this account: no setting of PostgreSQL or pgaudit records what clients do; 0 settings of single roles and databases: no exception; not judged: what pg_proaudit of shared_preload_libraries records
        audit: cannot tell, this account: no setting of PostgreSQL or pgaudit records what clients do; 0 settings of single roles and databases: no exception; not judged: what EDB's audit log records (edb_audit = csv)
        audit: off, whole server [PG-AUDIT-OFF]: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
    "#]].assert_eq(&text.concat());
}

#[test]
fn a_role_of_its_own_may_keep_passwords_as_old_hashes() {
    const MD5: &str = r#"{"line_number": 9, "type": "hostssl", "database": ["all"], "user_name": ["all"],
        "address": "all", "auth_method": "md5"}"#;
    let kept = |method: Rows| {
        let told = tight().telling(RULES, method).telling("password_encryption=md5", &[&["role ops"]]);
        let row = told.matrix().into_iter().find(|row| row.starts_with("authentication: ")).unwrap_or_default();
        row.contains("1 exception: new passwords that role ops sets are kept as MD5 hashes (ALTER … SET): ")
            && row.starts_with("authentication: available but not enforced, whole server [PG-AUTHN-WEAK-HASH]")
    };
    assert!(kept(&[&[MD5], &[OF_REPLICAS]]));
    assert!(!kept(&[&[BY_PASSWORD], &[OF_REPLICAS]]), "no rule takes one");
}

/// A view of another schema may have the name of one of the server's own.
#[test]
fn names_are_those_of_the_servers_own_schema() {
    let is_asked = |told: Told| {
        let told = told.refusing("SET search_path = pg_catalog");
        told.seen(|server| inspect(server, &crate::test_setup::plain()).is_err())
    };
    assert!(is_asked(tight()));
    // The pooler may lend the connection, with its settings, to others.
    assert!(!is_asked(tight().telling("SELECT pg_backend_pid()", &[&["78"]])));
}

/// No network sees a socket, whatever is in front of it.
#[test]
fn a_pooler_that_reaches_the_server_by_a_socket_is_no_plaintext_behind_it() {
    let behind = |is_socket: Rows| {
        let told = tight().telling("SELECT pg_backend_pid()", &[&["78"]]).telling("inet_client_addr()", is_socket);
        told.matrix().into_iter().find(|row| row.starts_with("client-to-node: ")).unwrap_or_default()
    };
    expect![[r#"
        client-to-node: available but not enforced, this account: a pooler answers; behind it: by a Unix socket, which no network sees
        client-to-node: off, this account [PG-TLS-BEHIND-POOLER]: a pooler answers; behind it pg_stat_ssl of this session reports: off
    "#]].assert_eq(&[behind(&[&["t"]]), behind(&[&["f"]])].concat());
}

/// Functions, triggers and views are kept in each database.
#[test]
fn other_databases_are_judged_too_or_are_a_doubt() {
    let judged = |told: Told, is_reached: bool| {
        told.seen(|server| {
            let target = PRODUCT.target(server, &crate::test_setup::plain()).expect("a target");
            let mut session = PostgresSession::open(&target, false).expect("a session");
            let mut rights = rights::read(&mut session).expect("it is shown");
            rights.read_others(&mut session, |name| match is_reached {
                true => session_in(&target, name, true),
                false => Err(Fault::Refused(format!("28000: no entry for {name}"))),
            });
            rights.authorisation(Ok(Vec::new())).seen
        })
    };
    let shop = || tight().telling(DATABASES, &[&["shop"]]);
    let text = [
        judged(shop(), true),
        judged(shop().telling("p.prosecdef", &[&["pay", "postgres"]]), true),
        judged(shop().telling("JOIN pg_rewrite", &[&["logins"]]), true),
        judged(shop().telling("pg_catalog.pg_shadow", &[&["app"]]), true),
        judged(shop(), false),
        judged(tight().refusing(DATABASES), true),
    ];
    expect![[r#"
        1 of 3 accounts may do everything (superusers, and who can become one)
        1 of 3 accounts may do everything (superusers, and who can become one); not judged: functions that run with the rights of superusers, or of accounts that can become one (SECURITY DEFINER): pay; pay in database shop
        1 of 3 accounts may do everything (superusers, and who can become one); not judged: what views that others may read show of the table of passwords: logins; not judged: what views that others may read show of the table of passwords in database shop: logins
        1 of 3 accounts may do everything (superusers, and who can become one); 1 read the hashes of all passwords: app: REVOKE SELECT ON pg_authid, pg_shadow, or pg_read_all_data
        1 of 3 accounts may do everything (superusers, and who can become one); not judged: functions, triggers and views in database shop (refused: 28000: no entry for shop)
        1 of 3 accounts may do everything (superusers, and who can become one); not judged: other databases (SELECT ON pg_database: refused: 42501: denied to this account)"#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn twenty_other_databases_are_read_and_more_are_a_doubt() {
    const NAME: &[&str] = &["d"];
    static NAMES: [&[&str]; 21] = [NAME; 21];
    let last = |names: Rows| {
        tight().telling(DATABASES, names).seen(|server| {
            let target = PRODUCT.target(server, &crate::test_setup::plain()).expect("a target");
            let mut session = PostgresSession::open(&target, false).expect("a session");
            let mut rights = rights::read(&mut session).expect("it is shown");
            rights.read_others(&mut session, |name| Err(Fault::Refused(format!("no entry for {name}"))));
            let seen = rights.authorisation(Ok(Vec::new())).seen;
            seen.rsplit("; ").next().map(str::to_owned)
        })
    };
    // Each that is not reached is a doubt, and ten doubts are shown.
    let more = |count: usize| Some(format!("not judged: {count} more"));
    assert_eq!([last(&NAMES[..20]), last(&NAMES)], [more(10), more(11)]);
}

#[test]
fn rights_to_settings_are_asked_for_from_version_15_on() {
    let judged = |version| {
        let told = tight().telling("' of ' || parname", &[&["app", "SET of archive_command"]]);
        let rows = told.with("server_version_num", version).matrix();
        rows.iter().any(|row| row.starts_with("authorisation: ") && row.contains("SET of archive_command"))
    };
    assert_eq!(["140022", "150000"].map(judged), [false, true]);
}

/// A statement that succeeds is recorded whatever the setting about failed ones is.
#[test]
fn accounts_that_set_what_is_kept_of_failed_statements_are_no_exceptions() {
    let told = tight().telling("'log_statement', 'pgaudit.log', ", &[&["app may set log_statement"]]);
    let audit = told.matrix().into_iter().find(|row| row.starts_with("audit: ")).unwrap_or_default();
    assert!(audit.contains(": 1 exception: app may set log_statement: "), "{audit}");
}

#[test]
fn iterations_are_those_of_the_login_and_of_the_stored_password() {
    let kept = |told: Told, rows: Rows| told.telling("split_part(rolpassword", rows);
    let text = [
        kept(tight(), &[&["1"]]).observed(&ScramIterations(1)),
        kept(tight(), &[&["2"]]).observed(&ScramIterations(1)),
        kept(tight(), &[&["2"]]).observed(&ScramIterations(2)),
        tight().refusing("split_part(rolpassword").observed(&ScramIterations(1)),
        tight().refusing("split_part(rolpassword").observed(&ScramIterations(2)),
        tight().failing("split_part(rolpassword", ("57014", "canceled")).observed(&ScramIterations(1)),
        kept(Told { password: false, ..tight() }, &[&["1"]]).observed(&ScramIterations(1)),
    ];
    expect![[r#"
        protected: a login took 1 iterations; what pg_authid keeps has 1
        exposed: a login took 1 iterations; what pg_authid keeps has 2
        exposed: a login took 1 iterations; what pg_authid keeps has 2
        protected: a login took 1 iterations; what pg_authid keeps is not shown to this account
        exposed: a login took 1 iterations; what pg_authid keeps is not shown to this account
        server: 57014: canceled
        exposed: the login was by none, which hashes nothing so often"#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn records_that_canaries_can_be_found_in_follow_from_the_settings() {
    const LOADED: &str = "SELECT concat(nullif(current_setting('pgaudit.log', true)";
    const CLASSES: &str = "SELECT current_setting('pgaudit.log', true)";
    let usual =
        || tight().with("log_statement", "none").with("log_min_duration_statement", "-1").telling(LOADED, &[&[""]]);
    let audited = |classes: Rows| {
        usual()
            .telling(LOADED, classes)
            .telling(CLASSES, classes)
            .with("pgaudit.log_parameter", "off")
            .with("pgaudit.log_statement", "on")
    };
    let mut text = String::new();
    for (name, told) in [
        ("nothing", usual()),
        ("all statements", usual().with("log_statement", "all")),
        ("durations of all statements", usual().with("log_min_duration_statement", "0")),
        ("audited", audited(&[&["read, write"]])),
        ("audited with values", audited(&[&["all"]]).with("pgaudit.log_parameter", "on")),
        ("audited without texts", audited(&[&["all"]]).with("pgaudit.log_statement", "off")),
        ("audited, and durations", audited(&[&["ddl"]]).with("log_min_duration_statement", "0")),
        ("audited, and all statements", audited(&[&["all"]]).with("log_statement", "all")),
    ] {
        text += &format!("{name}\n  {}\n", told.canaries(std::path::Path::new("/")));
    }
    expect![[r#"
        nothing
          data ; journal ; logs ; 
        all statements
          data ; journal ; logs ; statement-log: every statement is in the log once, with its parameters
        durations of all statements
          data ; journal ; logs ; statement-log: every statement is in the log once, with its parameters
        audited
          data ; journal ; logs ; audit-complete: every statement of class read and write is in the audit log once, and no other
        audited with values
          data ; journal ; logs ; audit-complete: every statement of class read and write is in the audit log once, and no other; definitions-logged: statements that define tables are in the audit log
        audited without texts
          data ; journal ; logs ; audit-complete: every statement of class read and write is in the audit log once, and no other
        audited, and durations
          data ; journal ; logs ; audit-complete: every statement of class read and write is in the audit log once, and no other; definitions-logged: statements that define tables are in the audit log
        audited, and all statements
          data ; journal ; logs ; statement-log: every statement is in the log once, with its parameters
    "#]].assert_eq(&text);
}

/// The process that answers tells whether a pooler is in between.
#[test]
fn a_pooler_is_known_by_its_process() {
    let hops = |told: Told| {
        told.seen(|server| {
            let target = PRODUCT.target(server, &crate::test_setup::plain()).expect("a target");
            let mut session = PostgresSession::open(&target, false).expect("a session");
            hops_of(&mut session).map(|hops| (hops.between == Some(POOLED), hops.between))
        })
    };
    assert_eq!(hops(tight()), Ok((false, None)));
    assert_eq!(hops(tight().telling("SELECT pg_backend_pid()", &[&[PROCESS]])), Ok((false, None)));
    assert_eq!(hops(tight().telling("SELECT pg_backend_pid()", &[&["78"]])), Ok((true, Some("a pooler answers"))));
}

#[test]
fn rules_that_serve_plaintext_are_exceptions_of_the_claim_that_there_are_none() {
    const PLAIN: &str = r#"{"line_number": 9, "type": "host", "database": ["all"], "user_name": ["guest"],
        "address": "all", "auth_method": "scram-sha-256"}"#;
    const BROKEN: &str = r#"{"line_number": 9, "error": "invalid authentication method"}"#;
    let told = |told: Told| {
        told.seen(|server| {
            as_arm(&Postgres, server, |context| {
                let whole = (PROBES.others)(context).map_err(|fault| fault.to_string())?;
                Ok::<_, String>((whole.exceptions.len(), whole.doubts.len()))
            })
        })
    };
    let rules = |rules: Rows| told(tight().telling(RULES, rules));
    assert_eq!(told(tight()), Ok((0, 0)));
    assert_eq!(rules(&[&[BY_PASSWORD], &[PLAIN], &[OF_REPLICAS]]), Ok((1, 0)));
    assert_eq!(rules(&[&[PLAIN], &[BY_PASSWORD], &[OF_REPLICAS]]), Ok((1, 0)));
    assert!(rules(&[&[BY_PASSWORD], &[BROKEN], &[OF_REPLICAS]]).is_err(), "what it does is not known");
    assert!(told(tight().refusing(RULES)).is_err());
}

#[test]
fn a_password_asked_for_in_plaintext_is_not_sent() {
    for asks in [&b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"[..], b"R\0\0\0\x08\0\0\0\x03"] {
        assert_eq!(asked_in_plaintext(asks, plaintext), "available but not enforced: TLSv1.3; plaintext: served too");
    }
    let refuses = b"E\0\0\0\x1bSFATAL\0C28000\0Mno TLS\0\0";
    expect!["enforced: TLSv1.3; plaintext: refused (28000: no TLS)"]
        .assert_eq(&tried_in_plaintext(refuses, plaintext).0);
}
