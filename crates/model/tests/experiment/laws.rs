//! Laws for every text, every URL, every experiment.

use proptest::prelude::*;
use tithe_model::{
    diagnostic::Diagnostic,
    experiment::{Experiment, Url, mask_passwords},
    parse::parse_bytes,
    plan::{Plan, plan},
};

use crate::{FULL, catalogue, read_experiment};

/// A diagnostic's range lies in the text, on character boundaries, and diagnostics are in the order of the file.
fn diagnostics_are_placed(text: &str, diagnostics: &[Diagnostic]) -> bool {
    let starts: Vec<usize> = diagnostics.iter().filter_map(|c| c.range.as_ref()).map(|range| range.start).collect();
    !diagnostics.is_empty()
        && starts.is_sorted()
        && diagnostics.iter().filter_map(|diagnostic| diagnostic.range.clone()).all(|range| text.get(range).is_some())
}

#[test]
fn deep_nesting_is_complained_about() {
    let many = |text: &str| text.repeat(50_000);
    let dotted = format!("settings.{}a = 1", many("a."));
    let header = format!("[settings.{}a]\nb = 1", many("a."));
    for text in [many("a = ["), many("a = {b = "), many("[a."), dotted, header] {
        assert!(diagnostics_are_placed(&text, &read_experiment(&text).expect_err("this is not an experiment")));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_complained_about(text in "\\PC*|[ -~\n]*|[\\[\\]{}=\"'.,#\n a-e0-9]*") {
        if let Err(diagnostics) = read_experiment(&text) {
            prop_assert!(diagnostics_are_placed(&text, &diagnostics), "{diagnostics:?}");
        }
        prop_assert_eq!(mask_passwords(&text).len(), text.len());
    }

    #[test]
    fn any_bytes_are_read_or_complained_about(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse_bytes(&bytes, &catalogue::catalogue(), &catalogue::read).is_err());
    }

    #[test]
    fn mutations_of_a_good_file(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..12usize, "\\PC{0,3}|[\\[\\]{}=\"'.,#\n]{0,3}"),
            1..5,
        ),
    ) {
        let mut chars: Vec<char> = FULL.chars().collect();
        for (at, cut, insert) in edits {
            let start = at.index(chars.len() + 1);
            let end = (start + cut).min(chars.len());
            chars.splice(start..end, insert.chars());
        }
        let text: String = chars.into_iter().collect();
        if let Err(diagnostics) = read_experiment(&text) {
            prop_assert!(diagnostics_are_placed(&text, &diagnostics), "{diagnostics:?}");
        }
    }

    #[test]
    fn removing_lines_of_a_good_file(keep in prop::collection::vec(prop::bool::weighted(0.9), 70)) {
        let lines = FULL.lines().zip(keep).filter(|(_, keep)| *keep);
        let text: String = lines.map(|(line, _)| format!("{line}\n")).collect();
        if let Err(diagnostics) = read_experiment(&text) {
            prop_assert!(diagnostics_are_placed(&text, &diagnostics), "{diagnostics:?}");
        }
    }

    /// The `§` makes sure that the password occurs nowhere else in the text.
    #[test]
    fn a_password_is_never_shown(
        password in "[!-~]{0,6}§[!-~]{0,6}",
        path in "(/[a-z]{0,5})?",
        query in "(\\?[a-z]{1,5}=[a-z]{1,5})?",
        in_query in any::<bool>(),
    ) {
        let host = format!("host:5432{path}");
        let (url, shown) = if in_query {
            (format!("postgres://user@{host}?password={password}"), format!("postgres://user@{host}"))
        } else {
            (format!("postgres://user:{password}@{host}{query}"), format!("postgres://user:***@{host}"))
        };
        let value = Url::new(url.clone());
        prop_assert!([shown.as_str(), "postgres://***"].contains(&value.redacted().as_str()), "{}", value.redacted());
        let debug = format!("{value:?}");
        prop_assert!(!debug.contains('§'), "{}", debug);
        let json = serde_json::to_string(&value).expect("a URL is JSON");
        prop_assert!(!json.contains('§'), "{}", json);
        let quoted = serde_json::to_string(&url).expect("a text is JSON");
        for wrong in ["database = ", "[[arm]]\nurl = ", "[[arm]]\nurl = \"\n# url = ", "[load]\narrivals = "] {
            let text = format!("{wrong}{quoted}\n");
            prop_assert!(!mask_passwords(&text).contains('§'), "{}", mask_passwords(&text));
            let diagnostics = read_experiment(&text).expect_err("this is not an experiment");
            prop_assert!(!format!("{diagnostics:?}").contains('§'), "{diagnostics:?}");
        }
        for (before, after) in [
            ("versions = [", "]"),
            ("[settings]\n", " = 1"),
            ("[measure]\nbudget = ", ""),
            ("[[workload]]\nycsb = ", ""),
            ("[[workload]]\nycsb_file = ", ""),
            ("[[arm]]\nprotections = [", "]"),
            ("[[arm]]\nprotections = [{ use = ", " }]"),
            ("[[arm]]\nclaims = [{ check = ", " }]"),
            ("[[arm]]\nobserver = { name = ", " }"),
            ("[[arm]]\nswitch = { on = [", "] }"),
        ] {
            let text = format!("database = \"postgres\"\n{before}{quoted}{after}\n");
            let diagnostics = read_experiment(&text).expect_err("this is not an experiment");
            prop_assert!(!format!("{diagnostics:?}").contains('§'), "{before} {diagnostics:?}");
        }
    }

    #[test]
    fn masking_keeps_a_good_file_good(password in "[a-z§?/#@:]{1,8}") {
        let url = format!("url = \"postgres://u:{password}@h/db\"");
        let text = FULL.replace("[settings]", "[ignored]").replace("name = \"tls\"", &format!("name = \"tls\"\n{url}"));
        let masked = mask_passwords(&text);
        prop_assert_eq!(masked.len(), text.len());
        prop_assert!(!masked.contains('§'));
        prop_assert!(toml::de::DeTable::parse(&masked).is_ok());
    }

    #[test]
    fn experiments_and_plans_survive_json(
        precision in 1..=10_000u32,
        budget in 4_000..4_000_000u32,
        seed in any::<u64>(),
        rate in 40.0..1e6f64,
        share in 0.0..=1.0f64,
    ) {
        let text = FULL
            .replace("\"1%\"", &format!("\"{}%\"", f64::from(precision) / 100.0))
            .replace("\"15 min\"", &format!("\"{} s\"", f64::from(budget) / 2.0))
            .replace("seed = 1", &format!("seed = {seed}"))
            .replace("rate = 2000", &format!("rate = {rate:?}"))
            .replace("\"250 ms\"", "\"2.5 s\"")
            .replace("share = 0.5", &format!("share = {share:?}"));
        let experiment = read_experiment(&text).expect("a good file");
        let json = serde_json::to_string(&experiment).expect("an experiment is JSON");
        prop_assert_eq!(&serde_json::from_str::<Experiment>(&json).expect("read back"), &experiment);
        let plan = plan(experiment, &catalogue::catalogue()).expect("what was parsed can be planned");
        let json = serde_json::to_string(&plan).expect("a plan is JSON");
        prop_assert_eq!(serde_json::from_str::<Plan>(&json).expect("read back"), plan);
    }
}
