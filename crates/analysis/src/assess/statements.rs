//! The share of each of the user's statements in the total time, and the cost that protections add to it.

use std::collections::BTreeMap;

use tithe_model::{
    histogram::{self, Histogram},
    records::CellFacts,
};

use super::measured::Measured;
use crate::StatementUse;

/// The statements of a cell, the one with most of the baseline's time first; none if the workload has no statements.
pub(super) fn statements(measured: &Measured<'_>, facts: &CellFacts) -> Vec<StatementUse> {
    let mut sums: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for (arm, record) in measured.frames.iter().flat_map(|frame| frame.record.arms.iter().enumerate()) {
        for (name, seen) in record.latency.iter().filter(|(name, _)| facts.statements.contains_key(*name)) {
            let (calls, time_ns) = sums.entry(name).or_default();
            *calls += seen.total();
            *time_ns += if arm == 0 { sum_ns(seen) } else { 0.0 };
        }
    }
    let all_ns: f64 = sums.values().map(|(_, time_ns)| time_ns).sum();
    let share = |time_ns: f64| if all_ns > 0.0 { time_ns / all_ns } else { 0.0 };
    let mut all: Vec<StatementUse> = sums
        .into_iter()
        .map(|(operation, (calls, time_ns))| StatementUse {
            operation: operation.to_owned(),
            text: facts.statements.get(operation).cloned().unwrap_or_default(),
            calls,
            time_share: share(time_ns),
        })
        .collect();
    all.sort_by(|one, other| other.time_share.total_cmp(&one.time_share));
    all
}

/// The sum of the values of `seen`; each counts as the middle of its bucket.
fn sum_ns(seen: &Histogram) -> f64 {
    let middle = |bucket: usize| {
        let (low, high) = histogram::bounds(bucket);
        (low as f64 + high as f64) / 2.0
    };
    seen.buckets().map(|(bucket, count)| middle(bucket) * count as f64).sum()
}
