//! Offers load to all arms of a cell in small interleaved slots, and records the cost of each slot.
//!
//! A *lane* is one thread, pinned to one processor, with connections to every arm. At any moment all lanes work on the
//! same arm. Which arm it is follows from the clock and the seed alone ([`Schedule`]), so the measured path needs no
//! coordination. [`frame`] runs one frame; [`lane`] is the loop itself; [`arrivals`] sets when operations start;
//! [`pause_gate`] pauses servers in slices.

pub mod arrivals;
mod barrier;
pub mod carry_over;
pub mod frame;
pub mod lane;
pub mod pause_gate;
mod placement;
pub(crate) mod reading;
pub mod recorder;
pub mod timeout;

use serde::{Deserialize, Serialize};
use tithe_model::{
    experiment::Design,
    plan::Cell,
    schedule::{Place, frame_order, side_of, stream_seed},
};

/// The name of the operation that records connections which are opened during the measurement: TCP, TLS and
/// authentication, and everything that the client prepares on a new connection.
pub const CONNECT: &str = "CONNECT";

/// Longest slot that only settles the machine, ns.
const SETTLING_MAX_NS: u64 = 20_000_000;

/// Which arm runs when, within one frame.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// Frames of the cell: a sequential design gives each arm an equal share of them.
    pub frames: u32,
    /// Length of a slot, ns.
    pub slot_ns: u64,
    /// Start of a slot whose operations do not count for latency, ns.
    pub settling_ns: u64,
    /// Start of the first slot on the lanes' clock, ns.
    pub start_ns: u64,
}

/// One turn of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Block within the frame; `None` if the turn only settles the machine and does not count.
    pub block: Option<u32>,
    /// Index of the arm.
    pub arm: usize,
    /// When it begins, ns.
    pub start_ns: u64,
    /// When the next one begins, ns.
    pub end_ns: u64,
}

impl Turn {
    /// The number of the random stream for the operations of the turn; turns that do not count have a stream apart from
    /// all blocks.
    pub fn stream(&self) -> u64 {
        u64::from(self.block.unwrap_or(u32::MAX))
    }
}

impl Schedule {
    /// The schedule of frame `frame` of `cell`.
    pub fn new(cell: &Cell, frame: u32, arms: usize, start_ns: u64) -> Self {
        let Cell { seed, blocks, slot_ns, settling_ns, design, frames_max: frames, .. } = *cell;
        Self { seed, frame, blocks, arms, design, frames, slot_ns, settling_ns, start_ns }
    }

    /// All turns of lane `lane`, in order.
    ///
    /// In a duet the lanes go through the same order from different starting points. So several arms run at any time,
    /// and every lane, with its processor, has every arm in every block.
    pub fn turns(&self, lane: usize) -> impl Iterator<Item = Turn> + use<> {
        let places = match self.design {
            Design::Sequential | Design::Switched { .. } => self.places_of_one_arm(),
            Design::Duet => self.shifted_places(lane),
            Design::Interleaved | Design::Slices => frame_order(self.seed, self.frame, self.blocks, self.arms),
        };
        let (mut next_ns, slot_ns) = (self.start_ns, self.slot_ns);
        places.into_iter().map(move |Place { block, arm }| {
            let start_ns = next_ns;
            next_ns += if block.is_some() { slot_ns } else { slot_ns.min(SETTLING_MAX_NS) };
            Turn { block, arm, start_ns, end_ns: next_ns }
        })
    }

    fn places_of_one_arm(&self) -> Vec<Place> {
        let arm = self.only().unwrap_or_default();
        let block = |block| (0..self.arms).map(move |_| Place { block: Some(block), arm });
        (0..self.blocks).flat_map(block).collect()
    }

    /// Each lane is some arms ahead of the lane before it. A single slot between two blocks is left out: in it the
    /// lanes would not be on different arms.
    fn shifted_places(&self, lane: usize) -> Vec<Place> {
        let order = frame_order(self.seed, self.frame, self.blocks, self.arms);
        let whole = order.chunk_by(|one, next| one.block == next.block).filter(|block| block.len() == self.arms);
        whole.flat_map(|block| (0..self.arms).map(move |place| block[(place + lane) % self.arms])).collect()
    }

    /// The seed of stream `number` in `turn`.
    fn stream(&self, turn: Turn, number: u64) -> u64 {
        stream_seed(self.seed, u64::from(self.frame), turn.stream(), number)
    }

    /// True when `arm` has turns in this frame.
    pub fn has(&self, arm: usize) -> bool {
        self.only().is_none_or(|only| arm == only)
    }

    /// The arm of the whole frame, if it has only one.
    fn only(&self) -> Option<usize> {
        match self.design {
            Design::Sequential => Some(self.sequential_arm()),
            Design::Switched { frames_a_side } => Some(side_of(self.seed, self.frame, frames_a_side).1),
            Design::Interleaved | Design::Duet | Design::Slices => None,
        }
    }

    /// The only arm whose server can be reached in this frame: the other arm is the same server in another state.
    /// `None` if all can be reached.
    pub fn reached(&self) -> Option<usize> {
        self.only().filter(|_| self.design.is_switched())
    }

    /// The arm of a whole sequential frame: each has an equal share of the frames, in the experiment's order.
    fn sequential_arm(&self) -> usize {
        (self.frame as usize * self.arms / self.frames.max(1) as usize).min(self.arms - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(design: Design, arms: usize) -> Schedule {
        Schedule { seed: 7, frame: 3, blocks: 5, arms, design, frames: 10, slot_ns: 20, settling_ns: 1, start_ns: 1000 }
    }

    #[test]
    fn in_a_duet_lanes_serve_different_arms_and_each_meets_all() {
        let schedule = schedule(Design::Duet, 2);
        let lanes: Vec<Vec<Turn>> = (0..2).map(|lane| schedule.turns(lane).collect()).collect();
        assert!(
            lanes[0].iter().zip(&lanes[1]).all(|(one, other)| one.arm != other.arm && one.start_ns == other.start_ns)
        );
        assert!(lanes[0].chunks(2).all(|block| block[0].arm + block[1].arm == 1 && block[0].block == block[1].block));
        assert_eq!(lanes[0].len(), 12, "a lead-in block, and five");
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
    fn frames_of_a_sequential_design_are_shared_and_further_ones_are_the_last_arms() {
        let arm_of = |frame: u32| {
            let schedule = Schedule { frame, ..schedule(Design::Sequential, 3) };
            schedule.turns(0).next().expect("a turn").arm
        };
        assert_eq!((0..12).map(arm_of).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn all_arms_of_a_block_have_one_stream_which_no_other_block_frame_or_client_has() {
        let schedule = schedule(Design::Interleaved, 3);
        let next = Schedule { frame: schedule.frame + 1, ..schedule.clone() };
        let turns: Vec<Turn> = schedule.turns(0).collect();
        for one in &turns {
            for other in &turns {
                let is_same = schedule.stream(*one, 5) == schedule.stream(*other, 5);
                assert_eq!(is_same, one.block == other.block, "{one:?} {other:?}");
            }
            assert_ne!(schedule.stream(*one, 5), schedule.stream(*one, 6), "{one:?}");
            assert_ne!(schedule.stream(*one, 5), next.stream(*one, 5), "{one:?}");
        }
    }

    #[test]
    fn a_frame_of_a_switched_server_has_the_arm_of_its_side_and_reaches_no_other() {
        let frame = |frame: u32| Schedule { frame, ..schedule(Design::Switched { frames_a_side: 3 }, 2) };
        for number in 0..24 {
            let (_, arm) = side_of(7, number, 3);
            let schedule = frame(number);
            assert_eq!(schedule.reached(), Some(arm));
            assert!(schedule.has(arm) && !schedule.has(1 - arm));
            assert!(schedule.turns(0).count() == 10 && schedule.turns(0).all(|turn| turn.arm == arm));
        }
        assert_eq!(schedule(Design::Sequential, 2).reached(), None);
    }

    #[test]
    fn turns_follow_each_other_and_lead_in_turns_are_short() {
        let schedule = Schedule { slot_ns: 100_000_000, ..schedule(Design::Interleaved, 4) };
        let turns: Vec<Turn> = schedule.turns(1).collect();
        assert_eq!(turns.len(), 24);
        assert!(turns.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns) && turns[0].start_ns == 1000);
        for turn in turns {
            let length_ns = if turn.block.is_some() { 100_000_000 } else { 20_000_000 };
            assert_eq!(turn.end_ns - turn.start_ns, length_ns, "{turn:?}");
        }
    }
}
