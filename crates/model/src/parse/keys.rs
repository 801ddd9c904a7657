//! Every key that an experiment file or a matrix file may have: its type, its default, its meaning, and an example.
//!
//! The parser accepts only the keys in these tables. The tables of FORMAT.md and the JSON Schema are generated from
//! them. Not listed are the keys that name a kind of workload (`ycsb`, `ycsb_file`), the options of a protection, and
//! the names of settings and properties: they come from the catalogue or the database.

mod arm;
mod experiment;
mod matrix;

use std::fmt::{Display, Formatter, Result};

pub(super) use arm::{ARM, CHECKS, CLAIM, OBSERVER, OPTION, PROTECTION, PUBLISHED, SWITCH};
pub(super) use experiment::{DATA, LOAD, MEASURE, RESOURCES, TOP, WORKLOAD};
use matrix::MATRIX;
pub(super) use matrix::{MACHINE, MATRIX_TOP};

/// One table of the file.
#[derive(Debug)]
pub struct TableFormat {
    /// Its name in the file and in messages; empty for the top of an experiment, `matrix` for that of a matrix.
    pub header: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// The values it accepts.
    pub kind: Kind,
    /// What applies if the key is left out.
    pub default: KeyDefault,
    /// Its purpose, in Markdown.
    pub meaning: &'static str,
    /// A value, in TOML.
    pub example: &'static str,
}

impl Key {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: KeyDefault,
        meaning: &'static str,
        example: &'static str,
    ) -> Self {
        Self { name, kind, default, meaning, example }
    }
}

/// What applies if a key is left out.
#[derive(Debug, Clone, Copy)]
pub enum KeyDefault {
    /// The key is required.
    Required,
    /// This value, in TOML.
    Value(&'static str),
    /// The rule in these words.
    Words(&'static str),
}

impl Display for KeyDefault {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Required => formatter.write_str("required"),
            Self::Value(value) => write!(formatter, "`{value}`"),
            Self::Words(words) => formatter.write_str(words),
        }
    }
}

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that reports print: one line, not empty.
    Name,
    /// The name of a database of the catalogue.
    Database,
    /// An IP address.
    Address,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number between these; `u64::MAX` means no limit.
    Whole(u64, u64),
    /// A number between these.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// A percentage without a sign, between these.
    Percentage(&'static str, &'static str),
    /// A percentage with its sign.
    Change,
    /// A length of time with its unit, between these.
    Time(&'static str, &'static str),
    /// An amount of memory with its unit.
    Size,
    /// Settings, properties or labels by name.
    Pairs,
    /// A table.
    Table(&'static TableFormat),
    /// A list of values of a kind, at least this many.
    List(&'static Kind, usize),
    /// One of these kinds.
    Either(&'static [Kind]),
}

/// The text in the columns of FORMAT.md.
impl Display for Kind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        match self {
            Self::Text | Self::Name | Self::Database => formatter.write_str("text"),
            Self::Address => formatter.write_str("IP address"),
            Self::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
                formatter.write_str(&quoted.join(" or "))
            }
            Self::Whole(low, u64::MAX) => write!(formatter, "whole number, {low} or more"),
            Self::Whole(low, high) => write!(formatter, "whole number, {low} to {high}"),
            Self::Number(low, high) => write!(formatter, "number, {low} to {high}"),
            Self::Flag => formatter.write_str("`true` or `false`"),
            Self::Percentage(low, high) => write!(formatter, "percentage, {low} to {high}"),
            Self::Change => formatter.write_str("percentage with its sign"),
            Self::Time(low, high) => write!(formatter, "time, {low} to {high}"),
            Self::Size => formatter.write_str("size, 1 MiB or more"),
            Self::Pairs => formatter.write_str("table of names and values"),
            Self::Table(_) => formatter.write_str("table"),
            Self::List(Self::Table(_), _) => formatter.write_str("list of tables"),
            Self::List(Self::Text | Self::Name, _) => formatter.write_str("list of texts"),
            // The other way to write a key that may be one such value.
            Self::List(..) => formatter.write_str("list of these"),
            Self::Either(kinds) => {
                let all: Vec<String> = kinds.iter().map(Self::to_string).collect();
                formatter.write_str(&all.join("; or "))
            }
        }
    }
}

impl TableFormat {
    /// The key called `name`.
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> String {
        match self.header {
            "" => "the experiment".to_owned(),
            MATRIX => "the matrix".to_owned(),
            header => format!("`{header}`"),
        }
    }

    /// All tables of the same kind of file.
    pub(super) fn of_file(&self) -> &'static [TableFormat] {
        let of_matrix = MATRIX_TABLES.iter().any(|table| table.header == self.header);
        if of_matrix { MATRIX_TABLES } else { TABLES }
    }

    /// True for the top of a file.
    pub(super) fn is_top(&self) -> bool {
        ["", MATRIX].contains(&self.header)
    }
}

/// Keys that had another name in files for older builds, with their present name.
pub(super) const RENAMED: [(&str, &str); 2] = [("guard_arm", "aa_arm"), ("guarded", "protected")];

/// All tables, in the order of the file.
pub const TABLES: &[TableFormat] =
    &[TOP, DATA, LOAD, MEASURE, RESOURCES, WORKLOAD, ARM, SWITCH, OBSERVER, PROTECTION, OPTION, CLAIM, PUBLISHED];

/// All tables of a matrix file, in its order.
pub const MATRIX_TABLES: &[TableFormat] = &[MATRIX_TOP, MACHINE];
