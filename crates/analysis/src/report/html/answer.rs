//! What was asked, in one sentence, and the answer as the page writes it.

use std::collections::BTreeSet;

use super::markup::text;
use crate::{
    Analysis, Proof,
    report::headline::{self, Markup},
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

/// `How much more does an operation of SQLite 3.54 cost with …?`
pub(super) fn question(analysis: &Analysis) -> String {
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms);
    let versions: BTreeSet<&str> =
        arms().map(|arm| arm.facts.version.as_str()).filter(|version| !version.is_empty()).collect();
    let database = versions.first().copied().unwrap_or(&analysis.database);
    let mut protected: Vec<&str> = Vec::new();
    for arm in arms().filter(|arm| arm.proof != Proof::Baseline) {
        if !protected.contains(&arm.name.as_str()) {
            protected.push(&arm.name);
        }
    }
    if protected.is_empty() {
        return format!("What do the protections of {} cost?", text(database));
    }
    format!(
        "How much more does an operation on {} cost with {} than without?",
        text(database),
        text(&listed(&protected, "or"))
    )
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn listed(names: &[&str], last: &str) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
