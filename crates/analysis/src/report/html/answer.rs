//! The subject of the run in one line, and the answer as markup.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::markup::breakable;
use crate::{
    Analysis,
    report::{headline, words},
};

/// Private-use characters that mark names and doubts while sentences are built; they are removed from other text.
const NAME: char = '\u{e000}';
const DOUBT: char = '\u{e001}';

const SIGNS: headline::Markup = headline::Markup {
    text: plain,
    name: |name| format!("{NAME}{}{NAME}", plain(name)),
    doubt: |sentence| format!("{DOUBT}{sentence}{DOUBT}"),
};

fn plain(foreign: &str) -> String {
    foreign.replace([NAME, DOUBT], "")
}

/// The answer of the run.
pub(super) fn answer(analysis: &Analysis) -> Markup {
    html! {
        @for (index, sentences) in headline::answer(analysis, &SIGNS).split(DOUBT).enumerate() {
            @if index % 2 == 1 { span.doubt { (named(sentences)) } } @else { (named(sentences)) }
        }
    }
}

/// `sentences` with names marked up.
fn named(sentences: &str) -> Markup {
    html! {
        @for (index, words) in sentences.split(NAME).enumerate() {
            @if index % 2 == 1 { b { (breakable(words)) } } @else { (words) }
        }
    }
}

/// `PostgreSQL 15.14 · Intel Xeon, 2 processors · 2026-11-21T08-12-00-postgresql`: database, machine and time.
pub(super) fn subject(analysis: &Analysis) -> String {
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms);
    let versions: BTreeSet<&str> =
        arms().map(|arm| arm.facts.version.as_str()).filter(|version| !version.is_empty()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let database = if versions.is_empty() { analysis.database.clone() } else { versions.join(", ") };
    let processors = words::plural(analysis.machine.processors.into(), "processor");
    format!("{database} · {}, {processors} · {}", analysis.machine.processor, analysis.run)
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn listed(names: &[&str], last: &str) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::subject;
    use crate::report::sample;

    #[test]
    fn a_run_of_two_versions_is_about_both() {
        let mut analysis = sample::versions();
        for (cell, version) in analysis.cells.iter_mut().zip(["PostgreSQL 15.14", "PostgreSQL 18.1"]) {
            cell.arms.iter_mut().for_each(|arm| version.clone_into(&mut arm.facts.version));
        }
        assert!(subject(&analysis).starts_with("PostgreSQL 15.14, PostgreSQL 18.1 · "), "{}", subject(&analysis));
    }
}
