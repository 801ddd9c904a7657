//! Is a cost the same at the beginning and at the end of a frame?
//!
//! A figure averages over a frame's slots, which all have the same length. Where caches fill during a frame, the faster
//! arm fills its own earlier, so for a while a warm arm is compared with a cold one: the figure then depends on how
//! long a frame is. Not covered: changes from frame to frame (drift).

use std::ops::Range;

use tithe_model::{experiment::Metric, record::Slot};
use tithe_statistics::{
    inference::infer,
    pairing::{fewest_of, frame_effect},
};

use super::measured::Measured;
use crate::CONFIDENCE;

/// A cost that changes by more within a frame, natural-log ratio, is flagged.
const CHANGES: f64 = 0.05;

/// True if it is certain that the cost of `arm` by `metric` changes by more than 5 % from the first third of a frame to
/// its last.
pub(super) fn changes(measured: &Measured<'_>, arm: usize, metric: Metric) -> bool {
    let change = |slots: &[Slot]| change(slots, arm as u32, metric, measured.lanes);
    let changes: Vec<f64> = measured.frames.iter().filter_map(|frame| change(&frame.slots)).collect();
    infer(&changes, 1.0 - CONFIDENCE).interval.exceeds(CHANGES)
}

/// The effect in the last third of a frame's blocks, less that in the first; `None` if one of them is unknown.
fn change(slots: &[Slot], arm: u32, metric: Metric, lanes: usize) -> Option<f64> {
    let blocks = slots.iter().map(|slot| slot.block + 1).max()?;
    let third = blocks / 3;
    let fewest = fewest_of(third as usize * lanes);
    let effect = |within: Range<u32>| {
        let slots: Vec<Slot> = slots.iter().copied().filter(|slot| within.contains(&slot.block)).collect();
        frame_effect(&slots, 0, arm, metric, fewest)
    };
    Some(effect(blocks - third..blocks)? - effect(0..third)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two arms in `blocks` blocks; the cost of arm 1 falls from `first` to `last` times that of arm 0 in the middle.
    fn slots(blocks: u32, first: u64, last: u64) -> Vec<Slot> {
        let slot = |block, arm, cost| Slot {
            block,
            arm,
            operations: 100,
            counted: 100,
            client_cpu_ns: 100 * cost,
            ..Slot::default()
        };
        (0..blocks)
            .flat_map(|block| {
                let times = if 2 * block < blocks { first } else { last };
                [slot(block, 0, 1000), slot(block, 1, 1000 * times)]
            })
            .collect()
    }

    #[test]
    fn a_change_is_from_the_first_third_to_the_last() {
        let change = |slots: &[Slot]| change(slots, 1, Metric::Cpu, 1).map(|it| (it.exp() * 100.0).round());
        assert_eq!(change(&slots(30, 4, 2)), Some(50.0));
        assert_eq!(change(&slots(30, 1, 3)), Some(300.0));
        assert_eq!(change(&slots(30, 3, 3)), Some(100.0));
        let stalled = |blocks: u32| slots(blocks, 3, 3).into_iter().skip(1).collect::<Vec<_>>();
        assert_eq!(change(&stalled(12)), Some(100.0), "three of the four pairs of a third are enough");
        assert_eq!(change(&stalled(9)), None, "two of three are not");
        assert_eq!(super::change(&stalled(12), 1, Metric::Cpu, 2), None, "two lanes can have eight pairs in a third");
        assert_eq!(change(&slots(2, 3, 1)), None, "no third of two blocks");
        assert_eq!(change(&[]), None);
    }
}
