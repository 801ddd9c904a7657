//! Key and values of the current record, in memory that is reused for the next one.

use tithe_plugin::session::Fields;

use super::{
    Shared,
    values::{KeyHash, write_derived},
};

/// The record of a request, with the values that it writes.
pub(super) struct Record {
    key: Vec<u8>,
    hash: KeyHash,
    /// Field, and its version in the pool or its place in `derived`.
    fields: Vec<(usize, usize)>,
    /// Values that are derived from their key, one after the other.
    derived: Vec<u8>,
    /// Always empty: only its memory is reused.
    spare: Vec<(usize, &'static [u8])>,
}

impl Record {
    /// Room for any record of the workload.
    pub(super) fn new(shared: &Shared) -> Self {
        let fields = shared.config.fields;
        let derived = if shared.pool.is_some() { 0 } else { fields * shared.longest_value() + shared.longest_start() };
        Self {
            key: Vec::with_capacity(shared.config.keys.longest()),
            hash: KeyHash::new(b""),
            fields: Vec::with_capacity(fields),
            derived: Vec::with_capacity(derived),
            spare: Vec::with_capacity(fields),
        }
    }

    /// The key.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The hash that its values depend on.
    pub(super) fn hash(&self) -> KeyHash {
        self.hash
    }

    /// Becomes record `number`, without values.
    pub(super) fn set(&mut self, shared: &Shared, number: i64) {
        shared.config.keys.write(number, &mut self.key);
        self.hash = KeyHash::new(&self.key);
        self.fields.clear();
        self.derived.clear();
    }

    /// Makes the values of `fields`, in `version` if the pool has several.
    pub(super) fn fill(&mut self, shared: &Shared, fields: Fields, version: usize) {
        let numbers = match fields {
            Fields::All => 0..shared.config.fields,
            Fields::One(field) => field..field + 1,
        };
        for field in numbers {
            let place = if shared.pool.is_some() { version } else { self.derived.len() };
            if shared.pool.is_none() {
                let prefix = shared.config.field_prefix.as_bytes();
                write_derived(&self.key, prefix, field, shared.longest_value(), &mut self.derived);
            }
            self.fields.push((field, place));
        }
    }

    /// Lends key and values to `send`.
    pub(super) fn with<T>(&mut self, shared: &Shared, send: impl FnOnce(&[u8], &[(usize, &[u8])]) -> T) -> T {
        let mut values = emptied(std::mem::take(&mut self.spare));
        values.extend(self.fields.iter().map(|&(field, place)| {
            let value = match &shared.pool {
                Some(pool) => pool.value(self.hash, field, place),
                None => &self.derived[place..place + shared.longest_value()],
            };
            (field, value)
        }));
        let result = send(&self.key, &values);
        self.spare = emptied(values);
        result
    }
}

/// The same memory for slices with another lifetime: the standard library collects in place.
fn emptied<'a>(mut values: Vec<(usize, &[u8])>) -> Vec<(usize, &'a [u8])> {
    values.clear();
    values.into_iter().map(|_| -> (usize, &'a [u8]) { unreachable!("the list is empty") }).collect()
}

#[cfg(test)]
mod tests {
    use super::emptied;

    #[test]
    fn the_list_keeps_its_memory() {
        let values: Vec<(usize, &[u8])> = Vec::with_capacity(10);
        let place = values.as_ptr().addr();
        let values = emptied(values);
        assert_eq!((values.as_ptr().addr(), values.capacity()), (place, 10));
    }
}
