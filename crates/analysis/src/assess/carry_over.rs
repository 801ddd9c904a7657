//! Do operations soon after a change of arms still feel the arm before?
//!
//! Every frame has, for each arm, ln(median latency) by the time from the slot's start to the operation's. The phase
//! that begins with the guard's end is compared with the next one. Slots in which nobody is in the way have more
//! operations in their late phases, so that phases far apart differ for no fault of the arm before.

use tithe_model::record::{ArmFrame, PHASES_NS};

use super::measured::Measured;
use crate::{CONFIDENCE, statistics::inference::infer};

/// A larger difference, natural-log ratio, is carry-over.
const FELT: f64 = 0.01;

/// A phase of a frame with fewer operations says nothing.
const FEWEST: u64 = 20;

/// True when operations of arm `arm` are certain to be dearer by more than 1 % in the first phase after the guard than in
/// the next. Cheaper ones are the scheduler's doing: who has slept is not preempted for a while.
pub(super) fn is_felt(measured: &Measured<'_>, arm: usize) -> bool {
    let differences: Vec<f64> = measured.arm(arm).filter_map(|frame| difference(frame, measured.guard_ns)).collect();
    infer(&differences, 1.0 - CONFIDENCE).interval.low > FELT
}

/// First phase after `guard_ns` less the next one, natural-log ratio.
fn difference(frame: &ArmFrame, guard_ns: u64) -> Option<f64> {
    // Phase i begins where phase i - 1 ends.
    let first = PHASES_NS.iter().position(|end| *end >= guard_ns)? + 1;
    let usable = |phase: &&(u64, f64)| phase.0 >= FEWEST;
    let late = frame.phases.get(first + 1).filter(usable)?;
    let early = frame.phases.get(first).filter(usable)?;
    Some(early.1 - late.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_after_the_guard_is_compared_with_the_next() {
        let phases = vec![(50, 9.0), (50, 5.0), (100, 4.0), (200, 3.3), (400, 3.1), (3, 1.0)];
        let frame = ArmFrame { phases, ..ArmFrame::default() };
        let told = |guard_ns| difference(&frame, guard_ns).map(|it| (it * 10.0).round() / 10.0);
        assert_eq!(told(1_000_000), Some(0.2));
        assert_eq!(told(4_000_000), None, "nothing is left to compare with");
        assert_eq!(difference(&ArmFrame::default(), 1_000_000), None);
    }
}
