//! Does anything but the key open the file?

use std::path::Path;

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    setup::{AtRest, Setup},
};

use super::Copy;
use crate::{
    duckdb::{Mode, Opened},
    evidence::wrong_key::of_attempts,
};

/// Opens a copy of the file with the arm's own key, without a key, and with a wrong one. Id `wrong-key`.
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
        let tables = tables(&copy.path, context.setup, context.setup.at_rest.clone())?;
        let Some(own) = &context.setup.at_rest else {
            return Ok(Observation::Exposed(format!("without a key: {tables} tables read")));
        };
        let wrong = AtRest { cipher: own.cipher.clone(), key: wrong_key(&own.key) };
        of_attempts([("without a key", None), ("with a wrong key", Some(wrong))].map(|(attempt, at_rest)| {
            let tables = self::tables(&copy.path, context.setup, at_rest);
            (attempt, tables.map(|tables| format!("{tables} tables read")))
        }))
    }
}

/// Number of tables, read with this key by an engine of its own.
fn tables(path: &Path, setup: &Setup, at_rest: Option<AtRest>) -> Result<String, Fault> {
    let setup = Setup { at_rest, ..setup.clone() };
    let mut connection = Opened::open(path, &setup, Mode::ReadOnly)?.connection()?;
    connection.scalar("SELECT count(*) FROM duckdb_tables()")
}

/// Another key of the same length.
fn wrong_key(key: &Secret) -> Secret {
    let mut bytes = key.expose().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    Secret::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_another_one_of_the_same_length() {
        for last in [0, 1, 2, 0x7f, 0xff] {
            let key = Secret::new(vec![7, last]);
            let wrong = wrong_key(&key);
            assert!(wrong.expose().len() == 2 && wrong.expose() != key.expose(), "{last}");
        }
        assert!(wrong_key(&Secret::new(Vec::new())).expose().is_empty());
    }
}
