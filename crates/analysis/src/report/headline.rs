//! What a whole run says: one or two sentences, never without an interval, the same in every medium.
//!
//! A headline is judged over all cells of the run ([`Estimate::headline`]), tables and charts are not; both are said.

use super::{cell_name, number, words};
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
    /// Number of the cell.
    number: usize,
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

    /// `too noisy to tell (−3.0% to +5.1%, −1.2 to +2.0 µs)`
    fn noise(&self) -> String {
        let OverRun { effect, difference, verdict } = self.judged;
        let flagged = |flag| self.estimate.flags.contains(&flag);
        if flagged(Flag::NotEnoughFrames) {
            return format!("not to be told ({})", self.estimate.text);
        }
        let (range, beside) = number::both(&effect, difference.as_ref(), &self.estimate.unit, verdict);
        let beside = beside.map_or(String::new(), |figure| format!(", {}", figure.rest));
        let control = if flagged(Flag::WithinControl) { format!(", {}", self.estimate.text) } else { String::new() };
        format!("too noisy to tell{} ({}{beside}){control}", self.estimate.on_starts(), range.rest)
    }

    /// `4.9% [−6.8, −3.0], −1.9 µs [−2.6, −1.2]`, and ` on this start`
    fn saving(&self) -> String {
        let OverRun { effect, difference, verdict } = self.judged;
        let told = number::in_line(&effect, difference.as_ref(), &self.estimate.unit, verdict);
        told.trim_start_matches('−').to_owned() + &self.estimate.on_starts()
    }

    /// The arm, and the cell where there are several.
    fn place(&self, cells: &[String], markup: &Markup) -> String {
        let arm = (markup.name)(&self.arm.name);
        if cells.len() == 1 { arm } else { format!("{arm} at {}", (markup.text)(&cells[self.number])) }
    }
}

/// Every arm but baselines and A/A arms, or the A/A arms alone.
fn decided(analysis: &Analysis, aa: bool) -> Vec<Decided<'_>> {
    let cells = analysis.cells.iter().enumerate();
    let arms = cells.flat_map(|(number, cell)| cell.arms.iter().map(move |arm| (number, arm)));
    arms.filter(|(_, arm)| arm.aa == aa)
        .filter_map(|(number, arm)| {
            let estimate = arm.primary()?;
            Some(Decided { number, arm, estimate, judged: estimate.headline() })
        })
        .collect()
}

/// Arms that a sentence names; the others are counted.
const NAMED: usize = 4;

/// The answer: what each arm adds to an operation, the dearest first, and where no cost was found; then what could not
/// be told, what is unproven, and what the plain arm differs from itself.
pub(super) fn answer(analysis: &Analysis, markup: &Markup) -> String {
    let all = decided(analysis, false);
    let cells = cell_name::names(analysis);
    let told: Vec<&Decided> = all.iter().filter(|it| it.told()).collect();
    let mut sentences: Vec<String> = match (told.as_slice(), all.as_slice()) {
        (_, []) => vec!["Nothing was measured, so there is no answer.".to_owned()],
        ([], [only]) if only.noisy() => vec![format!("{} is {}.", only.place(&cells, markup), only.noise())],
        ([], _) => vec!["No comparison gave an answer that can be relied on.".to_owned()],
        _ => costs(&told, markup).into_iter().chain(none_found(&told, markup)).collect(),
    };
    let saving = told.iter().filter(|it| it.judged.verdict == Outcome::Gains);
    sentences
        .extend(saving.map(|it| format!("{} saves {} (check the set-up).", it.place(&cells, markup), it.saving())));
    sentences.extend(open(&all, markup));
    sentences.extend(control(analysis, &cells, markup));
    sentences.join(" ")
}

/// What is told of each arm, in the experiment's order.
fn by_arm<'a>(told: &[&'a Decided<'a>]) -> Vec<Vec<&'a Decided<'a>>> {
    let mut arms: Vec<Vec<&Decided>> = Vec::new();
    for it in told {
        match arms.iter_mut().find(|arm| arm[0].arm.name == it.arm.name) {
            Some(arm) => arm.push(it),
            None => arms.push(vec![it]),
        }
    }
    arms
}

/// `tls adds 14.9 to 16.3 µs to an operation (+38.7% to +42.3%), audit 4.4 to 5.2 µs (…), in net time per op.`:
/// from the least end of any interval to the largest, of all cells where the arm costs something.
fn costs(told: &[&Decided<'_>], markup: &Markup) -> Option<String> {
    let most = |arm: &[&Decided<'_>]| arm.iter().map(|it| it.judged.effect.estimate).fold(f64::MIN, f64::max);
    let costs = |it: &&Decided<'_>| it.judged.verdict == Outcome::Costs;
    let mut arms: Vec<Vec<&Decided>> = by_arm(told).into_iter().filter(|arm| arm.iter().any(costs)).collect();
    arms.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let title = (markup.text)(&arms.first()?[0].estimate.title);
    let named = arms.iter().take(NAMED).enumerate().map(|(index, arm)| {
        let (amount, share) = added(arm);
        let name = (markup.name)(&arm[0].arm.name);
        match index {
            0 => format!("{name} adds {amount} to an operation{share}"),
            _ => format!("{name} {amount}{share}"),
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let others = match arms.len().saturating_sub(NAMED) {
        0 => String::new(),
        others => format!(", {} less", words::plural(others as u64, "other")),
    };
    Some(format!("{named}{others}, in {title}{}.", on_starts(&arms)))
}

/// What an arm adds to an operation, and what that is of it in parentheses; the share alone where the amount is not
/// known. Where some cell has no cost the range has no lower end.
fn added(arm: &[&Decided<'_>]) -> (String, String) {
    let costing = || arm.iter().filter(|it| it.judged.verdict == Outcome::Costs);
    let everywhere = costing().count() == arm.len();
    let span = |of: &dyn Fn(&Decided<'_>) -> Option<Interval>| {
        let ends: Option<Vec<Interval>> = costing().map(|it| of(it).filter(|it| it.half_width().is_finite())).collect();
        let ends = ends?;
        let low = ends.iter().map(|it| it.low).fold(f64::MAX, f64::min);
        Some((low, ends.iter().map(|it| it.high).fold(f64::MIN, f64::max)))
    };
    let share = span(&|it| Some(it.judged.effect)).map(|(low, high)| match everywhere {
        true => number::range(low, high),
        false => format!("up to {}", number::bound(high, &Interval { estimate: high, low, high })),
    });
    let amount = span(&|it| it.judged.difference).map(|(low, high)| match everywhere {
        true => number::between(low, high, &arm[0].estimate.unit),
        false => format!("up to {}", number::at_most(&Interval { estimate: high, low, high }, &arm[0].estimate.unit)),
    });
    match (amount, share) {
        (Some(amount), Some(share)) => (amount, format!(" ({share})")),
        (amount, share) => (amount.or(share).unwrap_or_else(|| "something".to_owned()), String::new()),
    }
}

/// `No cost found: auth (at most 0.7%), checksums (at most 1.6%).`
fn none_found(told: &[&Decided<'_>], markup: &Markup) -> Option<String> {
    let none = |it: &&Decided<'_>| it.judged.verdict == Outcome::NoneFound;
    let arms: Vec<Vec<&Decided>> = by_arm(told).into_iter().filter(|arm| arm.iter().all(none)).collect();
    let named = arms.iter().take(NAMED).map(|arm| {
        let most = arm.iter().max_by(|a, b| a.judged.effect.high.total_cmp(&b.judged.effect.high));
        let bound = most.map(|it| number::bound(it.judged.effect.high.max(0.0), &it.judged.effect));
        format!("{} (at most {})", (markup.name)(&arm[0].arm.name), bound.unwrap_or_default())
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let others = match arms.len().saturating_sub(NAMED) {
        0 => String::new(),
        others => format!(" and {}", words::plural(others as u64, "other")),
    };
    (!arms.is_empty()).then(|| format!("No cost found{}: {named}{others}.", on_starts(&arms)))
}

/// What a sentence about `arms` says of starts that are few.
fn on_starts(arms: &[Vec<&Decided<'_>>]) -> String {
    words::on_starts_of(arms.iter().flatten().map(|it| it.estimate))
}

/// How many comparisons gave no answer, and why.
fn open(all: &[Decided<'_>], markup: &Markup) -> Vec<String> {
    let count = |holds: &dyn Fn(&Decided<'_>) -> bool| all.iter().filter(|it| holds(it)).count();
    let noisy = count(&|it| it.noisy());
    let asymmetric = count(&|it| it.proven() && !it.symmetric());
    let disproven = count(&|it| matches!(it.arm.proof, Proof::Disproven(_)));
    let told = count(&|it| matches!(it.arm.proof, Proof::ToldByProvider(_)));
    let unproven = count(&|it| !it.proven()) - disproven - told;
    let mut sentences = Vec::new();
    if noisy > 0 && all.len() > 1 {
        sentences.push(format!("{} too noisy to tell.", of_all(noisy, all.len())));
    }
    for (doubted, why) in [
        (asymmetric, "of a set-up that is not symmetric"),
        (disproven, "of a protection that was disproven"),
        (told, "of a protection of which nobody but its provider says that it was on"),
        (unproven, "of a protection that was neither proven nor disproven"),
    ] {
        if doubted > 0 {
            sentences.push((markup.doubt)(format!("{} {why}.", of_all(doubted, all.len()))));
        }
    }
    sentences
}

/// What the plain arm differs from itself, by the A/A arm: of several cells, where that may be most.
fn control(analysis: &Analysis, cells: &[String], markup: &Markup) -> Option<String> {
    let reach = |it: &Decided<'_>| it.judged.effect.low.abs().max(it.judged.effect.high.abs());
    let known = |it: &Decided<'_>| it.judged.effect.half_width().is_finite();
    let all = decided(analysis, true);
    let most = all.iter().filter(|it| known(it)).max_by(|a, b| reach(a).total_cmp(&reach(b)))?;
    let figure =
        number::in_line(&most.judged.effect, most.judged.difference.as_ref(), &most.estimate.unit, Outcome::Costs);
    let (name, on_starts) = ((markup.text)(&most.arm.name), most.estimate.on_starts());
    Some(match all.len() {
        1 => format!("The plain arm differs from itself by {figure}{on_starts} ({name}, where no cost is the truth)."),
        _ => format!(
            "The plain arm differs from itself by {figure}{on_starts} at {}, and by less elsewhere ({name}, where no cost is the \
             truth).",
            (markup.text)(&cells[most.number])
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
