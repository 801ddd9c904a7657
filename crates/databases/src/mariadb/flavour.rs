//! MariaDB as one of two products that share `mysql_family`: its entry in the list of databases, and what the shared
//! code needs to know about it.

use tithe_model::catalogue::{AskedOfCustom, DatabaseEntry, NetworkLogin};
use tithe_plugin::custom::Custom;

use super::{
    access::{ACCESS, TITLE},
    at_rest::{is_encrypted, write_table},
    attached::own_lacks,
    evidence::CLAIMS,
    get,
    inspect::{QUERIES, canary_checks},
    install::find,
    launch::{RESERVED, launch, memory_needed, stored},
    protection,
    rotation::KeyRotator,
};
use crate::mysql_family::{self, Flavour, KEPT, proof::NATIVE};

/// MariaDB's entry in the list of databases.
const ENTRY: DatabaseEntry = DatabaseEntry {
    id: "mariadb",
    title: TITLE,
    schemes: &["mariadb"],
    reserved_settings: RESERVED,
    network_login: NetworkLogin::Password(NATIVE),
    custom: Some(AskedOfCustom {
        setting: "SELECT @@GLOBAL.{setting}",
        between: '_',
        kept: Some(KEPT),
        careful: &[
            "SET max_statement_time = IF(@@max_statement_time BETWEEN 0.001 AND 10, @@max_statement_time, 10)",
            "SET SESSION TRANSACTION READ ONLY",
            "START TRANSACTION READ ONLY",
        ],
    }),
    start_s: 0.8,
    ..mysql_family::ENTRY
};

/// MariaDB.
pub static FLAVOUR: Flavour = Flavour {
    entry: ENTRY,
    find,
    program: "mariadbd",
    download: Some(get::SERVER),
    launch,
    stored,
    memory_needed,
    protections: protection::ALL,
    custom: &Custom(&CLAIMS),
    queries: &QUERIES,
    canary_checks,
    rotator: Some(|server, setup| Ok(Box::new(KeyRotator::new(server, setup)?))),
    access: &ACCESS,
    own_lacks,
    reported: &REPORTED,
    is_encrypted,
    write_table,
};

/// Variables whose values go into the report.
const REPORTED: [&str; 26] = [
    "aria_encrypt_tables",
    "encrypt_binlog",
    "encrypt_tmp_disk_tables",
    "encrypt_tmp_files",
    "file_key_management_encryption_algorithm",
    "general_log",
    "have_ssl",
    "innodb_buffer_pool_size",
    "innodb_encrypt_log",
    "innodb_encrypt_tables",
    "innodb_encrypt_temporary_tables",
    "innodb_encryption_threads",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_file_size",
    "innodb_page_size",
    "log_bin",
    "require_secure_transport",
    "server_audit_events",
    "server_audit_file_rotate_size",
    "server_audit_logging",
    "sync_binlog",
    "thread_handling",
    "tls_version",
    "version_malloc_library",
    "version_ssl_library",
];
