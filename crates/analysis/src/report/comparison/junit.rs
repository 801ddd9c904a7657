//! A comparison of runs as JUnit's XML, which continuous integration shows as tests: a test for each arm of each later
//! run. It fails where a cost lies beyond the threshold, errs where its protection or that of the first run is not
//! proven or the threshold could not be held against it, and is skipped where nothing could be compared.

use std::fmt::Write;

use super::{against_threshold, behind, judged, not_held, not_ranked, sentences};
use crate::{
    compare::{Comparison, Match, Refusal},
    report::{number, view, words},
};

/// The comparison with what a `threshold`, a share, says of it; it ends with a line break. Without one nothing fails.
pub fn render(comparison: &Comparison, threshold: Option<f64>) -> String {
    let mut tests: Vec<(String, &str)> =
        comparison.matches.iter().flat_map(|matched| of_match(comparison, matched, threshold)).collect();
    tests.extend(comparison.refused.iter().map(|Refusal { reason, unjudged }| {
        let outcome = if *unjudged { unheld(threshold) } else { "skipped" };
        (test("not compared", reason, &format!("<{outcome} message=\"{}\"/>", text(reason))), outcome)
    }));
    let count = |what: &str| tests.iter().filter(|(_, outcome)| *outcome == what).count();
    let mut suite = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"tithe compare: {}\" tests=\"{}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        text(&comparison.runs.join(", ")),
        tests.len(),
        count("failure"),
        count("error"),
        count("skipped"),
    );
    suite.extend(tests.iter().map(|(test, _)| test.as_str()));
    if let Some(threshold) = threshold {
        let told = against_threshold(comparison, threshold).join("\n");
        let _ = writeln!(suite, "<system-out>{}</system-out>", text_of_lines(&told));
    }
    suite + "</testsuite>\n</testsuites>\n"
}

/// The tests of one arm, each with its outcome: the first run is what the others are held against.
fn of_match(comparison: &Comparison, matched: &Match, threshold: Option<f64>) -> Vec<(String, &'static str)> {
    let several = matched.sides.len() > 1;
    let changes = matched.changes();
    let test_of = |run: usize| {
        let of = &comparison.runs[run];
        let name = if several { format!("{} in {of}", matched.arm) } else { matched.arm.clone() };
        let change = changes.iter().find(|change| change.run == run);
        let unproven = behind(matched, run).find(|side| !side.proof.stands());
        let (body, outcome) = match (unproven, change) {
            (Some(side), _) => {
                let why =
                    format!("{} in {}: {}", words::proof(&side.proof).0, comparison.runs[side.run], not_ranked(side));
                (format!("<error message=\"{}\"/>", text(&why)), "error")
            }
            (None, None) => {
                let outcome = unheld(threshold);
                (format!("<{outcome} message=\"{}\"/>", text(&not_held(comparison, matched, run))), outcome)
            }
            (None, Some(change)) if threshold.is_some_and(|threshold| change.beyond(threshold)) => {
                let told = sentences(comparison, matched).join("\n");
                let why = number::points(&change.points);
                (format!("<failure message=\"{}\">{}</failure>", text(&why), text_of_lines(&told)), "failure")
            }
            (None, Some(_)) => (String::new(), "passed"),
        };
        (test(&matched.cell, &name, &body), outcome)
    };
    judged(matched).map(|side| test_of(side.run)).collect()
}

/// The outcome of a test of what was to be held against `threshold` and could not be.
fn unheld(threshold: Option<f64>) -> &'static str {
    if threshold.is_some() { "error" } else { "skipped" }
}

fn test(class: &str, name: &str, body: &str) -> String {
    format!("<testcase classname=\"{}\" name=\"{}\">{body}</testcase>\n", text(class), text(name))
}

/// `foreign` as text of an attribute, whatever it holds.
fn text(foreign: &str) -> String {
    let mut cleaned = foreign.to_owned();
    view::clean(&mut cleaned);
    let escaped = cleaned.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;")
}

/// Several lines, each as [`text`].
fn text_of_lines(foreign: &str) -> String {
    foreign.lines().map(text).collect::<Vec<_>>().join("\n")
}
