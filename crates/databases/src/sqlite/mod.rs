//! SQLite with SQLite3 Multiple Ciphers, inside Tithe's own processes: one that loads and checks, and one for each
//! measured start.
//!
//! One library serves every arm: without a key it is plain SQLite. There is no server, no network and no account, so
//! only the file and the values in it can be protected. Tithe never attaches to a running application's file.

mod connection;
mod dialect;
mod evidence;
mod ffi;
mod own_columns;
mod page_encryption;
mod session;
mod settings;
mod sql;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Install, Launch, Missing, Place, Search, Server, Stored},
    paths::Paths,
};
use tithe_model::{
    catalogue::{AskedOfCustom, DatabaseEntry},
    record::ArmFacts,
};
use tithe_plugin::{
    claim::Probes,
    database::{Connect, Database},
    product::Product,
    protection::Protection,
    protections::{COLUMNS_EMBEDDED, ORDINARY_STATEMENTS},
    session::{Session, Table},
    setup::Setup,
};

use crate::ycsb_over_sql::{KEY_COLUMN, YcsbDialect, YcsbOverSql};
use connection::{Connection, Mode};

/// SQLite, compiled into Tithe.
pub struct Sqlite;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "sqlite",
    title: "SQLite",
    embedded: true,
    keeps_data: true,
    start_s: 0.3,
    reserved_settings: &[
        ("application_id", "it marks the file as Tithe's own"),
        ("cipher", "it is an option of the protection page-encryption"),
        ("hexkey", "keys are made by Tithe and are never in a file"),
        ("key", "keys are made by Tithe and are never in a file"),
        ("rekey", "keys are made by Tithe and are never in a file"),
    ],
    known_settings: &settings::HELP,
    custom: Some(AskedOfCustom {
        setting: "PRAGMA {setting}",
        between: '_',
        careful: &["PRAGMA query_only = ON"],
        kept: None,
    }),
    ..DatabaseEntry::BARE
};

const YCSB_DIALECT: YcsbDialect = YcsbDialect {
    schemas: false,
    quote: '"',
    begin_bulk: "BEGIN IMMEDIATE",
    end_bulk: "COMMIT",
    // The first reads the index alone, the second the table alone.
    warm: &["SELECT count({key}) FROM {table}", "SELECT count({key}) FROM {table} NOT INDEXED"],
};

/// The file, in the folder of its arm.
const FILE: &str = "tithe.db";

/// The suffixes of the files next to it.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Marks a file as Tithe's own, in the field that SQLite's format reserves for the application: "tith".
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"tith");

/// The first bytes of every plain SQLite file: <https://sqlite.org/fileformat.html>, section 1.3.
const PLAIN_HEADER: &[u8; 16] = b"SQLite format 3\0";

impl Database for Sqlite {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn find(&self, _search: &Search) -> Result<Install, Missing> {
        Ok(Install { programs: PathBuf::new(), version: connection::version(), facts: BTreeMap::new() })
    }

    fn launch(&self, _install: &Install, _setup: &Setup, place: &Place) -> Launch {
        let file = place.folder.join(FILE);
        // The -shm file holds page numbers only, but a scan leaves nothing out.
        let journal = BESIDE.map(|suffix| beside(&file, suffix)).to_vec();
        Launch {
            address: Address::File(file.clone()),
            paths: Paths { data: vec![file], journal, logs: Vec::new() },
            ..Launch::default()
        }
    }

    fn stored(&self, setup: &Setup) -> Option<Stored> {
        // The files that the last connection left when it closed, and no others.
        let paths = ["", BESIDE[0], BESIDE[1], BESIDE[2]].map(|suffix| format!("{FILE}{suffix}")).to_vec();
        Some(Stored {
            paths,
            storage_settings: setup.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect(),
        })
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let session = key_value(path(server)?, setup, &how.table)?;
        Ok(Session::KeyValue(Box::new(session)))
    }

    fn sql(&self) -> Option<&dyn tithe_plugin::database::SqlDatabase> {
        Some(self)
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let path = path(server)?;
        if path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            // A read-only check comes first: the file may belong to someone else.
            unlocked(path, setup, Mode::ReadOnly).and_then(|mut connection| check_mark(&mut connection, path))?;
        }
        let mut connection = unlocked(path, setup, Mode::Create)?;
        settings::apply(&mut connection, &setup.settings)?;
        connection.run(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
        for statement in &setup.statements {
            connection.run(statement)?;
        }
        connection.run(&create_table(table))?;
        checkpoint(&mut connection)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        open(path(server)?, setup)?.run(&format!("DROP TABLE {}", YCSB_DIALECT.quoted(&table.name))).map(drop)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        let mut connection = open(path(server)?, setup)?;
        // Pages left by deleted rows would make two arms with the same rows differ. VACUUM's copy stays in memory: the
        // library would encrypt a temporary file on a plain arm as well.
        connection.run("PRAGMA temp_store = MEMORY")?;
        connection.run("VACUUM")?;
        checkpoint(&mut connection)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        let mut connection = open(path(server)?, setup)?;
        let mut facts = BTreeMap::from([
            ("compiler".to_owned(), env!("TITHE_SQLITE_COMPILER").to_owned()),
            ("compiler_flags".to_owned(), env!("TITHE_SQLITE_FLAGS").to_owned()),
            ("cipher".to_owned(), setup.at_rest.as_ref().map_or("none", |at_rest| &at_rest.cipher).to_owned()),
            ("key_derivation".to_owned(), page_encryption::key_derivation(setup).to_owned()),
            ("aes".to_owned(), connection.scalar("PRAGMA mc_aes_info")?),
            ("processor_features".to_owned(), connection.scalar("PRAGMA mc_cpu_info")?),
        ]);
        for setting in settings::SETTINGS {
            let kept = connection.scalar(&format!("PRAGMA {}", setting.name))?;
            facts.insert(setting.name.to_owned(), kept);
        }
        Ok(ArmFacts { version: connection::version(), facts, configuration: configuration(setup)? })
    }
}

impl Product for Sqlite {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        static PROTECTIONS: &[&dyn Protection] = &[
            &page_encryption::PageEncryption,
            described!("sqlite", "secure-delete", &Probes::NONE),
            described!("sqlite", "audit-trigger", &Probes::NONE),
            &COLUMNS_EMBEDDED,
            &ORDINARY_STATEMENTS,
        ];
        PROTECTIONS
    }
}

/// Tithe's settings for a connection, in order, with the key hidden.
fn configuration(setup: &Setup) -> Result<Vec<String>, Fault> {
    let mut lines = Vec::new();
    if let Some(at_rest) = &setup.at_rest {
        lines.push(format!("cipher = {}", at_rest.cipher));
        lines.push("key = ***".to_owned());
    }
    let settings = settings::resolve(&setup.settings)?;
    lines.extend(settings.iter().map(|(setting, value)| format!("{} = {value}", setting.name)));
    lines.extend(setup.statements.iter().chain(&setup.session_statements).cloned());
    Ok(lines)
}

fn create_table(table: &Table) -> String {
    let fields: String =
        (0..table.fields).map(|field| format!(", {} BLOB", YCSB_DIALECT.field(table, field))).collect();
    let key = YCSB_DIALECT.quoted(KEY_COLUMN);
    format!("CREATE TABLE {} ({key} TEXT NOT NULL PRIMARY KEY{fields})", YCSB_DIALECT.quoted(&table.name))
}

/// A key-value session on Tithe's own file at `path`, as the measured clients use it.
fn key_value(path: &Path, setup: &Setup, table: &Table) -> Result<YcsbOverSql, Fault> {
    let mut connection = open(path, setup)?;
    for statement in &setup.session_statements {
        connection.run(statement)?;
    }
    YcsbOverSql::new(Box::new(session::SqliteSession::new(connection)), "", table, &YCSB_DIALECT)
}

/// Tithe's own file at `path`, opened as `setup` says or not at all. It is encrypted exactly if it should be, with the
/// requested cipher, and all settings are in force.
fn open(path: &Path, setup: &Setup) -> Result<Connection, Fault> {
    let mut connection = unlocked(path, setup, Mode::Existing)?;
    check_mark(&mut connection, path)?;
    check_encryption(&mut connection, path, setup)?;
    settings::apply(&mut connection, &setup.settings)?;
    Ok(connection)
}

/// The file at `path` with the key of `setup` set, if it has one; nothing is read yet.
fn unlocked(path: &Path, setup: &Setup, mode: Mode) -> Result<Connection, Fault> {
    let mut connection = Connection::open(path, mode)?;
    // Until the settings are applied: many connections open at once, and the first of them may have to read the
    // journal.
    connection.scalar("PRAGMA busy_timeout = 5000")?;
    if let Some(at_rest) = &setup.at_rest {
        connection.unlock(at_rest)?;
    }
    Ok(connection)
}

/// Reads the schema, which needs the right key, and refuses a file that Tithe did not create.
fn check_mark(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    let tables = connection.scalar("SELECT count(*) FROM sqlite_master")?;
    let mark = connection.scalar("PRAGMA application_id")?;
    if mark == APPLICATION_ID.to_string() {
        return Ok(());
    }
    let what = format!("{} was not made by Tithe: application_id {mark}, {tables} tables and indexes", path.display());
    Err(Fault::Refused(what))
}

/// Refuses a plain file if a cipher was requested, an encrypted file if none was, and another cipher.
fn check_encryption(connection: &mut Connection, path: &Path, setup: &Setup) -> Result<(), Fault> {
    let plain = header(path)? == *PLAIN_HEADER;
    match &setup.at_rest {
        None if plain => Ok(()),
        None => Err(Fault::Refused("the file is encrypted, and no encryption was asked for".to_owned())),
        Some(_) if plain => Err(Fault::Refused("the file is not encrypted, and encryption was asked for".to_owned())),
        Some(at_rest) => {
            // The schema was already read, which no other cipher could do; this is the library's own report of it.
            let cipher = connection.scalar("PRAGMA cipher")?;
            if cipher == at_rest.cipher {
                return Ok(());
            }
            Err(Fault::Refused(format!("the cipher is {cipher}, and {} was asked for", at_rest.cipher)))
        }
    }
}

/// The first 16 bytes of the file at `path`.
///
/// Closing any descriptor of a file drops the POSIX locks that this process holds on it, including SQLite's
/// (<https://sqlite.org/howtocorrupt.html>, section 2.2). SQLite does not rely on them between its own connections, and
/// no other process has a file of Tithe open at the same time.
fn header(path: &Path) -> Result<[u8; 16], Fault> {
    let mut bytes = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(Fault::Refused(format!("{} is too short for a database", path.display())))
        }
        Err(error) => Err(Fault::machine(path.display(), error)),
    }
}

/// Moves everything in the write-ahead log into the file and empties the log; does nothing if there is none.
fn checkpoint(connection: &mut Connection) -> Result<(), Fault> {
    if connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")? == "0" {
        return Ok(());
    }
    Err(Fault::Server("the write-ahead log is in use and cannot be emptied".to_owned()))
}

/// The file with the name of `file` and `suffix` added.
fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The database file of `server`.
fn path(server: &Server) -> Result<&Path, Fault> {
    match &server.address {
        Address::File(path) => Ok(path),
        _ => Err(Fault::Refused("SQLite is a file, and this address is none".to_owned())),
    }
}
