//! Is a changed page noticed?

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::{Fields, KeyValueSession, Request, Rows},
};

use super::{Copy, Probe, session};
use crate::wiredtiger::{FILE_UNIT, opened, session::records_file};

/// Changes a page with a long value in a copy, so that the engine's checksum stays right, and reads the value back. Id
/// `tamper`.
///
/// A checksum (CRC-32C) protects against failing disks; attackers change a page as here. A disclosure: if it is
/// exposed, encryption without authentication (aes-256-cbc) still keeps its promise.
pub struct Tamper;

/// Length of the value, bytes: several times the largest page, so that it fills one of its own.
const VALUE_BYTES: usize = 200_000;

impl Check for Tamper {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("tamper")
    }

    fn claim(&self) -> String {
        "a page that was changed with its checksum kept right is noticed on reading".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut values = vec![Vec::new(); context.table.fields];
        if let Some(first) = values.first_mut() {
            // Random bytes: a compressor would notice a change that the cipher does not.
            *first = vec![0; VALUE_BYTES];
            getrandom::fill(first).map_err(|error| Fault::machine("random bytes", error))?;
        }
        let probes = [Probe::new(context, self.id(), 0, values)];
        let changed = Probe::write(&probes, context)?;
        let copy = Copy::of(context, self.id())?;
        Probe::remove(&probes, context)?;
        let [probe] = probes;
        if !matches!(read_back(&copy, context, &probe), Outcome::AsWritten) {
            return Ok(Observation::Unknown("the copy does not hold the value".to_owned()));
        }
        let file = copy.folder.join(records_file(context.table));
        let places = within_value(&changed);
        if places.is_empty() {
            return Ok(Observation::Unknown("the value is not in the documents' file".to_owned()));
        }
        for unit in places {
            forge(&file, (unit * FILE_UNIT + FILE_UNIT / 2) as u64)?;
        }
        Ok(match read_back(&copy, context, &probe) {
            Outcome::AsWritten => Observation::Unknown("the changed page was not read".to_owned()),
            Outcome::Different => Observation::Exposed("another value was served".to_owned()),
            Outcome::Other(what) => Observation::Protected(what),
        })
    }
}

/// The result of reading the value back.
enum Outcome {
    AsWritten,
    Different,
    /// An error, as the engine reports it.
    Other(String),
}

fn read_back(copy: &Copy, context: &CheckContext<'_>, probe: &Probe) -> Outcome {
    let mut compared = Compare { probe, fields: 0, equal: true };
    let read = opened(context.server, context.setup).and_then(|opened| {
        let engine = copy.open(context, opened.engine.cipher())?;
        let mut session = session(&engine, context.table)?;
        session.call(&Request::Read { key: &probe.key, fields: Fields::All }, &mut compared)
    });
    match read {
        Err(fault) => Outcome::Other(fault.to_string()),
        Ok(_) if compared.equal && compared.fields == probe.values.len() => Outcome::AsWritten,
        Ok(_) => Outcome::Different,
    }
}

/// Compares the delivered value with the probe.
struct Compare<'a> {
    probe: &'a Probe,
    fields: usize,
    equal: bool,
}

impl Rows for Compare<'_> {
    fn row(&mut self, _key: Option<&[u8]>) {}

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        self.fields += 1;
        self.equal &= value == self.probe.values.get(field).map(Vec::as_slice);
    }
}

/// Units of the value, chosen from the ascending `changed` ones: at a quarter and at three quarters of every run that
/// is long enough for it. So two adjacent copies are both hit, and never at their beginning, where a page has its
/// structure. The engine may have written the page twice; only the later copy is read.
fn within_value(changed: &[usize]) -> Vec<usize> {
    let runs = changed.chunk_by(|unit, next| unit + 1 == *next);
    let long = runs.filter(|run| run.len() >= VALUE_BYTES / FILE_UNIT);
    long.flat_map(|run| [run[run.len() / 4], run[run.len() * 3 / 4]]).collect()
}

/// Changes five bytes of the file at `path`, from `position` on, by a multiple of the checksum's polynomial.
fn forge(path: &Path, position: u64) -> Result<(), Fault> {
    let mut bytes = [0; 5];
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .and_then(|file| {
            file.read_exact_at(&mut bytes, position)?;
            bytes.iter_mut().zip(unseen_change()).for_each(|(byte, change)| *byte ^= change);
            file.write_all_at(&bytes, position)
        })
        .map_err(|error| Fault::machine("cannot change the copy", error))
}

/// A change that CRC-32C does not detect: its polynomial itself (RFC 3720, section B.4: 0x11EDC6F41), since the
/// checksum is the remainder of a division by it. The lowest bit of a byte is the first.
fn unseen_change() -> [u8; 5] {
    const POLYNOMIAL: u64 = 0x1_1EDC_6F41;
    let mut change = [0; 5];
    for bit in 0..33 {
        change[bit / 8] |= ((POLYNOMIAL >> (32 - bit) & 1) as u8) << (bit % 8);
    }
    change
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// CRC-32C, bit by bit.
    fn checksum(bytes: &[u8]) -> u32 {
        let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
        !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
    }

    proptest! {
        #[test]
        fn the_checksum_does_not_see_the_change(mut bytes in prop::collection::vec(any::<u8>(), 5..100), place: prop::sample::Index) {
            let place = place.index(bytes.len() - 4);
            let (before, sum) = (bytes.clone(), checksum(&bytes));
            bytes[place..place + 5].iter_mut().zip(unseen_change()).for_each(|(byte, change)| *byte ^= change);
            prop_assert_ne!(&bytes, &before);
            prop_assert_eq!(checksum(&bytes), sum);
        }
    }

    #[test]
    fn the_checksum_is_crc32c() {
        // RFC 3720, section B.4: 32 bytes of zeros.
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn long_runs_are_found() {
        let long = VALUE_BYTES / FILE_UNIT;
        let changed: Vec<_> = [1, 2, 3].into_iter().chain(10..10 + long).chain(100..100 + 2 * long).collect();
        assert_eq!(within_value(&changed), [10 + long / 4, 10 + long * 3 / 4, 100 + long / 2, 100 + long * 3 / 2]);
        assert!(within_value(&[]).is_empty());
    }
}
