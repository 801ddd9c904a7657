//! Estimates for a server that its provider switches: each pair of sides is one value.
//!
//! Percentiles and counters are left out: they would need frames that hold both arms.

use tithe_model::experiment::Metric;
use tithe_statistics::{
    pairing::{Spent, frame_spent, ratio_effect, total_difference},
    sides::{SideFrame, pair_differences, pair_effects},
    starts::{IntervalOptions, StartEffect, infer_over_starts},
};

use super::{
    estimate::paired,
    measured::{Measured, MeasuredFrame},
    slots::{limits, throughput, whole_slots},
};
use crate::{
    Estimate, Figure,
    figures::{METRICS, metric_title},
};

/// The slot metrics of arm `arm` that apply here, `primary` first, then the throughput.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize, primary: Metric) -> Vec<Estimate> {
    let mut estimates: Vec<Estimate> = METRICS
        .into_iter()
        .map(|metric| of_metric(measured, &measured.frames, arm, metric, primary))
        .filter(|estimate| estimate.primary || estimate.count > 0)
        .filter(|estimate| match estimate.name {
            Figure::Metric(metric) => estimate.primary || measured.seen.tells(metric),
            _ => true,
        })
        .collect();
    estimates.sort_by_key(|estimate| !estimate.primary);
    let time = match measured.cell.gaps {
        true => Some(of_metric(measured, &whole_slots(measured), arm, Metric::Time, primary)),
        false => estimates.iter().find(|estimate| estimate.name == Figure::Metric(Metric::Time)).cloned(),
    };
    let time = time.filter(|time| time.count > 0 && !measured.open_loop());
    estimates.extend(time.map(|time| throughput(measured, &time)));
    estimates
}

/// The deciding figure of arm `arm`, at the error of `measured`.
pub(super) fn deciding(measured: &Measured<'_>, arm: usize, metric: Metric) -> Estimate {
    of_metric(measured, &measured.frames, arm, metric, metric)
}

/// The costs of `frames`.
fn of_metric(
    measured: &Measured<'_>,
    frames: &[MeasuredFrame<'_>],
    arm: usize,
    metric: Metric,
    primary: Metric,
) -> Estimate {
    // Start-to-start variation does not apply: one server is both sides.
    let asked = IntervalOptions { known: None, ..measured.asked(metric) };
    let sides = side_frames(frames, arm, metric);
    let inferred = |effects: &[StartEffect]| infer_over_starts(effects, asked);
    let over_pairs = inferred(&pair_effects(sides.iter().copied()));
    let difference = inferred(&pair_differences(sides.iter().copied())).inference.interval;
    let sums = sums(frames, arm, metric);
    let pair_s = measured.frame_s * f64::from(measured.cell.frames_max) / f64::from(measured.cell.pairs().max(1));
    let mut estimate = paired(measured, Figure::Metric(metric), metric_title(metric), &over_pairs, Some(pair_s));
    estimate.primary = metric == primary;
    estimate.unit = "µs/op".into();
    // How often the provider starts it is unknown.
    estimate.starts = 0;
    if estimate.count > 0 {
        estimate.difference = Some(difference);
        estimate.total = Some(ratio_effect(&sums, measured.alpha)).filter(|total| total.estimate.is_finite());
        estimate.total_difference = estimate.total.map(|_| total_difference(&sums, measured.alpha));
    }
    estimate.flags.extend(limits(measured, arm, metric));
    estimate.flags.extend(measured.disturbances());
    estimate
}

/// Cost of an operation in each of `frames` of either side, µs.
fn side_frames(frames: &[MeasuredFrame<'_>], arm: usize, metric: Metric) -> Vec<SideFrame> {
    let of_side = |frame: &MeasuredFrame<'_>, side: u32, arm: usize| {
        let cost = frame_spent(&frame.slots, arm as u32, metric)?.per_operation() / 1e3;
        (cost.is_finite() && cost > 0.0).then_some(SideFrame { pair: frame.record.start, arm: side, cost })
    };
    let both = |frame| [of_side(frame, 0, 0), of_side(frame, 1, arm)].into_iter().flatten();
    frames.iter().flat_map(both).collect()
}

/// Total cost of both sides of each pair of `frames`, including every stall, µs.
fn sums(frames: &[MeasuredFrame<'_>], arm: usize, metric: Metric) -> Vec<(Spent, Spent)> {
    let of_arm = |frames: &[MeasuredFrame<'_>], arm: usize| -> Spent {
        let sum: Spent = frames.iter().filter_map(|frame| frame_spent(&frame.slots, arm as u32, metric)).sum();
        Spent { cost: sum.cost / 1e3, ..sum }
    };
    let pairs = frames.chunk_by(|one, other| one.record.start == other.record.start);
    pairs.map(|frames| (of_arm(frames, 0), of_arm(frames, arm))).collect()
}
