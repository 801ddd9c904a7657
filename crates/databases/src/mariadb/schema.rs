//! The measured table, and everything else that an administrator's session does around it.
//!
//! Tithe works in the database `tithe` and marks it by a table `made_by_tithe`, and every table in it by a comment. A
//! database of this name without the mark, or with a table in it that does not bear it, is somebody else's: it is refused,
//! and never dropped.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tithe_harness::{
    database::{CacheUse, Server},
    fault::Fault,
    protection::Setup,
    session::SqlSession as _,
    workload::Table,
};
use tithe_model::record::ArmFacts;

use super::{session::MariaDbSession, target::PRODUCT};
use crate::{
    target::is_local,
    ycsb_over_sql::{Dialect, KEY_COLUMN},
};

/// How MariaDB writes what the SQL standard leaves open.
pub const DIALECT: Dialect = Dialect {
    schema: Some("tithe"),
    quote: '`',
    begin_bulk: "START TRANSACTION",
    end_bulk: "COMMIT",
    warm: &["SELECT count({key}) FROM {table}"],
};

/// The comment on what Tithe has made.
pub const MARK: &str = "made by tithe";
/// The table that marks the database.
const MARKER: &str = "made_by_tithe";

/// How long the server may take to encrypt old pages and to write dirty ones.
const PATIENCE: Duration = Duration::from_secs(120);

/// Variables whose values go into the report, where the server has them. None of them is a secret.
const TOLD: [&str; 26] = [
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

/// A session that is not measured. It runs none of the statements of the clients' sessions.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn administrator(server: &Server, setup: &Setup) -> Result<MariaDbSession, Fault> {
    MariaDbSession::open(&PRODUCT.target(server, setup)?)
}

/// Makes the database and `table`. On a server that Tithe launched, runs the arm's own statements first.
///
/// # Errors
/// [`Fault::Refused`] when something is there that Tithe did not make; the server's error.
pub fn create(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    if is_local(server) {
        let mut session = administrator(server, setup)?;
        for statement in &setup.statements {
            session.run(statement)?;
        }
    }
    let mut session = own_database(server, setup)?;
    // Left over from a run that was killed: `look` has seen that everything here is ours.
    session.run(&format!("DROP TABLE IF EXISTS {}", DIALECT.qualified(table)))?;
    session.run(&table_text(table)).map(drop)
}

/// An administrator's session in the database `tithe`, which is made where it is not there.
///
/// # Errors
/// As [`create`].
pub fn own_database(server: &Server, setup: &Setup) -> Result<MariaDbSession, Fault> {
    let mut session = administrator(server, setup)?;
    if look(&mut session)? == Found::Nothing {
        session.run("CREATE DATABASE tithe")?;
        session.run(&format!("CREATE TABLE tithe.{MARKER} (nothing int) COMMENT '{MARK}'"))?;
    }
    session.run("USE tithe")?;
    Ok(session)
}

/// The statement that makes `table`. Keys and values are bytes, so that ciphertext costs no more to carry than text, and
/// keys are ordered by their bytes, as YCSB's scans expect.
fn table_text(table: &Table) -> String {
    let key = DIALECT.quoted(KEY_COLUMN);
    let fields: String =
        (0..table.fields).map(|field| format!(", {} mediumblob", DIALECT.field(table, field))).collect();
    let name = DIALECT.qualified(table);
    format!("CREATE TABLE {name} ({key} varbinary(255) PRIMARY KEY{fields}) ENGINE=InnoDB COMMENT '{MARK}'")
}

/// Removes `table`, and the database with it when nothing else is left in it.
///
/// # Errors
/// As [`create`].
pub fn remove(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut session = administrator(server, setup)?;
    if look(&mut session)? == Found::Nothing {
        return Ok(());
    }
    session.run(&format!("DROP TABLE IF EXISTS {}", DIALECT.qualified(table)))?;
    if tables(&mut session)?.len() == 1 {
        session.run("DROP DATABASE tithe")?;
    }
    Ok(())
}

/// What stands where Tithe works.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Ours,
}

fn look(session: &mut MariaDbSession) -> Result<Found, Fault> {
    let there = session.value("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'tithe'")?;
    if there == "0" {
        return Ok(Found::Nothing);
    }
    let tables = tables(session)?;
    let foreign = |what: &str| Err(Fault::Refused(format!("{what} is on this server, and Tithe did not make it")));
    if let Some((name, _)) = tables.iter().find(|(_, comment)| comment != MARK) {
        return foreign(&format!("a table `tithe.{name}`"));
    }
    if tables.iter().all(|(name, _)| name != MARKER) {
        return foreign("a database `tithe`");
    }
    Ok(Found::Ours)
}

/// Names of the measured tables.
///
/// # Errors
/// The server's error.
pub fn measured_tables(session: &mut MariaDbSession) -> Result<Vec<String>, Fault> {
    let ours = tables(session)?.into_iter().filter(|(name, comment)| name != MARKER && comment == MARK);
    Ok(ours.map(|(name, _)| name).collect())
}

/// Names and comments of all tables and views in Tithe's database.
fn tables(session: &mut MariaDbSession) -> Result<Vec<(String, String)>, Fault> {
    let sql = "SELECT TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'tithe'";
    let text = |value: Option<String>| value.unwrap_or_default();
    Ok(session.run(sql)?.into_iter().map(|row| <[_; 2]>::try_from(row).unwrap_or_default().map(text).into()).collect())
}

/// Waits until the server has encrypted what it encrypts in the background, and on a launched server until it has written
/// every page to its file. On an attached one its owner decides when pages are written.
///
/// # Errors
/// The server's error; [`Fault::Server`] when it does not come to rest.
pub fn settle(server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut session = administrator(server, setup)?;
    session.run(&format!("ANALYZE TABLE {}", DIALECT.qualified(table)))?;
    if encrypts(&mut session)? {
        await_rest(&mut session, "background encryption", |session| unencrypted(session).map(|left| left.is_empty()))?;
    }
    if !is_local(server) {
        return Ok(());
    }
    write_pages(&mut session)?;
    write_table(&mut session, &DIALECT.qualified(table))?;
    session.run("FLUSH ENGINE LOGS").map(drop)
}

/// Has the server write all of the table `name`, and end what it still has to remove from it.
///
/// # Errors
/// The server's error.
pub fn write_table(session: &mut MariaDbSession, name: &str) -> Result<(), Fault> {
    session.run(&format!("FLUSH TABLES {name} FOR EXPORT"))?;
    session.run("UNLOCK TABLES").map(drop)
}

/// Has the server write its dirty pages: it does so by itself, as fast and as soon as these settings say (documentation,
/// "InnoDB Page Flushing"), which are put back afterwards.
fn write_pages(session: &mut MariaDbSession) -> Result<(), Fault> {
    const HASTE: [(&str, &str); 3] =
        [("innodb_io_capacity_max", "100000"), ("innodb_io_capacity", "100000"), ("innodb_max_dirty_pages_pct", "0")];
    let mut before = Vec::new();
    for (name, value) in HASTE {
        before.push((name, session.value(&format!("SELECT @@GLOBAL.{name}"))?));
        session.run(&format!("SET GLOBAL {name} = {value}"))?;
    }
    let outcome = await_rest(session, "writing dirty pages", |session| {
        let dirty = session.shown("GLOBAL STATUS", "Innodb_buffer_pool_pages_dirty")?;
        Ok(dirty.is_none_or(|dirty| dirty == "0"))
    });
    for (name, value) in before.iter().rev() {
        session.run(&format!("SET GLOBAL {name} = {value}"))?;
    }
    outcome
}

fn await_rest(
    session: &mut MariaDbSession,
    what: &str,
    mut rests: impl FnMut(&mut MariaDbSession) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let begun = Instant::now();
    while !rests(session)? {
        if begun.elapsed() > PATIENCE {
            return Err(Fault::Server(format!("{what} has not ended after {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// True when the server encrypts tables.
fn encrypts(session: &mut MariaDbSession) -> Result<bool, Fault> {
    let value = session.shown("GLOBAL VARIABLES", "innodb_encrypt_tables")?;
    Ok(value.is_some_and(|value| value != "OFF"))
}

/// Tablespaces that are not, or not wholly, encrypted; `mysql/…` among them.
///
/// # Errors
/// The server's error.
pub fn unencrypted(session: &mut MariaDbSession) -> Result<Vec<String>, Fault> {
    let sql = "SELECT s.NAME FROM information_schema.INNODB_SYS_TABLESPACES s \
               LEFT JOIN information_schema.INNODB_TABLESPACES_ENCRYPTION e ON e.SPACE = s.SPACE \
               WHERE s.NAME <> 'innodb_temporary' AND (e.ENCRYPTION_SCHEME IS NULL OR e.ENCRYPTION_SCHEME = 0 \
               OR e.MIN_KEY_VERSION = 0 OR e.ROTATING_OR_FLUSHING <> 0)";
    Ok(session.run(sql)?.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// Bytes of redo log written since the server's start.
pub fn redo_written(server: &Server, setup: &Setup) -> Option<u64> {
    let mut session = administrator(server, setup).ok()?;
    session.shown("GLOBAL STATUS", "Innodb_os_log_written").ok()??.parse().ok()
}

/// What the figure depends on, as the server and the client's TLS say it. The configuration is left empty: it is in the
/// launch.
///
/// # Errors
/// The server's error.
pub fn facts(server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut session = administrator(server, setup)?;
    let number = session.value("SELECT VERSION()")?;
    let product = if number.contains("MariaDB") { "MariaDB" } else { "MySQL" };
    let mut facts = BTreeMap::from([
        ("build".to_owned(), session.value("SELECT CONCAT(@@version_comment, ', ', @@version_compile_machine)")?),
        ("authentication".to_owned(), session.method().to_owned()),
        ("tls".to_owned(), tls_of(&mut session)?),
    ]);
    for name in TOLD {
        if let Some(value) = session.shown("GLOBAL VARIABLES", name)? {
            facts.insert(name.to_owned(), value);
        }
    }
    if let Some(tls) = session.tls_facts() {
        let client = format!("{} {} {} {}", tls.version, tls.cipher, tls.key_exchange, tls.handshake);
        facts.insert("tls as the client sees it".to_owned(), client);
    }
    Ok(ArmFacts { version: format!("{product} {number}"), facts, configuration: Vec::new() })
}

/// Pages that were asked of InnoDB's buffer pool (documentation, "InnoDB Status Variables").
pub fn cache_use(server: &Server, setup: &Setup) -> Option<CacheUse> {
    let mut session = administrator(server, setup).ok()?;
    let mut number = |name: &str| session.shown("GLOBAL STATUS", name).ok()??.parse().ok();
    Some(CacheUse { asked: number("Innodb_buffer_pool_read_requests")?, missed: number("Innodb_buffer_pool_reads")? })
}

/// TLS of `session` as the server sees it: `off`, or version and cipher.
///
/// # Errors
/// The server's error.
pub fn tls_of(session: &mut MariaDbSession) -> Result<String, Fault> {
    let mut status = |name: &str| session.shown("SESSION STATUS", name).map(Option::unwrap_or_default);
    let (version, cipher) = (status("Ssl_version")?, status("Ssl_cipher")?);
    Ok(if cipher.is_empty() { "off".to_owned() } else { format!("{version} {cipher}") })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_table_has_keys_and_fields_of_bytes() {
        let table = Table { name: "usertable".to_owned(), fields: 2, field_prefix: "field".to_owned() };
        expect!["CREATE TABLE `tithe`.`usertable` (`ycsb_key` varbinary(255) PRIMARY KEY, `field0` mediumblob, `field1` mediumblob) ENGINE=InnoDB COMMENT 'made by tithe'"].assert_eq(&table_text(&table));
    }
}
