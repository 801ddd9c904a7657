//! Latency percentiles: compared over groups of frames, because one frame says little about its tail.

use tithe_model::histogram::Histogram;

use super::{
    distribution::binomial_quantile,
    inference::{Inference, infer},
    order::quantile7,
};
use crate::Interval;

/// Samples beyond the percentile that each arm of a group must have.
pub const SAMPLES_BEYOND: f64 = 50.0;

/// Groups below which no interval is given.
pub const MIN_GROUPS: usize = 8;

/// The histograms of one frame: plain, protected.
pub type Pair<'a> = (&'a Histogram, &'a Histogram);

/// Consecutive frames (first, last) that hold at least `beyond` samples above the `share` quantile in both arms.
///
/// A rest at the end that is too short for a group belongs to none.
pub fn group_frames(frames: &[(u64, u64)], share: f64, beyond: f64) -> Vec<(usize, usize)> {
    let mut groups = Vec::new();
    let (mut start, mut plain, mut protected) = (0, 0, 0);
    for (index, (of_plain, of_protected)) in frames.iter().enumerate() {
        plain += of_plain;
        protected += of_protected;
        if plain.min(protected) as f64 * (1.0 - share) >= beyond {
            groups.push((start, index));
            (start, plain, protected) = (index + 1, 0, 0);
        }
    }
    groups
}

/// The effect on the `share` quantile: ln(protected/plain) by group of frames, then [`infer`].
///
/// Fewer than [`MIN_GROUPS`] groups give their median as the estimate (NaN without any) and infinite ends.
pub fn quantile_effect(frames: &[Pair<'_>], share: f64, alpha: f64) -> Inference {
    over_groups(frames, share, alpha, quantile_ratio)
}

/// The difference of the `share` quantiles, protected − plain in ns, as [`quantile_effect`] from the same groups of
/// frames.
pub fn quantile_difference(frames: &[Pair<'_>], share: f64, alpha: f64) -> Inference {
    over_groups(frames, share, alpha, |frames, share| {
        let (plain, protected) = quantiles(frames, share)?;
        Some(protected - plain)
    })
}

fn over_groups(frames: &[Pair<'_>], share: f64, alpha: f64, of: impl Fn(&[Pair<'_>], f64) -> Option<f64>) -> Inference {
    let counts: Vec<_> = frames.iter().map(|(plain, protected)| (plain.total(), protected.total())).collect();
    let effects: Vec<f64> = group_frames(&counts, share, SAMPLES_BEYOND)
        .into_iter()
        .filter_map(|(first, last)| of(&frames[first..=last], share))
        .collect();
    if effects.len() >= MIN_GROUPS {
        return infer(&effects, alpha);
    }
    let interval = Interval { estimate: quantile7(&effects, 0.5), low: f64::NEG_INFINITY, high: f64::INFINITY };
    Inference { interval, merged: effects, batch: 0, lag1: 0.0 }
}

/// ln(protected/plain) of the `share` quantiles of all `frames` together; `None` where an arm has no sample.
pub fn quantile_ratio(frames: &[Pair<'_>], share: f64) -> Option<f64> {
    let (plain, protected) = quantiles(frames, share)?;
    let ratio = (protected / plain).ln();
    ratio.is_finite().then_some(ratio)
}

/// The `share` quantiles of all `frames` together, ns: plain, protected.
fn quantiles(frames: &[Pair<'_>], share: f64) -> Option<(f64, f64)> {
    let plain = pooled(frames.iter().map(|frame| frame.0)).quantile(share)?;
    let protected = pooled(frames.iter().map(|frame| frame.1)).quantile(share)?;
    Some((plain, protected))
}

/// One histogram of all samples.
pub fn pooled<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::default();
    histograms.for_each(|histogram| sum.merge(histogram));
    sum
}

/// Ranks from 1 whose order statistics enclose the `share` quantile of `n` independent values with confidence
/// 1 − `alpha`; `None` when there are too few.
///
/// For one arm's display only: latencies of neighbouring operations are not independent.
pub fn order_statistic_ranks(n: u64, share: f64, alpha: f64) -> Option<(u64, u64)> {
    let low = binomial_quantile(alpha / 2.0, n, share);
    let high = binomial_quantile(1.0 - alpha / 2.0, n, share) + 1;
    (low >= 1 && high <= n).then_some((low, high))
}
