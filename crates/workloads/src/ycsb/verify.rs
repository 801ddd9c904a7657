//! Checks every row that a database returns.
//!
//! A row must have exactly the requested fields, each with a value that was written there (see [`super::values`] for
//! what that finds and what not). A read gives one row. A scan gives at most the requested number, in ascending order
//! of their keys' bytes if the database has such an order, the first with exactly the key at which it starts. A row
//! that is missing in the middle of a scan is not detected.

use std::sync::Arc;

use tithe_machine::fault::Fault;
use tithe_plugin::session::{Fields, Rows};

use super::{
    Shared,
    record::Record,
    values::{KeyHash, Place, write_derived},
};

/// Receives the rows of one request, and stores the first error. Nothing is allocated unless there is an error.
pub(super) struct Verifier {
    shared: Arc<Shared>,
    /// Key of the current row; before the first row, the requested key.
    key: Vec<u8>,
    hash: KeyHash,
    fields: Fields,
    /// Largest number of rows; `None` for a read.
    limit: Option<u32>,
    /// The rows of a scan come in key order.
    ascending: bool,
    rows: u64,
    /// A scan began with another key than the requested one.
    starts_late: bool,
    /// Fields of the current row that have been delivered.
    seen: Vec<bool>,
    seen_count: usize,
    /// Values of the current row that are compared when it ends, one after the other in `held_bytes`: the pool is
    /// larger than the processor's caches, and the expected values of all fields are fetched at the same time.
    held: Vec<(usize, Place)>,
    held_bytes: Vec<u8>,
    /// Room for a derived value.
    expected: Vec<u8>,
    wrong: Option<String>,
}

impl Verifier {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            key: Vec::with_capacity(shared.config.keys.longest()),
            hash: KeyHash::new(b""),
            fields: Fields::All,
            limit: None,
            ascending: true,
            rows: 0,
            starts_late: false,
            seen: vec![false; shared.config.fields],
            seen_count: 0,
            held: Vec::with_capacity(shared.config.fields),
            held_bytes: Vec::with_capacity(shared.config.fields * shared.longest_value()),
            expected: Vec::with_capacity(shared.longest_value() + shared.longest_start()),
            wrong: None,
            shared,
        }
    }

    /// The next rows answer a read of `record`, or with a `limit` a scan from it on, `ascending` or in any order.
    pub(super) fn begin(&mut self, record: &Record, fields: Fields, limit: Option<u32>, ascending: bool) {
        self.key.clear();
        self.key.extend_from_slice(record.key());
        self.hash = record.hash();
        self.fields = fields;
        self.limit = limit;
        self.ascending = ascending;
        self.rows = 0;
        self.starts_late = false;
        self.held.clear();
        self.held_bytes.clear();
        self.wrong = None;
    }

    /// The answer is complete. `may_lack` allows the requested record `key` to be missing: its insert failed.
    pub(super) fn end(&mut self, key: &[u8], may_lack: impl FnOnce() -> bool) -> Result<u64, Fault> {
        if self.rows > 0 {
            self.end_row();
        }
        if let Some(problem) = self.wrong.take() {
            return Err(Fault::Wrong(problem));
        }
        let lacks = self.rows == 0 || self.starts_late;
        match (lacks && !may_lack(), self.rows) {
            (true, _) => Err(Fault::Wrong(format!("{}: there is no row, though it was written", printable(key)))),
            (false, 0) => Err(Fault::Server(format!("{}: no row, as its insert had failed", printable(key)))),
            (false, rows) => Ok(rows),
        }
    }

    fn check_key(&mut self, key: Option<&[u8]>) {
        let first = self.rows == 0;
        match (key, self.limit) {
            (None, None) => {}
            (None, Some(_)) => self.complain("a scanned row has no key"),
            (Some(key), None) => {
                if key != self.key {
                    self.complain("the row has another key");
                }
            }
            (Some(key), Some(limit)) => {
                if self.rows >= u64::from(limit) {
                    self.complain("the scan goes on beyond its limit");
                } else if (self.ascending && key < &self.key[..]) || (key == self.key && !first) {
                    self.complain("the scanned keys do not ascend");
                }
                self.starts_late |= first && key != self.key;
                self.key.clear();
                self.key.extend_from_slice(key);
                self.hash = KeyHash::new(key);
            }
        }
    }

    fn end_row(&mut self) {
        self.compare_held();
        let expected = match self.fields {
            Fields::All => self.seen.len(),
            Fields::One(_) => 1,
        };
        if self.seen_count != expected {
            let problem = format!("{} of {expected} fields", self.seen_count);
            self.complain(&problem);
        }
    }

    /// False if `value` is wrong; true if it is right, or will be compared when the row ends.
    fn is_right(&mut self, field: usize, value: &[u8]) -> bool {
        match &self.shared.pool {
            Some(pool) => match pool.expect(self.hash, field, value) {
                Some(place) => {
                    self.held.push((field, place));
                    self.held_bytes.extend_from_slice(value);
                    true
                }
                None => pool.is_value(self.hash, field, value),
            },
            None => {
                let config = &self.shared.config;
                let prefix = config.field_prefix.as_bytes();
                self.expected.clear();
                write_derived(&self.key, prefix, field, self.shared.longest_value(), &mut self.expected);
                self.expected == value
            }
        }
    }

    fn compare_held(&mut self) {
        let Some(pool) = &self.shared.pool else { return };
        let mut rest = self.held_bytes.as_slice();
        let mut first_wrong = None;
        for (field, place) in self.held.drain(..) {
            let expected = pool.at(place);
            let (value, others) = rest.split_at(expected.len());
            rest = others;
            if value != expected {
                first_wrong.get_or_insert((field, value.len()));
            }
        }
        self.held_bytes.clear();
        if let Some((field, length)) = first_wrong {
            self.complain_of_value(field, length);
        }
    }

    #[cold]
    fn complain(&mut self, problem: &str) {
        if self.wrong.is_none() {
            self.wrong = Some(format!("{}: {problem}", printable(&self.key)));
        }
    }

    #[cold]
    fn complain_of_value(&mut self, field: usize, length: usize) {
        self.complain_of(field, &format!("has a value of {length} bytes that was never written there"));
    }

    #[cold]
    fn complain_of(&mut self, field: usize, problem: &str) {
        let problem = format!("{}{field} {problem}", self.shared.config.field_prefix);
        self.complain(&problem);
    }
}

/// A key as far as it can be printed: a wrong one may be anything.
fn printable(key: &[u8]) -> String {
    key[..key.len().min(80)].escape_ascii().to_string()
}

impl Rows for Verifier {
    fn row(&mut self, key: Option<&[u8]>) {
        if self.rows > 0 {
            self.end_row();
            if self.limit.is_none() {
                self.complain("more than one row");
            }
        }
        self.check_key(key);
        self.rows += 1;
        self.seen.fill(false);
        self.seen_count = 0;
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        let asked = match self.fields {
            Fields::All => field < self.seen.len(),
            Fields::One(one) => field == one,
        };
        if !asked || std::mem::replace(&mut self.seen[field], true) {
            return self.complain_of(field, "was not asked for, or came twice");
        }
        self.seen_count += 1;
        match value {
            None => self.complain_of(field, "is NULL"),
            Some(value) if self.is_right(field, value) => {}
            Some(value) => self.complain_of_value(field, value.len()),
        }
    }
}
