//! What a whole run says: one or two sentences, never without an interval, the same in every medium.
//!
//! A headline is judged over all cells of the run ([`Estimate::headline`]), tables and charts are not; both are said.

use super::{number, words};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Flag, Interval, Outcome, OverRun, Proof};

/// How a medium writes the parts of a sentence.
pub(super) struct Markup {
    /// Text that may come from outside.
    pub text: fn(&str) -> String,
    /// The name of an arm.
    pub name: fn(&str) -> String,
    /// A sentence, already written, about what cannot be relied on.
    pub doubt: fn(String) -> String,
}

/// Sentences without any markup.
pub(super) const PLAIN: Markup = Markup { text: str::to_owned, name: str::to_owned, doubt: std::convert::identity };

/// An arm of a cell with the estimate that decides about it.
struct Decided<'a> {
    cell: &'a CellAnalysis,
    arm: &'a ArmAnalysis,
    estimate: &'a Estimate,
    judged: OverRun,
}

impl Decided<'_> {
    fn proven(&self) -> bool {
        matches!(self.arm.proof, Proof::Proven | Proof::Baseline)
    }

    fn symmetric(&self) -> bool {
        !self.estimate.flags.contains(&Flag::Asymmetric)
    }

    /// There is an answer that can be relied on.
    fn told(&self) -> bool {
        self.proven() && self.symmetric() && self.judged.verdict != Outcome::TooNoisy
    }

    fn noisy(&self) -> bool {
        self.proven() && self.symmetric() && self.judged.verdict == Outcome::TooNoisy
    }

    /// `costs 3.1% [2.6, 3.7], +1.2 µs [1.0, 1.4]`
    fn says(&self, margin: f64) -> String {
        let OverRun { effect, verdict, .. } = self.judged;
        let number::Figure { lead, rest } = number::cost(&effect, verdict);
        let size = lead.trim_start_matches(['+', '−']);
        let difference = self.difference();
        let flagged = |flag| self.estimate.flags.contains(&flag);
        match verdict {
            Outcome::TooNoisy if flagged(Flag::NotEnoughFrames) => format!("not to be told ({})", self.estimate.text),
            Outcome::TooNoisy if flagged(Flag::WithinControl) => {
                format!("too noisy to tell ({rest}{difference}), {}", self.estimate.text)
            }
            Outcome::TooNoisy => format!("too noisy to tell ({rest}{difference})"),
            Outcome::NoneFound => {
                format!("no cost found, at most {} {rest}{difference}", number::bound(effect.high.max(0.0), &effect))
            }
            Outcome::Gains => format!("saves {size} {rest}{difference} (check the set-up)"),
            Outcome::Costs if effect.high <= margin => {
                format!("costs {size} {rest}{difference} (below your margin)")
            }
            Outcome::Costs => format!("costs {size} {rest}{difference}"),
        }
    }

    /// `, +1.2 µs [1.0, 1.4]`, or nothing.
    fn difference(&self) -> String {
        let OverRun { effect, difference, verdict } = self.judged;
        let (_, beside) = number::both(&effect, difference.as_ref(), &self.estimate.unit, verdict);
        match (beside, verdict) {
            (None, _) => String::new(),
            (Some(figure), Outcome::TooNoisy) => format!(", {}", figure.rest),
            (Some(figure), _) => format!(", {figure}"),
        }
    }

    /// The arm, and the cell where there are several.
    fn place(&self, cells: usize, markup: &Markup) -> String {
        let arm = (markup.name)(&self.arm.name);
        if cells == 1 { arm } else { format!("{arm} in cell {}", (markup.text)(&self.cell.id)) }
    }
}

/// Every arm but baselines and A/A arms, or the A/A arms alone.
fn decided(analysis: &Analysis, aa: bool) -> Vec<Decided<'_>> {
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    arms.filter(|(_, arm)| arm.aa == aa)
        .filter_map(|(cell, arm)| {
            let estimate = arm.estimates.iter().find(|estimate| estimate.primary)?;
            Some(Decided { cell, arm, estimate, judged: estimate.headline() })
        })
        .collect()
}

/// The answer: the one figure, or the span from the least to the most; then what could not be told, what is unproven,
/// and what the plain arm differs from itself.
pub(super) fn answer(analysis: &Analysis, markup: &Markup) -> String {
    let all = decided(analysis, false);
    let cells = analysis.cells.len();
    let mut told: Vec<&Decided> = all.iter().filter(|it| it.told()).collect();
    told.sort_by(|a, b| a.judged.effect.estimate.total_cmp(&b.judged.effect.estimate));
    let title = told.first().or(all.first().as_ref()).map(|it| (markup.text)(&it.estimate.title));
    let of = title.map_or(String::new(), |title| format!(" ({title})"));
    let says = |it: &Decided<'_>| it.says(analysis.margin);
    let mut sentences = vec![match (told.as_slice(), all.as_slice()) {
        (_, []) => "Nothing was measured, so there is no answer.".to_owned(),
        ([], [only]) if only.noisy() => format!("{} is {}{of}.", only.place(cells, markup), says(only)),
        ([], _) => "No comparison gave an answer that can be relied on.".to_owned(),
        ([only], _) => format!("{} {}{of}.", only.place(cells, markup), says(only)),
        ([least, .., most], _) => format!(
            "From {}: {}, to {}: {}{of}.",
            least.place(cells, markup),
            says(least),
            most.place(cells, markup),
            says(most)
        ),
    }];
    sentences.extend(open(&all, markup));
    sentences.extend(control(analysis, markup));
    sentences.join(" ")
}

/// How many comparisons gave no answer, and why.
fn open(all: &[Decided<'_>], markup: &Markup) -> Vec<String> {
    let count = |holds: &dyn Fn(&Decided<'_>) -> bool| all.iter().filter(|it| holds(it)).count();
    let noisy = count(&|it| it.noisy());
    let asymmetric = count(&|it| it.proven() && !it.symmetric());
    let disproven = count(&|it| matches!(it.arm.proof, Proof::Disproven(_)));
    let unproven = count(&|it| !it.proven()) - disproven;
    let mut sentences = Vec::new();
    if noisy > 0 && all.len() > 1 {
        sentences.push(format!("{} too noisy to tell.", of_all(noisy, all.len())));
    }
    for (doubted, why) in [
        (asymmetric, "of a set-up that is not symmetric"),
        (disproven, "of a protection that was disproven"),
        (unproven, "of a protection that was neither proven nor disproven"),
    ] {
        if doubted > 0 {
            sentences.push((markup.doubt)(format!("{} {why}.", of_all(doubted, all.len()))));
        }
    }
    sentences
}

/// What the plain arm differs from itself, by the A/A arm: of several cells, where that may be most.
fn control(analysis: &Analysis, markup: &Markup) -> Option<String> {
    let reach = |it: &Decided<'_>| it.judged.effect.low.abs().max(it.judged.effect.high.abs());
    let known = |it: &Decided<'_>| it.judged.effect.half_width().is_finite();
    let all = decided(analysis, true);
    let most = all.iter().filter(|it| known(it)).max_by(|a, b| reach(a).total_cmp(&reach(b)))?;
    let figure =
        number::in_line(&most.judged.effect, most.judged.difference.as_ref(), &most.estimate.unit, Outcome::Costs);
    let name = (markup.text)(&most.arm.name);
    Some(match all.len() {
        1 => format!("The plain arm differs from itself by {figure} ({name}, where no cost is the truth)."),
        _ => format!(
            "The plain arm differs from itself by {figure} in cell {}, and by less in the others ({name}, where no cost \
             is the truth).",
            (markup.text)(&most.cell.id)
        ),
    })
}

fn of_all(some: usize, all: usize) -> String {
    format!(
        "{} of {} {}",
        number::count(some as u64),
        words::plural(all as u64, "comparison"),
        if some == 1 { "is" } else { "are" }
    )
}

/// What holds together, and what does not; `None` where a single cell is the whole run.
pub(super) fn together(analysis: &Analysis) -> Option<String> {
    let cells = analysis.cells.len();
    let judged = decided(analysis, false).iter().any(|it| it.estimate.over_run.is_some());
    (cells > 1 && judged).then(|| {
        format!(
            "The answer is judged over {} at once: its intervals hold together, {} times in 100, for every arm of every \
             cell. In tables and charts the intervals of one figure hold together over the arms of one cell only, so of \
             many figures some miss.",
            words::plural(cells as u64, "cell"),
            (100.0 * analysis.confidence).round()
        )
    })
}

/// True where the figures of `cell` have a negative control.
pub(super) fn control_of(cell: &CellAnalysis) -> Option<&ArmAnalysis> {
    cell.arms.iter().find(|arm| arm.aa && !arm.estimates.is_empty())
}

/// The interval of the A/A arm of `cell` for the figure of `estimate`, if it is known.
pub(super) fn control_interval<'a>(cell: &'a CellAnalysis, estimate: &Estimate) -> Option<&'a Interval> {
    let control = control_of(cell)?.estimates.iter().find(|control| control.name == estimate.name)?;
    Some(&control.effect).filter(|effect| effect.half_width().is_finite())
}
