//! Evidence about a data folder: checks that are only possible with an embedded engine.
//!
//! The harness searches for canaries and master keys in files, in the same way for every database.

pub mod cache;
pub mod data_key;
pub mod idle;
pub mod key_server;
pub mod keys_locked;
pub mod repeats;
pub mod rotation;
pub mod tamper;
pub mod wrong_key;

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hasher},
    io::{BufReader, ErrorKind, Read},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicI64},
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    evidence::CheckContext,
    session::{Discard, KeyValueSession, Request, Table},
};

use super::{
    FILE_UNIT,
    encryptor::cipher::PageCipher,
    engine::Engine,
    folder, opened,
    session::{TableSession, records_file},
    settings::Settings,
};

/// A copy of the arm's data folder, which a check may change. Removed when dropped.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn of(context: &CheckContext<'_>, check: &str) -> Result<Self, Fault> {
        context.database.quiesce(context.server, context.setup, context.table)?;
        let copy = Self { folder: context.server.folder.join(format!("tithe-{check}-{:016x}", context.nonce)) };
        let opened = opened(context.server, context.setup)?;
        opened.engine.backup(folder(context.server)?, &copy.folder)?;
        Ok(copy)
    }

    /// Opens the copy with `cipher` and with as little background work as possible.
    fn open(&self, context: &CheckContext<'_>, cipher: Option<Arc<dyn PageCipher>>) -> Result<Arc<Engine>, Fault> {
        let given = &context.setup.settings;
        let settings = Settings {
            cache_size_mb: 16,
            commit_interval_ms: 0,
            checkpoint_interval_s: 0,
            eviction_threads: 1,
            ..Settings::resolve(given)?
        };
        Engine::open(opened(context.server, context.setup)?.library, &self.folder, &settings, cipher)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // The folder is deleted with the arm anyway.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A session on the table of a copy.
fn session(engine: &Arc<Engine>, table: &Table) -> Result<TableSession, Fault> {
    // Nothing is inserted there, so no record id is needed.
    TableSession::new(engine.session()?, table, Arc::new(AtomicI64::new(0)))
}

/// One record, written through the measured path and removed again by [`Probe::remove`].
struct Probe {
    key: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl Probe {
    /// A probe whose key no workload uses: it sorts before the `user` of YCSB's keys.
    fn new(context: &CheckContext<'_>, check: &str, number: usize, values: Vec<Vec<u8>>) -> Self {
        Self { key: format!("{check}-{:016x}-{number}", context.nonce).into_bytes(), values }
    }

    /// Writes `probes` and settles; returns the numbers of the changed units of the documents' file.
    fn write(probes: &[Self], context: &CheckContext<'_>) -> Result<Vec<usize>, Fault> {
        let file = documents(context)?;
        context.database.quiesce(context.server, context.setup, context.table)?;
        let before = digests(&file)?;
        let mut session = opened(context.server, context.setup)?.table_session(context.table)?;
        for probe in probes {
            let values: Vec<_> = probe.values.iter().map(Vec::as_slice).enumerate().collect();
            session.call(&Request::Insert { key: &probe.key, values: &values }, &mut Discard)?;
        }
        drop(session);
        context.database.quiesce(context.server, context.setup, context.table)?;
        let after = digests(&file)?;
        Ok((0..after.len()).filter(|unit| before.get(unit) != after.get(unit)).collect())
    }

    fn remove(probes: &[Self], context: &CheckContext<'_>) -> Result<(), Fault> {
        let mut session = opened(context.server, context.setup)?.table_session(context.table)?;
        for probe in probes {
            session.call(&Request::Delete { key: &probe.key }, &mut Discard)?;
        }
        Ok(())
    }
}

/// The file of the arm's documents.
fn documents(context: &CheckContext<'_>) -> Result<PathBuf, Fault> {
    Ok(folder(context.server)?.join(records_file(context.table)))
}

/// A digest of every unit of the file at `path`, to find changed ones without keeping the file in memory.
fn digests(path: &Path) -> Result<BTreeMap<usize, u64>, Fault> {
    let mut digests = BTreeMap::new();
    each_unit(path, |number, unit| {
        let mut hasher = DefaultHasher::new();
        hasher.write(unit);
        digests.insert(number, hasher.finish());
    })?;
    Ok(digests)
}

/// Calls `observe` with the number and the bytes of every unit of the file at `path`: a page is one or several of them.
fn each_unit(path: &Path, mut visit: impl FnMut(usize, &[u8])) -> Result<(), Fault> {
    let fault = |error| Fault::machine(path.display(), error);
    let mut file = BufReader::with_capacity(1 << 20, fs::File::open(path).map_err(fault)?);
    let mut unit = vec![0; FILE_UNIT];
    for number in 0.. {
        match file.read_exact(&mut unit) {
            Ok(()) => visit(number, &unit),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(fault(error)),
        }
    }
    Ok(())
}

/// The header of a page: `WT_PAGE_HEADER` and `WT_BLOCK_HEADER` (`src/include/btmem.h` and `block.h` of WiredTiger
/// 3.2), little-endian. Its type is byte 24, its flags are byte 25, byte 26 is zero, byte 27 is its version, and bytes
/// 28 to 31 are its length on disk.
struct PageHead {
    /// It is a list of free places.
    list: bool,
    /// The engine gave it to an encryptor.
    encrypted: bool,
    /// Length of the page.
    units: usize,
}

impl PageHead {
    /// The header at the beginning of `unit`; `None` in the middle of a page, where bytes look like a header only by
    /// chance, one time in 2^30.
    fn of(unit: &[u8]) -> Option<Self> {
        /// `WT_PAGE_BLOCK_MANAGER`, the first of the types.
        const LIST: u8 = 1;
        /// `WT_PAGE_ROW_LEAF`, the last of them.
        const ROW_LEAF: u8 = 7;
        /// `WT_PAGE_VERSION_TS`, the highest: lists have it, pages of tables have 0.
        const VERSION: u8 = 1;
        /// `WT_PAGE_ENCRYPTED`.
        const ENCRYPTED: u8 = 8;
        let kind = *unit.get(24)?;
        let length = u32::from_le_bytes(unit.get(28..32)?.try_into().ok()?) as usize;
        let fits = length != 0 && length.is_multiple_of(FILE_UNIT) && unit[26] == 0 && unit[27] <= VERSION;
        (fits && (LIST..=ROW_LEAF).contains(&kind)).then_some(Self {
            list: kind == LIST,
            encrypted: unit[25] & ENCRYPTED != 0,
            units: length / FILE_UNIT,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_told_from_the_middle_of_a_page() {
        let mut unit = vec![0; FILE_UNIT];
        let mut texts = Vec::new();
        let mut note = |unit: &[u8]| texts.push(PageHead::of(unit).map(|head| (head.list, head.encrypted, head.units)));
        note(&unit);
        unit[24] = 1;
        unit[27] = 1;
        unit[29] = 0x20;
        note(&unit);
        unit[24] = 7;
        unit[27] = 0;
        note(&unit);
        unit[25] = 0x0C;
        note(&unit);
        unit[28] = 1;
        note(&unit);
        note(&[1; 10]);
        assert_eq!(texts, [None, Some((true, false, 2)), Some((false, false, 2)), Some((false, true, 2)), None, None]);
    }
}
