//! A comparison of runs as text for a terminal: a sentence, an interval bar for each run, what was refused.

use super::{live, number, table, terminal::WIDTH_MIN, words};
use crate::{
    Interval, Outcome, Proof,
    compare::{Comparison, Difference, Match, Side},
};

/// Columns of an interval bar.
const BAR: usize = 25;

/// The comparison, `width` columns wide at most, ending with a line break.
pub fn render(comparison: &Comparison, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut lines = table::wrap(&answer(comparison), width);
    let widest = comparison.runs.iter().map(|run| table::width(run)).max().unwrap_or(0).min(width / 3);
    for matched in &comparison.matches {
        lines.push(String::new());
        lines.push(table::cut(&format!("{} · {} ({})", matched.cell, matched.arm, matched.title), width));
        let scale = scale(matched);
        lines.extend(matched.sides.iter().map(|side| format!("  {}", row(comparison, side, widest, scale))));
        for sentence in sentences(comparison, matched) {
            lines.extend(table::wrap(&sentence, width - 2).iter().map(|line| format!("  {line}")));
        }
    }
    for (title, texts) in [("Not compared", &comparison.refused), ("To know", &comparison.notes)] {
        if !texts.is_empty() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(texts.iter().flat_map(|text| table::wrap(text, width - 2)).map(|line| format!("  {line}")));
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Which run loses less, in one sentence.
pub fn answer(comparison: &Comparison) -> String {
    let all = comparison.matches.len();
    if comparison.runs.len() < 2 {
        return format!("One run, {}: nothing to compare it with.", words::plural(all as u64, "cost"));
    }
    let of = |count: usize| if all == 1 { String::new() } else { format!(" in {count} of {all} comparisons") };
    let least: Vec<usize> = comparison.matches.iter().filter_map(Match::least).collect();
    let mut told: Vec<String> = Vec::new();
    for (run, name) in comparison.runs.iter().enumerate() {
        let times = least.iter().filter(|other| **other == run).count();
        let word = if comparison.runs.len() > 2 { "least" } else { "less" };
        if times > 0 {
            told.push(format!("{name} loses {word}{}", of(times)));
        }
    }
    let open = all - least.len();
    match (told.is_empty(), open) {
        (true, _) => "No difference between the runs was found.".to_owned(),
        (false, 0) => format!("{}.", told.join("; ")),
        (false, open) => format!("{}; no clear order in {open}.", told.join("; ")),
    }
}

/// What one match says, run against run.
pub fn sentences(comparison: &Comparison, matched: &Match) -> Vec<String> {
    let name = |side: &Side| comparison.runs[side.run].as_str();
    let cost = |side: &Side| number::cost(&side.estimate.effect, Outcome::Costs);
    let differences = matched.differences();
    let sentence = |difference: &Difference<'_>| {
        let Difference { less, more, by } = difference;
        if difference.reported() {
            let by = number::cost(by, Outcome::Costs);
            format!(
                "{} loses less than {}: {} against {}, a difference of {by}.",
                name(less),
                name(more),
                cost(less).lead,
                cost(more).lead
            )
        } else {
            let margin = comparison.margin;
            let says = if by.low >= -margin && by.high <= margin { "No difference found" } else { "Too noisy to tell" };
            format!("{says} between {} and {}: {}.", name(less), name(more), number::range(by.low, by.high))
        }
    };
    let mut told: Vec<String> = differences.iter().map(sentence).collect();
    for side in matched.sides.iter().filter(|side| !side.counts()) {
        let because = match side.proof {
            Proof::Proven | Proof::Baseline => "not enough data",
            Proof::Unproven(_) => "its protection was not proven to be on",
            Proof::Disproven(_) => "its protection was disproven",
        };
        told.push(format!("{} is not ranked: {because}.", name(side)));
    }
    told
}

fn row(comparison: &Comparison, side: &Side, widest: usize, scale: f64) -> String {
    let name = table::pad(&table::cut(&comparison.runs[side.run], widest), widest);
    let figure = side.estimate.reported();
    let figure = if matches!(side.proof, Proof::Proven | Proof::Baseline) { figure } else { format!("({figure})") };
    // What is too noisy to tell has no point.
    let noisy = side.estimate.verdict == Outcome::TooNoisy;
    let drawn =
        Interval { estimate: if noisy { f64::NAN } else { side.estimate.effect.estimate }, ..side.estimate.effect };
    format!("{name}  {}  {}", live::bar(Some(&drawn), scale, BAR), figure)
}

/// Half of what the bars of a match stand for: the furthest end of any of its intervals.
fn scale(matched: &Match) -> f64 {
    let ends = matched.sides.iter().flat_map(|side| [side.estimate.effect.low, side.estimate.effect.high]);
    ends.filter(|end| end.is_finite()).map(f64::abs).fold(0.01, f64::max)
}
