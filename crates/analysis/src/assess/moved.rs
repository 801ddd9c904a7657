//! A deciding cost that moved too far while it was measured to be one cost.
//!
//! [`Flag::Drift`] reports a trend of any size. Where the cost moved by half of itself, its mean over the measurement
//! depends on how long that was, so it is no answer. Example: copies of tables that share a running server's cache.

use tithe_statistics::{
    order::midmean,
    verdict::{digits, percent},
};

use crate::{ArmAnalysis, Estimate, Flag, Outcome};

/// Share of a cost by which it may move.
const MOVES: f64 = 0.5;

/// Withdraws each deciding answer of `arms` whose cost moved by more than half of itself, and by more than `margin`.
pub(super) fn hold(arms: &mut [ArmAnalysis], margin: f64) {
    for arm in arms {
        let effects: Vec<f64> = arm.course.iter().flat_map(|start| &start.effects).copied().collect();
        let third = effects.len() / 3;
        let ends = (midmean(&effects[..third]), midmean(&effects[effects.len() - third..]));
        arm.estimates.iter_mut().filter(|estimate| estimate.primary).for_each(|it| hold_against(it, ends, margin));
    }
}

fn hold_against(estimate: &mut Estimate, (first, last): (f64, f64), margin: f64) {
    let moved = (last - first).abs();
    let too_far = moved > margin.max(MOVES * estimate.effect.estimate.abs());
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
}
