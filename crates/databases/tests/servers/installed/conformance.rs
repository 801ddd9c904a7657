//! What is true of every product alike, one test per line: a protection is proven next to a plain server, a weaker one
//! than requested is not proven, no client falls back, and other users' objects on a server stay. Tests of a single
//! product are in a file of their own.

use super::{mariadb::MARIADB, mysql::MYSQL, postgres::POSTGRES, redis::REDIS};
use crate::put_back::put_back_with;
use crate::tested::{self, Attached, Refusals, chosen, no_proof, proven};

const TLS: [&str; 2] = ["tls-negotiated Claim Holds", "wire-canary Claim Holds"];

/// For columns, with the results for `recorders`.
const fn columns(recorders: &'static str) -> [&'static str; 5] {
    [
        "ciphertext-seen Claim Holds",
        "wrong-column-key Claim Holds",
        "disk-canary Strengthens Holds",
        "wire-canary Strengthens Holds",
        recorders,
    ]
}

/// Settings of a server that repeat nothing, and that repeat something.
const NO_RECORDERS: &str = "recorders Disclosure Holds";
const RECORDERS: &str = "recorders Disclosure Fails";

const PASSWORD: [&str; 2] = ["password-asked Claim Holds", NO_RECORDERS];

/// What happens to values in an audit log.
const AUDITED: [&str; 2] = ["audit-complete Claim Holds", "logs-free Disclosure Fails"];

const AUDITED_WITHOUT_VALUES: [&str; 2] = ["audit-complete Claim Holds", "logs-free Disclosure Holds"];

/// What every product proves of TLS and of columns. `recorders`: their results on a plain server. `resumed`: whether
/// resumed sessions look like new ones on the wire. What follows `tls is not` is checked on a server with TLS alone.
macro_rules! alike {
    ($tested:expr, recorders: $recorders:expr, resumed: $resumed:tt, tls is not $($asked:tt $options:tt),+) => {
        proven! { $tested;
            tls: "tls" {} => TLS, not $($asked $options),+, "tls" { key = "rsa-2048" }, "tls" { chain = "2" };
            tls_with_client_certificates: "tls" { mutual = true, chain = "3", suite = "chacha20-poly1305" } => TLS;
            tls_that_is_resumed_with_one_suite: "tls" { resumption = true, suite = "aes-128-gcm" }
                => [TLS[0], TLS[1], concat!("tls-resumed Disclosure ", $resumed)];
            tls_1_2_with_client_certificates_that_is_resumed:
                "tls" { version = "1.2", mutual = true, resumption = true, key = "rsa-2048", chain = "2", suite = "aes-256-gcm" }
                => [TLS[0], TLS[1], concat!("tls-resumed Disclosure ", $resumed)];
            encrypted_columns: "columns" {} => columns($recorders);
        }

        #[test]
        fn data_are_put_back() {
            put_back_with(&$tested, None);
        }
    };
}

mod postgres {
    use super::*;

    alike!(POSTGRES, recorders: NO_RECORDERS, resumed: "Fails", tls is not "tls" { mutual = true }, "scram" {});

    const ROWS: [&str; 2] = ["rows-apart Claim Holds", "row-plan Disclosure Holds"];

    const LOGGED: [&str; 3] =
        ["audit-complete Claim Holds", "logs-free Disclosure Fails", "pgcrypto-trap Disclosure Fails"];

    const LOGGED_BY_OBJECT: [&str; 2] = [LOGGED[0], LOGGED[1]];

    proven! { POSTGRES;
        tls_1_2_with_ed25519: "tls" { version = "1.2", key = "ed25519" } => TLS;
        pgaudit: "pgaudit" {} => LOGGED, not "pgaudit" { log = "write" };
        pgaudit_of_reads: "pgaudit" { log = "read", sink = "csvlog" } => LOGGED, not "pgaudit" {}, "pgaudit" { by = "object" };
        pgaudit_by_object: "pgaudit" { by = "object", sink = "stderr" } => LOGGED_BY_OBJECT, not "pgaudit" { by = "object", log = "read" };
        pgaudit_of_reads_by_object: "pgaudit" { by = "object", log = "read" } => LOGGED_BY_OBJECT, not "pgaudit" { by = "object" };
        pgaudit_of_writes_without_parameters: "pgaudit" { log = "write", parameter = false, sink = "collector" }
            => [LOGGED[0], "logs-free Disclosure Holds", LOGGED[2]];
        pgaudit_of_definitions: "pgaudit" { log = "ddl,role", sink = "stderr" }
            => ["definitions-logged Claim Holds", "logs-free Disclosure Holds"], not "pgaudit" {};
        the_statement_log: "log-statement" {} => ["statement-log Claim Holds", LOGGED[1], LOGGED[2]];
        scram: "scram" {} => PASSWORD;
        row_security: "row-security" {} => ROWS;
        row_security_by_fifty_policies: "row-security" { policies = 50.0 } => ROWS;
        row_security_by_a_setting_read_once: "row-security" { lookup = "once" } => ROWS;
        row_security_by_a_subquery: "row-security" { lookup = "subquery" } => ROWS;
        checksums: "checksums" {} => ["checksums-on Claim Holds"];
    }

    #[test]
    fn recorders_are_named_beside_columns_and_passwords() {
        tested::names_recorders(
            &POSTGRES,
            &chosen!(POSTGRES, "log-statement" {}),
            &[
                (chosen!(POSTGRES, "columns" {}), "the log repeats values in the clear, by log_statement"),
                (
                    chosen!(POSTGRES, "scram" {}),
                    "passwords that ALTER ROLE sets are kept in the clear, by log_statement",
                ),
            ],
        );
    }

    no_proof! { POSTGRES;
        tls_1_2_is_not_the_version_that_was_asked_for: "tls" { version = "1.2" } => "tls" {};
    }

    #[test]
    fn nothing_falls_back() {
        let refusals = Refusals {
            tls: "TLS was asked for, and the server offers none",
            plaintext: "28000: no pg_hba.conf entry…",
            password: ("scram-sha-256", "the server lets clients in without the password that it should ask for"),
            wrong: "28P01: password authentication failed for user \"tithe\"",
            none: "the server asks for a password, and none is given",
        };
        tested::nothing_falls_back(&POSTGRES, chosen!(POSTGRES, "scram" {}), &refusals);
    }

    #[test]
    fn an_attached_server_keeps_what_is_not_ours() {
        let attached = Attached {
            password: chosen!(POSTGRES, "scram" {}),
            url: ["postgres://tithe:", "@127.0.0.1:", "/postgres?sslmode=verify-full&sslrootcert="],
            authentication: "scram-sha-256",
            schema: "CREATE SCHEMA tithe",
        };
        tested::an_attached_server_keeps_what_is_not_ours(&POSTGRES, &attached);
    }
}

const DENIED_WITHOUT: &str = "1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: NO)";
const DENIED_WITH: &str = "1045 (28000): Access denied for user 'tithe'@'127.0.0.1' (using password: YES)";

/// The messages of servers of both products; `mechanism` is that of the password.
fn refusals_of_mysql_family(mechanism: &'static str) -> Refusals {
    Refusals {
        tls: "TLS was asked for, and the server offers none",
        plaintext: DENIED_WITHOUT,
        password: (mechanism, DENIED_WITH),
        wrong: DENIED_WITH,
        none: DENIED_WITHOUT,
    }
}

mod mariadb {
    use super::*;

    alike!(MARIADB, recorders: RECORDERS, resumed: "Holds", tls is not "tls" { mutual = true }, "password" {});

    const ENCRYPTED: [&str; 5] = [
        "encryption-in-force Claim Holds",
        "disk-canary Claim Holds",
        "journal-canary Claim Holds",
        "key-apart Claim Holds",
        NO_RECORDERS,
    ];
    const ROTATED: [&str; 6] =
        [ENCRYPTED[0], ENCRYPTED[1], ENCRYPTED[2], ENCRYPTED[3], "key-rotated Claim Holds", NO_RECORDERS];

    proven! { MARIADB;
        tls_1_2_with_ed25519: "tls" { version = "1.2", key = "ed25519" } => TLS;
        encryption: "encryption" {} => ENCRYPTED;
        encryption_with_cbc: "encryption" { cipher = "AES_CBC" } => ENCRYPTED, not "encryption" {};
        keys_that_are_rotated: "encryption" { cipher = "AES_CTR", rotate = true } => ROTATED;
        keys_that_are_rotated_with_cbc: "encryption" { cipher = "AES_CBC", rotate = true } => ROTATED;
        the_audit_log: "server-audit" {} => AUDITED;
        the_audit_log_of_statements: "server-audit" { events = "QUERY_DML" } => AUDITED;
        the_audit_log_of_writes: "server-audit" { events = "QUERY_DML_NO_SELECT" } => AUDITED,
            not "server-audit" { events = "QUERY" };
        the_audit_log_of_connections: "server-audit" { events = "CONNECT" } => AUDITED_WITHOUT_VALUES;
        the_general_log: "general-log" {} => ["statement-log Claim Holds", "logs-free Disclosure Fails"];
        // The binary log, which is on.
        a_password: "password" {} => [PASSWORD[0], RECORDERS];
        a_password_with_ed25519: "password" { plugin = "ed25519" } => [PASSWORD[0], RECORDERS];
    }

    #[test]
    fn recorders_are_named_beside_columns_passwords_and_encryption() {
        let values = "general_log = ON, log_output = FILE writes statements in the clear";
        tested::names_recorders(
            &MARIADB,
            &chosen!(MARIADB, "general-log" {}),
            &[
                (chosen!(MARIADB, "columns" {}), values),
                (chosen!(MARIADB, "encryption" {}), values),
                (
                    chosen!(MARIADB, "password" {}),
                    "passwords that statements set are kept in the clear, by the general log",
                ),
            ],
        );
    }

    no_proof! { MARIADB;
        tls_1_2_is_not_the_version_that_was_asked_for: "tls" { version = "1.2" } => "tls" {};
        an_audit_log_of_everything_is_no_less:
            "server-audit" { events = "QUERY" } => "server-audit" { events = "QUERY_DML_NO_SELECT" };
    }

    #[test]
    fn nothing_falls_back() {
        let refusals = refusals_of_mysql_family("mysql_native_password");
        tested::nothing_falls_back(&MARIADB, chosen!(MARIADB, "password" {}), &refusals);
    }

    #[test]
    fn an_attached_server_keeps_what_is_not_ours() {
        let attached = Attached {
            password: chosen!(MARIADB, "password" { plugin = "ed25519" }),
            url: ["mariadb://tithe:", "@127.0.0.1:", "/?ssl-mode=verify_identity&ssl-ca="],
            authentication: "client_ed25519",
            schema: "CREATE DATABASE tithe",
        };
        tested::an_attached_server_keeps_what_is_not_ours(&MARIADB, &attached);
    }
}

pub mod mysql {
    use super::*;

    alike!(MYSQL, recorders: NO_RECORDERS, resumed: "Holds", tls is not "tls" { mutual = true }, "password" {});

    #[test]
    fn encrypted_data_are_put_back() {
        put_back_with(&MYSQL, Some(chosen!(MYSQL, "encryption" {})));
    }

    pub const ENCRYPTED: [&str; 5] = [
        "encryption-in-force Claim Holds",
        "disk-canary Claim Holds",
        "keyring-apart Claim Holds",
        "journal-canary Claim Holds",
        NO_RECORDERS,
    ];

    proven! { MYSQL;
        tls_1_2: "tls" { version = "1.2" } => TLS, not "tls" {};
        tls_1_2_with_ed25519: "tls" { version = "1.2", key = "ed25519" } => TLS;
        encryption: "encryption" {} => ENCRYPTED;
        encryption_of_all_but_the_binary_log: "encryption" { binlog = false } => ENCRYPTED, not "encryption" {};
        encryption_of_tables_alone: "encryption" { redo = false, undo = false, binlog = false }
            => [ENCRYPTED[0], ENCRYPTED[1], ENCRYPTED[2], NO_RECORDERS],
            not "encryption" { undo = false, binlog = false }, "encryption" { redo = false, binlog = false };
        the_general_log: "general-log" {} => ["statement-log Claim Holds", "logs-free Disclosure Fails"];
        a_password: "password" {} => PASSWORD;
        a_password_of_the_older_kind: "password" { plugin = "mysql_native_password" } => PASSWORD;
    }

    #[test]
    fn nothing_falls_back() {
        let refusals = refusals_of_mysql_family("caching_sha2_password");
        tested::nothing_falls_back(&MYSQL, chosen!(MYSQL, "password" {}), &refusals);
    }

    #[test]
    fn an_attached_server_keeps_what_is_not_ours() {
        let attached = Attached {
            password: chosen!(MYSQL, "password" {}),
            url: ["mysql://tithe:", "@127.0.0.1:", "/?ssl-mode=verify_identity&ssl-ca="],
            authentication: "caching_sha2_password",
            schema: "CREATE DATABASE tithe",
        };
        tested::an_attached_server_keeps_what_is_not_ours(&MYSQL, &attached);
    }
}

mod redis {
    use super::*;

    alike!(REDIS, recorders: RECORDERS, resumed: "Holds", tls is not "tls" { mutual = true }, "acl" {}, "aof" {});

    #[test]
    fn data_with_an_append_only_file_are_put_back() {
        put_back_with(&REDIS, Some(chosen!(REDIS, "aof" {})));
    }

    proven! { REDIS;
        tls_1_2_with_ed25519: "tls" { version = "1.2", key = "ed25519", chain = "2" } => TLS, not "tls" {};
        tls_with_a_long_key: "tls" { key = "rsa-4096" } => TLS;
        a_password: "requirepass" {} => [PASSWORD[0]];
        accounts: "acl" {} => ["password-asked Claim Holds", "rights-enforced Claim Holds"];
        the_append_only_file: "aof" {} => ["aof-written Claim Holds"], not "aof" { fsync = "always" };
        the_append_only_file_that_is_synced_each_time: "aof" { fsync = "always" } => ["aof-written Claim Holds"];
    }

    #[test]
    fn nothing_falls_back() {
        let refusals = Refusals {
            tls: "",
            plaintext: "at the first command…",
            password: ("requirepass", "the server lets clients in without the password that it should ask for"),
            wrong: "WRONGPASS invalid username-password pair or user is disabled.",
            none: "NOAUTH Authentication required.",
        };
        tested::nothing_falls_back(&REDIS, chosen!(REDIS, "requirepass" {}), &refusals);
    }
}

/// A server that uses MongoDB's protocol and is not MongoDB: it does not count its connections by version, as MongoDB
/// does.
#[cfg(feature = "mongodb")]
mod mongodb {
    use super::*;
    use crate::installed::mongodb::MONGODB;

    proven! { MONGODB;
        tls_that_is_spoken_and_not_told: "tls" {} => ["tls-negotiated Claim CannotTell", TLS[1]];
        encrypted_columns: "columns" {} => columns(RECORDERS);
        half_of_the_columns_with_sm4: "columns" { cipher = "sm4-128-gcm", share = 0.5 } => columns(RECORDERS);
    }
}
