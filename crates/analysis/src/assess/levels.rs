//! The levels of each arm by itself: medians over frames, for orientation only.

use tithe_model::{
    experiment::{Arrivals, Metric},
    histogram::Histogram,
    operation::{NEW_ORDER, TPCC_TRANSACTIONS},
    plan::Cell,
    record::{Frame, Slot},
    schedule::OFFERED_SHARE,
};
use tithe_statistics::{
    order::median_interval,
    pairing::{Spent, frame_spent},
    percentile::{SAMPLES_BEYOND, Samples, group_frames, pooled},
};

use super::{
    counters::COUNTERS,
    measured::{Measured, MeasuredFrame, intended},
    percentiles::Source,
    sizes::SIZES,
};
use crate::{CONFIDENCE, Figure, Interval, Level, figures::Rank};

/// Every known level of arm `arm`.
pub(super) fn levels(measured: &Measured<'_>, arm: usize) -> Vec<Level> {
    let mut levels = of_slots(measured, arm);
    levels.extend(of_percentiles(measured, arm));
    for counter in &COUNTERS {
        let per_frame = measured.arm(arm).filter_map(|frame| counter.spent(frame)).map(Spent::per_operation);
        levels.extend(level(Figure::CounterLevel(counter.counter), counter.unit, per_frame));
    }
    for (size, _, read) in SIZES {
        let megabytes = measured.arm(arm).filter_map(|frame| Some(read(&frame.counters)? as f64 / 1e6));
        levels.extend(level(Figure::Size(size), "MB", megabytes));
    }
    let connecting = measured.arm(arm).filter(|frame| frame.connect_ns > 0).map(|frame| frame.connect_ns as f64 / 1e3);
    levels.extend(level(Figure::Connect, "µs", connecting));
    levels
}

/// The median of `values` with its interval; `None` without values.
fn level(name: Figure, unit: &'static str, values: impl Iterator<Item = f64>) -> Option<Level> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let Interval { estimate, low, high } = median_interval(&values, 1.0 - CONFIDENCE);
    let count = values.len() as u64;
    (count > 0).then(|| Level { name, unit: unit.into(), value: estimate, low, high, count })
}

fn of_slots(measured: &Measured<'_>, arm: usize) -> Vec<Level> {
    let per_op = |metric: Metric, unit: &'static str| {
        let spent = measured.frames.iter().filter_map(|frame| frame_spent(&frame.slots, arm as u32, metric));
        let values: Vec<f64> = spent.map(|spent| spent.per_operation() / 1e3).collect();
        // Net time of frames that were nearly all waiting may be below zero: then no level is given.
        let shown = values.iter().filter(|value| **value > 0.0).count() * 10 >= values.len() * 9;
        shown.then(|| level(Figure::MetricLevel(metric), unit, values.into_iter())).flatten()
    };
    let rates = measured.frames.iter().filter_map(|frame| throughput(measured.cell, frame.record, &frame.slots, arm));
    let done = measured.arm(arm).map(|frame| 100.0 * frame.operations as f64 / intended(frame) as f64);
    // In an open loop the rate is given; the operations done are the figure to compare.
    let mut levels = if measured.open_loop() {
        vec![level(Figure::Throughput, "% of intended", done), level(Figure::Operations, "op/s", rates)]
    } else {
        vec![level(Figure::Throughput, "op/s", rates)]
    };
    let new_orders = measured.frames.iter().filter_map(|frame| new_orders_a_minute(measured, frame, arm));
    levels.push(level(Figure::NewOrders, "NOPM", new_orders));
    levels.push(per_op(Metric::Time, "µs"));
    if measured.seen.net() {
        levels.push(per_op(Metric::Net, "µs/op"));
    }
    levels.push(per_op(Metric::Cpu, "µs/op"));
    levels.push(per_op(Metric::ClientCpu, "µs/op"));
    if measured.seen.server() {
        levels.push(per_op(Metric::ServerCpu, "µs/op"));
    }
    levels.into_iter().flatten().collect()
}

/// Operations per second of all lanes of `arm` together, in its own `slots` of `frame`; `None` without any.
pub(crate) fn throughput(cell: &Cell, frame: &Frame, slots: &[Slot], arm: usize) -> Option<f64> {
    let of_arm = || slots.iter().filter(|slot| slot.arm as usize == arm);
    let all = |sum: (u64, f64), slot: &Slot| (sum.0 + slot.operations, sum.1 + busy_ns(cell, frame, slot));
    let (operations, all_ns) = of_arm().fold((0, 0.0), all);
    let lanes = crate::deciding::lanes(of_arm());
    (all_ns > 0.0).then(|| operations as f64 * lanes as f64 * 1e9 / all_ns)
}

/// Time in which the operations of `slot` were done, ns.
///
/// Operations of an open loop are intended to start in the first part of a slot. Its wall time ends with the last of
/// them, which is sooner, by as much as the time between two of them. If some could not be started in that part, the
/// slot was busy for longer.
pub(crate) fn busy_ns(cell: &Cell, frame: &Frame, slot: &Slot) -> f64 {
    let wall_ns = slot.wall_ns as f64;
    if cell.arrivals == Arrivals::Closed || cell.program {
        return wall_ns;
    }
    // Of slots whose servers were not read in time nothing is kept.
    if slot.operations == 0 && !frame.agents.is_empty() {
        return 0.0;
    }
    let offered_ns = OFFERED_SHARE * frame.slot_ns.max(cell.slot_ns) as f64;
    let is_behind = frame.arms.get(slot.arm as usize).is_some_and(|arm| arm.unfinished > 0);
    if is_behind { offered_ns.max(wall_ns) } else { offered_ns }
}

/// New-Orders of `arm` per minute; `None` if the workload has none. Their share of the operations is known for
/// operations after the settling time. Both counts are those of histograms: slots of blocks whose servers were not read
/// in time are empty, but their operations stay in the histograms.
fn new_orders_a_minute(measured: &Measured<'_>, frame: &MeasuredFrame<'_>, arm: usize) -> Option<f64> {
    let latency = &frame.record.arms[arm].latency;
    let done = |name: &str| latency.get(name).map_or(0, Histogram::total);
    let new_orders = latency.get(NEW_ORDER)?.total();
    let all: u64 = TPCC_TRANSACTIONS.into_iter().map(done).sum();
    let rate = throughput(measured.cell, frame.record, &frame.slots, arm)?;
    Some(rate * 60.0 * new_orders as f64 / all as f64)
}

/// Percentiles over groups of frames that are large enough for them, or over all frames together if there is no group.
fn of_percentiles(measured: &Measured<'_>, arm: usize) -> Vec<Level> {
    let mut levels = Vec::new();
    for source in Source::all_of(measured) {
        for operation in source.operations(measured, arm) {
            levels.extend(of_operation(measured, arm, &source, operation));
        }
    }
    levels
}

fn of_operation(measured: &Measured<'_>, arm: usize, source: &Source, operation: &str) -> Vec<Level> {
    let frames = source.histograms(measured, arm, operation);
    let of_frame = |(start, frame): (u32, &&Histogram)| Samples { start, count: (frame.total(), frame.total()) };
    let counts: Vec<Samples> = measured.start_numbers().zip(&frames).map(of_frame).collect();
    let samples = frames.iter().map(|frame| frame.total()).sum();
    let mut levels = Vec::new();
    for rank in Rank::ALL {
        let share = rank.share();
        let mut groups = group_frames(&counts, share, SAMPLES_BEYOND);
        if groups.is_empty() && !frames.is_empty() {
            groups.push((0, frames.len() - 1));
        }
        let values = groups
            .iter()
            .filter_map(|(first, last)| Some(pooled(frames[*first..=*last].iter().copied()).quantile(share)? / 1e3));
        let of_groups = level(source.percentile(rank, operation), "µs", values);
        levels.extend(of_groups.map(|level| Level { count: samples, ..level }));
    }
    levels
}
