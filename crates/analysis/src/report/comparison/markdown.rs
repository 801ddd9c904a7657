//! A comparison of runs as GitHub-flavoured Markdown, for a pull request or a job's summary.

use super::{against_threshold, answer, figure, not_judged, not_ranked, rests_on, sentences};
use crate::{
    compare::{Comparison, Match, Side},
    report::{markdown::escape, number, words},
};

/// The comparison and its result for a `threshold`, a share; ends with a line break.
pub fn render(comparison: &Comparison, threshold: Option<f64>) -> String {
    let mut parts = vec![format!("**{}**", escape(&answer(comparison)))];
    if let Some(threshold) = threshold {
        parts.push(list(not_judged(comparison).into_iter().chain(against_threshold(comparison, threshold))));
    }
    parts.push(table(comparison));
    parts.push(list(comparison.matches.iter().flat_map(|matched| {
        let place = format!("{} · {}: ", matched.cell, matched.arm);
        sentences(comparison, matched).into_iter().map(move |sentence| format!("{place}{sentence}"))
    })));
    for (title, texts) in [("Not compared", &comparison.reasons()), ("To know", &comparison.notes)] {
        if !texts.is_empty() {
            parts.push(format!("### {title}"));
            parts.push(list(texts.iter().cloned()));
        }
    }
    format!("{}\n", parts.join("\n\n"))
}

fn list(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| format!("- {}", escape(&text))).collect::<Vec<_>>().join("\n")
}

/// A row for each run of each arm.
fn table(comparison: &Comparison) -> String {
    let head = "| cell | arm | run | cost | plain → protected, starts | against the first |\n| --- | --- | --- | ---: | ---: | ---: |";
    let rows = comparison.matches.iter().flat_map(|matched| matched.sides.iter().map(move |side| (matched, side)));
    let rows: Vec<String> = rows.map(|(matched, side)| row(comparison, matched, side)).collect();
    format!("{head}\n{}", rows.join("\n"))
}

fn row(comparison: &Comparison, matched: &Match, side: &Side) -> String {
    let change = matched.changes().into_iter().find(|change| change.run == side.run && comparison.runs.len() > 1);
    let change = change.map_or(String::new(), |change| number::points(&change.points));
    let mark = match (side.counts(), side.proof.stands()) {
        (true, _) => "",
        (false, true) => not_ranked(side),
        (false, false) => words::proof(&side.proof).0,
    };
    let run = format!("{} {mark}", comparison.runs[side.run]);
    let columns = [&matched.cell, &matched.arm, run.trim(), &figure(side), &rests_on(side), &change].map(escape);
    format!("| {} |", columns.join(" | "))
}
