//! Records as BSON documents, in the form of YCSB's MongoDB binding: the key as string `_id`, then every field as
//! binary data of the generic subtype (BSON 1.1, <https://bsonspec.org/spec.html>).
//!
//! Fields are found by their position, not by their name: all documents of a table are created here and have the same
//! structure.

use tithe_machine::fault::Fault;

/// Element type: UTF-8 string.
const STRING: u8 = 0x02;
/// Element type: binary data.
const BINARY: u8 = 0x05;
/// Binary subtype: generic.
const GENERIC: u8 = 0x00;

/// Writes the document with `key` and `values` into `into`, which is emptied first; the names are those of the fields.
///
/// # Errors
/// When the document would be larger than BSON allows.
pub fn write<'a>(
    into: &mut Vec<u8>,
    key: &[u8],
    names: &[String],
    values: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(), Fault> {
    into.clear();
    into.extend([0; 4]);
    into.push(STRING);
    into.extend(b"_id\0");
    into.extend(length(key.len() + 1)?);
    into.extend(key);
    into.push(0);
    for (name, value) in names.iter().zip(values) {
        into.push(BINARY);
        into.extend(name.as_bytes());
        into.push(0);
        into.extend(length(value.len())?);
        into.push(GENERIC);
        into.extend(value);
    }
    into.push(0);
    let total = length(into.len())?;
    into[..4].copy_from_slice(&total);
    Ok(())
}

fn length(bytes: usize) -> Result<[u8; 4], Fault> {
    let length = i32::try_from(bytes).map_err(|_| Fault::Server("the document is too large".to_owned()))?;
    Ok(length.to_le_bytes())
}

/// The values of the document in `bytes`, field by field, without copying; `None` if it is not such a document.
pub fn values(bytes: &[u8]) -> Option<Values<'_>> {
    let mut reader = Reader { rest: bytes };
    let total = reader.length()?;
    if total != bytes.len() || reader.element()? != STRING {
        return None;
    }
    let key = reader.length()?;
    reader.take(key)?;
    Some(Values { reader })
}

/// The fields of a document, in order.
#[derive(Debug)]
pub struct Values<'a> {
    reader: Reader<'a>,
}

impl<'a> Values<'a> {
    /// The next field: `Some(None)` is the end of the document, `None` means that the document is broken.
    pub fn next_value(&mut self) -> Option<Option<&'a [u8]>> {
        if self.reader.rest == [0] {
            return Some(None);
        }
        if self.reader.element()? != BINARY {
            return None;
        }
        let length = self.reader.length()?;
        self.reader.take(1)?;
        self.reader.take(length).map(Some)
    }
}

#[derive(Debug)]
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        i32::from_le_bytes(bytes).try_into().ok()
    }

    /// The type of the next element; its name is skipped.
    fn element(&mut self) -> Option<u8> {
        let kind = *self.take(1)?.first()?;
        let name = self.rest.iter().position(|byte| *byte == 0)?;
        self.take(name + 1)?;
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("field{number}")).collect()
    }

    fn read(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut document = values(bytes)?;
        let mut all = Vec::new();
        while let Some(value) = document.next_value()? {
            all.push(value.to_vec());
        }
        Some(all)
    }

    #[test]
    fn a_document_has_the_bytes_of_the_specification() {
        let mut bytes = Vec::new();
        write(&mut bytes, b"user1", &names(1), [&b"ab"[..]]).unwrap();
        expect![[r#"#\x00\x00\x00\x02_id\x00\x06\x00\x00\x00user1\x00\x05field0\x00\x02\x00\x00\x00\x00ab\x00"#]]
            .assert_eq(&bytes.escape_ascii().to_string());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(key in "[a-z0-9]{0,30}", fields in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..12)) {
            let mut bytes = Vec::new();
            write(&mut bytes, key.as_bytes(), &names(fields.len()), fields.iter().map(Vec::as_slice)).unwrap();
            prop_assert_eq!(read(&bytes), Some(fields));
        }

        #[test]
        fn foreign_bytes_are_refused_or_read_but_never_overrun(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_document_cut_short_is_refused(cut in 0usize..35) {
            let mut bytes = Vec::new();
            write(&mut bytes, b"user1", &names(1), [&b"ab"[..]]).unwrap();
            prop_assert_eq!(read(&bytes[..cut]), None);
        }
    }
}
