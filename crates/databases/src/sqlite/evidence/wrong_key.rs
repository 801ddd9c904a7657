//! Does anything but the key open the file?

use std::path::Path;

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    setup::AtRest,
};

use super::Copy;
use crate::{
    evidence::wrong_key::of_attempts,
    sqlite::connection::{Connection, Mode},
};

/// Opens a copy of the file with the arm's own key, without a key, and with a wrong one. Id `wrong-key`.
///
/// A copy, because a connection with a wrong key must not touch a file that will still be measured.
pub struct WrongKey;

impl Check for WrongKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-key")
    }

    fn claim(&self) -> String {
        "the file does not open without a key or with a wrong one".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let copy = Copy::of(context, self.id())?;
        let own = context.setup.at_rest.as_ref();
        let tables = read_schema(&copy.path, own)?;
        let Some(own) = own else {
            return Ok(Observation::Exposed(format!("without a key: {tables} tables and indexes read")));
        };
        let wrong = AtRest { cipher: own.cipher.clone(), key: wrong_key(&own.key) };
        of_attempts([("without a key", None), ("with a wrong key", Some(&wrong))].map(|(attempt, at_rest)| {
            (attempt, read_schema(&copy.path, at_rest).map(|tables| format!("{tables} tables and indexes read")))
        }))
    }
}

/// Number of tables and indexes, read with this key and without Tithe's other checks.
fn read_schema(path: &Path, at_rest: Option<&AtRest>) -> Result<String, Fault> {
    let mut connection = Connection::open(path, Mode::ReadOnly)?;
    if let Some(at_rest) = at_rest {
        connection.unlock(at_rest)?;
    }
    connection.scalar("SELECT count(*) FROM sqlite_master")
}

/// A key of the same form with another last character. A digit stays a digit and a letter a–f such a letter, as a raw
/// key requires.
fn wrong_key(key: &Secret) -> Secret {
    let mut bytes = key.expose().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last = if *last == b'0' { b'1' } else { b'0' };
    }
    Secret::new(bytes)
}
