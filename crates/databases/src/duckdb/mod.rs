//! DuckDB inside Tithe's own processes: one that loads and checks, and one for each measured start.
//!
//! One library serves every arm, loaded at run time: without a key it is the plain engine. An arm's engine runs in
//! memory with one file attached, and has no threads of its own, so each client's thread does all the work of its
//! statements. The plain file has the same storage version as the encrypted ones, which need 1.4's or newer: by default
//! DuckDB would write plain files in an older format.

mod dialect;
mod encryption;
mod engine;
mod evidence;
mod ffi;
mod get;
#[cfg(test)]
mod installed;
mod library;
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
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Install, Launch, Missing, Place, Search, Server, Stored},
    paths::Paths,
};
use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};
use tithe_plugin::{
    database::{Connect, Database},
    product::Product,
    protection::Protection,
    protections::COLUMNS_EMBEDDED,
    session::{Session, Table},
    setup::{AtRest, Setup},
};

use crate::ycsb_over_sql::{KEY_COLUMN, YcsbDialect, YcsbOverSql};
use engine::{Connection, Instance};
use session::DuckSession;

/// DuckDB, loaded by Tithe.
pub struct DuckDb;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "duckdb",
    title: "DuckDB",
    embedded: true,
    // Sessions share the engine's cache.
    restarts: true,
    keeps_data: true,
    triggers: false,
    appends: true,
    start_s: 0.3,
    reserved_settings: &[
        (settings::TEMPORARY, "it is an option of the protection encryption"),
        (settings::MBEDTLS, "provider is an option of the protection encryption"),
        ("temp_directory", "Tithe searches it"),
        ("threads", "each client's thread does the work of its own statements, so that its time is theirs"),
    ],
    known_settings: &settings::HELP,
    ..DatabaseEntry::BARE
};

const YCSB_DIALECT: YcsbDialect = YcsbDialect {
    schemas: false,
    quote: '"',
    begin_bulk: "BEGIN",
    end_bulk: "COMMIT",
    warm: &["SELECT max(COLUMNS(*)) FROM {table}"],
};

/// The file, in the folder of its arm.
const FILE: &str = "tithe.duckdb";

/// The name of the attached file in statements.
const ATTACHED: &str = "tithe";

/// The format of every file.
const STORAGE_VERSION: &str = "v1.5.0";

/// Name under which [`Install::facts`] holds the extension that brings OpenSSL.
const HTTPFS: &str = "httpfs";

impl Database for DuckDb {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        let library = library::library(search)?;
        let httpfs = library::httpfs(library).map(|path| (HTTPFS.to_owned(), path.display().to_string()));
        let version = format!("DuckDB {}", library.version);
        Ok(Install { programs: PathBuf::new(), version, facts: httpfs.into_iter().collect() })
    }

    fn download(&self) -> Option<tithe_plugin::database::Download> {
        Some(get::LIBRARY)
    }

    fn launch(&self, _install: &Install, _setup: &Setup, place: &Place) -> Launch {
        let file = place.folder.join(FILE);
        Launch {
            address: Address::File(file.clone()),
            paths: Paths {
                data: vec![file.clone(), temporary(&file)],
                journal: vec![journal(&file)],
                logs: Vec::new(),
            },
            ..Launch::default()
        }
    }

    fn stored(&self, _setup: &Setup) -> Option<Stored> {
        // A closed engine leaves this file alone, in which no setting is kept.
        Some(Stored { paths: vec![FILE.to_owned()], storage_settings: Vec::new() })
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let session = YcsbOverSql::new(Box::new(session(server, setup)?), "", &how.table, &YCSB_DIALECT)?;
        Ok(Session::KeyValue(Box::new(session)))
    }

    fn sql(&self) -> Option<&dyn tithe_plugin::database::SqlDatabase> {
        Some(self)
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let opened = opened(server, setup, MustExist::No)?;
        let mut connection = opened.connection()?;
        for statement in &setup.statements {
            connection.run(statement)?;
        }
        let fields: String =
            (0..table.fields).map(|field| format!(", {} BLOB", YCSB_DIALECT.field(table, field))).collect();
        let (name, key) = (YCSB_DIALECT.quoted(&table.name), YCSB_DIALECT.quoted(KEY_COLUMN));
        connection.run(&format!("CREATE TABLE {name} ({key} VARCHAR NOT NULL PRIMARY KEY{fields})"))?;
        opened.checkpoint()
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let mut connection = opened(server, setup, MustExist::Yes)?.connection()?;
        connection.run(&format!("DROP TABLE {}", YCSB_DIALECT.quoted(&table.name))).map(drop)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        opened(server, setup, MustExist::Yes)?.checkpoint()
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        let opened = opened(server, setup, MustExist::Yes)?;
        let mut connection = opened.connection()?;
        let cipher = connection.scalar(&format!(
            "SELECT coalesce(cipher, 'none') FROM duckdb_databases() WHERE database_name = '{ATTACHED}'"
        ))?;
        let mut facts = BTreeMap::from([
            ("cipher".to_owned(), cipher),
            ("provider".to_owned(), opened.provider().to_owned()),
            ("storage_version".to_owned(), STORAGE_VERSION.to_owned()),
        ]);
        for (name, _) in &opened.settings {
            facts.insert((*name).to_owned(), connection.scalar(&format!("SELECT current_setting('{name}')"))?);
        }
        let source = connection.scalar("SELECT source_id FROM pragma_version()")?;
        let version = format!("DuckDB {} ({source})", library_of_run()?.version);
        Ok(ArmFacts { version, facts, configuration: configuration(setup)? })
    }

    fn close(&self, server: &Server) {
        if let Ok(file) = path(server) {
            // Outside the lock, because closing writes.
            let closed = all_opened().remove(file);
            if let Some(closed) = closed {
                // What cannot be moved into the file stays in the write-ahead log, which the next start reads.
                let _ = closed.checkpoint();
            }
        }
    }
}

impl Product for DuckDb {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        static PROTECTIONS: [&dyn Protection; 2] = [&encryption::Encryption, &COLUMNS_EMBEDDED];
        &PROTECTIONS
    }
}

/// Tithe's settings for an arm, in order, with the key hidden.
fn configuration(setup: &Setup) -> Result<Vec<String>, Fault> {
    let key = setup.at_rest.as_ref().map(|at_rest| format!("ENCRYPTION_CIPHER {}, ENCRYPTION_KEY ***", at_rest.cipher));
    let settings = settings::resolve(&setup.settings)?.into_iter().map(|(name, value)| format!("{name} = {value}"));
    let statements = setup.statements.iter().chain(&setup.session_statements).cloned();
    Ok(key.into_iter().chain(settings).chain(statements).collect())
}

/// Whether a file that is opened must be there, or is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MustExist {
    Yes,
    No,
}

/// An open database of this process.
struct Opened {
    instance: Arc<Instance>,
    /// The protection with which it was opened.
    at_rest: Option<AtRest>,
    settings: Vec<(&'static str, String)>,
}

impl Opened {
    /// Opens the file at `path` as `setup` says or not at all: with its key, its cipher, its provider and its settings.
    fn open(path: &Path, setup: &Setup, mode: Mode) -> Result<Self, Fault> {
        let settings = settings::resolve(&setup.settings)?;
        let library = library_of_run()?;
        let fixed = [
            ("threads", "1".to_owned()),
            ("temp_directory", temporary(path).display().to_string()),
            ("autoinstall_known_extensions", "false".to_owned()),
            ("autoload_known_extensions", "false".to_owned()),
        ];
        // Settings that are off are left out: off is the default, and naming it crashes DuckDB 1.5.5, which then loads
        // an extension before there is an engine.
        let asked = settings.iter().filter(|(_, value)| value != "false").cloned();
        let options: Vec<_> = fixed.into_iter().chain(asked).collect();
        let opened = Self { instance: Instance::start(library, &options)?, at_rest: setup.at_rest.clone(), settings };
        let mut connection = opened.instance.connect()?;
        if opened.provider() == settings::provider::OPENSSL {
            let httpfs = library::httpfs(library)
                .ok_or_else(|| Fault::Refused(format!("there is no {} for it", get::HTTPFS)))?;
            connection.run(&format!("LOAD {}", quoted(&httpfs.display().to_string())))?;
        }
        attach(&mut connection, path, setup.at_rest.as_ref(), mode)?;
        Ok(opened)
    }

    /// A connection whose statements name tables of the file.
    fn connection(&self) -> Result<Connection, Fault> {
        let mut connection = self.instance.connect()?;
        connection.run(&format!("USE {ATTACHED}"))?;
        Ok(connection)
    }

    /// Moves everything in the write-ahead log into the file.
    fn checkpoint(&self) -> Result<(), Fault> {
        self.instance.connect()?.run(&format!("CHECKPOINT {ATTACHED}")).map(drop)
    }

    /// What encrypts.
    fn provider(&self) -> &'static str {
        match self.at_rest {
            None => "none",
            Some(_) if self.settings.contains(&(settings::MBEDTLS, "true".to_owned())) => settings::provider::MBEDTLS,
            Some(_) => settings::provider::OPENSSL,
        }
    }
}

/// How a file is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadOnly,
    Write,
}

/// Attaches the file at `path`. No error quotes the statement, which holds the key.
fn attach(connection: &mut Connection, path: &Path, at_rest: Option<&AtRest>, mode: Mode) -> Result<(), Fault> {
    let mut options = match mode {
        Mode::ReadOnly => vec!["READ_ONLY".to_owned()],
        Mode::Write => vec![format!("STORAGE_VERSION {}", quoted(STORAGE_VERSION))],
    };
    if let Some(AtRest { cipher, key }) = at_rest {
        options.push(format!("ENCRYPTION_KEY '{}'", key.expose_hex()));
        options.push(format!("ENCRYPTION_CIPHER {}", quoted(cipher)));
    }
    let file = quoted(&path.display().to_string());
    connection.run(&format!("ATTACH {file} AS {ATTACHED} ({})", options.join(", "))).map(drop).map_err(|fault| {
        match fault {
            Fault::Server(words) => Fault::Refused(words.replace(&path.display().to_string(), FILE)),
            other => other,
        }
    })
}

/// `text` as SQL writes it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The library, which the run's search has found before.
fn library_of_run() -> Result<&'static engine::Library, Fault> {
    library::library(&Search::default()).map_err(|missing| Fault::Machine(missing.what))
}

/// Every open database, by its file: the engine opens a file only once in a process.
fn all_opened() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<Opened>>> {
    static OPENED: Mutex<BTreeMap<PathBuf, Arc<Opened>>> = Mutex::new(BTreeMap::new());
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The database of `server`, opened now if it is not open; as `setup` says or not at all.
fn opened(server: &Server, setup: &Setup, must: MustExist) -> Result<Arc<Opened>, Fault> {
    let file = path(server)?;
    let mut all = all_opened();
    if let Some(opened) = all.get(file) {
        if opened.at_rest == setup.at_rest && opened.settings == settings::resolve(&setup.settings)? {
            return Ok(opened.clone());
        }
        return Err(Fault::Refused("the database is open with another key, cipher or settings".to_owned()));
    }
    if must == MustExist::Yes && !file.exists() {
        return Err(Fault::Connection(format!("there is no file {}", file.display())));
    }
    let opened = Arc::new(Opened::open(file, setup, Mode::Write)?);
    all.insert(file.to_owned(), opened.clone());
    Ok(opened)
}

/// A session on the file of `server`, as the measured clients use it.
fn session(server: &Server, setup: &Setup) -> Result<DuckSession, Fault> {
    let opened = opened(server, setup, MustExist::Yes)?;
    let mut connection = opened.connection()?;
    for statement in &setup.session_statements {
        connection.run(statement)?;
    }
    Ok(DuckSession::new(connection, opened))
}

/// What the header of a file says of its encryption.
#[derive(Debug, PartialEq, Eq)]
enum Header {
    Plain,
    /// The cipher's name, or its number if it has none here.
    Encrypted(String),
}

/// Length of the part of the header that is read.
const HEADER_BYTES: usize = 0x80;

/// Reads the header of the file at `path`: checksum, `DUCK`, version, flags, and, if the first flag says that the file
/// is encrypted, the cipher (DuckDB 1.5, `storage_info.hpp`).
///
/// Closing any descriptor of a file drops the POSIX locks that this process holds on it. No other process opens an
/// arm's file at the same time.
fn header(path: &Path) -> Result<Header, Fault> {
    let mut bytes = [0; HEADER_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(Fault::machine(path.display(), error)),
        Ok(()) if bytes[8..12] == *b"DUCK" => {
            return Ok(match (bytes[0x14] & 1, bytes[0x76]) {
                (0, _) => Header::Plain,
                (_, 1) => Header::Encrypted("GCM".to_owned()),
                (_, 2) => Header::Encrypted("CTR".to_owned()),
                (_, number) => Header::Encrypted(format!("cipher {number}")),
            });
        }
        Ok(()) => {}
    }
    Err(Fault::Refused(format!("{} is not a file of DuckDB", path.display())))
}

/// The write-ahead log of the file at `path`.
fn journal(path: &Path) -> PathBuf {
    beside(path, "wal")
}

/// The folder of temporary files of the engine that opens the file at `path`.
fn temporary(path: &Path) -> PathBuf {
    beside(path, "tmp")
}

/// `path` with a further `extension`.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{extension}"));
    PathBuf::from(name)
}

/// The database file of `server`.
fn path(server: &Server) -> Result<&Path, Fault> {
    match &server.address {
        Address::File(path) => Ok(path),
        _ => Err(Fault::Refused("DuckDB is a file, and this address is none".to_owned())),
    }
}
