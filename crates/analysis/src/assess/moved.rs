//! A deciding cost that moved too far while it was measured to be one cost.
//!
//! [`Flag::Drift`] reports a trend of any size. Where the cost moved by half of itself, its mean over the measurement
//! depends on how long that was, so it is no answer. Example: copies of tables that share a running server's cache.

use tithe_statistics::{
    order::midmean,
    verdict::{digits, percent},
};

use crate::{ArmAnalysis, Estimate, Flag, Outcome, StartCourse};

/// Share of a cost by which it may move.
const MOVES: f64 = 0.5;

/// Withdraws each deciding answer of `arms` whose cost moved by more than half of itself, and by more than `margin`.
pub(super) fn hold(arms: &mut [ArmAnalysis], margin: f64) {
    for ArmAnalysis { course, estimates, .. } in arms {
        for estimate in estimates.iter_mut().filter(|estimate| estimate.primary) {
            let ends = ends(course, estimate.spread.is_some());
            hold_against(estimate, ends, margin);
        }
    }
}

/// A cost in the first third of the frames of `course` and in the last; in the thirds of each of its starts if
/// `within_starts`, as a trend is tested if an interval is over starts. NaN if there are too few frames.
pub(crate) fn ends(course: &[StartCourse], within_starts: bool) -> (f64, f64) {
    let of_starts = || course.iter().map(|start| start.effects.clone());
    let parts: Vec<Vec<f64>> = match within_starts {
        true => of_starts().collect(),
        false => vec![of_starts().flatten().collect()],
    };
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for frames in parts.iter().filter(|frames| frames.len() > 1) {
        let third = (frames.len() / 3).max(1);
        first.extend_from_slice(&frames[..third]);
        last.extend_from_slice(&frames[frames.len() - third..]);
    }
    (midmean(&first), midmean(&last))
}

/// True if a cost of `effect` that moved from the `first` end to the `last` moved too far to be one cost.
pub(crate) fn is_too_far((first, last): (f64, f64), effect: f64, margin: f64) -> bool {
    (last - first).abs() > margin.max(MOVES * effect.abs())
}

fn hold_against(estimate: &mut Estimate, (first, last): (f64, f64), margin: f64) {
    let too_far = is_too_far((first, last), estimate.effect.estimate, margin);
    if !too_far || !estimate.flags.contains(&Flag::Drift) || estimate.verdict == Outcome::TooNoisy {
        return;
    }
    let percent = |effect: f64| digits(percent(effect));
    estimate.flags.push(Flag::Moved);
    estimate.verdict = Outcome::TooNoisy;
    estimate.text = format!("moved from {} to {} % while it was measured", percent(first), percent(last));
    if let Some(over_run) = &mut estimate.over_run {
        over_run.verdict = Outcome::TooNoisy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, Interval, OverRun, assess::estimate::stated};

    #[test]
    fn a_cost_that_moved_by_half_of_itself_is_withdrawn() {
        let held = |effect: f64, ends: (f64, f64), flags: &[Flag]| {
            let effect = Interval { estimate: effect, low: effect - 0.01, high: effect + 0.01 };
            let over_run = Some(OverRun { effect, difference: None, verdict: Outcome::Costs });
            let name = Figure::Metric(tithe_model::experiment::Metric::Net);
            let stated = stated(name, "", effect, Outcome::Costs, "costs".to_owned(), 30);
            let mut estimate = Estimate { flags: flags.to_vec(), over_run, ..stated };
            hold_against(&mut estimate, ends, 0.03);
            // A comparison, a history and a matrix see the flag alone.
            assert_eq!(estimate.not_held().is_some(), estimate.verdict == Outcome::TooNoisy);
            (estimate.verdict, estimate.over_run.map(|it| it.verdict), estimate.text)
        };
        let (drift, costs, noisy) = (&[Flag::Drift], Outcome::Costs, Outcome::TooNoisy);
        let words = "moved from 350 to 65 % while it was measured";
        assert_eq!(held(0.9, (1.504, 0.5), drift), (noisy, Some(noisy), words.to_owned()));
        assert_eq!(held(0.9, (0.5, 1.504), drift).0, noisy);
        assert_eq!(held(0.9, (1.504, 0.5), &[]).0, costs, "chance moves it, too");
        assert_eq!(held(0.9, (1.0, 0.8), drift).0, costs);
        assert_eq!(held(0.03, (0.04, 0.02), drift).0, costs, "less than anybody asks for");
        assert_eq!(held(0.9, (f64::NAN, f64::NAN), drift).0, costs, "no course");
    }

    #[test]
    fn a_cost_that_moves_in_every_start_alike_moves_as_far_as_in_one() {
        let course: Vec<StartCourse> =
            (0..6).map(|start| StartCourse { start, effects: vec![0.9, 0.8, 0.5, 0.5, 0.2, 0.1] }).collect();
        let told = |within_starts: bool| {
            let (first, last) = ends(&course, within_starts);
            ((100.0 * first).round(), (100.0 * last).round(), is_too_far((first, last), 0.5, 0.03))
        };
        assert_eq!(told(true), (85.0, 15.0, true));
        assert!(!told(false).2, "the first starts and the last cost the same");
        let alone = [StartCourse { start: 0, effects: vec![0.9] }];
        assert!([true, false].into_iter().all(|within| ends(&alone, within).0.is_nan()));
    }
}
