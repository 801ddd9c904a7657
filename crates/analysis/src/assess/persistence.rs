//! Waiting that differs between arms without a protection, in all starts alike.
//!
//! How long an arm waits (wall time without processor time) also depends on the disk: on the place of its files, and on
//! their surroundings. If possible, Tithe draws that again for each start. If it cannot, or if something else stays for
//! a whole cell, an interval over starts does not include it. An arm that does the same as the plain arm shows the
//! effect; then processor time decides, which the disk does not affect, and figures that include waiting are no
//! answers. The work of a volume is the kernel's, which processor time does not contain: then those figures are widened
//! by the effect. A saving of waiting alone is accepted only over several loads.

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{
    experiment::{Arm, Metric},
    plan::STARTS_MIN,
    quantity::amount,
    record::Slot,
};
use tithe_statistics::{
    inference::sidak,
    mean,
    pairing::{fewest_pairs, frame_difference},
    persistence::Persistence,
    starts::StartEffect,
    verdict::{outcome, verdict},
};

use super::{
    measured::{Measured, MeasuredFrame},
    slots::throughput,
};
use crate::{
    ArmAnalysis, Estimate, Figure, Flag, Interval, Outcome, Proof,
    counted::{holds_waiting, is_of_waiting},
};

/// Probability of wrongly reporting, for any cell of a run, that a difference in waiting persists.
const PERSISTS: f64 = 0.01;

/// The arm without a protection that shows, in one of `cells` cells, that waiting differs in all starts alike, and how,
/// without the final full stop; `None` if there is none. If `deciding` does not include waiting, other figures do.
pub(super) fn differs(measured: &Measured<'_>, deciding: Metric, cells: usize) -> Option<(usize, String)> {
    if measured.cell.design.has_one_arm_a_frame() {
        return None;
    }
    let metric = match deciding {
        deciding if holds_waiting(deciding) => deciding,
        _ if measured.seen.net() => Metric::Net,
        _ => Metric::Time,
    };
    let arms = measured.arms();
    let controls = controls(arms);
    let count = controls.len();
    let tests = controls.into_iter().filter_map(|arm| Some((arm, of_arm(measured, arm, metric)?)));
    let (arm, found) = most_certain(tests, count, cells)?;
    let Persistence { mean, t, starts, .. } = found;
    let words = format!(
        "arm `{}` protects nothing and waits {} per op {} than the plain arm over {starts} starts (t = {t:.1})",
        arms[arm].name,
        amount(mean.abs(), "µs"),
        if mean > 0.0 { "longer" } else { "less" },
    );
    Some((arm, words))
}

/// Takes back every figure of `arms` that includes waiting, because the A/A arm waits differently.
pub(super) fn take_back(arms: &mut [ArmAnalysis]) {
    let estimates = arms.iter_mut().flat_map(|arm| &mut arm.estimates);
    estimates.filter(|estimate| waits(estimate)).for_each(|estimate| estimate.flags.push(Flag::Asymmetric));
}

/// The arms that protect nothing, as the plain arm, which is the first of `arms`.
pub(crate) fn controls(arms: &[Arm]) -> Vec<usize> {
    (1..arms.len()).filter(|arm| arms[*arm].is_second(&arms[0])).collect()
}

/// Of the `tests` of arms that protect nothing, with their arms, the one with the smallest p; `None` if none of them is
/// certain. `controls` is the number of such arms in each of `cells` cells.
pub(crate) fn most_certain(
    tests: impl Iterator<Item = (usize, Persistence)>,
    controls: usize,
    cells: usize,
) -> Option<(usize, Persistence)> {
    let alpha = sidak(PERSISTS, cells.saturating_mul(controls).max(1));
    tests.filter(|(_, test)| test.p < alpha).min_by(|one, other| one.1.p.total_cmp(&other.1.p))
}

/// The difference in waiting between `arm` and the plain arm in the `slots` of one frame, µs per operation; `None` for
/// fewer than `fewest` pairs of slots.
pub(crate) fn of_frame(slots: &[Slot], arm: u32, metric: Metric, fewest: usize) -> Option<f64> {
    let difference = |metric| frame_difference(slots, 0, arm, metric, fewest);
    difference(metric).zip(difference(Metric::Cpu)).map(|(all, cpu)| (all - cpu) / 1e3)
}

/// Tests the differences of frames, start by start; `None` if starts are too few.
pub(crate) fn over_starts(differences: impl IntoIterator<Item = StartEffect>) -> Option<Persistence> {
    let mut starts: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    differences.into_iter().for_each(|it| starts.entry(it.start).or_default().push(it.effect));
    Persistence::of(&starts.values().map(|frames| mean(frames)).collect::<Vec<_>>())
}

/// The difference in waiting between `arm` and the plain arm over the starts of a cell.
fn of_arm(measured: &Measured<'_>, arm: usize, metric: Metric) -> Option<Persistence> {
    let of_frame = |frame: &MeasuredFrame<'_>| {
        let fewest = fewest_pairs(&frame.slots, measured.lanes);
        let effect = of_frame(&frame.slots, arm as u32, metric, fewest)?;
        Some(StartEffect { start: frame.record.start, effect })
    };
    over_starts(measured.frames.iter().filter_map(of_frame))
}

/// Widens each figure of `arms` that includes waiting by what the same figure of arm `control` allows to differ from
/// the plain arm: that arm protects nothing, and its difference persists over the starts. Processor time cannot decide
/// instead where a protection works in the kernel.
pub(super) fn widen(measured: &Measured<'_>, arms: &mut [ArmAnalysis], control: usize) {
    // Of an open loop, it is the share of operations that were done, which is no time.
    let is_share = |estimate: &Estimate| estimate.name == Figure::Throughput && measured.open_loop();
    let waits = |estimate: &&Estimate| waits(estimate) && !is_share(estimate);
    let found: Vec<Estimate> = arms[control].estimates.iter().filter(waits).cloned().collect();
    let protected = arms.iter_mut().filter(|arm| arm.proof != Proof::Baseline);
    for estimate in protected.flat_map(|arm| &mut arm.estimates) {
        if let Some(control) = found.iter().find(|control| control.name == estimate.name) {
            widen_by(estimate, control, measured);
        }
    }
}

fn widen_by(estimate: &mut Estimate, control: &Estimate, measured: &Measured<'_>) {
    // Without an interval, as of too few frames, nothing can be widened.
    if !estimate.effect.half_width().is_finite() {
        return;
    }
    for (interval, of_control) in [
        (&mut estimate.total, control.total),
        (&mut estimate.difference, control.difference),
        (&mut estimate.total_difference, control.total_difference),
    ] {
        *interval = interval.zip(of_control).map(|(interval, of_control)| beyond(interval, &of_control));
    }
    estimate.effect = beyond(estimate.effect, &control.effect);
    // No test of no effect and no prediction includes what all starts have in common.
    (estimate.p, estimate.more_s) = (None, None);
    (estimate.verdict, estimate.text) = verdict(estimate.effect, measured.margin, "cost");
    estimate.text += &estimate.on_starts();
    if estimate.name == Figure::Throughput {
        estimate.text = throughput(measured, estimate).text;
    }
    if let Some(over_run) = &mut estimate.over_run {
        let of_control = control.headline();
        over_run.effect = beyond(over_run.effect, &of_control.effect);
        let differences = over_run.difference.zip(of_control.difference);
        over_run.difference = differences.map(|(interval, of_control)| beyond(interval, &of_control));
        over_run.verdict = outcome(over_run.effect, measured.margin);
    }
}

/// `interval`, on either side further by the end of `control` that is furthest from zero.
pub(crate) fn beyond(interval: Interval, control: &Interval) -> Interval {
    let more = control.low.abs().max(control.high.abs());
    Interval { low: interval.low - more, high: interval.high + more, ..interval }
}

/// True if the figure includes the time that an operation waits.
fn waits(estimate: &Estimate) -> bool {
    match &estimate.name {
        Figure::Metric(metric) | Figure::Free(metric) => holds_waiting(*metric),
        Figure::Throughput | Figure::Percentile(_) => true,
        _ => false,
    }
}

/// Withdraws each saving of `arms` that is one of waiting, unless the cell has several loads of which frames count. The
/// sides of a switched server are on the same load, so that it cannot explain a difference.
pub(super) fn hold(measured: &Measured<'_>, arms: &mut [ArmAnalysis]) {
    let loads: BTreeSet<u32> = measured.frames.iter().map(|frame| frame.record.epoch).collect();
    if loads.len() >= STARTS_MIN as usize || measured.cell.design.is_switched() {
        return;
    }
    for estimates in arms.iter_mut().map(|arm| &mut arm.estimates) {
        let cpu = estimates.iter().find(|estimate| estimate.name == Figure::Metric(Metric::Cpu));
        // Without it, a saving may be one of waiting alone.
        let unknown = Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let cpu = cpu.map_or(unknown, |cpu| cpu.effect);
        estimates.iter_mut().filter(|estimate| waits(estimate)).for_each(|estimate| hold_against(estimate, cpu));
    }
}

fn hold_against(estimate: &mut Estimate, cpu: Interval) {
    let is_saving = |outcome| outcome == Outcome::Gains;
    // By the intervals: the A/A arm may have withdrawn the answer, and comparisons and matrices see the flag alone.
    let saves = |effect: &Interval| is_saving(outcome(*effect, 0.0));
    let saves = saves(&estimate.effect) || estimate.over_run.is_some_and(|over_run| saves(&over_run.effect));
    if !saves || !is_of_waiting(&estimate.effect, &cpu) {
        return;
    }
    if is_saving(estimate.verdict) {
        let what = match cpu.high {
            high if high.is_infinite() => "processor time is not known",
            high if high >= 0.0 => "only waiting fell",
            _ => "waiting fell by more than processor time",
        };
        estimate.verdict = Outcome::TooNoisy;
        estimate.text = format!("{what}, and fewer than {STARTS_MIN} loads of the data cannot show a saving");
    }
    if let Some(over_run) = estimate.over_run.as_mut().filter(|over_run| is_saving(over_run.verdict)) {
        over_run.verdict = Outcome::TooNoisy;
    }
    estimate.flags.push(Flag::WaitingAlone);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OverRun, assess::estimate::stated};

    fn of(low: f64, high: f64) -> Estimate {
        let effect = Interval { estimate: (low + high) / 2.0, low, high };
        let (outcome, text) = verdict(effect, 0.03, "cost");
        let over_run = Some(OverRun { effect, difference: None, verdict: outcome });
        Estimate { over_run, ..stated(Figure::Metric(Metric::Net), "", effect, outcome, text, 30) }
    }

    #[test]
    fn a_saving_without_less_processor_time_is_not_believed() {
        let cpu = |low: f64, high: f64| Interval { estimate: (low + high) / 2.0, low, high };
        let held = |mut estimate: Estimate, cpu| {
            hold_against(&mut estimate, cpu);
            (estimate.verdict, estimate.headline().verdict, estimate.flags.contains(&Flag::WaitingAlone))
        };
        let (gains, noisy, costs) = (Outcome::Gains, Outcome::TooNoisy, Outcome::Costs);
        assert_eq!(held(of(-0.05, -0.02), cpu(-0.01, 0.01)), (noisy, noisy, true));
        assert_eq!(held(of(-0.05, -0.02), cpu(0.02, 0.03)), (noisy, noisy, true));
        assert_eq!(held(of(-0.05, -0.02), cpu(-0.03, -0.01)), (gains, gains, false));
        // Some processor time was saved, but far less than the time.
        assert_eq!(held(of(-0.05, -0.02), cpu(-0.003, -0.001)), (noisy, noisy, true));
        assert_eq!(held(of(0.02, 0.05), cpu(-0.01, 0.01)), (costs, costs, false));
        assert_eq!(held(of(-0.05, -0.02), cpu(-0.01, 0.0)), (noisy, noisy, true), "processor time may not have fallen");
        // A saving in this cell alone, and one over all cells alone.
        let over_run = |low: f64, high: f64| of(low, high).over_run;
        let alone = Estimate { over_run: over_run(-0.06, 0.04), ..of(-0.05, -0.02) };
        assert_eq!(held(alone, cpu(-0.01, 0.01)), (noisy, noisy, true));
        let alone = Estimate { over_run: None, ..of(-0.05, -0.02) };
        assert_eq!(held(alone, cpu(-0.01, 0.01)), (noisy, noisy, true));
        let alone = Estimate { over_run: over_run(-0.05, -0.02), ..of(-0.06, 0.04) };
        assert_eq!(held(alone, cpu(-0.01, 0.01)), (noisy, noisy, true));
    }

    #[test]
    fn what_is_flagged_follows_from_the_interval_and_not_from_an_answer_that_was_withdrawn() {
        let cpu = Interval { estimate: 0.0, low: -0.01, high: 0.01 };
        let withdrawn = |low: f64, high: f64| {
            let words = "withdrawn by the A/A arm".to_owned();
            let mut estimate = Estimate { verdict: Outcome::TooNoisy, text: words, over_run: None, ..of(low, high) };
            hold_against(&mut estimate, cpu);
            (estimate.flags == [Flag::WaitingAlone], estimate.text)
        };
        let kept = "withdrawn by the A/A arm".to_owned();
        assert_eq!(withdrawn(-0.05, -0.02), (true, kept.clone()));
        assert_eq!(withdrawn(-0.05, 0.02), (false, kept));
    }
}
