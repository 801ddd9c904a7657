//! The parser accepts exactly the values in the table of keys.

use tithe_model::{
    diagnostic::Diagnostic,
    parse::{Key, Kind, MATRIX_TABLES, TABLES, matrix},
};

use crate::read_experiment;

/// An experiment in which every table occurs once, as lines by table; the combination makes no sense otherwise.
const LINES: [(&str, &[(&str, &str)]); 11] = [
    ("", &[("title", "\"x\""), ("database", "\"postgres\"")]),
    ("[data]", &[("records", "1000")]),
    ("[load]", &[("rate", "10")]),
    ("[measure]", &[]),
    ("[[resources]]", &[]),
    ("[[workload]]", &[("ycsb", "\"c\"")]),
    (
        "[[published]]",
        &[("source", "\"x\""), ("arm", "\"tls\""), ("figure", "\"time\""), ("plain", "1"), ("protected", "2")],
    ),
    ("[[arm]]", &[("name", "\"plain\"")]),
    ("[[arm]]", &[("name", "\"tls\"")]),
    ("switch", &[("on", "[\"a\"]"), ("off", "[\"a\"]"), ("ready", "\"a\"")]),
    ("observer", &[("name", "\"db1\"")]),
];

/// Tables in a list of an arm, or in a separate file: `a_protection_of_the_readers_own` tests them.
const IN_LISTS: [&str; 3] = ["protections", "options", "claims"];

const MATRIX_LINES: [(&str, &[(&str, &str)]); 2] =
    [("matrix", &[("title", "\"x\""), ("experiments", "[\"a\"]")]), ("[[machine]]", &[("name", "\"a\"")])];

/// A file with `key = value` in the last table called `header`.
fn file(lines: &[(&str, &[(&str, &str)])], header: &str, key: &str, value: &str) -> String {
    let last = lines.iter().rposition(|(other, _)| *other == header).unwrap_or_else(|| panic!("no {header}"));
    let mut text = String::new();
    // A table occurs once: as this value, or below its header.
    let is_other = |table: &str| table.trim_matches(['[', ']']) != key || table == header;
    for (index, (table, keys)) in lines.iter().enumerate().filter(|(_, (table, _))| is_other(table)) {
        text += &match *table {
            "" | "matrix" => String::new(),
            "switch" | "observer" => format!("[arm.{table}]\n"),
            header => format!("{header}\n"),
        };
        // A change replaces both levels.
        let is_replaced = |name: &str| name == key || (key == "change" && ["plain", "protected"].contains(&name));
        let others = keys.iter().filter(|(name, _)| index != last || !is_replaced(name));
        others.for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        if index == last {
            text += &format!("{key} = {value}\n");
        }
    }
    text
}

/// The problems that the parser has with `value` itself.
fn refused(header: &str, key: &str, value: &str) -> Option<Diagnostic> {
    let problems = match MATRIX_TABLES.iter().any(|table| table.header == header) {
        true => matrix(&file(&MATRIX_LINES, header, key, value)).err(),
        false => read_experiment(&file(&LINES, header, key, value)).err(),
    };
    let begins = [format!("`{key}` must be"), format!("`{key}` cannot be `")];
    let of_value = |problem: &Diagnostic| begins.iter().any(|begin| problem.problem.starts_with(begin));
    problems.unwrap_or_default().into_iter().find(of_value)
}

/// Half of `5 ms`, and one unit more.
fn around(limit: &str) -> (String, String) {
    let end = limit.find(|c: char| !c.is_ascii_digit() && c != '.').expect("a unit");
    let number: f64 = limit[..end].parse().expect("a number");
    (format!("\"{}{}\"", number / 2.0, &limit[end..]), format!("\"{}{}\"", number + 1.0, &limit[end..]))
}

/// Values that `kind` accepts, and values that it refuses.
fn values(kind: &Kind) -> (Vec<String>, Vec<String>) {
    let quoted = |text: &&str| format!("\"{text}\"");
    match kind {
        Kind::Text | Kind::Name => (vec![], vec!["3".to_owned()]),
        Kind::Database | Kind::Table(_) | Kind::Pairs => (vec![], vec!["3".to_owned()]),
        Kind::Address => (vec!["\"127.0.0.1\"".to_owned()], vec!["\"nowhere\"".to_owned(), "3".to_owned()]),
        Kind::Choice(words) => (words.iter().map(quoted).collect(), vec!["\"nonsense\"".to_owned(), "3".to_owned()]),
        Kind::Whole(low, high) => {
            let good = [Some(*low), Some(*high).filter(|high| *high != u64::MAX)];
            let bad = [low.checked_sub(1), high.checked_add(1)];
            let text = |value: &u64| value.to_string();
            let other = ["\"3\"".to_owned(), "-1".to_owned()];
            (good.iter().flatten().map(text).collect(), bad.iter().flatten().map(text).chain(other).collect())
        }
        Kind::Number(low, high) => {
            let text = |value: f64| format!("{value:?}");
            (vec![text(*low), text(*high)], vec![text(low / 2.0), text(high * 2.0), "\"3\"".to_owned()])
        }
        Kind::Flag => (vec!["true".to_owned(), "false".to_owned()], vec!["3".to_owned()]),
        Kind::Percentage(low, high) | Kind::Time(low, high) => {
            let below = (!low.starts_with("0 ") && !low.starts_with("0%")).then(|| around(low).0);
            let bad = [around(high).1, "\"3 parsec\"".to_owned(), "3".to_owned()];
            (vec![quoted(low), quoted(high)], below.into_iter().chain(bad).collect())
        }
        Kind::Change => (vec!["\"+5%\"".to_owned()], vec!["\"5\"".to_owned(), "3".to_owned()]),
        Kind::Size => (vec!["\"1 MiB\"".to_owned()], vec!["\"1 KiB\"".to_owned(), "\"1\"".to_owned(), "3".to_owned()]),
        Kind::List(..) => (vec![], vec!["3".to_owned()]),
        Kind::Either(kinds) => (kinds.iter().flat_map(|kind| values(kind).0).collect(), vec!["true".to_owned()]),
    }
}

#[test]
fn the_parser_takes_what_the_table_says() {
    let mut count = 0;
    for table in TABLES.iter().chain(MATRIX_TABLES).filter(|table| !IN_LISTS.contains(&table.header)) {
        for Key { name, kind, .. } in table.keys {
            let (good, bad) = values(kind);
            for value in good {
                let problem = refused(table.header, name, &value);
                assert!(problem.is_none(), "{}: {name} = {value}: {problem:?}", table.header);
            }
            for value in bad {
                let problem = refused(table.header, name, &value);
                let problem = problem.unwrap_or_else(|| panic!("{}: {name} = {value} is taken", table.header));
                if let (Kind::Choice(words), "\"nonsense\"") = (kind, value.as_str()) {
                    let named = words.iter().all(|word| problem.help.contains(&format!("`{word}`")));
                    assert!(named && problem.help.matches('`').count() == 2 * words.len(), "{name}: {}", problem.help);
                }
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} values were refused");
}
