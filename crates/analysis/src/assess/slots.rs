//! Estimates from slots: time, net time and processor time per operation, and the throughput that follows.

use tithe_model::{experiment::Metric, record::Slot};

use super::{
    carry_over,
    estimate::{difference, paired, ratio, with_resolution},
    measured::{Measured, MeasuredFrame, intended},
};
use crate::{
    Estimate, Figure, Flag, Interval, Outcome,
    statistics::{
        inference::infer,
        order::signed_rank_p,
        pairing::{Spent, fewest_pairs, frame_difference, frame_effect, frame_spent, ratio_effect, total_difference},
        verdict::{digits, percent, verdict},
    },
};

/// The metrics of slots in the order of the report, with the title of each.
pub(super) const METRICS: [(Metric, &str); 5] = [
    (Metric::Net, "net time per op"),
    (Metric::Time, "time per op"),
    (Metric::Cpu, "CPU per op"),
    (Metric::ClientCpu, "client CPU per op"),
    (Metric::ServerCpu, "server CPU per op"),
];

/// A client that ran for a larger share of its wall time is saturated.
const SATURATED: f64 = 0.9;

/// Two instances of the baseline whose signed-rank p is smaller are not the same.
const DIFFERS_P: f64 = 0.01;

/// An open loop that left a larger share of its operations undone was not at its rate.
const UNFINISHED: f64 = 0.01;

/// The slot metrics of arm `arm` that have a meaning here, `primary` first, and the throughput after them.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize, primary: Metric) -> Vec<Estimate> {
    let has_meaning = |metric: Metric| match metric {
        Metric::Net => measured.seen.net(),
        Metric::ServerCpu => measured.seen.server(),
        Metric::Time | Metric::Cpu | Metric::ClientCpu => true,
    };
    let mut estimates = Vec::new();
    let mut of_time = None;
    for (metric, title) in METRICS {
        let mut estimate = of_metric(measured, &measured.frames, arm, metric, (Figure::Metric(metric), title));
        estimate.primary = metric == primary;
        if !estimate.primary && (estimate.count == 0 || !has_meaning(metric)) {
            continue;
        }
        (estimate.total, estimate.total_difference) = total(measured, arm, metric);
        if estimate.total.is_some_and(|total| disjoint(total, estimate.effect)) {
            estimate.flags.push(Flag::TailDriven);
        }
        estimate.flags.extend(limits(measured, arm, metric));
        estimate.flags.extend(measured.disturbances());
        // Latencies count from the end of the settling time on, processor and wall time over the whole slot.
        let from_ns = if metric == Metric::Time { measured.settling_ns } else { 0 };
        if carry_over::is_felt(measured, arm, from_ns) {
            estimate.flags.push(Flag::CarryOver);
        }
        if metric == Metric::Time {
            of_time = Some(estimate.clone());
        }
        estimates.push(estimate);
    }
    estimates.sort_by_key(|estimate| !estimate.primary);
    if measured.open_loop() {
        estimates.extend(achieved(measured, arm));
    } else {
        estimates.extend(of_time.filter(|time| time.count > 0).map(|time| throughput(measured, &time)));
    }
    estimates.extend(free(measured, arm));
    estimates
}

/// The ratio and the difference of `metric` over `frames`.
fn of_metric(
    measured: &Measured<'_>,
    frames: &[MeasuredFrame<'_>],
    arm: usize,
    metric: Metric,
    (figure, title): (Figure, &str),
) -> Estimate {
    let effects = of_frames(frames, measured.lanes, arm, metric, frame_effect);
    let differences_ns = of_frames(frames, measured.lanes, arm, metric, frame_difference);
    let differences: Vec<f64> = differences_ns.into_iter().map(|ns| ns / 1e3).collect();
    Estimate {
        difference: difference(measured, &differences),
        unit: "µs/op".into(),
        ..paired(measured, figure, title, &effects)
    }
}

/// The same where nothing was bound to a processor: few frames, shown beside because a server in use is not bound
/// either.
fn free(measured: &Measured<'_>, arm: usize) -> impl Iterator<Item = Estimate> {
    let of = |(metric, title): (Metric, &str)| {
        let estimate = of_metric(measured, &measured.free, arm, metric, (Figure::Free(metric), title));
        (estimate.count > 0).then_some(estimate)
    };
    const METRICS: [(Metric, &str); 2] =
        [(Metric::Time, "time per op, not bound to processors"), (Metric::Cpu, "CPU per op, not bound to processors")];
    METRICS.into_iter().filter_map(of).collect::<Vec<_>>().into_iter()
}

/// Does arm `arm` differ from the baseline in `metric`? Signed-rank test of the merged frame effects at 1 %.
pub(super) fn differs(measured: &Measured<'_>, arm: usize, metric: Metric) -> bool {
    signed_rank_p(&infer(&effects(measured, arm, metric), measured.alpha).merged) < DIFFERS_P
}

/// What limits a figure that depends on how fast the clients are served.
pub(super) fn limits_of_time(measured: &Measured<'_>, arm: usize) -> Vec<Flag> {
    let either = |holds: &dyn Fn(usize) -> bool| holds(0) || holds(arm);
    let mut flags = Vec::new();
    if measured.open_loop() && either(&|arm| measured.unfinished_share(arm) > UNFINISHED) {
        flags.push(Flag::NotAtRate);
    }
    // Another program has as many threads as it likes: how much one of them runs is not known.
    if !measured.embedded && !measured.cell.program && either(&|arm| measured.client_share(arm) > SATURATED) {
        flags.push(Flag::ClientSaturated);
    }
    flags
}

fn limits(measured: &Measured<'_>, arm: usize, metric: Metric) -> Vec<Flag> {
    let mut flags = match metric {
        Metric::Time | Metric::Net => limits_of_time(measured, arm),
        Metric::Cpu | Metric::ClientCpu | Metric::ServerCpu => Vec::new(),
    };
    if measured.server_unseen() && metric == Metric::Cpu {
        flags.push(Flag::ServerUnseen);
    }
    flags
}

/// The effect of each frame that has enough pairs.
pub(super) fn effects(measured: &Measured<'_>, arm: usize, metric: Metric) -> Vec<f64> {
    of_frames(&measured.frames, measured.lanes, arm, metric, frame_effect)
}

/// What a frame's slots say of two arms: [`frame_effect`] or [`frame_difference`].
type OfFrame = fn(&[Slot], u32, u32, Metric, usize) -> Option<f64>;

fn of_frames(frames: &[MeasuredFrame<'_>], lanes: usize, arm: usize, metric: Metric, of: OfFrame) -> Vec<f64> {
    let of_slots = |slots: &[Slot]| of(slots, 0, arm as u32, metric, fewest_pairs(slots, lanes));
    frames.iter().filter_map(|frame| of_slots(&frame.slots)).collect()
}

/// Effect and difference (µs) with every stall counted; `None` where no frame has both arms or nothing was spent.
fn total(measured: &Measured<'_>, arm: usize, metric: Metric) -> (Option<Interval>, Option<Interval>) {
    let spent = |frame: &MeasuredFrame<'_>| {
        Some((frame_spent(&frame.slots, 0, metric)?, frame_spent(&frame.slots, arm as u32, metric)?))
    };
    let frames: Vec<_> = measured.frames.iter().filter_map(spent).collect();
    let total = ratio_effect(&frames, measured.alpha);
    if !total.estimate.is_finite() {
        return (None, None);
    }
    let micros = |spent: Spent| Spent { cost: spent.cost / 1e3, ..spent };
    let frames: Vec<_> = frames.into_iter().map(|(plain, protected)| (micros(plain), micros(protected))).collect();
    (Some(total), Some(total_difference(&frames, measured.alpha)))
}

fn disjoint(a: Interval, b: Interval) -> bool {
    a.high < b.low || b.high < a.low
}

/// What the time per operation means for the throughput of a closed loop: 1 − exp(−effect) fewer operations.
///
/// The effect stays that of the time, so that a positive one is a cost here too.
fn throughput(measured: &Measured<'_>, time: &Estimate) -> Estimate {
    let Interval { estimate, low, high } = time.effect;
    // Fewer operations: −percent(−effect); more: percent(−effect).
    let fewer = |effect: f64| digits(-percent(-effect));
    let more = |effect: f64| digits(percent(-effect));
    let text = match time.verdict {
        Outcome::Costs => {
            let small = if high <= measured.margin { " (below your margin)" } else { "" };
            format!("{}% fewer operations [{}, {}]{small}", fewer(estimate), fewer(low), fewer(high))
        }
        Outcome::Gains => format!("{}% more operations [{}, {}]", more(estimate), more(high), more(low)),
        Outcome::NoneFound => format!("no loss found, at most {}%", digits(-percent(-high.max(0.0)))),
        Outcome::TooNoisy if low.is_finite() && high.is_finite() => {
            format!("too noisy to tell: between {}% and {}% fewer operations", fewer(low), fewer(high))
        }
        Outcome::TooNoisy => verdict(time.effect, measured.margin, "cost").1,
    };
    let estimate = Estimate {
        name: Figure::Throughput,
        title: "throughput".to_owned(),
        primary: false,
        text,
        difference: None,
        total_difference: None,
        unit: "".into(),
        ..time.clone()
    };
    with_resolution(measured, estimate)
}

/// The share of the intended operations that an open loop did, as a cost: intended operations per operation done.
fn achieved(measured: &Measured<'_>, arm: usize) -> Option<Estimate> {
    let spent = |frame| Spent { cost: intended(frame) as f64, operations: frame.operations as f64 };
    let frames: Vec<_> = measured.pairs(arm).map(|(plain, protected)| (spent(plain), spent(protected))).collect();
    let effect = ratio_effect(&frames, measured.alpha);
    if !effect.estimate.is_finite() {
        return None;
    }
    let share = |sum: Spent| 100.0 / sum.per_operation();
    let (plain, protected) = (frames.iter().map(|it| it.0).sum(), frames.iter().map(|it| it.1).sum());
    let title = "share of the intended operations done";
    let mut estimate = ratio(measured, Figure::Throughput, title, effect, frames.len());
    estimate.text =
        format!("{:.1}% of the intended operations done, {:.1}% on the plain arm", share(protected), share(plain));
    estimate.flags = limits_of_time(measured, arm);
    Some(estimate)
}
