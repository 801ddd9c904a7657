//! The key of a record: `CoreWorkload.buildKeyName`.

use super::{config::Keys, generator::fnv_hash};

/// Longest decimal form of a 64-bit number, its sign included.
const DIGITS: usize = 20;

impl Keys {
    /// Length of the longest key, bytes.
    pub fn longest(&self) -> usize {
        self.prefix.len() + self.zero_padding.max(DIGITS)
    }

    /// Writes the key of `record` into `key`, replacing its content: the prefix, zeros, and the number or its hash.
    #[inline]
    pub fn write(&self, record: i64, key: &mut Vec<u8>) {
        let number = if self.ordered { record } else { fnv_hash(record) };
        key.clear();
        key.extend_from_slice(self.prefix.as_bytes());
        push_decimal(number, self.zero_padding, key);
    }
}

/// Appends the decimal form of `number`, with zeros before it (and before its sign, as in YCSB) up to `width` bytes.
#[inline]
pub(super) fn push_decimal(number: i64, width: usize, text: &mut Vec<u8>) {
    let mut rest = number.unsigned_abs();
    let digits = rest.checked_ilog10().map_or(1, |log| log as usize + 1);
    let length = digits + usize::from(number < 0);
    text.resize(text.len() + width.saturating_sub(length), b'0');
    if number < 0 {
        text.push(b'-');
    }
    let start = text.len();
    text.resize(start + digits, b'0');
    // Two digits at a time: the divisions depend on each other and are most of the cost.
    let mut pairs = text[start..].rchunks_exact_mut(2);
    for pair in &mut pairs {
        let value = (rest % 100) as u8;
        rest /= 100;
        pair.copy_from_slice(&[b'0' + value / 10, b'0' + value % 10]);
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + rest as u8;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(ordered: bool, zero_padding: usize, record: i64) -> String {
        let keys = Keys { prefix: "user".to_owned(), ordered, zero_padding };
        let mut key = b"left over".to_vec();
        keys.write(record, &mut key);
        assert!(key.len() <= keys.longest());
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn keys_as_in_ycsb() {
        assert_eq!(key(false, 1, 0), "user6284781860667377211");
        assert_eq!(key(true, 1, 0), "user0");
        assert_eq!(key(true, 8, 5), "user00000005");
        assert_eq!(key(true, 2, 12345), "user12345");
    }

    proptest! {
        #[test]
        fn decimals_are_those_of_the_standard_library(number: i64) {
            for number in [number, number >> 40, number >> 56, i64::MIN, 0] {
                let mut digits = Vec::new();
                push_decimal(number, 0, &mut digits);
                prop_assert_eq!(String::from_utf8(digits).unwrap(), number.to_string());
            }
        }
    }
}
