//! All in which MariaDB differs from MySQL.

use tithe_machine::fault::Fault;
use tithe_model::catalogue::{DatabaseEntry, NetworkLogin};
use tithe_plugin::session::SqlSession as _;

use super::{
    inspect::{QUERIES, canary_checks},
    install::find,
    launch::{RESERVED, launch, memory_needed, stored},
    protection,
    rotation::KeyRotator,
};
use crate::mysql_family::{self, Flavour, proof::NATIVE, session::WireSession, target::product};

/// What MariaDB says of itself.
const ENTRY: DatabaseEntry = DatabaseEntry {
    id: "mariadb",
    title: "MariaDB",
    schemes: &["mariadb"],
    reserved_settings: RESERVED,
    network_login: NetworkLogin::Password(NATIVE),
    start_s: 0.8,
    ..mysql_family::ENTRY
};

/// MariaDB.
pub static FLAVOUR: Flavour = Flavour {
    entry: ENTRY,
    find,
    program: "mariadbd",
    download: None,
    launch,
    stored,
    memory_needed,
    protections: protection::ALL,
    queries: &QUERIES,
    canary_checks,
    rotator: Some(|server, setup| Ok(Box::new(KeyRotator::new(server, setup)?))),
    product: product(ENTRY.title),
    is_own: |version| version.contains("MariaDB"),
    otherwise: "for MySQL write `database = \"mysql\"` and mysql://",
    thread: "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
    reported: &REPORTED,
    is_encrypted: |session| Ok(!encrypts(session)? || unencrypted(session)?.is_empty()),
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

/// Has the server write all of the table `name`, and end what it still has to remove from it.
///
/// # Errors
/// The server's error.
pub fn write_table(session: &mut WireSession, name: &str) -> Result<(), Fault> {
    session.run(&format!("FLUSH TABLES {name} FOR EXPORT"))?;
    session.run("UNLOCK TABLES").map(drop)
}

/// True when the server encrypts tables.
fn encrypts(session: &mut WireSession) -> Result<bool, Fault> {
    let value = session.shown("GLOBAL VARIABLES", "innodb_encrypt_tables")?;
    Ok(value.is_some_and(|value| value != "OFF"))
}

/// Tablespaces that are not, or not wholly, encrypted; `mysql/…` among them.
///
/// # Errors
/// The server's error.
pub fn unencrypted(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let sql = "SELECT s.NAME FROM information_schema.INNODB_SYS_TABLESPACES s \
               LEFT JOIN information_schema.INNODB_TABLESPACES_ENCRYPTION e ON e.SPACE = s.SPACE \
               WHERE s.NAME <> 'innodb_temporary' AND (e.ENCRYPTION_SCHEME IS NULL OR e.ENCRYPTION_SCHEME = 0 \
               OR e.MIN_KEY_VERSION = 0 OR e.ROTATING_OR_FLUSHING <> 0)";
    Ok(session.run(sql)?.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}
