//! The key of a record: `CoreWorkload.buildKeyName`.

use super::{config::Keys, generator::fnv_hash};

/// Longest decimal form of a 64-bit number, its sign included.
const DIGITS: usize = 20;

impl Keys {
    /// Bytes that the longest key takes.
    pub fn longest(&self) -> usize {
        self.prefix.len() + self.zero_padding.max(DIGITS)
    }

    /// Writes the key of `record` over what is in `key`: the prefix, zeros, and the number or its hash.
    #[inline]
    pub fn write(&self, record: i64, key: &mut Vec<u8>) {
        let number = if self.ordered { record } else { fnv_hash(record) };
        let mut digits = [0; DIGITS];
        let digits = decimal(number, &mut digits);
        key.clear();
        key.extend_from_slice(self.prefix.as_bytes());
        for _ in digits.len()..self.zero_padding {
            key.push(b'0');
        }
        key.extend_from_slice(digits);
    }
}

/// The decimal form of `number`, at the end of `buffer`.
#[inline]
pub(super) fn decimal(number: i64, buffer: &mut [u8; DIGITS]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut start = DIGITS;
    loop {
        start -= 1;
        buffer[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
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
            for number in [number, i64::MIN, 0] {
                prop_assert_eq!(decimal(number, &mut [0; DIGITS]), number.to_string().as_bytes());
            }
        }
    }
}
