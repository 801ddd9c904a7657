//! Keys and values of the `_id` index, in the form of MongoDB's KeyString (`src/mongo/db/storage/key_string.cpp` of
//! MongoDB 4.2): bytes that sort as the values do.

/// The first byte of a string.
const STRING: u8 = 60;
/// The last byte of every key.
const END: u8 = 4;

/// Writes the index key of the string `id` into `into`, which is emptied first. A zero byte within the string is
/// followed by 0xFF, so that the end, a zero byte alone, sorts before it.
pub fn write_key(into: &mut Vec<u8>, id: &[u8]) {
    into.clear();
    into.push(STRING);
    for byte in id {
        into.push(*byte);
        if *byte == 0 {
            into.push(0xff);
        }
    }
    into.extend([0, END]);
}

/// Reads the string of an index key into `into`, which is emptied first; `None` if it is not such a key.
pub fn read_key(into: &mut Vec<u8>, key: &[u8]) -> Option<()> {
    into.clear();
    let mut rest = key.strip_prefix(&[STRING])?.strip_suffix(&[0, END])?;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        into.extend(&rest[..=zero]);
        rest = rest[zero + 1..].strip_prefix(&[0xff])?;
    }
    into.extend(rest);
    Some(())
}

/// A record id in the form of the index: five bits, then bytes, then five bits; the outer three bits of the first and
/// of the last byte count the bytes between. `id` is not negative.
pub fn encode_record_id(id: i64) -> ([u8; 9], usize) {
    let raw = id.unsigned_abs();
    let bits = u64::BITS - raw.leading_zeros();
    let extra = bits.saturating_sub(10).div_ceil(8) as usize;
    let mut bytes = [0; 9];
    bytes[0] = (extra as u8) << 5 | (raw >> (5 + 8 * extra)) as u8;
    for (number, byte) in bytes[1..=extra].iter_mut().enumerate() {
        *byte = (raw >> (5 + 8 * (extra - 1 - number))) as u8;
    }
    bytes[extra + 1] = (raw as u8) << 3 | extra as u8;
    (bytes, extra + 2)
}

/// Reads a record id back; `None` when it is none.
pub fn decode_record_id(bytes: &[u8]) -> Option<i64> {
    let (first, rest) = bytes.split_first()?;
    let extra = usize::from(first >> 5);
    let (between, last) = (rest.get(..extra)?, *rest.get(extra)?);
    if usize::from(last & 7) != extra || rest.len() != extra + 1 {
        return None;
    }
    let high = between.iter().fold(u64::from(first & 0x1f), |sum, byte| sum << 8 | u64::from(*byte));
    i64::try_from(high << 5 | u64::from(last >> 3)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(id: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        write_key(&mut key, id);
        key
    }

    #[test]
    fn forms_are_those_of_the_format() {
        assert_eq!(key(b"a\0b"), b"\x3ca\x00\xffb\x00\x04");
        let (bytes, length) = encode_record_id(1);
        assert_eq!(bytes[..length], [0x00, 0x08]);
        let (bytes, length) = encode_record_id(1024);
        assert_eq!(bytes[..length], [0x20, 0x20, 0x01]);
    }

    proptest! {
        #[test]
        fn keys_come_back(id: Vec<u8>) {
            let mut back = Vec::new();
            prop_assert_eq!(read_key(&mut back, &key(&id)), Some(()));
            prop_assert_eq!(back, id);
        }

        #[test]
        fn keys_sort_as_strings_do(one in "[\\x00a-c]{0,4}", other in "[\\x00a-c]{0,4}") {
            prop_assert_eq!(key(one.as_bytes()).cmp(&key(other.as_bytes())), one.cmp(&other));
        }

        #[test]
        fn record_ids_come_back_and_sort(one in 0..i64::MAX >> 4, other in 0..i64::MAX >> 4) {
            let ((one_bytes, one_length), (other_bytes, other_length)) = (encode_record_id(one), encode_record_id(other));
            prop_assert_eq!(decode_record_id(&one_bytes[..one_length]), Some(one));
            prop_assert_eq!(one_bytes[..one_length].cmp(&other_bytes[..other_length]), one.cmp(&other));
        }

        #[test]
        fn foreign_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let _ = decode_record_id(&bytes);
            let _ = read_key(&mut Vec::new(), &bytes);
        }
    }
}
