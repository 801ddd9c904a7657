//! Offers load to all arms of a cell in small interleaved slots, and records what each slot cost.
//!
//! A *lane* is one thread, bound to one processor, with connections to every arm. At any moment all lanes
//! work on the same arm: which one follows from the clock and the seed alone ([`Schedule`]), so nothing is
//! coordinated in the measured path. [`frame`] runs one frame; [`lane`] is the loop itself; [`arrivals`]
//! says when operations start; [`turnstile`] has servers stand still in slices.

pub mod arrivals;
pub mod carry_over;
pub mod frame;
pub mod gate;
pub mod lane;
mod look;
pub mod recorder;
pub mod turnstile;

use tithe_model::{experiment::Design, plan::Cell, schedule::block_order};

/// The operation under which connections that are opened while measuring are recorded: TCP, TLS and authentication, and
/// whatever the client prepares on a new connection.
pub const CONNECT: &str = "CONNECT";

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
    /// How they share the machine.
    pub design: Design,
    /// Frames of the cell: a sequential design gives each arm an equal part of them.
    pub frames: u32,
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
        let Cell { seed, blocks, slot_ns, guard_ns, design, frames_max: frames, .. } = *cell;
        Self { seed, frame, blocks, arms, design, frames, slot_ns, guard_ns, start_ns }
    }

    /// All turns of lane `lane`, in order.
    ///
    /// In a duet the lanes go through the same order from different places, so that several arms run at any time and
    /// every lane, with its processor, meets every arm in every block.
    pub fn turns(&self, lane: usize) -> impl Iterator<Item = Turn> + '_ {
        let arms = self.arms;
        (0..self.blocks).flat_map(move |block| {
            let order = match self.design {
                Design::Sequential => vec![self.sequential_arm(); arms],
                _ => block_order(self.seed, u64::from(self.frame), u64::from(block), arms),
            };
            let shift = if self.design == Design::Duet { lane } else { 0 };
            (0..arms).map(move |position| {
                let start_ns = self.start_ns + (u64::from(block) * arms as u64 + position as u64) * self.slot_ns;
                Turn { block, arm: order[(position + shift) % arms], start_ns, end_ns: start_ns + self.slot_ns }
            })
        })
    }

    /// True when `arm` has turns in this frame.
    pub fn has(&self, arm: usize) -> bool {
        self.design != Design::Sequential || arm == self.sequential_arm()
    }

    /// The arm of a whole sequential frame: each has its equal part of the frames, in the experiment's order.
    fn sequential_arm(&self) -> usize {
        (self.frame as usize * self.arms / self.frames.max(1) as usize).min(self.arms - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(design: Design, arms: usize) -> Schedule {
        Schedule { seed: 7, frame: 3, blocks: 5, arms, design, frames: 10, slot_ns: 20, guard_ns: 1, start_ns: 1000 }
    }

    #[test]
    fn in_a_duet_lanes_serve_different_arms_and_each_meets_all() {
        let schedule = schedule(Design::Duet, 2);
        let lanes: Vec<Vec<Turn>> = (0..2).map(|lane| schedule.turns(lane).collect()).collect();
        assert!(
            lanes[0].iter().zip(&lanes[1]).all(|(one, other)| one.arm != other.arm && one.start_ns == other.start_ns)
        );
        assert!(lanes[0].chunks(2).all(|block| block[0].arm + block[1].arm == 1));
    }

    #[test]
    fn a_sequential_frame_has_one_arm() {
        let arm_of = |frame: u32| {
            let schedule = Schedule { frame, ..schedule(Design::Sequential, 2) };
            let arms: Vec<usize> = schedule.turns(0).map(|turn| turn.arm).collect();
            assert!(arms.iter().all(|arm| *arm == arms[0] && schedule.has(*arm)));
            arms[0]
        };
        assert_eq!((0..10).map(arm_of).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn every_block_holds_every_arm_once_and_turns_follow_each_other() {
        let schedule = schedule(Design::Interleaved, 4);
        let turns: Vec<Turn> = schedule.turns(1).collect();
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
