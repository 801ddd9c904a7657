//! The text of records: JSON in files that are replaced as a whole and in files with one value a line, each object with
//! its checksum.

use std::{fs, path::Path};

use crc32fast::Hasher;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tithe_machine::fault::Fault;
use tithe_model::records::CellFacts;

use super::{replace, seal};

pub(super) fn text(path: &Path) -> Result<String, Fault> {
    fs::read_to_string(path)
        .map_err(|error| Fault::machine(format!("cannot read {} (is this a run folder?)", path.display()), error))
}

pub(super) fn json<T: DeserializeOwned>(text: &str, name: &str) -> Result<T, Fault> {
    let value = serde_json::from_str(text).map_err(|error| Fault::machine(format!("{name} cannot be read"), error))?;
    if seal::is_whole(text, Hasher::new()) { Ok(value) } else { Err(changed(name)) }
}

/// The cells in the `text` of `cells.json`.
pub(super) fn cells(text: &str) -> Result<Vec<CellFacts>, Fault> {
    let each: Vec<Box<RawValue>> = json(text, "cells.json")?;
    each.iter().enumerate().map(|(cell, facts)| json(facts.get(), &format!("cell {cell} of cells.json"))).collect()
}

/// That `what` was changed after Tithe wrote it.
fn changed(what: &str) -> Fault {
    Fault::Machine(format!(
        "{what} does not match its checksum: it was changed or damaged after it was written; take the folder from a copy"
    ))
}

/// Parses one value a line, each with its line. Only the last line may be cut short: that is what a kill leaves.
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

/// The line of `value`, whose checksum is that of `rows` as well.
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

pub(super) fn write_cells(folder: &Path, cells: &[CellFacts]) -> Result<(), Fault> {
    let each = cells.iter().map(pretty).collect::<Result<Vec<_>, _>>()?;
    replace(&folder.join("cells.json"), &[b"[\n", &each.join(&b",\n"[..])[..], b"\n]\n"].concat())
}

/// `value` with its checksum, a member a line.
fn pretty<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| Fault::machine("cannot write a record", error))?;
    seal::seal(&mut bytes, b"");
    Ok(bytes)
}
