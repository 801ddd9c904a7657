//! The text of records: JSON in files that are replaced as a whole, and in files with one value per line. Each object
//! has its checksum.

use std::{fs, path::Path};

use crc32fast::Hasher;
use serde::{Serialize, de::DeserializeOwned};
use tithe_machine::fault::Fault;

use super::{replace, seal};

pub(super) fn text(path: &Path) -> Result<String, Fault> {
    fs::read_to_string(path)
        .map_err(|error| Fault::machine(format!("cannot read {} (is this a run folder?)", path.display()), error))
}

pub(super) fn json<T: DeserializeOwned>(text: &str, name: &str) -> Result<T, Fault> {
    let value = serde_json::from_str(text).map_err(|error| Fault::machine(format!("{name} cannot be read"), error))?;
    if seal::is_whole(text, Hasher::new()) { Ok(value) } else { Err(changed(name)) }
}

/// The error if `what` was changed after Tithe wrote it.
fn changed(what: &str) -> Fault {
    Fault::Machine(format!(
        "{what} does not match its checksum: it was changed or damaged after it was written; take the folder from a copy"
    ))
}

/// Parses one value per line, each with its line. Only the last line may be cut short, because a kill leaves that.
pub(super) fn json_lines<'a, T: DeserializeOwned>(text: &'a str, name: &str) -> Result<Vec<(T, &'a str)>, Fault> {
    let mut values = Vec::new();
    let count = text.lines().count();
    for (number, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(value) => values.push((value, line)),
            Err(error) if error.is_eof() && number + 1 == count && !text.ends_with('\n') => {}
            Err(error) => return Err(Fault::machine(format!("line {} of {name} cannot be read", number + 1), error)),
        }
    }
    Ok(values)
}

/// The records in the file `name` of the run folder at `path`, one a line.
pub(super) fn records<T: DeserializeOwned>(path: &Path, name: &str) -> Result<Vec<T>, Fault> {
    let text = text(&path.join(name))?;
    let whole = |(number, (value, line)): (usize, (T, &str))| match seal::is_whole(line, Hasher::new()) {
        true => Ok(value),
        false => Err(changed(&format!("line {} of {name}", number + 1))),
    };
    json_lines(&text, name)?.into_iter().enumerate().map(whole).collect()
}

pub(super) fn lines<T: Serialize>(values: &[T]) -> Result<Vec<u8>, Fault> {
    Ok(values.iter().map(|value| line(value, b"")).collect::<Result<Vec<_>, _>>()?.concat())
}

/// The line of `value`, with a checksum that includes `rows`.
pub(super) fn line<T: Serialize>(value: &T, rows: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| Fault::machine("cannot write a record", error))?;
    seal::seal(&mut bytes, rows);
    bytes.push(b'\n');
    Ok(bytes)
}

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Fault> {
    let mut bytes = pretty(value)?;
    bytes.push(b'\n');
    replace(path, &bytes)
}

/// `value` with its checksum, one member per line.
fn pretty<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    let compact = serde_json::to_vec(value).map_err(|error| Fault::machine("cannot write a record", error))?;
    let mut bytes = indented(&compact);
    seal::seal(&mut bytes, b"");
    Ok(bytes)
}

/// Indents JSON as `serde_json::to_vec_pretty` does. That function would compile a second writer for every type of
/// record, which takes longer than the rest of this module.
fn indented(compact: &[u8]) -> Vec<u8> {
    let (mut bytes, mut depth, mut in_text, mut escaped) = (Vec::new(), 0, false, false);
    for (at, &byte) in compact.iter().enumerate() {
        let is_empty = matches!((byte, compact.get(at + 1)), (b'{', Some(b'}')) | (b'[', Some(b']')));
        let closes_empty = at > 0 && matches!((compact[at - 1], byte), (b'{', b'}') | (b'[', b']'));
        match byte {
            _ if in_text => bytes.push(byte),
            b'}' | b']' if !closes_empty => {
                depth -= 1;
                new_line(&mut bytes, depth);
                bytes.push(byte);
            }
            b'{' | b'[' if !is_empty => {
                depth += 1;
                bytes.push(byte);
                new_line(&mut bytes, depth);
            }
            b',' => {
                bytes.push(byte);
                new_line(&mut bytes, depth);
            }
            b':' => bytes.extend(b": "),
            _ => bytes.push(byte),
        }
        in_text ^= byte == b'"' && !escaped;
        escaped = in_text && byte == b'\\' && !escaped;
    }
    bytes
}

fn new_line(bytes: &mut Vec<u8>, depth: usize) {
    bytes.push(b'\n');
    bytes.resize(bytes.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::indented;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "[ -~]{0,4}|[\\\\\"{}\\[\\],:]{1,5}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            let object = prop::collection::btree_map("[a-z\"\\\\]{0,3}", inner, 0..4);
            prop_oneof![list, object.prop_map(|members| Value::Object(members.into_iter().collect()))]
        })
    }

    proptest! {
        #[test]
        fn indented_as_the_library_does(value in value()) {
            let compact = serde_json::to_vec(&value).unwrap();
            prop_assert_eq!(indented(&compact), serde_json::to_vec_pretty(&value).unwrap());
        }
    }
}
