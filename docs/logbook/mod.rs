//! The logbook: a key-value store with one file per table, inside Tithe's own process. It shows what a database needs.

mod record_encryption;
mod session;
mod store;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tithe_machine::{
    fault::Fault,
    launch::{Address, Install, Launch, Missing, Place, Search, Server, Step},
    paths::Paths,
    secret::Secret,
};
use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};
use tithe_plugin::{
    database::{Connect, Database},
    product::Product,
    protection::Protection,
    session::{Session, Table},
    setup::Setup,
};

use self::{session::LogSession, store::Log};

/// The logbook, compiled into Tithe.
pub struct Logbook;

static ENTRY: DatabaseEntry = DatabaseEntry {
    id: "logbook",
    title: "Logbook",
    embedded: true,
    // All sessions share its index in memory, whose addresses change the cost; so it is read again for every frame.
    restarts: true,
    keeps_data: true,
    ..DatabaseEntry::BARE
};

const VERSION: &str = "logbook 1";

impl Database for Logbook {
    fn entry(&self) -> &'static DatabaseEntry {
        &ENTRY
    }

    fn check_settings(&self, settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        match settings.keys().next() {
            Some(name) => Err(Fault::Refused(format!("there is no setting `{name}`: the logbook has none"))),
            None => Ok(()),
        }
    }

    fn find(&self, _search: &Search) -> Result<Install, Missing> {
        Ok(Install { version: VERSION.to_owned(), ..Install::default() })
    }

    fn launch(&self, _install: &Install, _setup: &Setup, place: &Place) -> Launch {
        let folder = place.folder.join("data");
        Launch {
            steps: vec![Step::Folder(folder.clone())],
            address: Address::File(folder.clone()),
            paths: Paths { data: vec![folder], ..Paths::default() },
            ..Launch::default()
        }
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let log = opened(server, setup, &how.table)?;
        Ok(Session::KeyValue(Box::new(LogSession::new(log))))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let path = file(server, table)?;
        let log = Log::create(&path, key(setup))?;
        all_opened().insert(path, Arc::new(Mutex::new(log)));
        Ok(())
    }

    fn remove(&self, server: &Server, _setup: &Setup, table: &Table) -> Result<(), Fault> {
        let path = file(server, table)?;
        all_opened().remove(&path);
        fs::remove_file(&path).map_err(|error| Fault::machine(path.display(), error))
    }

    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        let log = opened(server, setup, table)?;
        lock(&log).compact()
    }

    fn facts(&self, _server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        let cipher = setup.at_rest.as_ref().map_or("none", |at_rest| &at_rest.cipher).to_owned();
        let facts = BTreeMap::from([("cipher".to_owned(), cipher)]);
        Ok(ArmFacts { version: VERSION.to_owned(), facts, configuration: Vec::new() })
    }

    fn close(&self, server: &Server) {
        all_opened().retain(|path, _| !path.starts_with(&server.folder));
    }
}

impl Product for Logbook {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        &[&record_encryption::RecordEncryption]
    }
}

/// Every table that is open, by its file.
fn all_opened() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<Mutex<Log>>>> {
    static OPENED: Mutex<BTreeMap<PathBuf, Arc<Mutex<Log>>>> = Mutex::new(BTreeMap::new());
    lock(&OPENED)
}

/// The content of `mutex`. It is whole even if a client panicked: a record is noted after it was written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `table` of `server`, opened now if it is not yet; with the key of `setup` or not at all.
fn opened(server: &Server, setup: &Setup, table: &Table) -> Result<Arc<Mutex<Log>>, Fault> {
    let path = file(server, table)?;
    let mut all = all_opened();
    if let Some(log) = all.get(&path) {
        if lock(log).has_key(key(setup)) {
            return Ok(Arc::clone(log));
        }
        return Err(Fault::Refused("the table is open with another key, or without one".to_owned()));
    }
    let log = Arc::new(Mutex::new(Log::open(&path, key(setup))?));
    all.insert(path, Arc::clone(&log));
    Ok(log)
}

fn key(setup: &Setup) -> Option<&Secret> {
    setup.at_rest.as_ref().map(|at_rest| &at_rest.key)
}

/// The file of `table`.
fn file(server: &Server, table: &Table) -> Result<PathBuf, Fault> {
    match &server.address {
        Address::File(folder) => Ok(folder.join(format!("{}.log", table.name))),
        other => Err(Fault::Refused(format!("the logbook is a folder, not {other:?}"))),
    }
}
