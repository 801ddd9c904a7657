//! The keys of records: `SPACE/TABLE/`, the record's key, a zero byte, and the field's number in two bytes, so that
//! keys are in the order of the records.

use tithe_plugin::session::Table;

/// The prefix of all of Tithe's keys, and the key of its mark in servers that it launches.
pub const SPACE: &str = "tithe";

/// Bytes after a record's key that identify a field.
pub const FIELD: usize = 3;

/// Before the key of each record of `table`.
pub fn prefix_of(space: &str, table: &Table) -> String {
    format!("{space}/{}/", table.name)
}

/// The bytes after a record's key in the key of its `field`.
pub fn of_field(field: usize) -> [u8; FIELD] {
    let [high, low] = (field as u16).to_be_bytes();
    [0, high, low]
}

/// The end of the range of all keys that begin with `prefix`.
pub fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Up to the last key of all.
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::after;

    #[test]
    fn ranges_end_behind_their_prefix() {
        assert_eq!(after(b"tithe/t/"), b"tithe/t0");
        assert_eq!(after(&[1, 255, 255]), [2]);
        assert_eq!(after(&[255]), [0]);
    }
}
