//! Change of the log per operation from the first frame of a start to the last.
//!
//! It shows temporary effects of a start: pages that are logged whole after a checkpoint, tables that have no room for
//! updates yet. Frames are placed by their share of the start, so that starts of different length can be combined.

use tithe_model::{plan::STARTS_MIN, record::ArmFrame};

use super::measured::{Measured, MeasuredFrame};
use crate::LogAt;

/// Smallest change from the first to the last frame that is reported, natural-log ratio: a tenth, or a half if starts
/// are so few that single frames are unreliable.
const CHANGE_MIN: f64 = 0.095_310_179_804_324_9;
const CHANGE_MIN_OF_FEW: f64 = 0.405_465_108_108_164_4;

/// Places that are compared, as shares of a start; those between the ends only if starts have a frame for each.
const PLACES: [(&str, f64); 5] =
    [("first frame", 0.0), ("a quarter", 0.25), ("half way", 0.5), ("three quarters", 0.75), ("last frame", 1.0)];

/// The log per operation over a start, if it changes enough to be reported on some arm; else empty.
pub(super) fn log_over_start(measured: &Measured<'_>) -> Vec<LogAt> {
    let same = |one: &MeasuredFrame<'_>, other: &MeasuredFrame<'_>| one.record.start == other.record.start;
    let starts: Vec<&[MeasuredFrame<'_>]> = measured.frames.chunk_by(same).filter(|frames| frames.len() > 1).collect();
    let shortest = starts.iter().map(|frames| frames.len()).min().unwrap_or(0);
    let is_seen = |share: &f64| shortest >= PLACES.len() || *share == 0.0 || *share == 1.0;
    let told = if starts.len() < STARTS_MIN as usize { CHANGE_MIN_OF_FEW } else { CHANGE_MIN };
    let at = |(place, share): (&str, f64)| LogAt { place: place.to_owned(), arms: at_share(measured, &starts, share) };
    let places = PLACES.into_iter().filter(|(_, share)| is_seen(share));
    let course: Vec<LogAt> = if shortest > 1 { places.map(at).collect() } else { Vec::new() };
    if change(&course).is_some_and(|(_, change)| change.abs() > told) { course } else { Vec::new() }
}

/// The arm whose log per operation changes most over a start, and the natural-log ratio of its last place to its first;
/// `None` if no log is known.
fn change(course: &[LogAt]) -> Option<(usize, f64)> {
    let (first, last) = (course.first()?, course.last()?);
    // A log of less than a byte per operation at both ends changes because of other work.
    let of_arm = |(from, to): (&Option<f64>, &Option<f64>)| {
        let (from, to) = ((*from)?, (*to)?);
        (from.max(to) >= 1.0).then(|| (to / from).ln())
    };
    let changes = first.arms.iter().zip(&last.arms).map(of_arm).enumerate();
    let seen = changes.filter_map(|(arm, change)| Some((arm, change.filter(|change| change.is_finite())?)));
    seen.max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))
}

/// The text about it, in addition to the figures.
pub(super) fn words(course: &[LogAt], arms: &[tithe_model::experiment::Arm], starts: usize) -> Option<String> {
    let (arm, change) = change(course)?;
    let (from, to) = (course.first()?.arms[arm]?, course.last()?.arms[arm]?);
    let (moved, of) =
        (if change < 0.0 { "fell" } else { "rose" }, if starts == 1 { "the start" } else { "each start" });
    Some(format!(
        "the log per operation of arm `{}` {moved} from {from:.0} bytes in the first frame of {of} to {to:.0} in the last: \
         figures are means over this; all arms had done the same number of operations since their start",
        arms[arm].name
    ))
}

/// Bytes of log per operation of each arm at `share` of each of the `starts`: the ratio of sums.
fn at_share(measured: &Measured<'_>, starts: &[&[MeasuredFrame<'_>]], share: f64) -> Vec<Option<f64>> {
    let place = |frames: &[MeasuredFrame<'_>]| ((frames.len() - 1) as f64 * share).round() as usize;
    let of_arm = |arm: usize| {
        let frames: Vec<&ArmFrame> = starts.iter().map(|frames| &frames[place(frames)].record.arms[arm]).collect();
        let bytes: Option<u64> = frames.iter().map(|frame| frame.counters.wal_bytes).sum();
        let operations: u64 = frames.iter().map(|frame| frame.all_operations()).sum();
        bytes.map(|bytes| bytes as f64 / operations.max(1) as f64)
    };
    (0..measured.arms().len()).map(of_arm).collect()
}
