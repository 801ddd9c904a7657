//! When to stop, and how much longer it would take.

use crate::{
    distribution::{chi_squared_upper, normal_upper, t_upper},
    inference::infer,
    interval::Interval,
    mean, variance,
};

/// Frame counts at which the precision is checked, about a fifth apart: with few checks the interval misses no more
/// often than promised.
const INTERIM_ANALYSES: [usize; 23] =
    [10, 12, 15, 18, 22, 27, 33, 40, 48, 58, 70, 84, 101, 122, 147, 177, 213, 256, 308, 370, 444, 533, 640];

/// Nothing is stopped before this many frames.
pub const MIN_FRAMES: usize = 15;

/// Factor on the error when the width decides when to stop: stopping at a narrow moment costs about one point of
/// coverage, and the smaller error compensates for it.
pub const STOPPING_FACTOR: f64 = 0.8;

/// Probability of the chi-square bound on the scatter used for planning: four of five predictions are kept.
const ASSURANCE: f64 = 0.8;

/// The frame count at which the confidence sequence is tightest.
const TIGHTEST_AT: f64 = 30.0;

/// Predictions of more frames than this are not given.
const NEVER: usize = 1_000_000;

/// The frame counts at which to check, in ascending order: a fixed list, then steps of a fifth without end.
pub fn looks() -> impl Iterator<Item = usize> {
    let last = INTERIM_ANALYSES[INTERIM_ANALYSES.len() - 1];
    let further = std::iter::successors(Some(last), |look| look.checked_add(look / 5)).skip(1);
    INTERIM_ANALYSES.into_iter().chain(further)
}

/// True when a cell with `frames` frames may be stopped by its precision.
pub fn may_stop_at(frames: usize) -> bool {
    frames >= MIN_FRAMES && looks().take_while(|look| *look <= frames).any(|look| look == frames)
}

/// The first check at which the half-width is at most `target`: the number of frames and the interval there.
///
/// Only the width decides, never the estimate. The interval is computed at [`STOPPING_FACTOR`]·`alpha` and
/// reported with confidence 1 − `alpha`.
pub fn stop_by_precision(effects: &[f64], target: f64, alpha: f64) -> Option<(usize, Interval)> {
    looks()
        .skip_while(|look| *look < MIN_FRAMES)
        .take_while(|look| *look <= effects.len())
        .map(|look| (look, infer(&effects[..look], STOPPING_FACTOR * alpha).interval))
        .find(|(_, interval)| interval.half_width() <= target)
}

/// A confidence sequence: an interval that holds at all frame counts at once, so you may check after every frame and
/// stop when it excludes 0.
///
/// Robbins' normal mixture in its asymptotic form (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, arXiv
/// 2103.06476), tightest at 30 frames, widened by the ratio of the t to the normal quantile for few frames.
/// Infinite ends for fewer than two values.
pub fn confidence_sequence(effects: &[f64], alpha: f64) -> Interval {
    let estimate = mean(effects);
    if effects.len() < 2 {
        return Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let n = effects.len() as f64;
    let log = -2.0 * alpha.ln();
    let mixture = (log + (log + 1.0).ln()) / TIGHTEST_AT;
    let spread = n * mixture + 1.0;
    let half = (variance(effects) * 2.0 * spread / (n * n * mixture) * (spread.sqrt() / alpha).ln()).sqrt();
    let half = half * t_upper(alpha / 2.0, n - 1.0) / normal_upper(alpha / 2.0);
    Interval { estimate, low: estimate - half, high: estimate + half }
}

/// Seconds of load still needed for a half-width of at most `target`, if each value took `seconds_each`.
///
/// The scatter is taken at its upper 80 % bound (χ²), so the prediction is kept about four times in five. `None` for
/// fewer than two values, and if a million would not be enough.
pub fn predict_more(effects: &[f64], target: f64, seconds_each: f64, alpha: f64) -> Option<f64> {
    let n = effects.len();
    if n < 2 {
        return None;
    }
    let degrees = n as f64 - 1.0;
    let scatter = variance(effects) * degrees / chi_squared_upper(ASSURANCE, degrees);
    let half_width = |n: usize| t_upper(alpha / 2.0, n as f64 - 1.0) * (scatter / n as f64).sqrt();
    let counts = std::iter::successors(Some(n), |n| Some((n + 1).max((*n as f64 * 1.02) as usize)));
    let needed = counts.take_while(|count| *count <= NEVER).find(|count| half_width(*count) <= target)?;
    Some((needed - n) as f64 * seconds_each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_on_after_the_list() {
        let late: Vec<usize> = looks().skip(22).take(5).collect();
        assert_eq!(late, [640, 768, 921, 1105, 1326]);
        assert!(!may_stop_at(10) && may_stop_at(15) && !may_stop_at(16) && may_stop_at(921));
    }

    #[test]
    fn stops_at_the_first_narrow_look() {
        let effects: Vec<f64> = (0..200).map(|i| f64::from(i * 7 % 11) / 1000.0).collect();
        let (frames, interval) = stop_by_precision(&effects, 0.001, 0.05).expect("narrow enough");
        assert!(may_stop_at(frames) && interval.half_width() <= 0.001);
        let before = looks().take_while(|look| *look < frames).last().expect("not the first look");
        assert!(infer(&effects[..before], 0.04).interval.half_width() > 0.001);
        assert_eq!(stop_by_precision(&effects, 1e-9, 0.05), None);
    }
}
