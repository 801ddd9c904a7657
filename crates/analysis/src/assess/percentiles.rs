//! Latency percentiles per operation, from the intended start if there was one.

use std::{cmp::Reverse, collections::BTreeMap, sync::LazyLock};

use tithe_model::{experiment::Metric, histogram::Histogram, record::ArmFrame};
use tithe_statistics::percentile::{MIN_GROUPS, Pair, pooled, quantile_difference, quantile_effect, quantile_ratio};

use super::{
    estimate::{paired, until_enough_groups},
    measured::Measured,
    slots::limits_of_time,
};
use crate::{
    Estimate, Figure, Flag, Interval,
    figures::{Percentile, Rank, Start},
};

/// From this percentile on, interference of other programs is flagged: preemption shows in the tail.
const TAIL_FROM: f64 = 0.99;

/// A larger share of wall time spent waiting for a processor dilutes the tail.
const MUCH_WAIT: f64 = 0.2;

/// A set of histograms that counts.
pub(super) struct Source {
    start: Start,
    title: &'static str,
    read: fn(&ArmFrame) -> &BTreeMap<String, Histogram>,
    /// Only operations without an intended start.
    only_parts: bool,
}

impl Source {
    /// The sets in `measured`: the one from the intended start, if there is one, and the actual start of operations
    /// that have no other, as the statements of a transaction.
    pub fn all_of(measured: &Measured<'_>) -> Vec<Self> {
        let has_intended =
            measured.frames.iter().flat_map(|frame| &frame.record.arms).any(|arm| !arm.intended.is_empty());
        let actual =
            Self { start: Start::Actual, title: "latency", read: |arm| &arm.latency, only_parts: has_intended };
        let intended = has_intended.then_some(Self {
            start: Start::Intended,
            title: "latency from the intended start",
            read: |arm| &arm.intended,
            only_parts: false,
        });
        intended.into_iter().chain([actual]).collect()
    }

    /// The percentile `rank` of `operation`.
    pub fn percentile(&self, rank: Rank, operation: &str) -> Figure {
        Figure::Percentile(Percentile { start: self.start, rank, operation: operation.to_owned() })
    }

    /// The operations of arm `arm`, by falling frequency over all arms together, which is the order of every report.
    pub fn operations<'a>(&self, measured: &Measured<'a>, arm: usize) -> Vec<&'a str> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, histogram) in measured.frames.iter().flat_map(|frame| &frame.record.arms).flat_map(self.read) {
            *counts.entry(name).or_default() += histogram.total();
        }
        let done = |name: &str| measured.arm(arm).any(|frame| (self.read)(frame).contains_key(name));
        let all = || measured.frames.iter().flat_map(|frame| &frame.record.arms);
        let is_whole = |name: &str| self.only_parts && all().any(|arm| arm.intended.contains_key(name));
        let mut names: Vec<&str> = counts.keys().copied().filter(|name| done(name) && !is_whole(name)).collect();
        // Stable: operations of equal frequency stay in alphabetical order.
        names.sort_by_key(|name| Reverse(counts[name]));
        names
    }

    /// The histograms of `operation` by frame; empty ones for frames without it.
    pub fn histograms<'a>(&self, measured: &Measured<'a>, arm: usize, operation: &str) -> Vec<&'a Histogram> {
        static NONE: LazyLock<Histogram> = LazyLock::new(Histogram::default);
        measured.arm(arm).map(|frame| (self.read)(frame).get(operation).unwrap_or(&NONE)).collect()
    }
}

/// Every percentile of every operation that both the baseline and arm `arm` did.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize) -> Vec<Estimate> {
    let mut estimates = Vec::new();
    for source in Source::all_of(measured) {
        let both = source.operations(measured, 0);
        for operation in source.operations(measured, arm).into_iter().filter(|operation| both.contains(operation)) {
            let plain = source.histograms(measured, 0, operation);
            let protected = source.histograms(measured, arm, operation);
            let pairs = measured.start_numbers().zip(plain.into_iter().zip(protected));
            let frames: Vec<_> = pairs.map(|(start, (plain, protected))| Pair { start, plain, protected }).collect();
            for rank in Rank::ALL {
                estimates.extend(estimate(measured, &source, operation, rank, &frames));
            }
        }
    }
    let limits = limits_of_time(measured, arm);
    for estimate in &mut estimates {
        estimate.flags.extend(&limits);
    }
    estimates
}

fn estimate(
    measured: &Measured<'_>,
    source: &Source,
    operation: &str,
    rank: Rank,
    frames: &[Pair<'_>],
) -> Option<Estimate> {
    let share = rank.share();
    let asked = measured.asked(Metric::Time);
    let mut over_starts = quantile_effect(frames, share, asked);
    let groups = over_starts.count;
    let enough = groups >= MIN_GROUPS;
    if !enough {
        // With few groups or none, all samples together are more reliable than the median of the groups.
        over_starts.inference.interval.estimate = quantile_ratio(frames, share)?;
    }
    let title = format!("{} {} of {operation}", rank.name(), source.title);
    let seconds_each = measured.frame_s * frames.len() as f64 / groups.max(1) as f64;
    let mut estimate = paired(measured, source.percentile(rank, operation), &title, &over_starts, Some(seconds_each));
    let micros = |ns: Interval| Interval { estimate: ns.estimate / 1e3, low: ns.low / 1e3, high: ns.high / 1e3 };
    let level_ns = || pooled(frames.iter().map(|frame| frame.protected)).quantile(share).unwrap_or(0.0);
    let in_ns = || quantile_difference(frames, share, asked.at_level(level_ns())).inference.interval;
    let difference = enough.then(|| micros(in_ns()));
    (estimate.difference, estimate.unit) = (difference, "µs".into());
    if !enough {
        let samples = |side: fn(&Pair<'_>) -> u64| frames.iter().map(side).sum::<u64>();
        let fewest = samples(|it| it.plain.total()).min(samples(|it| it.protected.total()));
        let more_s = until_enough_groups(measured, share, fewest, frames.len());
        estimate.text = format!("not enough data for {}: needs about {:.0} more seconds", rank.name(), more_s.ceil());
        estimate.more_s = Some(more_s);
        estimate.flags.push(Flag::NotEnoughData);
    }
    if share >= TAIL_FROM && measured.wait_share() > MUCH_WAIT {
        estimate.flags.push(Flag::NeighboursInTail);
    }
    Some(estimate)
}
