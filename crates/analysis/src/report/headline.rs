//! The result of a whole run: one or two sentences, always with an interval, the same in every medium.
//!
//! A headline is judged over all cells of the run ([`Estimate::headline`]); tables and charts are not. The report
//! states both.

use tithe_model::experiment::Metric;

use super::{cell_name, idle, number, words};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Figure, Flag, Interval, Outcome, OverRun, Proof};

/// How a medium formats the parts of a sentence.
pub(super) struct Markup {
    /// Text from outside, which may need escaping.
    pub text: fn(&str) -> String,
    /// The name of an arm.
    pub name: fn(&str) -> String,
    /// A complete sentence about an unreliable result.
    pub doubt: fn(String) -> String,
}

/// Sentences without any markup.
pub(super) const PLAIN: Markup = Markup { text: str::to_owned, name: str::to_owned, doubt: std::convert::identity };

/// How texts of estimates without a clear interval begin; an answer that was withdrawn has its reason as text.
const TOO_NOISY: &str = "too noisy to tell";

/// An arm of a cell with its deciding estimate.
struct Decided<'a> {
    /// Number of the cell.
    number: usize,
    arm: &'a ArmAnalysis,
    estimate: &'a Estimate,
    judged: OverRun,
}

impl Decided<'_> {
    fn proven(&self) -> bool {
        self.arm.proof.stands()
    }

    fn symmetric(&self) -> bool {
        self.estimate.is_symmetric()
    }

    /// True if there is a reliable answer.
    fn told(&self) -> bool {
        self.proven() && self.symmetric() && self.judged.verdict != Outcome::TooNoisy
    }

    fn noisy(&self) -> bool {
        self.proven() && self.symmetric() && self.judged.verdict == Outcome::TooNoisy
    }

    /// `too noisy to tell (−3.0 % to +5.1 %, −1.2 to +2.0 µs)`
    fn noise(&self, markup: &Markup) -> String {
        let OverRun { effect, difference, verdict } = self.judged;
        let flagged = |flag| self.estimate.flags.contains(&flag);
        if flagged(Flag::NotEnoughFrames) {
            return format!("unknown ({})", (markup.text)(&self.estimate.text));
        }
        let (range, beside) = number::both(&effect, difference.as_ref(), &self.estimate.unit, verdict);
        let beside = beside.map_or(String::new(), |figure| format!(", {}", figure.rest));
        let withdrawn = self.estimate.verdict == Outcome::TooNoisy && !self.estimate.text.starts_with(TOO_NOISY);
        let answered = self.estimate.verdict != Outcome::TooNoisy;
        let why = match (withdrawn, flagged(Flag::WithinControl)) {
            (true, _) => format!(", {}", (markup.text)(&self.estimate.text)),
            // The text of the estimate is about its cell alone, where the answer is clear.
            (false, true) => ", and the plain arm differs from itself by as much".to_owned(),
            (false, false) if answered && flagged(Flag::NotSteady) => {
                ", and its servers still changed when measuring began".to_owned()
            }
            (false, false) => String::new(),
        };
        format!("{TOO_NOISY}{} ({}{beside}){why}", self.estimate.on_starts(), range.rest)
    }

    /// `4.9 % [−6.8, −3.0], −1.9 µs [−2.6, −1.2]`, and ` on this start`
    fn saving(&self) -> String {
        let OverRun { effect, difference, verdict } = self.judged;
        let told = number::in_line(&effect, difference.as_ref(), &self.estimate.unit, verdict);
        told.trim_start_matches('−').to_owned() + &self.estimate.on_starts()
    }

    /// The arm, and the cell if there are several.
    fn place(&self, cells: &[String], markup: &Markup) -> String {
        let arm = (markup.name)(&self.arm.name);
        if cells.len() == 1 { arm } else { format!("{arm} at {}", (markup.text)(&cells[self.number])) }
    }
}

/// Every arm except baselines and A/A arms, or the A/A arms only.
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

/// Maximum number of arms that a sentence names; the others are counted.
const NAMED: usize = 4;

/// The answer: the cost that each arm adds to an operation, most expensive first, and the arms without a cost. Then the
/// unknown and unproven arms, and how much the plain arm differs from itself.
pub(super) fn answer(analysis: &Analysis, markup: &Markup) -> String {
    let all = decided(analysis, false);
    let cells = cell_name::names(analysis);
    let told: Vec<&Decided> = all.iter().filter(|it| it.told()).collect();
    let mut sentences: Vec<String> = match (told.as_slice(), all.as_slice()) {
        (_, []) => vec!["Nothing was measured, so there is no answer.".to_owned()],
        ([], [only]) if only.noisy() => vec![format!("{} is {}.", only.place(&cells, markup), only.noise(markup))],
        ([], _) => vec!["No comparison gave an answer that can be relied on.".to_owned()],
        _ => costs(&told, markup).into_iter().chain(none_found(&told, markup)).collect(),
    };
    let saving = told.iter().filter(|it| it.judged.verdict == Outcome::Gains);
    sentences
        .extend(saving.map(|it| format!("{} saves {} (check the set-up).", it.place(&cells, markup), it.saving())));
    sentences.extend(told.iter().filter_map(|it| idle::beside_cost(it.arm, &it.place(&cells, markup))));
    sentences.extend(open(&all, markup));
    sentences.extend(control(analysis, &cells, markup));
    sentences.join(" ")
}

/// One arm in all cells with the same deciding figure.
type OfArm<'a> = Vec<&'a Decided<'a>>;

/// The reliable answers by arm and figure, in the experiment's order.
fn by_arm<'a>(told: &[&'a Decided<'a>]) -> Vec<OfArm<'a>> {
    let mut arms: Vec<OfArm<'a>> = Vec::new();
    for it in told.iter().copied() {
        match arms.iter_mut().find(|arm| arm[0].arm.name == it.arm.name && title(arm) == it.estimate.title) {
            Some(arm) => arm.push(it),
            None => arms.push(vec![it]),
        }
    }
    arms
}

/// `arms` by deciding figure, in the order of their first arms: costs in two figures cannot form one range.
fn by_figure(arms: Vec<OfArm<'_>>) -> Vec<Vec<OfArm<'_>>> {
    let mut figures: Vec<Vec<OfArm<'_>>> = Vec::new();
    for arm in arms {
        match figures.iter_mut().find(|figure| title(&figure[0]) == title(&arm)) {
            Some(figure) => figure.push(arm),
            None => figures.push(vec![arm]),
        }
    }
    figures
}

/// The deciding figure of an arm's cells.
fn title<'a>(arm: &[&'a Decided<'a>]) -> &'a str {
    &arm[0].estimate.title
}

/// A sentence for each figure with a cost; the one with the most expensive arm comes first.
fn costs(told: &[&Decided<'_>], markup: &Markup) -> Vec<String> {
    let most = |arm: &[&Decided<'_>]| arm.iter().map(|it| it.judged.effect.estimate).fold(f64::MIN, f64::max);
    let costs = |it: &&Decided<'_>| it.judged.verdict == Outcome::Costs;
    let mut arms: Vec<OfArm> = by_arm(told).into_iter().filter(|arm| arm.iter().any(costs)).collect();
    arms.sort_by(|a, b| most(b).total_cmp(&most(a)));
    by_figure(arms).iter().map(|arms| costs_in(arms, markup)).collect()
}

/// `tls adds 14.9 to 16.3 µs to an operation (+38.7 % to +42.3 %), audit 4.4 to 5.2 µs (…), in net time per op.`: from
/// the lowest to the highest end of the intervals, over all cells in which the arm costs something.
fn costs_in(arms: &[OfArm<'_>], markup: &Markup) -> String {
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
        // The order is that of the estimates: which of two arms costs less is not certain.
        others => format!(", {} with a cost", words::plural(others as u64, "other")),
    };
    format!("{named}{others}, in {}{}.", (markup.text)(title(&arms[0])), on_starts(arms))
}

/// The amount that an arm adds to an operation, and its share in parentheses. Only the share if the amount is unknown
/// or could be zero: with few starts a cost is certain earlier as a share. If some cell has no cost, the range has no
/// lower end.
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
    let amount = span(&|it| it.judged.difference).filter(|(low, _)| !everywhere || *low > 0.0);
    let amount = amount.map(|(low, high)| match everywhere {
        true => number::between(low, high, &arm[0].estimate.unit),
        false => format!("up to {}", number::at_most(&Interval { estimate: high, low, high }, &arm[0].estimate.unit)),
    });
    match (amount, share) {
        (Some(amount), Some(share)) => (amount, format!(" ({share})")),
        (amount, share) => (amount.or(share).unwrap_or_else(|| "something".to_owned()), String::new()),
    }
}

/// A sentence for each figure in which some arm has no cost in any cell. It names the figure if there are several, and
/// if operations may take longer all the same: processor time does not include waiting.
fn none_found(told: &[&Decided<'_>], markup: &Markup) -> Vec<String> {
    let none = |it: &&Decided<'_>| it.judged.verdict == Outcome::NoneFound;
    let arms: Vec<OfArm> = by_arm(told).into_iter().filter(|arm| arm.iter().all(none)).collect();
    let several = told.iter().any(|it| it.estimate.title != told[0].estimate.title);
    let found_in = |arms: &Vec<OfArm<'_>>| {
        let waits = matches!(arms[0][0].estimate.name, Figure::Metric(Metric::Net | Metric::Time));
        let figure = if several || !waits { format!(" in {}", (markup.text)(title(&arms[0]))) } else { String::new() };
        none_found_in(arms, &figure, markup)
    };
    by_figure(arms).iter().map(found_in).collect()
}

/// `No cost found: auth (at most 0.7 %), checksums (at most 1.6 %).`
fn none_found_in(arms: &[OfArm<'_>], figure: &str, markup: &Markup) -> String {
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
    format!("No cost found{figure}{}: {named}{others}.", on_starts(arms))
}

/// The addition to a sentence about `arms` if they have few starts.
fn on_starts(arms: &[OfArm<'_>]) -> String {
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
        (told, "of a protection that only its provider reports to have been on"),
        (unproven, "of a protection that was neither proven nor disproven"),
    ] {
        if doubted > 0 {
            sentences.push((markup.doubt)(format!("{} {why}.", of_all(doubted, all.len()))));
        }
    }
    sentences
}

/// How much the plain arm differs from itself, by the A/A arm. For several cells: the cell with the largest possible
/// difference, and the number of cells where it is unknown.
fn control(analysis: &Analysis, cells: &[String], markup: &Markup) -> Option<String> {
    let reach = |it: &Decided<'_>| it.judged.effect.low.abs().max(it.judged.effect.high.abs());
    let known = |it: &Decided<'_>| it.judged.effect.half_width().is_finite();
    let all = decided(analysis, true);
    let told: Vec<&Decided> = all.iter().filter(|it| known(it)).collect();
    let most = told.iter().max_by(|a, b| reach(a).total_cmp(&reach(b)))?;
    let figure =
        number::in_line(&most.judged.effect, most.judged.difference.as_ref(), &most.estimate.unit, Outcome::Costs);
    let (name, on_starts) = ((markup.text)(&most.arm.name), most.estimate.on_starts());
    let place = if all.len() > 1 { format!(" at {}", (markup.text)(&cells[most.number])) } else { String::new() };
    // Another cell may have a larger estimate, but no interval that reaches further.
    let elsewhere = if told.len() > 1 { ", and elsewhere by no more than this interval allows" } else { "" };
    let open = match all.len() - told.len() {
        0 => String::new(),
        unknown => format!("; of {} it is not known", words::plural(unknown as u64, "cell")),
    };
    Some(format!(
        "The plain arm differs from itself by {figure}{on_starts}{place}{elsewhere}{open} ({name}, whose true cost is zero)."
    ))
}

fn of_all(some: usize, all: usize) -> String {
    format!(
        "{} of {} {}",
        number::count(some as u64),
        words::plural(all as u64, "comparison"),
        if some == 1 { "is" } else { "are" }
    )
}

/// Which intervals hold simultaneously and which do not; `None` if the run has a single cell.
pub(super) fn together(analysis: &Analysis) -> Option<String> {
    let cells = analysis.cells.len();
    let judged = decided(analysis, false).iter().any(|it| it.estimate.over_run.is_some());
    (cells > 1 && judged).then(|| {
        format!(
            "The answer is judged over {} at once: its intervals hold together, {} times in 100, for every arm of every \
             cell. In tables and charts the intervals of one figure hold together over the arms of one cell only, so \
             among many figures some miss.",
            words::plural(cells as u64, "cell"),
            (100.0 * analysis.confidence).round()
        )
    })
}

/// The A/A arm of `cell`, if it has one.
pub(super) fn control_of(cell: &CellAnalysis) -> Option<&ArmAnalysis> {
    cell.arms.iter().find(|arm| arm.aa && !arm.estimates.is_empty())
}

/// The interval of the A/A arm of `cell` for the figure of `estimate`, if it is known.
pub(super) fn control_interval<'a>(cell: &'a CellAnalysis, estimate: &Estimate) -> Option<&'a Interval> {
    let control = control_of(cell)?.estimates.iter().find(|control| control.name == estimate.name)?;
    Some(&control.effect).filter(|effect| effect.half_width().is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// The answer about TLS in two cells, the second decided by CPU, after a `change` of its estimates there.
    fn in_two_figures(change: impl Fn(&mut Estimate)) -> String {
        let mut analysis = sample::many(2);
        for estimate in &mut analysis.cells[1].arms[1].estimates {
            estimate.primary = estimate.title == "CPU per op";
            change(estimate);
        }
        answer(&analysis, &PLAIN)
    }

    #[test]
    fn costs_in_two_figures_make_no_range() {
        let told = in_two_figures(|_| ());
        let net = "tls adds 14.9 to 16.3 µs to an operation (+38.7 % to +42.3 %), in net time per op.";
        assert!(told.ends_with(&format!("(+45.0 % to +47.6 %), in CPU per op. {net}")), "{told}");
        let told = in_two_figures(|estimate| {
            estimate.effect = Interval { estimate: 0.001, low: -0.001, high: 0.003 };
            estimate.verdict = Outcome::NoneFound;
        });
        assert!(told.starts_with(&format!("{net} No cost found in CPU per op: tls (at most 0.")), "{told}");
    }

    #[test]
    fn an_amount_that_could_be_nothing_does_not_stand_beside_a_share_that_could_not() {
        let mut analysis = sample::many(2);
        let of_tls = analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms[1].estimates);
        of_tls.filter_map(|estimate| estimate.difference.as_mut()).for_each(|difference| difference.low = -1.0);
        let told = answer(&analysis, &PLAIN);
        assert!(told.starts_with("tls adds +38.7 % to +42.3 % to an operation, "), "{told}");
    }

    #[test]
    fn arms_that_are_only_counted_are_not_said_to_cost_less() {
        let mut analysis = sample::many(2);
        for cell in &mut analysis.cells {
            let tls = cell.arms[1].clone();
            cell.arms.extend(["b", "c", "d", "e"].map(|name| ArmAnalysis { name: name.to_owned(), ..tls.clone() }));
        }
        let told = answer(&analysis, &PLAIN);
        assert!(told.contains(", 1 other with a cost, in net time per op."), "{told}");
    }

    #[test]
    fn the_only_comparison_says_why_all_cells_tell_less_than_its_own() {
        let mut analysis = sample::controlled();
        analysis.cells[1].arms.truncate(1);
        analysis.cells[0].arms.remove(1);
        let auth = &mut analysis.cells[0].arms[1].estimates[0];
        (auth.verdict, auth.text) = (Outcome::Gains, "saves 0.90 % [0.40, 1.4]".to_owned());
        let told = answer(&analysis, &PLAIN);
        assert!(told.contains("is too noisy to tell (−1.7 % to −0.1 %, "), "{told}");
        assert!(told.contains("), and the plain arm differs from itself by as much."), "{told}");
    }

    #[test]
    fn an_answer_that_was_withdrawn_over_all_cells_alone_has_its_reason() {
        let mut analysis = sample::many(1);
        analysis.cells[0].arms.truncate(2);
        let tls = analysis.cells[0].arms[1].estimates.iter_mut().find(|it| it.primary).expect("a figure");
        let effect = Interval { estimate: 0.05, low: 0.04, high: 0.06 };
        tls.over_run = Some(OverRun { effect, difference: None, verdict: Outcome::TooNoisy });
        (tls.verdict, tls.text, tls.flags) = (Outcome::Costs, "costs 5.1 %".to_owned(), vec![Flag::NotSteady]);
        let told = answer(&analysis, &PLAIN);
        let why = "tls is too noisy to tell (+4.1 % to +6.2 %), and its servers still changed when measuring began.";
        assert!(told.starts_with(why), "{told}");
    }

    #[test]
    fn an_answer_that_was_withdrawn_has_its_reason() {
        let reason = "only waiting fell, and fewer than 4 loads of the data cannot show a saving";
        let said = |text: &str| {
            let mut analysis = sample::many(1);
            analysis.cells[0].arms.truncate(2);
            let tls = analysis.cells[0].arms[1].estimates.iter_mut().find(|it| it.primary).expect("a figure");
            tls.effect = Interval { estimate: -0.05, low: -0.06, high: -0.04 };
            (tls.over_run, tls.difference, tls.verdict, tls.text) = (None, None, Outcome::TooNoisy, text.to_owned());
            answer(&analysis, &PLAIN)
        };
        let range = "tls is too noisy to tell (−5.8 % to −3.9 %)";
        assert_eq!(said(reason), format!("{range}, {reason}."));
        assert_eq!(said("too noisy to tell: between −5.8 % and −3.9 %"), format!("{range}."));
    }

    #[test]
    fn an_arm_that_costs_no_processor_time_may_wait() {
        let said = |title: &str| {
            let mut analysis = sample::many(1);
            analysis.cells[0].arms.truncate(2);
            for estimate in &mut analysis.cells[0].arms[1].estimates {
                estimate.primary = estimate.title == title;
                estimate.effect = Interval { estimate: 0.001, low: -0.001, high: 0.003 };
                (estimate.over_run, estimate.verdict) = (None, Outcome::NoneFound);
            }
            answer(&analysis, &PLAIN)
        };
        assert!(said("CPU per op").starts_with("No cost found in CPU per op"), "{}", said("CPU per op"));
        assert!(!said("net time per op").contains("No cost found in"), "{}", said("net time per op"));
    }

    /// What is said of the plain arm that differs from itself so many percent, in each of two cells.
    fn control_of_two(percent: [(f64, f64, f64); 2]) -> String {
        let mut analysis = sample::controlled();
        for (cell, (estimate, low, high)) in analysis.cells.iter_mut().zip(percent) {
            let control = &mut cell.arms[3].estimates[0];
            (control.over_run, control.difference) = (None, None);
            let [estimate, low, high] = [estimate, low, high].map(|percent: f64| (percent / 100.0).ln_1p());
            control.effect = Interval { estimate, low, high };
        }
        let told = answer(&analysis, &PLAIN);
        told[told.find("The plain arm differs").expect("a sentence")..].to_owned()
    }

    #[test]
    fn where_the_plain_arm_may_differ_most_is_not_where_it_differs_most() {
        let allowed = ", and elsewhere by no more than this interval allows";
        let aa = "(A/A, whose true cost is zero).";
        let wide = "The plain arm differs from itself by +0.1 % [−1.9, +2.1] at";
        for narrow in [(-0.8, -1.0, -0.6), (0.0, -0.1, 0.1)] {
            let told = control_of_two([(0.1, -1.9, 2.1), narrow]);
            assert_eq!(told, format!("{wide} half updates{allowed} {aa}"));
            let told = control_of_two([narrow, (0.1, -1.9, 2.1)]);
            assert_eq!(told, format!("{wide} reads only{allowed} {aa}"));
        }
    }

    #[test]
    fn what_is_not_known_of_the_plain_arm_is_not_less() {
        let mut analysis = sample::controlled();
        let control = &mut analysis.cells[0].arms[3].estimates[0];
        control.over_run = None;
        (control.effect.low, control.effect.high) = (f64::NEG_INFINITY, f64::INFINITY);
        let told = answer(&analysis, &PLAIN);
        assert!(told.ends_with(" at reads only; of 1 cell it is not known (A/A, whose true cost is zero)."), "{told}");
        assert!(!told.contains("elsewhere"), "{told}");
    }
}
