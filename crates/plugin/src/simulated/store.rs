//! The records of each simulated server, in memory, and their file.
//!
//! A store lives as long as its file: when a folder is deleted, so is its store.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use tithe_machine::{fault::Fault, launch::Server, secret::Secret};

use crate::setup::AtRest;

/// The records of one server.
#[derive(Debug)]
pub(super) struct Store {
    file: PathBuf,
    records: Mutex<Records>,
    /// Number of its current start, among all starts of this process.
    start: AtomicU64,
    /// Operations measured so far.
    pub(super) operations: AtomicU64,
}

/// Fields by key.
pub(super) type Records = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

static STORES: Mutex<BTreeMap<PathBuf, Arc<Store>>> = Mutex::new(BTreeMap::new());

/// Starts of this process so far. A run starts its servers one after the other, so the same run has the same numbers.
static STARTS: AtomicU64 = AtomicU64::new(0);

fn next_start() -> u64 {
    STARTS.fetch_add(1, Ordering::Relaxed)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave a map half changed here: each change is a single call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_of(server: &Server) -> Result<PathBuf, Fault> {
    let folder = server.paths.data.first();
    folder
        .map(|folder| folder.join("records"))
        .ok_or_else(|| Fault::Connection("this server has no data folder".to_owned()))
}

/// Makes an empty store and its file.
pub(super) fn create(server: &Server, at_rest: Option<&AtRest>) -> Result<(), Fault> {
    let file = file_of(server)?;
    if file.exists() {
        return Err(Fault::Refused(format!("{} is there already", file.display())));
    }
    let (start, operations) = (AtomicU64::new(next_start()), AtomicU64::new(0));
    let store = Store { file: file.clone(), records: Mutex::default(), start, operations };
    store.write(at_rest)?;
    lock(&STORES).insert(file, Arc::new(store));
    Ok(())
}

/// The store of `server`.
pub(super) fn find(server: &Server) -> Result<Arc<Store>, Fault> {
    let file = file_of(server)?;
    let mut stores = lock(&STORES);
    if !file.exists() {
        stores.remove(&file);
    }
    stores
        .get(&file)
        .cloned()
        .ok_or_else(|| Fault::Connection("nothing was created on this simulated server".to_owned()))
}

/// Restarts `server` on its data; open connections stay on the start before.
pub(super) fn start_anew(server: &Server) {
    if let Ok(store) = find(server) {
        store.start.store(next_start(), Ordering::Relaxed);
    }
}

/// Removes the store of `server` and its file.
pub(super) fn remove(server: &Server) -> Result<(), Fault> {
    let file = file_of(server)?;
    lock(&STORES).remove(&file);
    fs::remove_file(&file).map_err(|error| Fault::machine(file.display(), error))
}

impl Store {
    /// Number of its current start.
    pub(super) fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    /// The records, for one operation.
    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        lock(&self.records)
    }

    /// Writes every record to the file, sealed if `at_rest` is set.
    pub(super) fn write(&self, at_rest: Option<&AtRest>) -> Result<(), Fault> {
        let mut content = Vec::new();
        for (key, fields) in self.records().iter() {
            content.extend_from_slice(key);
            for field in fields {
                content.push(b'\t');
                content.extend_from_slice(field);
            }
            content.push(b'\n');
        }
        if let Some(at_rest) = at_rest {
            content = seal(content, &at_rest.key)?;
        }
        write(&self.file, &content)
    }
}

fn write(file: &Path, content: &[u8]) -> Result<(), Fault> {
    fs::write(file, content).map_err(|error| Fault::machine(file.display(), error))
}

/// AES-256-GCM of the whole file under a random nonce: a file is sealed a few times a run, far below the limit of
/// 2³² of NIST SP 800-38D, section 8.3.
fn seal(mut content: Vec<u8>, key: &Secret) -> Result<Vec<u8>, Fault> {
    let key =
        UnboundKey::new(&AES_256_GCM, key.expose()).map_err(|_| Fault::Machine("a seal needs 32 bytes".to_owned()))?;
    let random = Secret::random(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(random.expose()).expect("a nonce's length was asked for");
    LessSafeKey::new(key)
        .seal_in_place_append_tag(nonce, Aad::empty(), &mut content)
        .map_err(|_| Fault::Machine("the records are too long to seal".to_owned()))?;
    Ok([random.expose(), &content].concat())
}
