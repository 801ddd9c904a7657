//! Offers load to all arms of a cell in small interleaved slots, and records what each slot cost.
//!
//! A *lane* is one thread, bound to one processor, with connections to every arm. At any moment all lanes
//! work on the same arm: which one follows from the clock and the seed alone ([`Schedule`]), so nothing is
//! coordinated in the measured path. [`frame`] runs one frame; [`lane`] is the loop itself; [`arrivals`]
//! says when operations start.

pub mod arrivals;
pub mod frame;
pub mod lane;
pub mod recorder;

use tithe_model::{plan::Cell, schedule::block_order};

/// When which arm runs, within one frame.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Seed of the cell.
    pub seed: u64,
    /// Number of the frame within the cell.
    pub frame: u32,
    /// Blocks in the frame.
    pub blocks: u32,
    /// Arms.
    pub arms: usize,
    /// Length of a slot, ns.
    pub slot_ns: u64,
    /// Start of a slot whose operations do not count for latency, ns.
    pub guard_ns: u64,
    /// Start of the first slot on the lanes' clock, ns.
    pub start_ns: u64,
}

/// One turn of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Block within the frame.
    pub block: u32,
    /// Index of the arm.
    pub arm: usize,
    /// When it begins, ns.
    pub start_ns: u64,
    /// When the next one begins, ns.
    pub end_ns: u64,
}

impl Schedule {
    /// The schedule of frame `frame` of `cell`.
    pub fn new(cell: &Cell, frame: u32, arms: usize, start_ns: u64) -> Self {
        let Cell { seed, blocks, slot_ns, guard_ns, .. } = *cell;
        Self { seed, frame, blocks, arms, slot_ns, guard_ns, start_ns }
    }

    /// All turns, in order.
    pub fn turns(&self) -> impl Iterator<Item = Turn> + '_ {
        (0..self.blocks).flat_map(move |block| {
            let order = block_order(self.seed, u64::from(self.frame), u64::from(block), self.arms);
            order.into_iter().enumerate().map(move |(position, arm)| {
                let start_ns = self.start_ns + (u64::from(block) * self.arms as u64 + position as u64) * self.slot_ns;
                Turn { block, arm, start_ns, end_ns: start_ns + self.slot_ns }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_holds_every_arm_once_and_turns_follow_each_other() {
        let schedule = Schedule { seed: 7, frame: 3, blocks: 5, arms: 4, slot_ns: 20, guard_ns: 1, start_ns: 1000 };
        let turns: Vec<Turn> = schedule.turns().collect();
        assert_eq!(turns.len(), 20);
        for (number, turn) in turns.iter().enumerate() {
            assert_eq!(turn.start_ns, 1000 + 20 * number as u64);
            assert_eq!(turn.end_ns, turn.start_ns + 20);
        }
        for block in turns.chunks(4) {
            let mut arms: Vec<usize> = block.iter().map(|turn| turn.arm).collect();
            arms.sort_unstable();
            assert_eq!(arms, [0, 1, 2, 3]);
        }
    }
}
