//! What distinguishes the arm of a protection from the plain one: a statement with its answer, or a named check of
//! Tithe's.

use super::{
    keys,
    reader::{Item, Problems, Table},
};
use crate::{
    experiment::{Claim, FilePlace, NamedCheck, Says},
    statement::changes_server,
    wording,
};

/// The expected answers of a statement.
const EXPECTATIONS: [&str; 4] = ["equals", "matches", "fails_with", "rows"];

/// The rows of a statement, or the lines of a log, that a claim may expect.
const COUNTS: std::ops::RangeInclusive<u64> = 0..=1_000_000;

/// One of Tithe's checks, as claims name it.
struct NamedEntry {
    name: &'static str,
    /// The keys that it needs. It has no others.
    needs: &'static [&'static str],
    /// Reads it; `None` if a needed key is missing or wrong.
    read: fn(&Table<'_>, &mut Problems) -> Option<NamedCheck>,
}

/// Every check that a claim can name.
const CHECKS: &[NamedEntry] = &[
    NamedEntry {
        name: "canary-not-in-files",
        needs: &["files"],
        read: |table, problems| Some(NamedCheck::CanaryNotInFiles(places(&table.get("files")?, problems)?)),
    },
    NamedEntry {
        name: "values-not-in-files",
        needs: &["files"],
        read: |table, problems| Some(NamedCheck::ValuesNotInFiles(places(&table.get("files")?, problems)?)),
    },
    NamedEntry {
        name: "removed-not-in-files",
        needs: &["files"],
        read: |table, problems| Some(NamedCheck::RemovedNotInFiles(places(&table.get("files")?, problems)?)),
    },
    NamedEntry {
        name: "removed-found",
        needs: &["statement"],
        read: |table, problems| Some(NamedCheck::RemovedFound { statement: about_canary(table, problems)? }),
    },
    NamedEntry { name: "not-on-the-wire", needs: &[], read: |_, _| Some(NamedCheck::NotOnTheWire) },
    NamedEntry { name: "refused-without-password", needs: &[], read: |_, _| Some(NamedCheck::RefusedWithoutPassword) },
    NamedEntry {
        name: "counted-in-log",
        needs: &["matches", "rows"],
        read: |table, problems| {
            let pattern = table.get("matches")?.text(problems)?.to_owned();
            Some(NamedCheck::CountedInLog { pattern, count: table.get("rows")?.whole(COUNTS, problems)? })
        },
    },
    NamedEntry {
        name: "refused-as",
        needs: &["account", "statement", "fails_with"],
        read: |table, problems| {
            let words = words(&table.get("fails_with")?, problems)?;
            let account = table.get("account")?.text(problems)?.to_owned();
            Some(NamedCheck::RefusedAs { account, statement: statement(table, problems)?, words })
        },
    },
];

/// The claims that `table` lists.
pub(super) fn claims(table: &Table<'_>, problems: &mut Problems) -> Vec<Claim> {
    let listed = table.tables("claims", &keys::CLAIM, &[], problems);
    listed.iter().filter_map(|table| claim(table, problems)).collect()
}

fn claim(table: &Table<'_>, problems: &mut Problems) -> Option<Claim> {
    match table.get("check") {
        Some(item) => named(table, &item, problems).map(Claim::Check),
        None => of_statement(table, problems),
    }
}

fn named(table: &Table<'_>, item: &Item<'_>, problems: &mut Problems) -> Option<NamedCheck> {
    let word = item.text(problems)?;
    let Some(entry) = CHECKS.iter().find(|entry| entry.name == word) else {
        let problem = format!("there is no check {}", wording::quote(word));
        problems.at(item.range.clone(), problem, wording::suggest(word, &keys::CHECKS, "a claim can name"));
        return None;
    };
    for key in keys::CLAIM.keys.iter().map(|key| key.name) {
        match table.get(key) {
            Some(other) if key != "check" && !entry.needs.contains(&key) => problems.at(
                other.key_range,
                format!("the check `{word}` has no `{key}`"),
                match entry.needs {
                    [] => "remove it: the check needs nothing".to_owned(),
                    needs => format!("it has {}", wording::list(needs.iter().copied())),
                },
            ),
            None if entry.needs.contains(&key) => _ = table.need(key, problems),
            _ => {}
        }
    }
    (entry.read)(table, problems)
}

fn places(item: &Item<'_>, problems: &mut Problems) -> Option<Vec<FilePlace>> {
    const PLACES: &[(&str, FilePlace)] =
        &[("data", FilePlace::Data), ("journal", FilePlace::Journal), ("logs", FilePlace::Logs)];
    let places: Vec<FilePlace> = item.list(problems).iter().filter_map(|one| one.choice(PLACES, problems)).collect();
    if places.is_empty() && item.value.as_array().is_some_and(|list| list.is_empty()) {
        item.refuse("names no files", problems);
    }
    (!places.is_empty()).then_some(places)
}

fn of_statement(table: &Table<'_>, problems: &mut Problems) -> Option<Claim> {
    table.need("statement", problems);
    for item in ["files", "account"].into_iter().filter_map(|key| table.get(key)) {
        let help = "name one by `check`, or remove it";
        problems.at(item.key_range.clone(), format!("`{}` belongs to a check of Tithe's", item.key), help);
    }
    let statement = statement(table, problems);
    let said: Vec<Item<'_>> = EXPECTATIONS.into_iter().filter_map(|key| table.get(key)).collect();
    let [item] = said.as_slice() else {
        let count =
            if said.is_empty() { "does not say what its statement must answer" } else { "has two expectations" };
        let place = said.get(1).map_or(table.place.clone(), |item| item.key_range.clone());
        let help =
            "give it one of `equals`, `matches`, `fails_with` and `rows`; a second expectation is a second claim";
        problems.missing(place, format!("a claim {count}"), help);
        return None;
    };
    let mut text = || item.text(problems).map(str::to_owned);
    let says = match item.key {
        "equals" => Says::Equals(text()?),
        "matches" => Says::Matches(text()?),
        "fails_with" => Says::FailsWith(words(item, problems)?),
        _ => Says::Rows(item.whole(COUNTS, problems)?),
    };
    Some(Claim::Statement { statement: statement?, says })
}

fn statement(table: &Table<'_>, problems: &mut Problems) -> Option<String> {
    let item = table.get("statement")?;
    let text = item.text(problems)?.trim().to_owned();
    if text.is_empty() {
        item.refuse("asks nothing", problems);
    }
    // No transaction takes it back, except that of Redis, whose commands are discarded.
    if changes_server(&text) && !text.to_ascii_uppercase().starts_with("CONFIG ") {
        problems.at(
            item.range.clone(),
            "this changes settings of the server, and a claim changes nothing",
            "read the setting, and claim its value",
        );
    }
    Some(text)
}

/// A statement that searches for `{canary}`.
fn about_canary(table: &Table<'_>, problems: &mut Problems) -> Option<String> {
    let text = statement(table, problems)?;
    if !text.contains("{canary}") {
        table.get("statement")?.refuse("does not look for `{canary}`, the value that was removed", problems);
    }
    Some(text)
}

/// The words that an error must contain.
fn words(item: &Item<'_>, problems: &mut Problems) -> Option<String> {
    let words = item.text(problems)?.to_owned();
    if words.trim().is_empty() {
        item.refuse("is empty, and every error contains that", problems);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_every_check() {
        assert_eq!(CHECKS.iter().map(|entry| entry.name).collect::<Vec<_>>(), keys::CHECKS);
    }
}
