//! Waiting that differs between arms without a protection, in all starts alike.
//!
//! How long an arm waits (wall time without processor time) also depends on the disk: on the place of its files, and on
//! their surroundings. If possible, Tithe draws that again for each start. If it cannot, or if something else stays for
//! a whole cell, an interval over starts does not include it. An arm that does the same as the plain arm shows the
//! effect; then processor time decides, which the disk does not affect, and figures that include waiting are no
//! answers. A saving of waiting alone is accepted only over several loads.

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{experiment::Metric, plan::STARTS_MIN, quantity::amount};
use tithe_statistics::{
    inference::sidak,
    mean,
    pairing::{fewest_pairs, frame_difference},
    persistence::Persistence,
    verdict::outcome,
};

use super::measured::Measured;
use crate::{
    ArmAnalysis, Estimate, Figure, Flag, Interval, Outcome,
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
    let controls: Vec<usize> = (1..arms.len()).filter(|arm| arms[*arm].is_second(&arms[0])).collect();
    let alpha = sidak(PERSISTS, cells.saturating_mul(controls.len()).max(1));
    let found = controls.into_iter().filter_map(|arm| Some((arm, of_arm(measured, arm, metric)?)));
    let (arm, found) = found.filter(|(_, found)| found.p < alpha).min_by(|one, other| one.1.p.total_cmp(&other.1.p))?;
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

/// The difference in waiting between `arm` and the plain arm, start by start, µs per operation; `None` if starts are
/// too few.
fn of_arm(measured: &Measured<'_>, arm: usize, metric: Metric) -> Option<Persistence> {
    let mut starts: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for frame in &measured.frames {
        let fewest = fewest_pairs(&frame.slots, measured.lanes);
        let difference = |metric| frame_difference(&frame.slots, 0, arm as u32, metric, fewest);
        if let Some((all, cpu)) = difference(metric).zip(difference(Metric::Cpu)) {
            starts.entry(frame.record.start).or_default().push((all - cpu) / 1e3);
        }
    }
    Persistence::of(&starts.values().map(|frames| mean(frames)).collect::<Vec<_>>())
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
    use tithe_statistics::verdict::verdict;

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
