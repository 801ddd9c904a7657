//! Typed access to a spanned TOML tree; it records problems and continues.
//!
//! A reading function returns `None` if the key is absent or if it has complained; the caller continues with a default.
//! Such a default is never used: an experiment with a diagnostic is not returned.

use std::{
    collections::BTreeMap,
    num::IntErrorKind,
    ops::{Range, RangeInclusive},
};

use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue, Error},
};

use super::keys::{RENAMED, TableFormat};
use crate::{diagnostic::Diagnostic, wording};

/// Syntax errors that are shown one by one. A file with more is probably no experiment.
const SYNTAX_ERRORS: usize = 5;

/// The diagnostics so far.
pub(super) struct Problems {
    list: Vec<Diagnostic>,
    /// Lines with a syntax error: the tree is unreliable there.
    broken: Vec<Range<usize>>,
    /// Length of the file: where a missing table would be added.
    pub end: usize,
}

impl Problems {
    /// Starts with the syntax errors of `text`.
    pub fn new(text: &str, errors: &[Error]) -> Self {
        let mut problems = Self { list: Vec::new(), broken: Vec::new(), end: text.len() };
        for error in errors {
            let range = clamp(text, error.span().unwrap_or(text.len()..text.len()));
            let line = line_of(text, range.start);
            // The parser continues after an error; further errors in the same line give no new information.
            if !problems.broken.contains(&line) {
                let problem = format!("not TOML: {}", error.message());
                problems.list.push(Diagnostic::at(range, problem, syntax_help(error.message())));
                problems.broken.push(line);
            }
        }
        let further = problems.list.split_off(problems.list.len().min(SYNTAX_ERRORS));
        if let Some(Diagnostic { range: Some(first), .. }) = further.first() {
            let lines =
                if further.len() == 1 { "one more line".to_owned() } else { format!("{} more lines", further.len()) };
            let problem = format!("not TOML: {lines} with errors");
            problems.list.push(Diagnostic::at(first.clone(), problem, "check that this is an experiment file"));
        }
        problems
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// False when the file has syntax errors, and so parts that could not be read.
    pub fn read_all(&self) -> bool {
        self.broken.is_empty()
    }

    /// Complains about the text in `range`, unless a syntax error in the same line is the cause. After a syntax error
    /// the tree also contains placeholders; they have an empty range.
    pub fn at(&mut self, range: Range<usize>, problem: impl Into<String>, help: impl Into<String>) {
        let placeholder = range.is_empty() && !self.read_all();
        if !placeholder && !self.broken.iter().any(|line| line.contains(&range.start)) {
            self.list.push(Diagnostic::at(range, problem, help));
        }
    }

    /// Complains that something is missing. Not reported in a file with syntax errors: it may be in the part that could
    /// not be read.
    pub fn missing(&mut self, range: Range<usize>, problem: impl Into<String>, help: impl Into<String>) {
        if self.read_all() {
            self.at(range, problem, help);
        }
    }

    /// All diagnostics, in the order of the file.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|diagnostic| diagnostic.range.as_ref().map_or(0, |range| range.start));
        self.list
    }
}

/// The part of `range` that lies in `text`, widened to whole characters.
fn clamp(text: &str, range: Range<usize>) -> Range<usize> {
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let start = (0..=range.start.min(text.len())).rev().find(boundary).unwrap_or(0);
    let end = (range.end.clamp(start, text.len())..=text.len()).find(boundary).unwrap_or(text.len());
    start..end
}

/// The line around byte `at`, its line end included, so that the end of a file has a line too.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    start..text[at..].find('\n').map_or(text.len() + 1, |newline| at + newline + 1)
}

fn syntax_help(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "keep one of the two; a second arm or workload begins with its own `[[arm]]` or `[[workload]]` line"
    } else if message.contains("quoted") {
        "put text in quotes, for example `database = \"postgres\"`"
    } else {
        "a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io"
    }
}

/// One table of the file.
pub(super) struct Table<'a> {
    /// The keys it may have.
    format: &'static TableFormat,
    table: &'a DeTable<'a>,
    /// Its header, or its place.
    pub place: Range<usize>,
}

impl<'a> Table<'a> {
    /// Takes a table, and complains about keys that are neither in `format` nor in `extra`.
    pub fn open(
        format: &'static TableFormat,
        extra: &[String],
        table: &'a DeTable<'a>,
        place: Range<usize>,
        problems: &mut Problems,
    ) -> Self {
        let known: Vec<&str> = format.keys.iter().map(|key| key.name).chain(extra.iter().map(String::as_str)).collect();
        for (key, _) in table.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref();
            let renamed = RENAMED.iter().find(|(old, new)| name == old && known.contains(new));
            let help = match format.of_file().iter().find(|other| other.key(name).is_some()) {
                Some(home) if home.is_top() => {
                    format!("`{name}` belongs at the top of the file, before any table")
                }
                Some(home) => format!("`{name}` belongs in {}", home.name()),
                None => renamed.map_or_else(
                    || wording::suggest(name, &known, "its keys are"),
                    |(_, new)| format!("it is called `{new}` now"),
                ),
            };
            problems.at(key.span(), format!("{} has no key {}", format.name(), wording::quote(name)), help);
        }
        Self { format, table, place }
    }

    /// The value of `key`, if there is one.
    pub fn get(&self, key: &'static str) -> Option<Item<'a>> {
        let example = self.format.key(key).map(|key| key.example);
        debug_assert!(example.is_some(), "{key} is not in the list of keys of {}", self.format.header);
        self.named(key, example.unwrap_or_default())
    }

    /// The value of a key that is only in the catalogue.
    pub fn named(&self, key: &str, example: &'a str) -> Option<Item<'a>> {
        let (name, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(Item { key: name.get_ref(), key_range: name.span(), example, value: value.get_ref(), range: value.span() })
    }

    /// The value of a required key.
    pub fn need(&self, key: &'static str, problems: &mut Problems) -> Option<Item<'a>> {
        let item = self.get(key);
        if item.is_none() {
            let example = self.format.key(key).map_or("", |key| key.example);
            let problem = format!("{} has no `{key}`", self.format.name());
            problems.missing(self.place.clone(), problem, format!("add for example `{key} = {example}`"));
        }
        item
    }

    /// The table called `key`.
    pub fn table(&self, key: &'static str, format: &'static TableFormat, problems: &mut Problems) -> Option<Table<'a>> {
        let item = self.get(key)?;
        let table = item.table(problems)?;
        Some(Table::open(format, &[], table, item.range, problems))
    }

    /// The tables of the list called `key` (`[[key]]`).
    pub fn tables(
        &self,
        key: &'static str,
        format: &'static TableFormat,
        extra: &[String],
        problems: &mut Problems,
    ) -> Vec<Table<'a>> {
        let mut tables = Vec::new();
        for item in self.get(key).map(|item| item.list(problems)).unwrap_or_default() {
            if let Some(table) = item.table(problems) {
                tables.push(Table::open(format, extra, table, item.range, problems));
            }
        }
        tables
    }
}

/// One value of the file.
#[derive(Clone)]
pub(super) struct Item<'a> {
    /// Its key.
    pub key: &'a str,
    /// Where the key is.
    pub key_range: Range<usize>,
    /// A value that the user could write, in TOML.
    example: &'a str,
    /// The value.
    pub value: &'a DeValue<'a>,
    /// Where the value is.
    pub range: Range<usize>,
}

/// A name or text with its place.
pub(super) type Text = Spanned<String>;

impl<'a> Item<'a> {
    /// The value of a key that is in no list of keys.
    pub fn of(key: &'a Spanned<DeString<'a>>, value: &'a Spanned<DeValue<'a>>) -> Self {
        let (key_range, range) = (key.span(), value.span());
        Self { key: key.get_ref(), key_range, example: "\"one\"", value: value.get_ref(), range }
    }

    /// Complains that the value is of the wrong type.
    pub fn wrong_type(&self, expected: &str, problems: &mut Problems) {
        let problem = format!("`{}` must be {expected}, this is {}", self.key, describe(self.value));
        problems.at(self.range.clone(), problem, self.write());
    }

    /// Complains about a value of the right type.
    pub fn refuse(&self, problem: impl std::fmt::Display, problems: &mut Problems) {
        problems.at(self.range.clone(), format!("`{}` {problem}", self.key), self.write());
    }

    fn write(&self) -> String {
        format!("write for example `{} = {}`", self.key, self.example)
    }

    pub fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.wrong_type("a text in quotes", problems);
        }
        text
    }

    /// A statement for a server.
    pub fn statement(&self, problems: &mut Problems) -> Option<String> {
        let text = self.text(problems)?.trim();
        if text.is_empty() {
            self.refuse("has an empty statement", problems);
        }
        Some(text.to_owned())
    }

    /// A text that reports can print: not blank, on one line, not long.
    pub fn name(&self, problems: &mut Problems) -> Option<Text> {
        const MAX: usize = 120;
        let name = self.text(problems)?.trim();
        if name.is_empty() {
            self.refuse("is empty", problems);
        } else if name.chars().any(char::is_control) {
            self.refuse("must be one line without control characters", problems);
        } else if self.key == "name" && name.starts_with(['=', '+', '-', '@']) {
            self.refuse("begins like a formula, and a spreadsheet that opens report.csv would run it", problems);
        } else if name.chars().count() > MAX {
            self.refuse(format!("is longer than {MAX} characters"), problems);
        } else {
            return Some(Spanned::new(self.range.clone(), name.to_owned()));
        }
        None
    }

    /// A whole number in `range`.
    pub fn whole(&self, range: RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let Some(integer) = self.value.as_integer() else {
            self.wrong_type("a whole number", problems);
            return None;
        };
        let whole = u64::from_str_radix(integer.as_str(), integer.radix());
        let number = whole.as_ref().ok().copied().filter(|number| range.contains(number));
        if number.is_none() {
            let too_large = whole.is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow);
            let (low, high) = range.into_inner();
            let endless = high == u64::MAX && !too_large;
            let limits = if endless { format!("at least {low}") } else { format!("from {low} to {high}") };
            self.refuse(format!("must be {limits}, this is {}", wording::quote(&integer.to_string())), problems);
        }
        number
    }

    /// A number in `range`, whole or not.
    pub fn number(&self, range: RangeInclusive<f64>, problems: &mut Problems) -> Option<f64> {
        let Some(number) = as_number(self.value) else {
            self.wrong_type("a number", problems);
            return None;
        };
        if !range.contains(&number) {
            self.refuse(format!("must be from {} to {}, this is {number}", range.start(), range.end()), problems);
            return None;
        }
        Some(number)
    }

    pub fn flag(&self, problems: &mut Problems) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.wrong_type("true or false", problems);
        }
        flag
    }

    /// One of some words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)], problems: &mut Problems) -> Option<T> {
        let word = self.text(problems)?;
        let choice = choices.iter().find(|(name, _)| *name == word);
        if choice.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let problem = format!("`{}` cannot be {}", self.key, wording::quote(word));
            problems.at(self.range.clone(), problem, wording::suggest(word, &names, "it is one of"));
        }
        choice.map(|(_, value)| *value)
    }

    pub fn list(&self, problems: &mut Problems) -> Vec<Item<'a>> {
        let Some(array) = self.value.as_array() else {
            self.wrong_type("a list", problems);
            return Vec::new();
        };
        array.iter().map(|value| Item { value: value.get_ref(), range: value.span(), ..self.clone() }).collect()
    }

    pub fn table(&self, problems: &mut Problems) -> Option<&'a DeTable<'a>> {
        let table = self.value.as_table();
        if table.is_none() {
            self.wrong_type("a table", problems);
        }
        table
    }

    /// Names with values that are kept as text: settings, properties. A dotted key is a name with dots in it.
    pub fn pairs(&self, problems: &mut Problems) -> BTreeMap<String, Pair> {
        let mut pairs = BTreeMap::new();
        if let Some(table) = self.table(problems) {
            collect_pairs("", table, &mut pairs, problems);
        }
        pairs
    }
}

/// A setting or property as written.
pub(super) struct Pair {
    /// The value as text.
    pub value: String,
    /// Where the name is.
    pub key_range: Range<usize>,
    /// Where the value is.
    pub range: Range<usize>,
}

/// The texts of `pairs`, without their places.
pub(super) fn texts(pairs: BTreeMap<String, Pair>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, pair)| (name, pair.value)).collect()
}

/// Descends into dotted keys; TOML's own limit on nesting limits the depth.
fn collect_pairs(prefix: &str, table: &DeTable<'_>, pairs: &mut BTreeMap<String, Pair>, problems: &mut Problems) {
    for (key, value) in table.iter() {
        let name = format!("{prefix}{}", key.get_ref());
        let text = match value.get_ref() {
            DeValue::Table(inner) => {
                collect_pairs(&format!("{name}."), inner, pairs, problems);
                continue;
            }
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(integer) => integer.to_string(),
            DeValue::Float(float) => float.as_str().to_owned(),
            DeValue::Boolean(flag) => flag.to_string(),
            other => {
                let problem = format!(
                    "{} must be a text, a number, or true or false; this is {}",
                    wording::quote(&name),
                    describe(other)
                );
                problems.at(value.span(), problem, "write the value in quotes, as the database's own files have it");
                continue;
            }
        };
        if name.chars().chain(text.chars()).any(char::is_control) {
            let problem = format!("{} must be one line without control characters", wording::quote(&name));
            problems.at(value.span(), problem, "a setting or property is one line of its file");
        }
        if pairs.contains_key(&name) {
            let problem = format!("{} is given twice, with quotes and without", wording::quote(&name));
            problems.at(key.span(), problem, "remove one of the two");
        }
        pairs.insert(name, Pair { value: text, key_range: key.span(), range: value.span() });
    }
}

/// A number, whole or not.
pub(super) fn as_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|number| number as f64)
        }
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}

/// What a value is, in words.
pub(super) fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_range_of_an_error_is_widened_to_whole_characters(
            text in "[aä読\n]{0,6}", start in 0usize..20, length in 0usize..20
        ) {
            let range = clamp(&text, start..start + length);
            prop_assert!(text.get(range.clone()).is_some(), "{range:?}");
            let (first, last) = (start.min(text.len()), (start + length).min(text.len()));
            let between = |ends: Range<usize>| ends.filter(|at| text.is_char_boundary(*at)).count();
            prop_assert!(range.start <= first && between(range.start + 1..first + 1) == 0, "{range:?}");
            prop_assert!(last <= range.end && between(last..range.end) == 0, "{range:?}");
        }

        #[test]
        fn each_byte_is_in_the_line_between_two_line_ends(text in "[aä\n]{0,12}", place: prop::sample::Index) {
            // The end of the text is in a line, too.
            let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
            let at = places[place.index(places.len())];
            let line = line_of(&text, at);
            prop_assert!(line.contains(&at), "{line:?}");
            let is_line_end = |at: usize| text.as_bytes()[at] == b'\n';
            prop_assert!(line.start == 0 || is_line_end(line.start - 1), "{line:?}");
            let end = line.end - 1;
            prop_assert!(end == text.len() || is_line_end(end), "{line:?}");
            prop_assert!(!text[line.start..end].contains('\n'), "{line:?}");
        }
    }
}
