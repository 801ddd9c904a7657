//! WiredTiger, the storage engine of MongoDB, inside Tithe's own processes: one that loads and checks, and one for each
//! measured start.
//!
//! One library serves every arm: without an encryptor it is the plain engine. It is configured as MongoDB 4.2
//! configures it, and holds what MongoDB would hold: documents by record id, an `_id` index, a journal. The parts of a
//! server (network, sessions, query planner, replication) are left out. So a figure is that of the engine, and larger
//! than MongoDB's would be.

mod backup;
mod cursor;
mod document;
mod encryptor;
mod engine;
mod evidence;
mod ffi;
#[doc(hidden)]
pub mod foreign;
mod index;
#[cfg(test)]
mod installed;
mod kmip;
mod library;
mod messages;
mod page_encryption;
mod rotation;
mod session;
mod settings;
mod statistics;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicI64},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Content, Install, Launch, Missing, Place, Search, Server, Step},
    paths::Paths,
    proc::TreeUsage,
    secret::Secret,
};
use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};
use tithe_plugin::{
    database::{CacheUse, Connect, Database},
    product::Product,
    protection::Protection,
    protections::COLUMNS_EMBEDDED,
    session::{Session, Table},
    setup::{AtRest, KeyServer, Setup},
};

use encryptor::{
    Implementation,
    cipher::{Key, PageCipher},
    cipher_and_implementation,
    keystore::{self, Keystore},
};
use engine::Engine;
use library::Library;
use session::{RecordIds, TableSession};
use settings::Settings;
use statistics::{CACHE_LIMIT, JOURNAL_BYTES, PAGES_ASKED, PAGES_READ};

/// WiredTiger, loaded by Tithe.
pub struct WiredTiger;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "wiredtiger",
    title: "WiredTiger",
    embedded: true,
    // The engine is closed and opened again in another process: the position of its cache in memory varies by chance,
    // too.
    restarts: true,
    keeps_data: true,
    reserved_settings: &[
        ("encryption", "it is what the protection page-encryption sets"),
        ("extensions", "Tithe loads what the other settings ask for"),
        ("log", "journal_compressor and journal_file_mb are its settings"),
    ],
    known_settings: &settings::HELP,
    start_s: 0.3,
    bulk: false,
    ..DatabaseEntry::BARE
};

/// Marks a data folder as Tithe's own.
const MARK: &str = "made-by-tithe";

/// Allocation unit of table files, bytes: the engine's default, which MongoDB keeps.
const FILE_UNIT: usize = 4096;

impl Database for WiredTiger {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn cache_use(&self, server: &Server, setup: &Setup) -> Option<CacheUse> {
        // A closed engine has done no work, and is not opened for this question: the frame randomises which arm's
        // engine is opened first and so gets its memory first.
        if !all_opened().contains_key(folder(server).ok()?) {
            return Some(CacheUse::default());
        }
        let statistics = opened(server, setup).ok()?.engine.statistics().ok()?;
        Some(CacheUse { asked: statistics.value(PAGES_ASKED), missed: statistics.value(PAGES_READ) })
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        let library = library::library(search)?;
        Ok(Install { programs: PathBuf::new(), version: library.version.clone(), facts: BTreeMap::new() })
    }

    fn launch(&self, _install: &Install, setup: &Setup, place: &Place) -> Launch {
        let data = place.folder.join("data");
        let journal = data.join(settings::JOURNAL);
        let mut steps = vec![
            Step::Folder(data.clone()),
            Step::Write { path: data.join(MARK), content: Content::Text(String::new()), mode: 0o600 },
            Step::Folder(journal.clone()),
        ];
        if let (Some(at_rest), None) = (&setup.at_rest, &setup.key_server) {
            steps.push(Step::Write {
                path: keystore::master_key_path(&place.folder),
                content: Content::Secret(Secret::new(at_rest.key.expose_hex())),
                mode: 0o600,
            });
        }
        Launch {
            steps,
            address: Address::File(data.clone()),
            paths: Paths { data: vec![data], journal: vec![journal], logs: Vec::new() },
            ..Launch::default()
        }
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let session = opened(server, setup)?.table_session(&how.table)?;
        Ok(Session::KeyValue(Box::new(session)))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let opened = opened(server, setup)?;
        let settings = Settings::resolve(&setup.settings)?;
        let mut session = opened.engine.session()?;
        session.create(&session::records_uri(table), &settings.records())?;
        session.create(&session::index_uri(table), &settings.index())?;
        session.checkpoint()
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let opened = opened(server, setup)?;
        opened.tables().remove(&table.name);
        let mut session = opened.engine.session()?;
        session.drop_table(&session::index_uri(table))?;
        session.drop_table(&session::records_uri(table))
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        opened(server, setup)?.engine.checkpoint()
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        let opened = opened(server, setup)?;
        let statistics = opened.engine.statistics()?;
        let (cipher, implementation) = cipher_and_implementation(cipher_of(setup).unwrap_or("none"));
        let hardware = implementation == Implementation::Processor && aes::hardware_accelerated();
        let mut facts = BTreeMap::from([
            ("cipher".to_owned(), cipher.to_owned()),
            ("aes".to_owned(), if hardware { "processor's instructions" } else { "portable code" }.to_owned()),
            ("cache_bytes".to_owned(), statistics.value(CACHE_LIMIT).to_string()),
        ]);
        if setup.at_rest.is_some() {
            let place = if setup.key_server.is_some() { "KMIP server" } else { "file" };
            facts.insert("master_key".to_owned(), place.to_owned());
        }
        let mut configuration = Settings::resolve(&setup.settings)?.lines();
        if let Some(cipher) = cipher_of(setup) {
            configuration.splice(0..0, [format!("cipher = {cipher}"), "master key = ***".to_owned()]);
        }
        Ok(ArmFacts { version: opened.library.version.clone(), facts, configuration })
    }

    fn wal_position(&self, server: &Server, setup: &Setup) -> Option<u64> {
        let statistics = opened(server, setup).ok()?.engine.statistics().ok()?;
        Some(statistics.value(JOURNAL_BYTES))
    }

    fn usage(&self, server: &Server, setup: &Setup) -> Option<TreeUsage> {
        opened(server, setup).ok()?.engine.usage().ok()
    }

    fn close(&self, server: &Server) {
        if let Ok(folder) = folder(server) {
            // Outside the lock, because closing takes long.
            let closed = all_opened().remove(folder);
            if closed.as_ref().is_some_and(|closed| closed.engine.failed()) {
                // Its threads and its memory are left until Tithe ends, because closing it might never end.
                std::mem::forget(closed);
            }
        }
    }
}

impl Product for WiredTiger {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        static PROTECTIONS: [&dyn Protection; 2] = [&page_encryption::PageEncryption, &COLUMNS_EMBEDDED];
        &PROTECTIONS
    }
}

/// The name of the arm's cipher.
fn cipher_of(setup: &Setup) -> Option<&str> {
    setup.at_rest.as_ref().map(|at_rest| at_rest.cipher.as_str())
}

/// An open database of this process, with the state that its sessions share.
struct Opened {
    library: &'static Library,
    engine: Arc<Engine>,
    /// The protection with which it was opened.
    at_rest: Option<AtRest>,
    key_server: Option<KeyServer>,
    settings: Settings,
    tables: Mutex<BTreeMap<String, RecordIds>>,
}

impl Opened {
    fn tables(&self) -> MutexGuard<'_, BTreeMap<String, RecordIds>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session on `table`, as the measured clients use it.
    fn table_session(&self, table: &Table) -> Result<TableSession, Fault> {
        let mut session = self.engine.session()?;
        let mut tables = self.tables();
        let free = match tables.get(&table.name) {
            Some(free) => free.clone(),
            None => {
                let free = Arc::new(AtomicI64::new(session::first_free_record_id(&mut session, table)?));
                tables.insert(table.name.clone(), free.clone());
                free
            }
        };
        drop(tables);
        TableSession::new(self.engine.session()?, table, free)
    }
}

/// Every open database, by its folder: the engine opens a folder only once in a process.
fn all_opened() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<Opened>>> {
    static OPENED: Mutex<BTreeMap<PathBuf, Arc<Opened>>> = Mutex::new(BTreeMap::new());
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The database of `server`, opened now if it is not open; as `setup` says or not at all.
fn opened(server: &Server, setup: &Setup) -> Result<Arc<Opened>, Fault> {
    let folder = folder(server)?;
    let settings = Settings::resolve(&setup.settings)?;
    let mut all = all_opened();
    if let Some(opened) = all.get(folder) {
        let same_key =
            opened.at_rest.as_ref().map(|at_rest| &at_rest.key) == setup.at_rest.as_ref().map(|at_rest| &at_rest.key);
        let same_cipher = opened.at_rest.as_ref().map(|at_rest| &at_rest.cipher)
            == setup.at_rest.as_ref().map(|at_rest| &at_rest.cipher);
        let same_key = same_key && opened.key_server == setup.key_server;
        if same_key && same_cipher && opened.settings == settings {
            return Ok(opened.clone());
        }
        return Err(Fault::Refused("the database is open with other keys or settings".to_owned()));
    }
    let master = setup.at_rest.as_ref().map(|_| master_key(server, setup)).transpose()?;
    let library = library::library(&Search::default()).map_err(|missing| Fault::Machine(missing.what))?;
    let cipher = cipher(folder, cipher_of(setup), master.as_ref())?;
    let engine = Engine::open(library, folder, &settings, cipher)?;
    let opened = Arc::new(Opened {
        library,
        engine,
        at_rest: setup.at_rest.clone(),
        key_server: setup.key_server.clone(),
        settings,
        tables: Mutex::default(),
    });
    all.insert(folder.to_owned(), opened.clone());
    Ok(opened)
}

/// The master key of `server`: from its key server if it has one, otherwise from its file.
fn master_key(server: &Server, setup: &Setup) -> Result<Key, Fault> {
    match &setup.key_server {
        Some(key_server) => kmip::fetch(key_server),
        None => keystore::read_master_key(&keystore::master_key_path(&server.folder)),
    }
}

/// The cipher `wanted` of the database in `folder`, which gets a data key if it is new. Refuses a database that is not
/// Tithe's, another cipher, a plain database if a cipher is wanted, and an encrypted one if none is.
fn cipher(folder: &Path, wanted: Option<&str>, master: Option<&Key>) -> Result<Option<Arc<dyn PageCipher>>, Fault> {
    let place = folder.display();
    if !folder.join(MARK).exists() {
        return Err(Fault::Refused(format!("{place} was not made by Tithe")));
    }
    let fresh = !folder.join("WiredTiger").exists();
    let name = |arm_cipher| cipher_and_implementation(arm_cipher).0;
    match (wanted.zip(master), Keystore::read(folder)?) {
        (None, None) => Ok(None),
        (None, Some(store)) => {
            Err(Fault::Refused(format!("{place} is encrypted with {}, and no encryption was asked for", store.cipher)))
        }
        (Some((wanted, master)), Some(store)) if store.cipher == name(wanted) => {
            encryptor::page_cipher(wanted, &store.unwrap(master)?).map(Some)
        }
        (Some((wanted, _)), Some(store)) => {
            let (has, wants) = (&store.cipher, name(wanted));
            Err(Fault::Refused(format!("{place} is encrypted with {has}, and {wants} was asked for")))
        }
        (Some((wanted, master)), None) if fresh => {
            let data_key = keystore::random_key()?;
            let cipher = encryptor::page_cipher(wanted, &data_key)?;
            Keystore::wrap(name(wanted), &data_key, master).write(folder)?;
            Ok(Some(cipher))
        }
        (Some(_), None) => Err(Fault::Refused(format!("{place} is not encrypted, and encryption was asked for"))),
    }
}

/// The data folder of `server`.
fn folder(server: &Server) -> Result<&Path, Fault> {
    match &server.address {
        Address::File(path) => Ok(path),
        _ => Err(Fault::Refused("WiredTiger is a folder, and this address is none".to_owned())),
    }
}
