//! Records as JSON documents: `{"key": …, "field0": …}`, and what answers hold of them.
//!
//! A value that is text is a JSON string. Any other, such as what clients encrypt, is base64 behind a zero character,
//! and so is a text that begins with one.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tithe_machine::fault::Fault;
use tithe_plugin::session::{Rows, Table};

/// The field with the record's key, by which scans sort; YCSB's own binding has one.
pub const KEY: &str = "key";

/// Writes `text` as a JSON string.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if !matches!(byte, b'"' | b'\\' | 0..=0x1f) {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            control => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Writes a value.
fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    match std::str::from_utf8(value) {
        Ok(text) if !text.starts_with('\0') => put_text(out, text),
        _ => {
            out.extend_from_slice(b"\"\\u0000");
            out.extend_from_slice(STANDARD.encode(value).as_bytes());
            out.push(b'"');
        }
    }
}

/// Writes `values` as an object, after the `key` if it is given.
pub fn put_document(out: &mut Vec<u8>, key: Option<&[u8]>, names: &[String], values: &[(usize, &[u8])]) {
    out.push(b'{');
    if let Some(key) = key {
        put_text(out, KEY);
        out.push(b':');
        put_text(out, &String::from_utf8_lossy(key));
    }
    for (number, (field, value)) in values.iter().enumerate() {
        if number > 0 || key.is_some() {
            out.push(b',');
        }
        put_text(out, &names[*field]);
        out.push(b':');
        put_value(out, value);
    }
    out.push(b'}');
}

/// The names of the fields of `table`.
pub fn names(table: &Table) -> Vec<String> {
    (0..table.fields).map(|field| table.field(field)).collect()
}

/// Reads documents.
pub struct Reader<'a> {
    /// Names of the fields.
    pub names: &'a [String],
    /// The only field that was asked for; `None` means all.
    pub asked: Option<usize>,
    /// Takes the records.
    pub rows: &'a mut dyn Rows,
}

impl Reader<'_> {
    /// Hands over the record in an answer to a request for one, and returns how many there are.
    ///
    /// # Errors
    /// [`Fault::Protocol`] for an answer that is not of this kind.
    pub fn one(&mut self, body: &[u8]) -> Result<u64, Fault> {
        read(body, One(self))
    }

    /// Hands over the records in an answer to a search, and returns how many there are.
    ///
    /// # Errors
    /// As [`Reader::one`].
    pub fn hits(&mut self, body: &[u8]) -> Result<u64, Fault> {
        read(body, Hits { reader: self, is_inner: false })
    }
}

/// What `seed` makes of `body`.
fn read<'a, S: DeserializeSeed<'a>>(body: &'a [u8], seed: S) -> Result<S::Value, Fault> {
    seed.deserialize(&mut serde_json::Deserializer::from_slice(body))
        .map_err(|error| Fault::Protocol(format!("an answer of another kind: {error}")))
}

/// A seed that reads maps.
macro_rules! seed_of_maps {
    ($($seed:ident<$($life:lifetime),+> => $value:ty;)*) => {
        $(
            impl<'de> DeserializeSeed<'de> for $seed<$($life),+> {
                type Value = $value;

                fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<$value, D::Error> {
                    source.deserialize_map(self)
                }
            }
        )*
    };
}

seed_of_maps! {
    One<'_, '_> => u64;
    Hits<'_, '_> => u64;
    Hit<'_, '_> => ();
    Source<'_, '_> => ();
}

/// An answer with one document.
struct One<'r, 'a>(&'r mut Reader<'a>);

impl<'de> Visitor<'de> for One<'_, '_> {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a document")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<u64, M::Error> {
        let mut found = 0;
        while let Some(is_source) = map.next_key_seed(Is("_source"))? {
            if is_source {
                self.0.rows.row(None);
                map.next_value_seed(Source(self.0))?;
                found = 1;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// An answer to a search: an object `hits`, which has a list `hits`.
struct Hits<'r, 'a> {
    reader: &'r mut Reader<'a>,
    is_inner: bool,
}

impl<'de> Visitor<'de> for Hits<'_, '_> {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an answer to a search")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<u64, M::Error> {
        let mut count = None;
        while let Some(is_hits) = map.next_key_seed(Is("hits"))? {
            if !is_hits {
                map.next_value::<IgnoredAny>()?;
            } else if self.is_inner {
                count = Some(map.next_value_seed(List(self.reader))?);
            } else {
                count = Some(map.next_value_seed(Hits { reader: self.reader, is_inner: true })?);
            }
        }
        count.ok_or_else(|| M::Error::missing_field("hits"))
    }
}

/// The list of an answer to a search.
struct List<'r, 'a>(&'r mut Reader<'a>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<u64, D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of documents")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<u64, S::Error> {
        let mut count = 0;
        while list.next_element_seed(Hit(self.0))?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// One document of an answer to a search: its identifier comes before its content.
struct Hit<'r, 'a>(&'r mut Reader<'a>);

impl<'de> Visitor<'de> for Hit<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a document")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let mut is_known = false;
        while let Some(name) = map.next_key_seed(OneOf(["_id", "_source"]))? {
            match name {
                Some(0) => {
                    map.next_value_seed(Text(|text: &str| self.0.rows.row(Some(text.as_bytes()))))?;
                    is_known = true;
                }
                Some(_) if !is_known => return Err(M::Error::custom("a document without an identifier")),
                Some(_) => map.next_value_seed(Source(self.0))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The content of a document.
struct Source<'r, 'a>(&'r mut Reader<'a>);

impl<'de> Visitor<'de> for Source<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the content of a document")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Reader { names, asked, rows } = self.0;
        // Fields mostly come in the order of their numbers.
        let mut next = 0;
        let mut is_wrong = false;
        while let Some(field) = map.next_key_seed(FieldOf(names, next))? {
            let wanted = field.filter(|field| asked.is_none_or(|asked| asked == *field));
            match wanted {
                Some(field) => map.next_value_seed(Text(|text: &str| match text.strip_prefix('\0') {
                    None => rows.field(field, Some(text.as_bytes())),
                    Some(coded) => match STANDARD.decode(coded) {
                        Ok(value) => rows.field(field, Some(&value)),
                        Err(_) => is_wrong = true,
                    },
                }))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
            next = field.map_or(next, |field| field + 1);
        }
        if is_wrong { Err(M::Error::custom("a value that Tithe did not write")) } else { Ok(()) }
    }
}

/// Takes a string without copying it, unless it has escapes.
struct Text<F>(F);

impl<'de, F: FnOnce(&str)> DeserializeSeed<'de> for Text<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_str(self)
    }
}

impl<F: FnOnce(&str)> Visitor<'_> for Text<F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }
}

/// The number of a field by its name, with a guess; `None` if it has another name.
struct FieldOf<'a>(&'a [String], usize);

impl<'de> DeserializeSeed<'de> for FieldOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        let Self(names, guess) = self;
        let mut field = None;
        Text(|name: &str| {
            let is_guess = names.get(guess).is_some_and(|known| known == name);
            field = if is_guess { Some(guess) } else { names.iter().position(|known| known == name) };
        })
        .deserialize(source)?;
        Ok(field)
    }
}

/// The number of a name in a list.
struct OneOf<const N: usize>([&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for OneOf<N> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        let mut found = None;
        Text(|name: &str| found = self.0.iter().position(|known| *known == name)).deserialize(source)?;
        Ok(found)
    }
}

/// True for this name.
struct Is(&'static str);

impl<'de> DeserializeSeed<'de> for Is {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<bool, D::Error> {
        Ok(OneOf([self.0]).deserialize(source)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A key, and the values of fields by their numbers.
    type Record = (String, Vec<(usize, Vec<u8>)>);

    #[derive(Default)]
    struct Seen(Vec<Record>);

    impl Rows for Seen {
        fn row(&mut self, key: Option<&[u8]>) {
            self.0.push((String::from_utf8_lossy(key.unwrap_or(b"-")).into_owned(), Vec::new()));
        }

        fn field(&mut self, field: usize, value: Option<&[u8]>) {
            let (_, fields) = self.0.last_mut().expect("a row");
            fields.push((field, value.expect("a value").to_vec()));
        }
    }

    fn table() -> Vec<String> {
        names(&Table { name: "t".to_owned(), fields: 3, field_prefix: "field".to_owned() })
    }

    fn one(body: &str, asked: Option<usize>) -> Result<Seen, Fault> {
        let (names, mut seen) = (table(), Seen::default());
        let found = Reader { names: &names, asked, rows: &mut seen }.one(body.as_bytes())?;
        assert_eq!(found as usize, seen.0.len());
        Ok(seen)
    }

    #[test]
    fn an_answer_with_one_record_is_read() {
        let body = r#"{"_index":"t","_id":"a","_version":1,"found":true,"_source":{"key":"a","field1":"\u00e4\"","other":{"field0":1},"field0":"x"}}"#;
        assert_eq!(one(body, None).expect("read").0[0].1, [(1, "ä\"".as_bytes().to_vec()), (0, b"x".to_vec())]);
        assert_eq!(one(body, Some(0)).expect("read").0[0].1, [(0, b"x".to_vec())]);
        assert_eq!(one(r#"{"_index":"t","found":false}"#, None).expect("read").0.len(), 0);
        for foreign in ["", "[]", "{", r#"{"_source":{"field0":7}}"#, r#"{"_source":{"field0":"\u0000?"}}"#] {
            assert!(matches!(one(foreign, None), Err(Fault::Protocol(_))), "{foreign}");
        }
    }

    #[test]
    fn an_answer_to_a_search_is_read() {
        let body = r#"{"took":1,"hits":{"total":{"value":2},"hits":[{"_index":"t","_id":"a","_score":null,"_source":{"field0":"1"},"sort":["a"]},{"_id":"b","_source":{}}]}}"#;
        let (names, mut seen) = (table(), Seen::default());
        assert_eq!(Reader { names: &names, asked: None, rows: &mut seen }.hits(body.as_bytes()), Ok(2));
        assert_eq!(seen.0, [("a".to_owned(), vec![(0, b"1".to_vec())]), ("b".to_owned(), Vec::new())]);
        for foreign in ["{}", r#"{"hits":{}}"#, r#"{"hits":{"hits":[{"_source":{}}]}}"#] {
            let mut reader = Reader { names: &names, asked: None, rows: &mut seen };
            assert!(matches!(reader.hits(foreign.as_bytes()), Err(Fault::Protocol(_))), "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut out = br#"{"_source":"#.to_vec();
            put_document(&mut out, Some(text.as_bytes()), &table(), &[(0, text.as_bytes()), (2, &bytes)]);
            out.push(b'}');
            let seen = one(std::str::from_utf8(&out).expect("text"), None).expect("read");
            prop_assert_eq!(&seen.0[0].1, &vec![(0, text.into_bytes()), (2, bytes)]);
        }
    }
}
