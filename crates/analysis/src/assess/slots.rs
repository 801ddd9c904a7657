//! Estimates from slots: time, net time and processor time per operation, and the resulting throughput.

use tithe_model::{experiment::Metric, record::Slot};
use tithe_statistics::{
    pairing::{Spent, fewest_pairs, frame_difference, frame_effect, frame_spent, ratio_effect, total_difference},
    starts::{StartEffect, infer_over_starts},
    verdict::{apart_from_all, apart_from_zero, digits, percent, verdict},
};

use super::{
    carry_over,
    estimate::{paired, ratio, with_resolution},
    measured::{Measured, MeasuredFrame, intended},
    sums::Sums,
    within_frame,
};
use crate::{
    Estimate, Figure, Flag, Interval, Outcome,
    figures::{METRICS, metric_title},
};

/// A client that ran for a larger share of its wall time is saturated.
const SATURATED: f64 = 0.9;

/// An open loop with a larger share of unfinished operations did not reach its rate.
const UNFINISHED: f64 = 0.01;

/// The slot metrics of arm `arm` that apply here, `primary` first, then the throughput.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize, primary: Metric) -> Vec<Estimate> {
    let mut estimates = Vec::new();
    let mut of_time = None;
    for metric in METRICS {
        let figure = (Figure::Metric(metric), metric_title(metric));
        let mut estimate = of_metric(measured, &measured.frames, arm, metric, figure, Some(measured.frame_s));
        estimate.primary = metric == primary;
        if !estimate.primary && (estimate.count == 0 || !measured.seen.tells(metric)) {
            continue;
        }
        add_total(&mut estimate, measured, &measured.frames, arm, metric);
        estimate.flags.extend(limits(measured, arm, metric));
        estimate.flags.extend(measured.disturbances());
        // Latencies count from the end of the settling time, processor and wall time over the whole slot.
        let from_ns = if metric == Metric::Time { measured.settling_ns } else { 0 };
        if within_frame::changes(measured, arm, metric) {
            // Then operations late in a slot are cheaper, too, whatever the arm before left behind.
            estimate.flags.push(Flag::ChangesInFrame);
        } else if carry_over::is_felt(measured, arm, from_ns) {
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
        let served = of_time.map(|time| if measured.cell.gaps { of_whole_slots(measured, arm, &time) } else { time });
        estimates.extend(served.filter(|time| time.count > 0).map(|time| throughput(measured, &time)));
    }
    estimates.extend(free(measured, arm));
    estimates
}

/// The time of whole slots per operation, with the flags of `time`, which is that of operations alone.
fn of_whole_slots(measured: &Measured<'_>, arm: usize, time: &Estimate) -> Estimate {
    let frames = whole_slots(measured);
    let throughput = (Figure::Throughput, "throughput");
    let mut estimate = of_metric(measured, &frames, arm, Metric::Time, throughput, Some(measured.frame_s));
    add_total(&mut estimate, measured, &frames, arm, Metric::Time);
    // These two are about a series of values; the others limit what the slots tell, too.
    estimate.flags.extend(time.flags.iter().filter(|flag| !matches!(flag, Flag::TailDriven | Flag::Drift)));
    estimate
}

/// The frames of `measured`, in whose slots all of the time counts as latency.
///
/// Throughput follows from this and not from latencies where a client does something else than wait for answers: it
/// pauses, or makes a batch of rows, which no slower answer makes longer.
pub(super) fn whole_slots<'a>(measured: &Measured<'a>) -> Vec<MeasuredFrame<'a>> {
    let whole = |slot: &Slot| Slot { latency_sum_ns: slot.wall_ns, counted: slot.operations, ..*slot };
    let slots = |frame: &MeasuredFrame<'a>| frame.slots.iter().map(whole).collect();
    measured.frames.iter().map(|frame| MeasuredFrame { record: frame.record, slots: slots(frame) }).collect()
}

/// The ratio and the difference of `metric` over `frames`.
fn of_metric(
    measured: &Measured<'_>,
    frames: &[MeasuredFrame<'_>],
    arm: usize,
    metric: Metric,
    (figure, title): (Figure, &str),
    seconds_each: Option<f64>,
) -> Estimate {
    let asked = measured.asked(metric);
    let effects = of_frames(frames, measured.lanes, arm, metric, frame_effect);
    let mut differences = of_frames(frames, measured.lanes, arm, metric, frame_difference);
    differences.iter_mut().for_each(|it| it.effect /= 1e3);
    let difference =
        || infer_over_starts(&differences, asked.at_level(level_us(frames, arm, metric))).inference.interval;
    Estimate {
        difference: (!differences.is_empty()).then(difference),
        unit: "µs/op".into(),
        ..paired(measured, figure, title, &infer_over_starts(&effects, asked), seconds_each)
    }
}

/// Cost of an operation of `arm` in `frames`, µs.
fn level_us(frames: &[MeasuredFrame<'_>], arm: usize, metric: Metric) -> f64 {
    let spent = frames.iter().filter_map(|frame| frame_spent(&frame.slots, arm as u32, metric));
    spent.sum::<Spent>().per_operation() / 1e3
}

/// The same without binding to processors: a few frames, shown in addition because servers in production are not bound
/// either. Their number is fixed, so a longer run does not resolve more by them.
fn free(measured: &Measured<'_>, arm: usize) -> impl Iterator<Item = Estimate> {
    let of = |(metric, title): (Metric, &str)| {
        let estimate = of_metric(measured, &measured.free, arm, metric, (Figure::Free(metric), title), None);
        (estimate.count > 0).then_some(estimate)
    };
    const METRICS: [(Metric, &str); 2] =
        [(Metric::Time, "time per op, not bound to processors"), (Metric::Cpu, "CPU per op, not bound to processors")];
    METRICS.into_iter().filter_map(of).collect::<Vec<_>>().into_iter()
}

/// The ratio and the difference of `metric` of arm `arm` over the frames that count, at the error of `measured`.
pub(super) fn deciding(measured: &Measured<'_>, arm: usize, metric: Metric) -> Estimate {
    let figure = (Figure::Metric(metric), metric_title(metric));
    of_metric(measured, &measured.frames, arm, metric, figure, Some(measured.frame_s))
}

/// Limits of a figure that depends on how fast the clients are served.
pub(super) fn limits_of_time(measured: &Measured<'_>, arm: usize) -> Vec<Flag> {
    let either = |holds: &dyn Fn(usize) -> bool| holds(0) || holds(arm);
    let mut flags = Vec::new();
    if measured.open_loop() && either(&|arm| measured.unfinished_share(arm) > UNFINISHED) {
        flags.push(Flag::NotAtRate);
    }
    // Another program may have any number of threads, so the share of one of them is unknown.
    if !measured.embedded && !measured.cell.program && either(&|arm| measured.client_share(arm) > SATURATED) {
        flags.push(Flag::ClientSaturated);
    }
    flags
}

/// Limits of the figure of `metric`.
pub(super) fn limits(measured: &Measured<'_>, arm: usize, metric: Metric) -> Vec<Flag> {
    let mut flags = match metric {
        Metric::Time | Metric::Net => limits_of_time(measured, arm),
        Metric::Cpu | Metric::ClientCpu | Metric::ServerCpu => Vec::new(),
    };
    if measured.server_unseen() && metric == Metric::Cpu {
        flags.push(Flag::ServerUnseen);
    }
    flags
}

/// The effect of each frame with enough pairs.
pub(super) fn effects(measured: &Measured<'_>, arm: usize, metric: Metric) -> Vec<StartEffect> {
    of_frames(&measured.frames, measured.lanes, arm, metric, frame_effect)
}

/// Compares two arms in the slots of a frame: [`frame_effect`] or [`frame_difference`].
type OfFrame = fn(&[Slot], u32, u32, Metric, usize) -> Option<f64>;

fn of_frames(frames: &[MeasuredFrame<'_>], lanes: usize, arm: usize, metric: Metric, of: OfFrame) -> Vec<StartEffect> {
    let of_slots = |slots: &[Slot]| of(slots, 0, arm as u32, metric, fewest_pairs(slots, lanes));
    let of_frame =
        |frame: &MeasuredFrame<'_>| Some(StartEffect { start: frame.record.start, effect: of_slots(&frame.slots)? });
    frames.iter().filter_map(of_frame).collect()
}

/// Adds to `estimate` its totals over `frames`, and a flag if they lie elsewhere.
fn add_total(
    estimate: &mut Estimate,
    measured: &Measured<'_>,
    frames: &[MeasuredFrame<'_>],
    arm: usize,
    metric: Metric,
) {
    (estimate.total, estimate.total_difference) = total(measured, frames, arm, metric);
    if estimate.total.is_some_and(|total| disjoint(total, estimate.effect)) {
        estimate.flags.push(Flag::TailDriven);
    }
}

/// Effect and difference (µs) over `frames` with every stall; `None` if no frame has both arms or the cost is zero.
fn total(
    measured: &Measured<'_>,
    frames: &[MeasuredFrame<'_>],
    arm: usize,
    metric: Metric,
) -> (Option<Interval>, Option<Interval>) {
    let spent = |frame: &MeasuredFrame<'_>| {
        Some((frame_spent(&frame.slots, 0, metric)?, frame_spent(&frame.slots, arm as u32, metric)?))
    };
    let sums = Sums::new(measured, frames.iter().map(|frame| (frame.record.start, spent(frame))));
    let asked = measured.asked(metric);
    let total = sums.widened(ratio_effect(&sums.values, measured.alpha), asked);
    if !total.estimate.is_finite() {
        return (None, None);
    }
    let micros = |spent: Spent| Spent { cost: spent.cost / 1e3, ..spent };
    let values: Vec<_> = sums.values.iter().map(|(plain, protected)| (micros(*plain), micros(*protected))).collect();
    let asked = asked.at_level(level_us(frames, arm, metric));
    (Some(total), Some(sums.widened(total_difference(&values, measured.alpha), asked)))
}

fn disjoint(a: Interval, b: Interval) -> bool {
    a.high < b.low || b.high < a.low
}

/// The throughput of a closed loop that follows from the `time` per operation, of its latency or of whole slots:
/// 1 − exp(−effect) fewer operations.
///
/// The effect is still that of the time, so a positive one is a cost here too.
pub(super) fn throughput(measured: &Measured<'_>, time: &Estimate) -> Estimate {
    let Interval { estimate, low, high } = time.effect;
    // Fewer operations: −percent(−effect); more: percent(−effect).
    let fewer = |effect: f64| apart_from_all(-percent(-effect));
    let more = |effect: f64| apart_from_zero(percent(-effect));
    let text = match time.verdict {
        Outcome::Costs => {
            let small = if high <= measured.margin { " (below your margin)" } else { "" };
            format!("{} % fewer operations [{}, {}]{small}", fewer(estimate), fewer(low), fewer(high))
        }
        Outcome::Gains => format!("{} % more operations [{}, {}]", more(estimate), more(high), more(low)),
        Outcome::NoneFound => format!("no loss found, at most {} %", digits(-percent(-high.max(0.0)))),
        Outcome::TooNoisy if low.is_finite() && high.is_finite() => {
            format!("too noisy to tell: between {} % and {} % fewer operations", fewer(low), fewer(high))
        }
        Outcome::TooNoisy => verdict(time.effect, measured.margin, "cost").1,
    };
    let estimate = Estimate {
        name: Figure::Throughput,
        title: "throughput".to_owned(),
        primary: false,
        text: text + &time.on_starts(),
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
    let pairs = measured.pairs(arm).map(|(plain, protected)| Some((spent(plain), spent(protected))));
    let sums = Sums::new(measured, measured.start_numbers().zip(pairs));
    let frames = &sums.values;
    let effect = ratio_effect(frames, measured.alpha);
    if !effect.estimate.is_finite() {
        return None;
    }
    let share = |sum: Spent| 100.0 / sum.per_operation();
    let (plain, protected) = (frames.iter().map(|it| it.0).sum(), frames.iter().map(|it| it.1).sum());
    let title = "share of the intended operations done";
    let mut estimate = ratio(measured, Figure::Throughput, title, effect, sums.stands_on(), false);
    estimate.text =
        format!("{:.1} % of the intended operations done, {:.1} % on the plain arm", share(protected), share(plain));
    estimate.flags = limits_of_time(measured, arm);
    Some(estimate)
}
