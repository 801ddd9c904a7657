//! The options of a protection next to its `use`, checked against the catalogue.

use std::{collections::BTreeMap, ops::Range};

use toml::de::{DeTable, DeValue};

use super::reader::{self, Item, Problems};
use crate::{
    catalogue::{OptionEntry, OptionKind, ProtectionEntry},
    experiment::OptionValue,
    wording,
};

/// The options of a protection, with the defaults filled in.
pub(super) fn options(
    item: &Item<'_>,
    entry: &ProtectionEntry,
    problems: &mut Problems,
) -> BTreeMap<String, OptionValue> {
    let mut options = BTreeMap::new();
    let Some(table) = item.value.as_table() else { return options };
    refuse_unknown_options(table, entry, problems);
    for option in entry.options {
        let value = match find(table, option) {
            Some((value, range)) => option_value(option, value, range, problems),
            None => option.default.map(|default| default.value()),
        };
        match value {
            Some(value) => _ = options.insert(option.name.to_owned(), value),
            None if find(table, option).is_none() => {
                let problem = format!("`{}` needs the option `{}`: {}", entry.id, option.name, option.help);
                problems.missing(item.range.clone(), problem, format!("add `{}`", option_example(option)));
            }
            None => {}
        }
    }
    options
}

fn find<'a>(table: &'a DeTable<'a>, option: &OptionEntry) -> Option<(&'a DeValue<'a>, Range<usize>)> {
    let (_, value) = table.iter().find(|(key, _)| key.get_ref() == option.name)?;
    Some((value.get_ref(), value.span()))
}

fn refuse_unknown_options(table: &DeTable<'_>, entry: &ProtectionEntry, problems: &mut Problems) {
    let mut names: Vec<&str> = entry.options.iter().map(|option| option.name).collect();
    for (key, _) in table.iter() {
        let name = key.get_ref();
        if name != "use" && entry.option(name).is_none() {
            names.sort_unstable();
            let problem = format!("`{}` has no option {}", entry.id, wording::quote(name));
            problems.at(key.span(), problem, wording::suggest(name, &names, "its options are"));
        }
    }
}

fn option_value(
    option: &OptionEntry,
    value: &DeValue<'_>,
    range: Range<usize>,
    problems: &mut Problems,
) -> Option<OptionValue> {
    let example = || format!("write for example `{}`", option_example(option));
    let wrong = |expected: &str| format!("`{}` must be {expected}, this is {}", option.name, reader::describe(value));
    let (problem, help) = match (option.kind, value) {
        (OptionKind::Number { low, high }, _) => match reader::as_number(value) {
            Some(number) if (low..=high).contains(&number) => return Some(OptionValue::Number(number)),
            Some(number) => (format!("`{}` must be from {low} to {high}, this is {number}", option.name), example()),
            None => (wrong("a number"), example()),
        },
        (OptionKind::Flag, DeValue::Boolean(flag)) => return Some(OptionValue::Flag(*flag)),
        (OptionKind::Flag, _) => (wrong("true or false"), example()),
        (OptionKind::Text, DeValue::String(text)) => return Some(OptionValue::Text(text.to_string())),
        (OptionKind::Choice(words), DeValue::String(text)) if words.contains(&text.as_ref()) => {
            return Some(OptionValue::Text(text.to_string()));
        }
        (OptionKind::Choice(words), DeValue::String(text)) => (
            format!("`{}` cannot be {}", option.name, wording::quote(text)),
            wording::suggest(text, words, "it is one of"),
        ),
        (OptionKind::Text | OptionKind::Choice(_), _) => (wrong("a text in quotes"), example()),
    };
    problems.at(range, problem, help);
    None
}

/// `share = 0.5`
fn option_example(option: &OptionEntry) -> String {
    let value = match (option.default.map(|default| default.value()), option.kind) {
        (Some(OptionValue::Number(number)), _) => number.to_string(),
        (Some(OptionValue::Text(text)), _) => format!("\"{text}\""),
        (Some(OptionValue::Flag(flag)), _) => flag.to_string(),
        (None, OptionKind::Number { low, .. }) => low.to_string(),
        (None, OptionKind::Choice(words)) => format!("\"{}\"", words.first().unwrap_or(&"")),
        (None, OptionKind::Text) => "\"…\"".to_owned(),
        (None, OptionKind::Flag) => "true".to_owned(),
    };
    format!("{} = {value}", option.name)
}
