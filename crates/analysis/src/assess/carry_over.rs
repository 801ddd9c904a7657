//! Does the work that an arm leaves behind move a figure of the next arm?
//!
//! Every frame has, for each arm, ln(median latency) by the time from the slot's start to the operation's start. The
//! additional cost of operations, on average, over those in the slot's last phase is what the previous arm may have
//! left to them. If it is the same for all arms, it does not change the ratio of two arms; so the baseline's is
//! subtracted. That also removes effects of slots themselves: a thread that has slept is not preempted for a while, and
//! an undisturbed slot has more operations in its late phases.

use tithe_model::record::{ArmFrame, PHASES_NS};
use tithe_statistics::inference::infer;

use super::measured::Measured;
use crate::CONFIDENCE;

/// A figure that is moved by more, natural-log ratio, is flagged: half a percent is the resolution that Tithe aims at.
const FELT: f64 = 0.005;

/// A phase of a frame with fewer operations is ignored.
const FEWEST: u64 = 20;

/// True if it is certain that a figure of arm `arm` is moved by more than half a percent; the figure covers operations
/// that began at least `from_ns` after their slot.
pub(super) fn is_felt(measured: &Measured<'_>, arm: usize, from_ns: u64) -> bool {
    let moved =
        |(baseline, protected): (&ArmFrame, &ArmFrame)| Some(left(protected, from_ns)? - left(baseline, from_ns)?);
    let moved: Vec<f64> = measured.pairs(arm).filter_map(moved).collect();
    infer(&moved, 1.0 - CONFIDENCE).interval.exceeds(FELT)
}

/// How much more expensive operations from `from_ns` on are than those of the last phase alone, natural-log ratio.
fn left(frame: &ArmFrame, from_ns: u64) -> Option<f64> {
    // Phase i begins where phase i - 1 ends.
    let first = if from_ns == 0 { 0 } else { PHASES_NS.iter().position(|end| *end >= from_ns)? + 1 };
    let usable: Vec<&(u64, f64)> = frame.phases.get(first..)?.iter().filter(|phase| phase.0 >= FEWEST).collect();
    let (last, earlier) = usable.split_last()?;
    if earlier.is_empty() {
        return None;
    }
    let all: u64 = usable.iter().map(|phase| phase.0).sum();
    Some(earlier.iter().map(|phase| phase.0 as f64 * (phase.1 - last.1)).sum::<f64>() / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_weighed_by_its_operations() {
        let phases = vec![(50, 9.0), (50, 5.0), (100, 4.0), (200, 3.5), (400, 3.1), (400, 3.0), (3, 1.0)];
        let frame = ArmFrame { phases, ..ArmFrame::default() };
        let told = |from_ns| left(&frame, from_ns).map(|it| (it * 1000.0).round() / 1000.0);
        // (200 of 3.5 and 400 of 3.1 above 3.0) over 1,000 operations.
        assert_eq!(told(1_000_000), Some(0.14));
        assert_eq!(told(0), Some(0.533));
        assert_eq!(told(4_000_000), None, "nothing is left to compare with");
        assert_eq!(left(&ArmFrame::default(), 1_000_000), None);
    }
}
