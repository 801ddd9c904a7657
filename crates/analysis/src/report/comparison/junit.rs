//! A comparison of runs as JUnit's XML, which continuous integration shows as tests: one test for each arm of each
//! later run. A test fails if a cost is beyond the threshold. It is an error if the protection of this or of the first
//! run is not proven, or if the threshold could not be applied. It is skipped if nothing could be compared.

use maud::{Markup, html};

use super::{against_threshold, behind, judged, not_held, not_ranked, sentences};
use crate::{
    compare::{Comparison, Match, Refusal},
    report::{view::clean_lines, words},
};

/// The outcome of a test, with its message.
enum Outcome {
    Passed,
    Failed { why: String, told: String },
    Error(String),
    Skipped(String),
}

/// A test.
struct Test {
    class: String,
    name: String,
    outcome: Outcome,
}

/// The comparison and its result for a `threshold`, a share; ends with a line break. Without one no test fails.
pub fn render(comparison: &Comparison, threshold: Option<f64>) -> String {
    let mut tests: Vec<Test> =
        comparison.matches.iter().flat_map(|matched| of_match(comparison, matched, threshold)).collect();
    tests.extend(comparison.refused.iter().map(|Refusal { reason, unjudged }| {
        let outcome = if *unjudged { unheld(threshold, reason.clone()) } else { Outcome::Skipped(reason.clone()) };
        Test { class: "not compared".to_owned(), name: reason.clone(), outcome }
    }));
    let count = |is_it: fn(&Outcome) -> bool| tests.iter().filter(|test| is_it(&test.outcome)).count();
    let suites = html! {
        "\n"
        testsuites {
            "\n"
            testsuite name={ "tithe compare: " (comparison.runs.join(", ")) } tests=(tests.len())
                failures=(count(|it| matches!(it, Outcome::Failed { .. })))
                errors=(count(|it| matches!(it, Outcome::Error(_))))
                skipped=(count(|it| matches!(it, Outcome::Skipped(_))))
            {
                "\n"
                @for test in &tests { (test.markup()) "\n" }
                @if let Some(threshold) = threshold {
                    system-out { (against_threshold(comparison, threshold).join("\n")) } "\n"
                }
            }
            "\n"
        }
        "\n"
    };
    format!("{DECLARATION}{}", clean_lines(&suites.into_string()))
}

/// The first line of an XML document; HTML has none.
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

impl Test {
    fn markup(&self) -> Markup {
        html! {
            testcase classname=(self.class) name=(self.name) {
                @match &self.outcome {
                    Outcome::Passed => {}
                    Outcome::Failed { why, told } => { failure message=(why) { (told) } }
                    Outcome::Error(why) => { error message=(why) {} }
                    Outcome::Skipped(why) => { skipped message=(why) {} }
                }
            }
        }
    }
}

/// The tests of one arm: all runs against the first.
fn of_match(comparison: &Comparison, matched: &Match, threshold: Option<f64>) -> Vec<Test> {
    let several = matched.sides.len() > 1;
    let changes = matched.changes();
    let test_of = |run: usize| {
        let of = &comparison.runs[run];
        let name = if several { format!("{} in {of}", matched.arm) } else { matched.arm.clone() };
        let change = changes.iter().find(|change| change.run == run);
        let unproven = behind(matched, run).find(|side| !side.proof.stands());
        let outcome = match (unproven, change) {
            (Some(side), _) => {
                let proof = words::proof(&side.proof).0;
                Outcome::Error(format!("{proof} in {}: {}", comparison.runs[side.run], not_ranked(side)))
            }
            (None, None) => unheld(threshold, not_held(comparison, matched, run)),
            (None, Some(change)) if threshold.is_some_and(|threshold| change.beyond(threshold)) => {
                let told = sentences(comparison, matched).join("\n");
                Outcome::Failed { why: super::told(comparison, change), told }
            }
            (None, Some(_)) => Outcome::Passed,
        };
        Test { class: matched.cell.clone(), name, outcome }
    };
    judged(matched).map(|side| test_of(side.run)).collect()
}

/// The outcome of a test if `threshold` could not be applied.
fn unheld(threshold: Option<f64>, why: String) -> Outcome {
    if threshold.is_some() { Outcome::Error(why) } else { Outcome::Skipped(why) }
}
