//! From an interval to an estimate with its text, flags and the time still needed.

use tithe_statistics::{
    percentile, precision,
    starts::OverStarts,
    verdict::{percent, verdict},
};

use super::measured::Measured;
use crate::{Estimate, Figure, Flag, Interval, Outcome, deciding};

/// An effect that changes over the frames with a smaller p is flagged.
pub(crate) const DRIFT_P: f64 = 0.01;

/// The estimate of a series of paired effects, in the order of time. Each took `seconds_each`, before consecutive
/// values were averaged; `None` if a longer run has no more of them.
///
/// [`Flag::Drift`]: Spearman's rank correlation of the effects with their order has p < 0.01 (`trend_p`).
pub(super) fn paired(
    measured: &Measured<'_>,
    name: Figure,
    title: &str,
    over_starts: &OverStarts,
    seconds_each: Option<f64>,
) -> Estimate {
    let OverStarts { inference, count, starts, spread, widened, known_degrees, p, trend_p, within: _ } = over_starts;
    let more_s = || deciding::more_s(over_starts, measured.precision, seconds_each?, measured.alpha);
    let mut estimate = judged(measured, name, title, inference.interval, *count, more_s);
    estimate.batch = inference.batch.max(1);
    (estimate.starts, estimate.spread) = (*starts, *spread);
    (estimate.widened, estimate.known_degrees) = (*widened, *known_degrees);
    estimate.p = Some(*p).filter(|p| p.is_finite() && !inference.merged.is_empty());
    estimate.text += &estimate.on_starts();
    if *trend_p < DRIFT_P {
        estimate.flags.push(Flag::Drift);
    }
    estimate
}

/// The estimate of a ratio of sums over `frames` frames of `starts` starts: its width shrinks with the square root of
/// the time.
pub(super) fn ratio(
    measured: &Measured<'_>,
    name: Figure,
    title: &str,
    interval: Interval,
    (frames, starts): (usize, usize),
    widened: bool,
) -> Estimate {
    let times = (interval.half_width() / measured.precision).powi(2);
    // Further frames do not narrow the part that comes from a known spread of starts.
    let narrows = times.is_finite() && !widened;
    // If a frame has one arm, the other arms need as many.
    let of_all_arms = if measured.cell.design.has_one_arm_a_frame() { measured.frames.len() } else { frames };
    let more_s = || narrows.then_some((times - 1.0) * of_all_arms as f64 * measured.frame_s);
    Estimate { starts, widened, ..judged(measured, name, title, interval, frames, more_s) }
}

/// An estimate with its verdict. `more_s` is called only if the precision is not reached.
fn judged(
    measured: &Measured<'_>,
    name: Figure,
    title: &str,
    effect: Interval,
    count: usize,
    more_s: impl FnOnce() -> Option<f64>,
) -> Estimate {
    let (outcome, text) = verdict(effect, measured.margin, "cost");
    let more_s = if effect.half_width() <= measured.precision { None } else { more_s() };
    let estimate = Estimate { more_s, ..stated(name, title, effect, outcome, text, count) };
    with_resolution(measured, estimate)
}

/// An estimate with a given answer.
pub(crate) fn stated(
    name: Figure,
    title: &str,
    effect: Interval,
    verdict: Outcome,
    text: String,
    count: usize,
) -> Estimate {
    Estimate {
        name,
        title: title.to_owned(),
        primary: false,
        effect,
        total: None,
        difference: None,
        total_difference: None,
        count,
        batch: 1,
        starts: 0,
        spread: None,
        widened: false,
        known_degrees: None,
        levels: None,
        unit: "".into(),
        verdict,
        text,
        flags: Vec::new(),
        more_s: None,
        p: None,
        over_run: None,
    }
}

/// Adds to a figure that is too noisy how long a measurement must take to resolve it.
pub(super) fn with_resolution(measured: &Measured<'_>, mut estimate: Estimate) -> Estimate {
    if let (Outcome::TooNoisy, Some(more_s)) = (estimate.verdict, estimate.more_s) {
        let minutes = (more_s / 60.0).ceil().max(1.0);
        let plural = if minutes > 1.0 { "s" } else { "" };
        // The precision was given as a percentage; rounding to two decimals restores it as written.
        let resolution = (percent(measured.precision) * 100.0).round() / 100.0;
        estimate.text += &format!("; about {minutes:.0} more minute{plural} would resolve {resolution} %");
    }
    estimate
}

/// Removes the interval of a figure with too few frames, and adds that to its text.
///
/// A figure that only one arm has, or that is known for one only, keeps its text.
pub(super) fn without_interval(measured: &Measured<'_>, estimate: &mut Estimate) {
    if estimate.effect.estimate.is_infinite() || (estimate.effect.estimate.is_nan() && !estimate.primary) {
        return;
    }
    let open = |interval: &mut Interval| (interval.low, interval.high) = (f64::NEG_INFINITY, f64::INFINITY);
    open(&mut estimate.effect);
    [&mut estimate.total, &mut estimate.difference, &mut estimate.total_difference]
        .into_iter()
        .flatten()
        .for_each(open);
    let behind = measured.frames_behind(estimate);
    // If only some frames have the figure, the same share of future frames will.
    let each_s = measured.frame_s * measured.frames.len() as f64 / behind as f64;
    let missing_s = (precision::MIN_FRAMES - behind) as f64 * each_s;
    estimate.more_s = missing_s.is_finite().then_some(estimate.more_s.unwrap_or(0.0).max(missing_s));
    (estimate.verdict, estimate.p) = (Outcome::TooNoisy, None);
    estimate.text = too_few(behind);
    estimate.flags.retain(|flag| *flag != Flag::NotEnoughData);
    estimate.flags.push(Flag::NotEnoughFrames);
}

/// `not enough frames: 6 of 15`
fn too_few(frames: usize) -> String {
    format!("not enough frames: {frames} of {}", precision::MIN_FRAMES)
}

/// Seconds of load until a percentile of `share` has enough groups of frames, if `frames` frames gave `samples`.
pub(super) fn until_enough_groups(measured: &Measured<'_>, share: f64, samples: u64, frames: usize) -> f64 {
    let beyond_per_frame = samples as f64 / frames as f64 * (1.0 - share);
    let frames_per_group = (percentile::SAMPLES_BEYOND / beyond_per_frame).ceil().max(1.0);
    let needed = frames_per_group * percentile::MIN_GROUPS as f64;
    (needed - frames as f64).max(1.0) * measured.frame_s
}
