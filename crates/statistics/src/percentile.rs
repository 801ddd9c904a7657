//! Latency percentiles: compared over groups of frames, because one frame has too few samples in its tail.

use std::collections::BTreeSet;

use tithe_model::histogram::Histogram;

use crate::{
    inference::Inference,
    interval::Interval,
    order::quantile7,
    starts::{IntervalOptions, OverStarts, StartEffect, infer_over_starts},
};

/// Samples that each arm of a group must have beyond the percentile.
pub const SAMPLES_BEYOND: f64 = 50.0;

/// With fewer groups no interval is given.
pub const MIN_GROUPS: usize = 8;

/// The histograms of one frame.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// Number of the start that it was measured on.
    pub start: u32,
    /// Histogram of the plain arm.
    pub plain: &'a Histogram,
    /// Histogram of the protected arm.
    pub protected: &'a Histogram,
}

/// How many samples one frame has.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    /// Number of the start.
    pub start: u32,
    /// Samples of the plain and of the protected arm.
    pub count: (u64, u64),
}

/// Consecutive frames (first, last) that hold at least `beyond` samples above the `share` quantile in both arms.
///
/// A group lies within one start or consists of whole starts: two groups that shared a start would share its effect.
/// Frames left over at the end of a start join the previous group of that start; without one they are dropped.
pub fn group_frames(frames: &[Samples], share: f64, beyond: f64) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let (mut first, mut plain, mut protected) = (0, 0, 0);
    for (index, frame) in frames.iter().enumerate() {
        plain += frame.count.0;
        protected += frame.count.1;
        let ends_start = frames.get(index + 1).is_none_or(|next| next.start != frame.start);
        let within = frames[first].start == frame.start;
        if plain.min(protected) as f64 * (1.0 - share) >= beyond && (within || ends_start) {
            groups.push((first, index));
        } else if let Some((_, last)) =
            groups.last_mut().filter(|(_, last)| ends_start && frames[*last].start == frame.start)
        {
            *last = index;
        } else {
            continue;
        }
        (first, plain, protected) = (index + 1, 0, 0);
    }
    groups
}

/// The effect on the `share` quantile: ln(protected/plain) by group of frames, then [`infer_over_starts`].
///
/// Fewer than [`MIN_GROUPS`] groups give their median as the estimate (NaN without any) and infinite ends.
pub fn quantile_effect(frames: &[Pair<'_>], share: f64, asked: IntervalOptions) -> OverStarts {
    over_groups(frames, share, asked, quantile_ratio)
}

/// The difference of the `share` quantiles, protected − plain in ns, from the same groups of frames as
/// [`quantile_effect`].
pub fn quantile_difference(frames: &[Pair<'_>], share: f64, asked: IntervalOptions) -> OverStarts {
    over_groups(frames, share, asked, |frames, share| {
        let (plain, protected) = quantiles(frames, share)?;
        Some(protected - plain)
    })
}

fn over_groups(
    frames: &[Pair<'_>],
    share: f64,
    asked: IntervalOptions,
    of: impl Fn(&[Pair<'_>], f64) -> Option<f64>,
) -> OverStarts {
    let samples: Vec<Samples> = frames
        .iter()
        .map(|frame| Samples { start: frame.start, count: (frame.plain.total(), frame.protected.total()) })
        .collect();
    let of_group = |(first, last): (usize, usize)| {
        Some(StartEffect { start: frames[first].start, effect: of(&frames[first..=last], share)? })
    };
    let groups = group_frames(&samples, share, SAMPLES_BEYOND);
    let effects: Vec<StartEffect> = groups.iter().copied().filter_map(of_group).collect();
    if effects.len() >= MIN_GROUPS {
        // A group may hold several starts; it is then one value of the interval.
        let grouped = groups.iter().flat_map(|(first, last)| &frames[*first..=*last]);
        let starts = grouped.map(|frame| frame.start).collect::<BTreeSet<_>>().len();
        return OverStarts { starts, ..infer_over_starts(&effects, asked) };
    }
    let merged: Vec<f64> = effects.iter().map(|it| it.effect).collect();
    let interval = Interval { estimate: quantile7(&merged, 0.5), low: f64::NEG_INFINITY, high: f64::INFINITY };
    let inference = Inference { interval, merged, batch: 0, lag1: 0.0 };
    OverStarts {
        inference,
        count: effects.len(),
        starts: 0,
        spread: None,
        within: None,
        widened: false,
        known_degrees: None,
        p: f64::NAN,
        trend_p: 1.0,
    }
}

/// ln(protected/plain) of the `share` quantiles of all `frames` together; `None` if an arm has no sample.
pub fn quantile_ratio(frames: &[Pair<'_>], share: f64) -> Option<f64> {
    let (plain, protected) = quantiles(frames, share)?;
    let ratio = (protected / plain).ln();
    ratio.is_finite().then_some(ratio)
}

/// The `share` quantiles of all `frames` together, ns: plain, protected.
fn quantiles(frames: &[Pair<'_>], share: f64) -> Option<(f64, f64)> {
    let plain = pooled(frames.iter().map(|frame| frame.plain)).quantile(share)?;
    let protected = pooled(frames.iter().map(|frame| frame.protected)).quantile(share)?;
    Some((plain, protected))
}

/// One histogram of all samples.
pub fn pooled<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::default();
    histograms.for_each(|histogram| sum.merge(histogram));
    sum
}
