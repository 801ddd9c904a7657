//! Is a changed byte noticed?

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::{Fields, KeyValueSession, Request, Rows},
};

use super::{Copy, Probe, text};
use crate::sqlite::key_value;

/// Flips one bit in a page of a copy of the file that holds a long value, and reads the value back. Id `tamper`.
///
/// A disclosure: if it is exposed, encryption without authentication (aes256cbc) still keeps its promise.
pub struct Tamper;

/// Pages that the value fills. The pages around its middle hold nothing else, so SQLite's own checks of the page
/// structure do not notice the change.
const PAGES: usize = 4;

/// Largest page of SQLite, bytes.
const PAGE_BYTES: usize = 65_536;

impl Check for Tamper {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("tamper")
    }

    fn claim(&self) -> String {
        "a changed byte in the file is noticed on reading".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut values = vec![Vec::new(); context.table.fields];
        if let Some(first) = values.first_mut() {
            *first = text(context, self.id(), PAGES * PAGE_BYTES);
        }
        let probes = [Probe::new(context, self.id(), 0, values)];
        let changed = Probe::write(&probes, context)?;
        let copy = Copy::of(context, self.id())?;
        Probe::remove(&probes, context)?;
        let [probe] = probes;
        if let Outcome::Other(what) = read_back(&copy.path, context, &probe) {
            return Ok(Observation::Unknown(format!("before any change: {what}")));
        }
        // Which of the changed pages hold the value cannot be seen from outside, but most of them do, the last ones
        // first.
        for page in changed.pages.iter().rev() {
            let position = page * changed.page_size + changed.page_size / 2;
            flip(&copy.path, position)?;
            let outcome = read_back(&copy.path, context, &probe);
            flip(&copy.path, position)?;
            match outcome {
                Outcome::AsWritten => {}
                Outcome::Different => {
                    return Ok(Observation::Exposed(format!("page {page}: another value was served")));
                }
                Outcome::Other(what) => return Ok(Observation::Protected(format!("page {page}: {what}"))),
            }
        }
        Ok(Observation::Unknown("no changed byte was read".to_owned()))
    }
}

/// The result of reading the value back.
enum Outcome {
    AsWritten,
    Different,
    /// An error, as the database reports it.
    Other(String),
}

fn read_back(path: &Path, context: &CheckContext<'_>, probe: &Probe) -> Outcome {
    let mut compared = Compare { probe, fields: 0, equal: true };
    let read = key_value(path, context.setup, context.table)
        .and_then(|mut session| session.call(&Request::Read { key: &probe.key, fields: Fields::All }, &mut compared));
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

/// Inverts the lowest bit of the byte at `position`.
fn flip(path: &Path, position: usize) -> Result<(), Fault> {
    let mut byte = [0];
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .and_then(|file| {
            file.read_exact_at(&mut byte, position as u64)?;
            file.write_all_at(&[byte[0] ^ 1], position as u64)
        })
        .map_err(|error| Fault::machine("cannot change the copy", error))
}
