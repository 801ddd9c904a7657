//! The measured table, and everything else that an administrator's session does around it.
//!
//! Tithe works in the database `tithe`, or in a similar one for each arm if several arms share a server. It marks the
//! database with a table `made_by_tithe`, and every table in it with a comment. A database of this name without the
//! mark, or with an unmarked table in it, belongs to someone else: it is refused, and never dropped.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, launch::Server};
use tithe_model::record::ArmFacts;
use tithe_plugin::{
    database::CacheUse,
    session::{SqlSession as _, Table},
    setup::{SPACE, Setup},
};

use super::{Flavour, access::Access, session::WireSession};
use crate::{
    hops::Hops,
    target::is_local,
    ycsb_over_sql::{KEY_COLUMN, YcsbDialect},
};

/// The syntax of both products where the SQL standard leaves it open.
pub const YCSB_DIALECT: YcsbDialect = YcsbDialect {
    schemas: true,
    quote: '`',
    begin_bulk: "START TRANSACTION",
    end_bulk: "COMMIT",
    warm: &["SELECT count({key}) FROM {table}"],
};

/// The comment on everything that Tithe creates.
pub const MARK: &str = "made by tithe";
/// The table that marks the database.
const MARKER: &str = "made_by_tithe";

/// How long Tithe waits for a lock on its own tables, s. The servers' own timeout is a day or a year.
const LOCK_TIMEOUT_S: u16 = 10;

/// The server's error when that was too short (`ER_LOCK_WAIT_TIMEOUT`).
const TIMED_OUT: &str = "1205 ";

/// How long the server may take to encrypt old pages and to write dirty ones.
const TIMEOUT: Duration = Duration::from_secs(120);

/// An administrator's session. On a server with other users it waits [`LOCK_TIMEOUT_S`] for their locks.
///
/// # Errors
/// As [`Access::administrator`].
fn hurried(access: &Access, server: &Server, setup: &Setup) -> Result<WireSession, Fault> {
    let mut session = access.administrator(server, setup)?;
    if !is_local(server) {
        session.run(&format!("SET SESSION lock_wait_timeout = {LOCK_TIMEOUT_S}"))?;
    }
    Ok(session)
}

/// Runs `statement` about a table of Tithe's own.
///
/// # Errors
/// [`Fault::Refused`] if another client holds the lock; the server's error.
fn run_unlocked(session: &mut WireSession, statement: &str) -> Result<(), Fault> {
    match session.run(statement) {
        Err(Fault::Server(words)) if words.starts_with(TIMED_OUT) => Err(Fault::Refused(format!(
            "`{statement}` waited {LOCK_TIMEOUT_S} s for a lock on what is Tithe's own, held by another session: \
             `SHOW PROCESSLIST` names the sessions to an account that may see them; let that session end"
        ))),
        outcome => outcome.map(drop),
    }
}

/// Creates the database and `table`. On a server that Tithe launched, runs the arm's own statements first.
///
/// # Errors
/// [`Fault::Refused`] if objects exist that Tithe did not create; the server's error.
pub fn create(access: &Access, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    if is_local(server) {
        let mut session = access.administrator(server, setup)?;
        for statement in &setup.statements {
            session.run(statement)?;
        }
    }
    let mut session = own_database(access, server, setup)?;
    // Left over from a run that was killed: `observe` has checked that everything here is Tithe's.
    let name = YCSB_DIALECT.qualified(&setup.space, table);
    run_unlocked(&mut session, &format!("DROP TABLE IF EXISTS {name}"))?;
    session.run(&table_text(&setup.space, table)).map(drop)
}

/// An administrator's session in the database of this arm, which is created if missing.
///
/// # Errors
/// As [`create`].
pub fn own_database(access: &Access, server: &Server, setup: &Setup) -> Result<WireSession, Fault> {
    let mut session = hurried(access, server, setup)?;
    let space = &setup.space;
    if existing(&mut session, space)? == Existing::Nothing {
        session.run(&format!("CREATE DATABASE {space}")).map_err(|fault| match fault {
            Fault::Refused(words) => Fault::Refused(format!(
                "Tithe works in databases of its own: {words}; run GRANT ALL ON `tithe%`.* TO this account"
            )),
            fault => fault,
        })?;
        mark(&mut session, space)?;
    }
    session.run(&format!("USE {space}"))?;
    Ok(session)
}

/// Marks the database `space`, which was just created. If that fails it is removed again: without the mark, Tithe would
/// not recognise it later. Some servers do not create tables without a primary key.
fn mark(session: &mut WireSession, space: &str) -> Result<(), Fault> {
    let marked = session.run(&format!("CREATE TABLE {space}.{MARKER} (nothing int PRIMARY KEY) COMMENT '{MARK}'"));
    if marked.is_err() && tables(session, space).is_ok_and(|tables| tables.is_empty()) {
        // The error of marking is more useful than that of removing.
        let _ = session.run(&format!("DROP DATABASE {space}"));
    }
    marked.map(drop)
}

/// The statement that creates `table`. Keys and values are bytes, so that transferring ciphertext costs no more than
/// text. Keys are ordered by their bytes, as YCSB's scans expect.
fn table_text(space: &str, table: &Table) -> String {
    let key = YCSB_DIALECT.quoted(KEY_COLUMN);
    let fields: String =
        (0..table.fields).map(|field| format!(", {} mediumblob", YCSB_DIALECT.field(table, field))).collect();
    let name = YCSB_DIALECT.qualified(space, table);
    format!("CREATE TABLE {name} ({key} varbinary(255) PRIMARY KEY{fields}) ENGINE=InnoDB COMMENT '{MARK}'")
}

/// Removes `table`, and the database with it when nothing else is left in it.
///
/// # Errors
/// As [`create`].
pub fn remove(access: &Access, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let (mut session, space) = (hurried(access, server, setup)?, &setup.space);
    if existing(&mut session, space)? == Existing::Nothing {
        return Ok(());
    }
    run_unlocked(&mut session, &format!("DROP TABLE IF EXISTS {}", YCSB_DIALECT.qualified(space, table)))?;
    if tables(&mut session, space)?.len() == 1 && !has_programs(&mut session, space)? {
        session.run(&format!("DROP DATABASE {space}"))?;
    }
    Ok(())
}

/// True if the database `space` has procedures, functions or events: Tithe creates none.
fn has_programs(session: &mut WireSession, space: &str) -> Result<bool, Fault> {
    let count = format!(
        "SELECT (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{space}') \
         + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = '{space}')"
    );
    Ok(session.value(&count)? != "0")
}

/// What exists in the place where Tithe works.
#[derive(Debug, PartialEq, Eq)]
enum Existing {
    Nothing,
    Ours,
}

fn existing(session: &mut WireSession, space: &str) -> Result<Existing, Fault> {
    let asked = format!("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{space}'");
    let there = session.value(&asked)?;
    if there == "0" {
        return Ok(Existing::Nothing);
    }
    let tables = tables(session, space)?;
    let foreign = |what: &str| Err(Fault::Refused(format!("{what} is on this server, and Tithe did not make it")));
    if let Some((name, _)) = tables.iter().find(|(_, comment)| comment != MARK) {
        return foreign(&format!("a table `{space}.{name}`"));
    }
    if tables.iter().all(|(name, _)| name != MARKER) {
        return foreign(&format!("a database `{space}`"));
    }
    Ok(Existing::Ours)
}

/// Names of the measured tables of a launched server.
///
/// # Errors
/// The server's error.
pub fn measured_tables(session: &mut WireSession) -> Result<Vec<String>, Fault> {
    let ours = tables(session, SPACE)?.into_iter().filter(|(name, comment)| name != MARKER && comment == MARK);
    Ok(ours.map(|(name, _)| name).collect())
}

/// Names and comments of all tables and views in Tithe's database `space`.
fn tables(session: &mut WireSession, space: &str) -> Result<Vec<(String, String)>, Fault> {
    let sql = format!("SELECT TABLE_NAME, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{space}'");
    let text = |value: Option<String>| value.unwrap_or_default();
    Ok(session.run(&sql)?.into_iter().map(|row| <[_; 2]>::try_from(row).unwrap_or_default().map(text).into()).collect())
}

/// Waits until the server's background encryption is finished and, on a launched server, until it has written every
/// page to its file. On an attached server its owner decides when pages are written.
///
/// # Errors
/// The server's error; [`Fault::Server`] if it does not become idle in time.
pub fn quiesce(flavour: &Flavour, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
    let mut session = hurried(flavour.access, server, setup)?;
    run_unlocked(&mut session, &format!("ANALYZE TABLE {}", YCSB_DIALECT.qualified(&setup.space, table)))?;
    await_rest(&mut session, "background encryption", flavour.is_encrypted)?;
    if !is_local(server) {
        return Ok(());
    }
    write_pages(&mut session)?;
    (flavour.write_table)(&mut session, &YCSB_DIALECT.qualified(&setup.space, table))?;
    session.run("FLUSH ENGINE LOGS").map(drop)
}

/// Has the server write its dirty pages. It does that by itself, at a rate and time set by these settings
/// (documentation, "InnoDB Page Flushing"), which are restored afterwards.
///
/// # Errors
/// The server's error; [`Fault::Server`] if it does not become idle in time.
pub fn write_pages(session: &mut WireSession) -> Result<(), Fault> {
    // The low-water mark may not exceed the other one: it is lowered first and raised last.
    const HASTE: [(&str, &str); 4] = [
        ("innodb_io_capacity_max", "100000"),
        ("innodb_io_capacity", "100000"),
        ("innodb_max_dirty_pages_pct_lwm", "0"),
        ("innodb_max_dirty_pages_pct", "0"),
    ];
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
    session: &mut WireSession,
    what: &str,
    mut rests: impl FnMut(&mut WireSession) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let begun = Instant::now();
    while !rests(session)? {
        if begun.elapsed() > TIMEOUT {
            return Err(Fault::Server(format!("{what} has not ended after {} s", TIMEOUT.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// The cluster, if the server is a node of one, because it replicates every change. Otherwise the server: its own
/// number, if its version has one, and its data folder.
///
/// # Errors
/// The server's error.
pub fn identity(access: &Access, server: &Server, setup: &Setup) -> Result<String, Fault> {
    let mut session = access.administrator(server, setup)?;
    let galera = session.shown("GLOBAL STATUS", "wsrep_cluster_state_uuid")?;
    let group = session.shown("GLOBAL VARIABLES", "group_replication_group_name")?;
    if let Some(cluster) = cluster_of([galera, group]) {
        return Ok(cluster);
    }
    let mut identity = session.value("SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir)")?;
    for name in ["server_uuid", "server_uid"] {
        identity.extend(session.shown("GLOBAL VARIABLES", name)?.map(|number| format!(" {number}")));
    }
    Ok(identity)
}

/// The first valid one of `numbers`: a server outside a cluster reports nothing, or zeros.
fn cluster_of(numbers: [Option<String>; 2]) -> Option<String> {
    numbers.into_iter().flatten().find(|number| number.contains(|digit| !matches!(digit, '0' | '-')))
}

/// Status variables with the position in the redo log, bytes: of MySQL 8.0.30 and later, of MariaDB, and of all. The
/// last one counts what was written to the file, with the padding of each flush, so it says less of one operation.
const REDO_POSITIONS: [&str; 3] = ["Innodb_redo_log_current_lsn", "Innodb_lsn_current", "Innodb_os_log_written"];

/// Position in the redo log, bytes.
pub fn redo_position(access: &Access, server: &Server, setup: &Setup) -> Option<u64> {
    let mut session = access.administrator(server, setup).ok()?;
    REDO_POSITIONS.iter().find_map(|name| session.shown("GLOBAL STATUS", name).ok()??.parse().ok())
}

/// The facts that a figure depends on, as the server and the client's TLS report them. The configuration is left empty:
/// it is in the launch.
///
/// # Errors
/// The server's error.
pub fn facts(flavour: &Flavour, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
    let mut session = flavour.access.administrator(server, setup)?;
    let method = flavour.access.method(&mut session, &flavour.access.product.target(server, setup)?);
    let number = session.value("SELECT VERSION()")?;
    let mut facts = BTreeMap::from([
        ("build".to_owned(), session.value("SELECT CONCAT(@@version_comment, ', ', @@version_compile_machine)")?),
        ("authentication".to_owned(), method),
        ("tls".to_owned(), tls_of(&mut session)?),
    ]);
    for name in flavour.reported {
        if let Some(value) = session.shown("GLOBAL VARIABLES", name)? {
            facts.insert((*name).to_owned(), value);
        }
    }
    if let Some(tls) = session.tls_facts() {
        facts.insert("tls as the client sees it".to_owned(), tls.in_words());
    }
    Ok(ArmFacts { version: format!("{} {number}", flavour.access.product.title), facts, configuration: Vec::new() })
}

/// Pages requested from InnoDB's buffer pool (documentation, "InnoDB Status Variables").
pub fn cache_use(access: &Access, server: &Server, setup: &Setup) -> Option<CacheUse> {
    let mut session = access.administrator(server, setup).ok()?;
    let mut number = |name: &str| session.shown("GLOBAL STATUS", name).ok()??.parse().ok();
    Some(CacheUse { asked: number("Innodb_buffer_pool_read_requests")?, missed: number("Innodb_buffer_pool_reads")? })
}

/// The transport of each hop from this client to the server.
///
/// # Errors
/// The server's error.
pub fn hops_of(session: &mut WireSession) -> Result<Hops, Fault> {
    let server = tls_of(session)?;
    let own = session.tls_facts().map(|tls| tls.suite());
    Ok(Hops::of(own, server, None, SESSION_STATUS))
}

/// Where the transport of a session is reported.
pub const SESSION_STATUS: &str = "SHOW SESSION STATUS";

/// TLS of `session` as the server sees it: `off`, or version and cipher.
///
/// # Errors
/// The server's error.
fn tls_of(session: &mut WireSession) -> Result<String, Fault> {
    let mut status = |name: &str| session.shown("SESSION STATUS", name).map(Option::unwrap_or_default);
    let (version, cipher) = (status("Ssl_version")?, status("Ssl_cipher")?);
    Ok(if cipher.is_empty() { "off".to_owned() } else { format!("{version} {cipher}") })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_node_of_a_cluster_tells_the_same_cluster() {
        let some = |number: &str| Some(number.to_owned());
        assert_eq!(cluster_of([some("6fd3-a0"), None]), some("6fd3-a0"));
        assert_eq!(cluster_of([some(""), some("aaaa-1")]), some("aaaa-1"));
        assert_eq!(cluster_of([some("00000000-0000"), some("")]), None);
        assert_eq!(cluster_of([None, None]), None);
    }

    #[test]
    fn a_table_has_keys_and_fields_of_bytes() {
        let table = Table { name: "usertable".to_owned(), fields: 2, field_prefix: "field".to_owned() };
        expect!["CREATE TABLE `tithe`.`usertable` (`ycsb_key` varbinary(255) PRIMARY KEY, `field0` mediumblob, `field1` mediumblob) ENGINE=InnoDB COMMENT 'made by tithe'"].assert_eq(&table_text("tithe", &table));
    }
}
