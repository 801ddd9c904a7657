//! Canaries: values that occur nowhere else, so that finding one proves where data went.
//!
//! A canary is drawn from 64 printable characters, so it has six random bits in eight: no dictionary compression
//! shortens it, and no quoting changes it. An entropy coder, which packs those six bits, hides it; then the positive
//! control of the check fails, and the finding is "cannot tell".

use ring::digest::{Context, SHA256};
use tithe_machine::fault::Fault;

use crate::{
    evidence::CheckContext,
    session::{Fields, KeyValueSession, Request, Rows, Session, Table},
    setup::Selection,
};

/// The prefix of every canary record's key. No key of a workload can begin with such a low character, whatever its
/// `keyprefix`, so no scan of the workload returns a canary.
pub const KEY_PREFIX: &str = "!canary";

/// Length of a token, bytes: 144 random bits.
pub const TOKEN_BYTES: usize = 24;

/// Length of a canary field, bytes: the same as YCSB's fields, so that the rows look like the workload's.
const FIELD_BYTES: usize = 100;

/// Records of one check: the first is updated in one field, the second in all.
const RECORDS: usize = 2;

/// Which canaries must not be readable.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Keys and every field value: encryption of files, of volumes, of the wire.
    Everything,
    /// The values of these fields; keys and other fields may be readable.
    Fields(Selection),
}

impl Targets {
    /// The noun of a claim: `key or field value`.
    pub fn noun(&self) -> String {
        match self {
            Self::Everything => "key or field value".to_owned(),
            Self::Fields(selection) => selection.noun(),
        }
    }
}

/// The canaries of one check.
pub struct Canaries {
    table: Table,
    records: Vec<Record>,
}

struct Record {
    key: Vec<u8>,
    inserted: Vec<Vec<u8>>,
    /// Field number and new value.
    updated: Vec<(usize, Vec<u8>)>,
}

impl Canaries {
    /// Canaries for one run of `check` on the arm of `context`. They follow from the context's nonce, the arm and the
    /// check alone, and differ between any two of them.
    pub fn new(context: &CheckContext<'_>, check: &str) -> Self {
        let mut source = Source::new(context, check);
        let records = (0..RECORDS).map(|number| Record::new(&mut source, context.table, number)).collect();
        Self { table: context.table.clone(), records }
    }

    /// Inserts every record, then updates it, through `session`.
    ///
    /// # Errors
    /// The first fault.
    pub fn write(&self, session: &mut dyn KeyValueSession) -> Result<(), Fault> {
        for record in &self.records {
            let values: Vec<_> = record.inserted.iter().map(Vec::as_slice).enumerate().collect();
            session.call(&Request::Insert { key: &record.key, values: &values }, &mut Collected::default())?;
            let values: Vec<_> = record.updated.iter().map(|(field, value)| (*field, value.as_slice())).collect();
            session.call(&Request::Update { key: &record.key, values: &values }, &mut Collected::default())?;
        }
        Ok(())
    }

    /// Reads every record back, to prove that a canary that is not found was written.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if a record is not as it was written; the session's own fault.
    pub fn read_back(&self, session: &mut dyn KeyValueSession) -> Result<(), Fault> {
        for record in &self.records {
            if read(session, &record.key)? != record.last() {
                return Err(Fault::Wrong("a canary did not come back as it was written".to_owned()));
            }
        }
        Ok(())
    }

    /// Removes every record through `session`.
    ///
    /// # Errors
    /// The first fault.
    pub fn remove(&self, session: &mut dyn KeyValueSession) -> Result<(), Fault> {
        for record in &self.records {
            session.call(&Request::Delete { key: &record.key }, &mut Collected::default())?;
        }
        Ok(())
    }

    /// The old value of the replaced field, and a value of the removed record; each with the operation that removed it.
    /// A table has fields.
    pub fn replaced_and_removed(&self) -> Vec<(String, &'static str)> {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let first = self.records.first();
        let replaced =
            first.and_then(|record| record.inserted.first()).map(|value| (text(value), "an update replaced"));
        let removed =
            first.and_then(|record| record.updated.first()).map(|(_, value)| (text(value), "went with its row"));
        replaced.into_iter().chain(removed).collect()
    }

    /// The tokens that must not be readable if `targets` are protected.
    pub fn tokens(&self, targets: &Targets) -> Vec<&[u8]> {
        let (keys, fields) = match targets {
            Targets::Everything => (true, (0..self.table.fields).collect()),
            Targets::Fields(selection) => (false, selection.of(&self.table)),
        };
        self.records.iter().flat_map(|record| record.tokens(keys, &fields)).collect()
    }
}

impl Record {
    fn new(source: &mut Source, table: &Table, number: usize) -> Self {
        let key = [KEY_PREFIX.as_bytes(), &source.text(TOKEN_BYTES)].concat();
        let inserted: Vec<_> = (0..table.fields).map(|_| source.text(FIELD_BYTES)).collect();
        let updated_fields = if number == 0 { table.fields.min(1) } else { table.fields };
        let updated = (0..updated_fields).map(|field| (field, source.text(FIELD_BYTES))).collect();
        Self { key, inserted, updated }
    }

    fn last(&self) -> Vec<Option<Vec<u8>>> {
        let mut values: Vec<_> = self.inserted.iter().cloned().map(Some).collect();
        for (field, value) in &self.updated {
            values[*field] = Some(value.clone());
        }
        values
    }

    fn tokens(&self, key: bool, fields: &[usize]) -> Vec<&[u8]> {
        let key = key.then(|| &self.key[KEY_PREFIX.len()..]);
        let inserted = fields.iter().map(|field| &self.inserted[*field]);
        let updated = self.updated.iter().filter(|(field, _)| fields.contains(field)).map(|(_, value)| value);
        key.into_iter().chain(inserted.chain(updated).map(|value| &value[..TOKEN_BYTES])).collect()
    }
}

/// A stream of printable text that depends on context, arm and check: SHA-256 in counter mode.
pub struct Source {
    digest: Context,
    counter: u64,
}

impl Source {
    /// The stream for one run of `check` on the arm of `context`.
    pub fn new(context: &CheckContext<'_>, check: &str) -> Self {
        let mut digest = Context::new(&SHA256);
        digest.update(b"tithe canary");
        digest.update(&context.nonce.to_be_bytes());
        digest.update(&[u8::from(context.protected)]);
        digest.update(check.as_bytes());
        Self { digest, counter: 0 }
    }

    /// The next `length` characters: letters, digits, `-` and `_`.
    pub fn text(&mut self, length: usize) -> Vec<u8> {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut text = Vec::with_capacity(length);
        while text.len() < length {
            let mut block = self.digest.clone();
            block.update(&self.counter.to_be_bytes());
            self.counter += 1;
            text.extend(block.finish().as_ref().iter().map(|byte| ALPHABET[usize::from(byte & 63)]));
        }
        text.truncate(length);
        text
    }
}

/// The rows of an answer, copied.
#[derive(Debug, Default)]
pub struct Collected {
    /// Row by row, the fields by number; a field that was not delivered is `None`, like SQL's NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Rows for Collected {
    fn row(&mut self, _key: Option<&[u8]>) {
        self.rows.push(Vec::new());
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        let Some(row) = self.rows.last_mut() else { return };
        if row.len() <= field {
            row.resize(field + 1, None);
        }
        row[field] = value.map(<[u8]>::to_vec);
    }
}

/// All fields of the record `key`.
///
/// # Errors
/// [`Fault::Wrong`] if there is not exactly one such record; the session's own fault.
pub fn read(session: &mut dyn KeyValueSession, key: &[u8]) -> Result<Vec<Option<Vec<u8>>>, Fault> {
    let mut collected = Collected::default();
    session.call(&Request::Read { key, fields: Fields::All }, &mut collected)?;
    match <[_; 1]>::try_from(collected.rows) {
        Ok([row]) => Ok(row),
        Err(rows) => Err(Fault::Wrong(format!("{} records for one key", rows.len()))),
    }
}

/// The key-value session in `session`.
///
/// # Errors
/// [`Fault::Refused`] for a SQL session: canaries are records.
pub fn key_value(session: Session) -> Result<Box<dyn KeyValueSession>, Fault> {
    match session {
        Session::KeyValue(session) => Ok(session),
        Session::Sql(_) => Err(Fault::Refused("canaries are written through key-value sessions only".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::test_bench::Bench;

    #[test]
    fn no_two_observations_share_a_canary() {
        let bench = Bench::plain();
        let mut context = bench.context();
        let mut seen = std::collections::BTreeSet::new();
        let mut count = 0;
        for nonce in 0..8 {
            for protected in [false, true] {
                for check in ["disk-canary", "wire-canary"] {
                    (context.nonce, context.protected) = (nonce, protected);
                    let canaries = Canaries::new(&context, check);
                    let tokens = canaries.tokens(&Targets::Everything);
                    count += tokens.len();
                    seen.extend(tokens.into_iter().map(<[u8]>::to_vec));
                }
            }
        }
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn keys_are_canaries_of_everything_only() {
        let bench = Bench::plain();
        let canaries = Canaries::new(&bench.context(), "test");
        // Two records of ten fields: two keys, twenty inserted values, one and ten updated ones.
        assert_eq!(canaries.tokens(&Targets::Everything).len(), 2 + 20 + 1 + 10);
        assert_eq!(canaries.tokens(&Targets::Fields(Selection::of_share(1.0))).len(), 20 + 1 + 10);
        assert_eq!(canaries.tokens(&Targets::Fields(Selection::of_share(0.2))).len(), 4 + 1 + 2);
        let named = Selection { share: 1.0, names: vec!["field3".to_owned(), "field0".to_owned()] };
        assert_eq!(canaries.tokens(&Targets::Fields(named)).len(), 4 + 1 + 2);
        assert!(canaries.records.iter().all(|record| record.key[0] < b'0'), "below what begins a name");
    }

    #[test]
    fn a_canary_that_was_not_kept_or_not_removed_is_noticed() {
        let bench = Bench::plain();
        let context = bench.context();
        let canaries = Canaries::new(&context, "test");
        let mut session = key_value(context.connect().unwrap()).unwrap();
        canaries.write(session.as_mut()).unwrap();
        assert_eq!(canaries.read_back(session.as_mut()), Ok(()));
        let values = [(3, b"another value".as_slice())];
        let other = Request::Update { key: &canaries.records[1].key, values: &values };
        session.call(&other, &mut Collected::default()).unwrap();
        assert!(matches!(canaries.read_back(session.as_mut()), Err(Fault::Wrong(_))));
        canaries.remove(session.as_mut()).unwrap();
        for record in &canaries.records {
            assert!(read(session.as_mut(), &record.key).is_err(), "it is still there");
        }
    }
}
