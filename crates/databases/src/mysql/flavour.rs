//! MySQL as one of two products that share `mysql_family`: its entry in the list of databases, and what the shared
//! code needs to know about it.

use tithe_model::catalogue::{AskedOfCustom, DatabaseEntry, NetworkLogin};
use tithe_plugin::custom::Custom;

use super::{
    access::{ACCESS, TITLE},
    attached::own_lacks,
    evidence::CLAIMS,
    get,
    inspect::{QUERIES, canary_checks},
    install::find,
    launch::{RESERVED, launch, memory_needed, stored},
    protection,
};
use crate::mysql_family::{self, Flavour, KEPT, proof::CACHING_SHA2, schema::write_pages};

/// MySQL's entry in the list of databases.
const ENTRY: DatabaseEntry = DatabaseEntry {
    id: "mysql",
    title: TITLE,
    schemes: &["mysql"],
    scheme_aliases: &["mysql2", "mysqlgis", "mysql-connector", "trilogy", "mysqli", "pdo-mysql"],
    reserved_settings: RESERVED,
    network_login: NetworkLogin::Password(CACHING_SHA2),
    custom: Some(AskedOfCustom {
        setting: "SELECT @@GLOBAL.{setting}",
        between: '_',
        kept: Some(KEPT),
        careful: &[
            "SET max_execution_time = 10000",
            "SET SESSION TRANSACTION READ ONLY",
            "START TRANSACTION READ ONLY",
        ],
    }),
    start_s: 1.6,
    ..mysql_family::ENTRY
};

/// MySQL.
pub static FLAVOUR: Flavour = Flavour {
    entry: ENTRY,
    find,
    program: "mysqld",
    download: Some(get::SERVER),
    launch,
    stored,
    memory_needed,
    protections: protection::ALL,
    custom: &Custom(&CLAIMS),
    queries: &QUERIES,
    canary_checks,
    rotator: None,
    access: &ACCESS,
    own_lacks,
    reported: &REPORTED,
    // MySQL encrypts a tablespace during the statement that requests it.
    is_encrypted: |_| Ok(true),
    // `FLUSH TABLES … FOR EXPORT`, which is used for MariaDB, briefly leaves a key next to an encrypted table.
    write_table: |session, _| write_pages(session),
};

/// Variables whose values go into the report.
const REPORTED: [&str; 20] = [
    "binlog_encryption",
    "binlog_format",
    "default_table_encryption",
    "general_log",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_redo_log_encrypt",
    "innodb_undo_log_encrypt",
    "log_bin",
    "performance_schema",
    "require_secure_transport",
    "sync_binlog",
    "table_encryption_privilege_check",
    "thread_handling",
    "tls_version",
    "version_compile_zlib",
    "version_malloc_library",
];
