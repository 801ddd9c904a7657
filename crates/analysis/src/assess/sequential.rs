//! One arm after the other, as is common practice: for comparison only.
//!
//! Each arm has its own period of time, with one frame every second or two. The interval is what a reader would compute
//! from the two series: Welch's t interval of the difference of the means of ln(cost). It treats the frames of an arm
//! as independent, which is wrong if the machine drifts; this mode exists to show that.

use tithe_model::experiment::Metric;
use tithe_statistics::{distribution::t_upper, mean, pairing::frame_spent, variance};

use super::{estimate::ratio, measured::Measured, slots::limits};
use crate::{
    Estimate, Figure, Interval,
    figures::{METRICS, metric_title},
};

/// The costs of arm `arm`, `primary` first.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize, primary: Metric) -> Vec<Estimate> {
    let of = |metric: Metric| {
        let (plain, protected) = (costs(measured, 0, metric), costs(measured, arm, metric));
        let frames = plain.len().min(protected.len());
        let logarithms = |costs: &[f64]| costs.iter().map(|cost| cost.ln()).collect::<Vec<_>>();
        let effect = welch(&logarithms(&plain), &logarithms(&protected), measured.alpha);
        let (name, title) = (Figure::Metric(metric), metric_title(metric));
        let mut estimate = ratio(measured, name, title, effect, (frames, measured.starts()), false);
        estimate.primary = metric == primary;
        estimate.difference = (frames > 0).then(|| welch(&plain, &protected, measured.alpha));
        estimate.unit = "µs/op".into();
        estimate.flags.extend(limits(measured, arm, metric));
        estimate.flags.extend(measured.disturbances());
        estimate
    };
    let told = |metric: &Metric| *metric == primary || measured.seen.tells(*metric);
    let mut estimates: Vec<Estimate> = METRICS.into_iter().take(3).filter(told).map(of).collect();
    estimates.sort_by_key(|estimate| !estimate.primary);
    estimates
}

/// Cost of an operation in each frame of `arm`, µs.
fn costs(measured: &Measured<'_>, arm: usize, metric: Metric) -> Vec<f64> {
    let spent = measured.frames.iter().filter_map(|frame| frame_spent(&frame.slots, arm as u32, metric));
    spent.map(|spent| spent.per_operation() / 1e3).filter(|cost| cost.is_finite() && *cost > 0.0).collect()
}

/// Difference of the means of `protected` and `plain` with Welch's interval (Welch 1947, Satterthwaite's degrees of
/// freedom).
fn welch(plain: &[f64], protected: &[f64], alpha: f64) -> Interval {
    let estimate = mean(protected) - mean(plain);
    if plain.len() < 2 || protected.len() < 2 {
        return Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let (a, b) = (variance(plain) / plain.len() as f64, variance(protected) / protected.len() as f64);
    let each = |part: f64, count: usize| part * part / (count as f64 - 1.0);
    let degrees = ((a + b).powi(2) / (each(a, plain.len()) + each(b, protected.len()))).max(1.0);
    let half = if a + b > 0.0 { t_upper(alpha / 2.0, degrees) * (a + b).sqrt() } else { 0.0 };
    Interval { estimate, low: estimate - half, high: estimate + half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_is_scipys() {
        // scipy 1.17.1: ttest_ind([2, 3, 5, 6], [1, 2, 4], equal_var=False).confidence_interval(0.95).
        let interval = welch(&[1.0, 2.0, 4.0], &[2.0, 3.0, 5.0, 6.0], 0.05);
        assert!((interval.estimate - 5.0 / 3.0).abs() < 1e-12);
        assert!((interval.low - WELCH.0).abs() < 1e-9 && (interval.high - WELCH.1).abs() < 1e-9, "{interval:?}");
    }

    const WELCH: (f64, f64) = (-1.624367450896289, 4.957700784229623);
}
