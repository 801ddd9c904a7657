//! What was measured, in a line, and the answer as the page writes it.

use std::collections::BTreeSet;

use super::markup::text;
use crate::{
    Analysis,
    report::{
        headline::{self, Markup},
        words,
    },
};

const MARKUP: Markup = Markup {
    text: |words| text(words),
    name: |name| format!("<b>{}</b>", text(name)),
    doubt: |sentence| format!("<span class=\"doubt\">{sentence}</span>"),
};

/// The answer of the run.
pub(super) fn answer(analysis: &Analysis) -> String {
    headline::answer(analysis, &MARKUP)
}

/// `PostgreSQL 15.14 · Intel Xeon, 2 processors · 2026-11-21T08-12-00-postgresql`: what was measured, where and when.
pub(super) fn subject(analysis: &Analysis) -> String {
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms);
    let versions: BTreeSet<&str> =
        arms().map(|arm| arm.facts.version.as_str()).filter(|version| !version.is_empty()).collect();
    let database = versions.first().copied().unwrap_or(&analysis.database);
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
