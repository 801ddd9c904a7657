//! Evidence about a database file: checks that are only possible with an embedded database.
//!
//! The harness searches for canaries and keys in files, in the same way for every database.

pub mod header;
pub mod journal;
pub mod repeats;
pub mod tamper;
pub mod wrong_key;

use std::{
    fs,
    hash::{DefaultHasher, Hasher},
    io::{BufReader, ErrorKind, Read},
    path::{Path, PathBuf},
};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    checks::canary::Source,
    evidence::CheckContext,
    session::{Discard, KeyValueSession, Request},
};

use super::{beside, checkpoint, key_value, open, path};

/// Moves written data into the file. Settling would do so, too, but it writes the whole file again, which takes as long
/// as the rest of a check. Deleted data need not be gone here.
fn flush(context: &CheckContext<'_>) -> Result<(), Fault> {
    checkpoint(&mut open(path(context.server)?, context.setup)?)
}

/// A copy of the arm's file with all written data, which a check may change. Removed when dropped.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn of(context: &CheckContext<'_>, check: &str) -> Result<Self, Fault> {
        flush(context)?;
        let copy = Self { path: context.server.folder.join(format!("tithe-{check}-{}.db", context.nonce)) };
        fs::copy(path(context.server)?, &copy.path).map_err(|error| Fault::machine("cannot copy the file", error))?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            // A missing file need not be removed, and the folder is deleted with the arm anyway.
            let _ = fs::remove_file(beside(&self.path, suffix));
        }
    }
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

    /// Writes `probes` into the file; the numbers of the pages that this changed.
    fn write(probes: &[Self], context: &CheckContext<'_>) -> Result<Changed, Fault> {
        let file = path(context.server)?;
        flush(context)?;
        let page_size = open(file, context.setup)?.scalar("PRAGMA page_size")?;
        let page_size = page_size.parse().map_err(|_| Fault::Protocol(format!("page size `{page_size}`")))?;
        let before = digests(file, page_size)?;
        let mut session = key_value(file, context.setup, context.table)?;
        for probe in probes {
            probe.insert(&mut session)?;
        }
        drop(session);
        flush(context)?;
        let after = digests(file, page_size)?;
        let pages = (0..after.len()).filter(|page| before.get(*page) != after.get(*page)).collect();
        Ok(Changed { page_size, pages })
    }

    fn insert(&self, session: &mut dyn KeyValueSession) -> Result<(), Fault> {
        let values: Vec<_> = self.values.iter().map(Vec::as_slice).enumerate().collect();
        session.call(&Request::Insert { key: &self.key, values: &values }, &mut Discard).map(drop)
    }

    fn remove(probes: &[Self], context: &CheckContext<'_>) -> Result<(), Fault> {
        let mut session = key_value(path(context.server)?, context.setup, context.table)?;
        for probe in probes {
            session.call(&Request::Delete { key: &probe.key }, &mut Discard)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }
}

/// Pages of a file, counted from 0.
struct Changed {
    page_size: usize,
    pages: Vec<usize>,
}

/// A digest of every page of the file at `path`, to find changed pages without keeping the file in memory.
fn digests(path: &Path, page_size: usize) -> Result<Vec<u64>, Fault> {
    let mut digests = Vec::new();
    each_page(path, page_size, |_, page| {
        let mut hasher = DefaultHasher::new();
        hasher.write(page);
        digests.push(hasher.finish());
    })?;
    Ok(digests)
}

/// Calls `observe` with the number and the bytes of every whole page of the file at `path`.
fn each_page(path: &Path, page_size: usize, mut visit: impl FnMut(usize, &[u8])) -> Result<(), Fault> {
    let fault = |error| Fault::machine(path.display(), error);
    let mut file = BufReader::with_capacity(1 << 20, fs::File::open(path).map_err(fault)?);
    let mut page = vec![0; page_size];
    for number in 0.. {
        match file.read_exact(&mut page) {
            Ok(()) => visit(number, &page),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(fault(error)),
        }
    }
    Ok(())
}

/// Random printable text for this run of `check`.
fn text(context: &CheckContext<'_>, check: &str, length: usize) -> Vec<u8> {
    Source::new(context, check).text(length)
}
