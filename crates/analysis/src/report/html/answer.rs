//! What was asked, in one sentence, and the answer in one or two, never without an interval.

use std::collections::BTreeSet;

use super::markup::text;
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Outcome, Proof,
    report::{number, words},
};

/// A protected arm of a cell with the estimate that decides about it.
struct Decided<'a> {
    cell: &'a CellAnalysis,
    arm: &'a ArmAnalysis,
    estimate: &'a Estimate,
}

impl Decided<'_> {
    fn proven(&self) -> bool {
        matches!(self.arm.proof, Proof::Proven | Proof::Baseline)
    }

    /// `costs 3.1% [2.6, 3.7], +1.2 µs [1.0, 1.4]`
    fn says(&self, margin: f64) -> String {
        let number::Figure { lead, rest } = number::cost(&self.estimate.effect, self.estimate.verdict);
        let size = lead.trim_start_matches(['+', '−']);
        let difference = self.difference();
        match self.estimate.verdict {
            Outcome::TooNoisy if self.estimate.flags.contains(&Flag::NotEnoughFrames) => {
                format!("not to be told ({})", self.estimate.text)
            }
            Outcome::TooNoisy => format!("too noisy to tell ({rest}{difference})"),
            Outcome::NoneFound => format!("{} {rest}{difference}", words::outcome(self.estimate, margin)),
            Outcome::Gains => format!("saves {size} {rest}{difference} (check the set-up)"),
            Outcome::Costs if self.estimate.effect.high <= margin => {
                format!("costs {size} {rest}{difference} (below your margin)")
            }
            Outcome::Costs => format!("costs {size} {rest}{difference}"),
        }
    }

    /// `, +1.2 µs [1.0, 1.4]`, or nothing.
    fn difference(&self) -> String {
        let Estimate { effect, difference, unit, verdict, .. } = self.estimate;
        let (_, beside) = number::both(effect, difference.as_ref(), unit, *verdict);
        match (beside, verdict) {
            (None, _) => String::new(),
            (Some(figure), Outcome::TooNoisy) => format!(", {}", figure.rest),
            (Some(figure), _) => format!(", {figure}"),
        }
    }

    /// The arm, and the cell where there are several.
    fn place(&self, cells: usize) -> String {
        let arm = format!("<b>{}</b>", text(&self.arm.name));
        if cells == 1 { arm } else { format!("{arm} in cell {}", text(&self.cell.id)) }
    }
}

fn decided(analysis: &Analysis) -> Vec<Decided<'_>> {
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    arms.filter_map(|(cell, arm)| {
        let estimate = arm.estimates.iter().find(|estimate| estimate.primary)?;
        Some(Decided { cell, arm, estimate })
    })
    .collect()
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

/// The answer: the one figure, or the span from the least to the most; then what could not be told and what is
/// unproven.
pub(super) fn answer(analysis: &Analysis) -> String {
    let all = decided(analysis);
    let cells = analysis.cells.len();
    let mut told: Vec<&Decided> =
        all.iter().filter(|it| it.proven() && it.estimate.verdict != Outcome::TooNoisy).collect();
    told.sort_by(|a, b| a.estimate.effect.estimate.total_cmp(&b.estimate.effect.estimate));
    let noisy = all.iter().filter(|it| it.proven() && it.estimate.verdict == Outcome::TooNoisy).count();
    let disproven = all.iter().filter(|it| matches!(it.arm.proof, Proof::Disproven(_))).count();
    let unproven = all.iter().filter(|it| !it.proven()).count() - disproven;
    let of =
        told.first().or(all.first().as_ref()).map_or(String::new(), |it| format!(" ({})", text(&it.estimate.title)));
    let mut sentences = Vec::new();
    match (told.as_slice(), all.as_slice()) {
        (_, []) => sentences.push("Nothing was measured, so there is no answer.".to_owned()),
        ([], [only]) if only.proven() => {
            sentences.push(format!("{} is {}{of}.", only.place(cells), only.says(analysis.margin)))
        }
        ([], _) => sentences.push("No comparison gave an answer that can be relied on.".to_owned()),
        ([only], _) => sentences.push(format!("{} {}{of}.", only.place(cells), only.says(analysis.margin))),
        ([least, .., most], _) => sentences.push(format!(
            "From {}: {}, to {}: {}{of}.",
            least.place(cells),
            least.says(analysis.margin),
            most.place(cells),
            most.says(analysis.margin)
        )),
    }
    if noisy > 0 && all.len() > 1 {
        sentences.push(format!("{} too noisy to tell.", of_all(noisy, all.len())));
    }
    for (doubted, why) in [(disproven, "disproven"), (unproven, "neither proven nor disproven")] {
        if doubted > 0 {
            let of_all = of_all(doubted, all.len());
            sentences.push(format!("<span class=\"doubt\">{of_all} of a protection that was {why}.</span>"));
        }
    }
    sentences.join(" ")
}

fn of_all(some: usize, all: usize) -> String {
    format!(
        "{} of {} {}",
        number::count(some as u64),
        words::plural(all as u64, "comparison"),
        if some == 1 { "is" } else { "are" }
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
