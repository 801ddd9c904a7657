//! The database itself: one file per table, to which records are only ever added, and an index of the newest record of
//! each key.
//!
//! After its first bytes a file is records: the length of the body (4 bytes, little-endian) and the body, which is
//! sealed where there is a key. The last record of a key counts; one without values says that the key was deleted.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io, iter, mem,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use tithe_machine::{fault::Fault, secret::Secret};

/// The values of a record, by field.
pub type Values = Vec<Vec<u8>>;

/// The first bytes of a file, so that a plain one is never taken for a sealed one.
const PLAIN: &[u8; 16] = b"logbook 1 plain\n";
const SEALED: &[u8; 16] = b"logbook 1 sealed";

/// Bytes of the length in front of a body.
const PREFIX: u64 = 4;

/// The place of a body in the file.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    length: usize,
}

/// One table.
pub struct Log {
    path: PathBuf,
    file: File,
    /// Where the next record goes.
    end: u64,
    key: Option<Secret>,
    cipher: Option<LessSafeKey>,
    index: BTreeMap<Vec<u8>, Place>,
}

impl Log {
    /// Creates an empty table at `path`, where no file may exist, sealed if there is a `key` of 32 bytes.
    pub fn create(path: &Path, key: Option<&Secret>) -> Result<Self, Fault> {
        let failed = |error| Fault::machine(path.display(), error);
        let file = File::options().read(true).write(true).create_new(true).open(path).map_err(failed)?;
        file.write_all_at(beginning(key), 0).map_err(failed)?;
        Self::empty(path, file, key)
    }

    /// Opens the table at `path` and indexes its records. Refuses a sealed file without its key, and a plain one with
    /// any key.
    pub fn open(path: &Path, key: Option<&Secret>) -> Result<Self, Fault> {
        let failed = |error| Fault::machine(path.display(), error);
        let file = File::options().read(true).write(true).open(path).map_err(failed)?;
        let mut first = [0; PLAIN.len()];
        file.read_exact_at(&mut first, 0).map_err(failed)?;
        if first != *beginning(key) {
            return Err(Fault::Refused(format!("the file begins with `{}`", first.escape_ascii())));
        }
        let length = file.metadata().map_err(failed)?.len();
        let mut log = Self::empty(path, file, key)?;
        while log.end < length {
            let mut prefix = [0; PREFIX as usize];
            log.file.read_exact_at(&mut prefix, log.end).map_err(failed)?;
            let place = Place { at: log.end + PREFIX, length: u32::from_le_bytes(prefix) as usize };
            let (key, values) = log.record(place)?;
            log.note(key, place, values.is_empty());
        }
        Ok(log)
    }

    fn empty(path: &Path, file: File, key: Option<&Secret>) -> Result<Self, Fault> {
        let cipher = |key: &Secret| UnboundKey::new(&AES_256_GCM, key.expose()).map(LessSafeKey::new);
        let cipher = key.map(cipher).transpose().map_err(|_| Fault::Refused("a key has 32 bytes".to_owned()))?;
        let end = PLAIN.len() as u64;
        Ok(Self { path: path.to_owned(), file, end, key: key.cloned(), cipher, index: BTreeMap::new() })
    }

    /// True if it was opened with this key.
    pub fn has_key(&self, key: Option<&Secret>) -> bool {
        self.key.as_ref() == key
    }

    /// Number of records.
    pub fn records(&self) -> usize {
        self.index.len()
    }

    /// True if there is a record of `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.index.contains_key(key)
    }

    /// The record of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Values>, Fault> {
        let Some(place) = self.index.get(key) else { return Ok(None) };
        self.record(*place).map(|(_, values)| Some(values))
    }

    /// Up to `count` records in the order of their keys, from `start` on.
    pub fn scan(&self, start: &[u8], count: usize) -> Result<Vec<(Vec<u8>, Values)>, Fault> {
        self.index.range(start.to_vec()..).take(count).map(|(_, place)| self.record(*place)).collect()
    }

    /// Writes the record of `key`; without values it is deleted.
    pub fn write(&mut self, key: &[u8], values: &[Vec<u8>]) -> Result<(), Fault> {
        let at = self.end + PREFIX;
        let mut body = encode(key, values);
        if let Some(cipher) = &self.cipher {
            body = seal(cipher, at, body)?;
        }
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        self.file.write_all_at(&bytes, self.end).map_err(|error| self.failed(error))?;
        self.note(key.to_vec(), Place { at, length: body.len() }, values.is_empty());
        Ok(())
    }

    /// Replaces the file by one with only the newest record of each key, and flushes it to the disk.
    pub fn compact(&mut self) -> Result<(), Fault> {
        let path = self.path.with_extension("new");
        let mut fresh = Self::create(&path, self.key.as_ref())?;
        for place in self.index.values() {
            let (key, values) = self.record(*place)?;
            fresh.write(&key, &values)?;
        }
        fresh.file.sync_all().and_then(|()| fs::rename(&path, &self.path)).map_err(|error| self.failed(error))?;
        *self = Self { path: mem::take(&mut self.path), ..fresh };
        Ok(())
    }

    fn note(&mut self, key: Vec<u8>, place: Place, deleted: bool) {
        self.end = place.at + place.length as u64;
        if deleted {
            self.index.remove(&key);
        } else {
            self.index.insert(key, place);
        }
    }

    fn record(&self, place: Place) -> Result<(Vec<u8>, Values), Fault> {
        let mut body = vec![0; place.length];
        self.file.read_exact_at(&mut body, place.at).map_err(|error| self.failed(error))?;
        let plain = match &self.cipher {
            Some(cipher) => unseal(cipher, place.at, &mut body)?,
            None => body.as_slice(),
        };
        decode(plain).ok_or_else(|| self.failed(io::Error::other("a record is damaged")))
    }

    fn failed(&self, error: io::Error) -> Fault {
        Fault::machine(self.path.display(), error)
    }
}

fn beginning(key: Option<&Secret>) -> &'static [u8; 16] {
    if key.is_some() { SEALED } else { PLAIN }
}

/// Key and values, each with its length (4 bytes, little-endian) in front.
fn encode(key: &[u8], values: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in iter::once(key).chain(values.iter().map(Vec::as_slice)) {
        bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<(Vec<u8>, Values)> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        parts.push(part.to_vec());
        bytes = rest;
    }
    let mut parts = parts.into_iter();
    Some((parts.next()?, parts.collect()))
}

/// `nonce ‖ ciphertext ‖ tag`. The place is authenticated, too, so a record that was moved does not open. Nonces are
/// random: a run writes far fewer records than the 2³² that NIST SP 800-38D, section 8.3, allows for one key.
fn seal(cipher: &LessSafeKey, at: u64, mut body: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let mut sealed = vec![0; NONCE_LEN];
    let failed = |_| Fault::Machine("a record could not be sealed".to_owned());
    SystemRandom::new().fill(&mut sealed).map_err(failed)?;
    let nonce = Nonce::try_assume_unique_for_key(&sealed).map_err(failed)?;
    cipher.seal_in_place_append_tag(nonce, Aad::from(at.to_le_bytes()), &mut body).map_err(failed)?;
    sealed.extend_from_slice(&body);
    Ok(sealed)
}

fn unseal<'a>(cipher: &LessSafeKey, at: u64, body: &'a mut [u8]) -> Result<&'a [u8], Fault> {
    let refused = || Fault::Refused("a record does not open with this key".to_owned());
    let (nonce, sealed) = body.split_at_mut_checked(NONCE_LEN).ok_or_else(refused)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| refused())?;
    let plain = cipher.open_in_place(nonce, Aad::from(at.to_le_bytes()), sealed).map_err(|_| refused())?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_record_counts_and_no_other_key_opens_it() {
        for key in [None, Some(Secret::random(32))] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("table.log");
            let mut log = Log::create(&path, key.as_ref()).unwrap();
            for (name, value) in [("a", "old"), ("b", "deleted"), ("a", "new")] {
                log.write(name.as_bytes(), &[value.as_bytes().to_vec()]).unwrap();
            }
            log.write(b"b", &[]).unwrap();
            let newest = [(b"a".to_vec(), vec![b"new".to_vec()])];
            assert_eq!(Log::open(&path, key.as_ref()).unwrap().scan(b"", 9).unwrap(), newest);
            let before = fs::metadata(&path).unwrap().len();
            log.compact().unwrap();
            assert!(fs::metadata(&path).unwrap().len() < before);
            assert_eq!(log.scan(b"", 9).unwrap(), newest);
            assert_eq!(Log::open(&path, key.as_ref()).unwrap().scan(b"", 9).unwrap(), newest);
            assert!(matches!(Log::open(&path, Some(&Secret::random(32))), Err(Fault::Refused(_))));
            assert_eq!(Log::open(&path, None).is_ok(), key.is_none());
        }
    }
}
