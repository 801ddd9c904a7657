//! Which starts and savings count, in the report and while a run is measured.

use std::collections::BTreeSet;

use tithe_model::{experiment::Metric, plan::STARTS_MIN, record::WarmedUp};

use crate::Interval;

/// The starts whose frames do not count, because their servers were certainly still changing when the first frame
/// began. Only if enough others are left to estimate start-to-start variation, and arms did not change alike.
pub fn left_out(warm_ups: &[WarmedUp]) -> BTreeSet<u32> {
    let (changing, steady): (Vec<_>, Vec<_>) = warm_ups.iter().partition(|it| it.is_unsteady());
    match steady.len() >= STARTS_MIN as usize && !arms_changed_alike(warm_ups) {
        true => changing.into_iter().map(|it| it.start).collect(),
        false => BTreeSet::new(),
    }
}

/// True if warm-ups have shown that all arms change in the same way, so that further warm-ups could be shorter.
pub fn arms_changed_alike(warm_ups: &[WarmedUp]) -> bool {
    warm_ups.iter().any(|it| it.as_before)
}

/// True if the metric includes the time that an operation waits.
pub fn holds_waiting(metric: Metric) -> bool {
    matches!(metric, Metric::Net | Metric::Time)
}

/// True if `saving` may be one of waiting alone, or is certainly larger than that of processor time: then waiting fell
/// by more than the work explains. Both are natural-log ratios.
pub fn is_of_waiting(saving: &Interval, cpu: &Interval) -> bool {
    cpu.high >= 0.0 || saving.high < cpu.low
}
