//! How long the slots of a closed loop become from frame to frame: as long as carry-over asks for, and as slow
//! operations do.

use serde::{Deserialize, Serialize};
use tithe_model::{
    experiment::{Arrivals, Design},
    plan::Cell,
    record::Frame,
};

use super::context::CellContext;
use crate::load::carry_over::{self, Profile};

/// Operations that a slot should hold on average: one with fewer than 20 says too little and does not count.
const OPERATIONS_PER_SLOT: u64 = 40;

/// Frames after which carry-over may make slots longer. The last phases of one frame stand on a few milliseconds, in
/// which one disturbance looks like carry-over, and a slot that has grown stays.
const FRAMES_BEFORE_GROWTH: u32 = 5;

/// Longest slot that few operations may ask for, ns.
const SLOT_MAX_NS: u64 = 1_000_000_000;

/// What the frames so far have shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct GrowthState {
    /// Carry-over of each arm.
    profiles: Vec<Profile>,
    /// Settling time and slot, before carry-over is seen, ns.
    planned: (u64, u64),
    /// How many they are.
    frames: u32,
}

/// What was seen so far, and what follows from it.
pub(super) struct Growth {
    /// Length that a frame should not exceed when its slots grow, ns.
    pub longest_ns: u64,
    /// What frames have shown so far.
    pub state: GrowthState,
    slot_fixed: bool,
    /// Planned length of an arm's slots in a frame, ns.
    per_arm_ns: u64,
}

impl Growth {
    /// Of a `cell` with so many `arms`. `slot_fixed`: the slot was asked for and is not to be adapted.
    pub fn new(cell: &Cell, arms: usize, slot_fixed: bool) -> Self {
        Self {
            longest_ns: u64::MAX,
            state: GrowthState {
                profiles: vec![Profile::default(); arms],
                planned: (cell.settling_ns, cell.slot_ns),
                frames: 0,
            },
            slot_fixed,
            per_arm_ns: cell.slot_ns * u64::from(cell.blocks),
        }
    }

    /// Takes in what each lane saw of the carry-over of `arm`.
    pub fn add(&mut self, arm: usize, by_lane: &[Profile]) {
        by_lane.iter().for_each(|profile| carry_over::add(&mut self.state.profiles[arm], profile.iter().copied()));
    }

    /// Suits the next frame to what was seen, after a `frame` of so many `slots`.
    pub fn adapt(&mut self, context: &mut CellContext<'_>, frame: &Frame, slots: usize) {
        // A slot in which many connections wait for the first answer only is as long as that takes, and not as planned.
        let waits = !context.embedded;
        let clients = u64::from(context.cell.clients);
        let twice_each = if waits { 2 * clients.div_ceil(context.lanes() as u64) } else { 0 };
        let share = slots as u64 / context.arms.len() as u64;
        let enough = OPERATIONS_PER_SLOT.max(twice_each) * share;
        let sparse = frame.arms.iter().any(|arm| arm.operations < enough);
        self.suit(&mut context.cell, sparse);
    }

    /// Suits settling time and slot of a closed loop to the carry-over that was seen so far; `sparse`: its slots held
    /// too few operations of some arm.
    fn suit(&mut self, cell: &mut Cell, sparse: bool) {
        let adaptable = matches!(cell.design, Design::Interleaved | Design::Duet) && cell.arrivals == Arrivals::Closed;
        if !adaptable {
            return;
        }
        let state = &mut self.state;
        if sparse && !self.slot_fixed && state.planned.1 * 2 <= SLOT_MAX_NS {
            state.planned.1 *= 2;
        }
        state.frames += 1;
        let fixed = self.slot_fixed || state.frames < FRAMES_BEFORE_GROWTH;
        let (settling_ns, slot_ns) = carry_over::suited(&state.profiles, state.planned.0, state.planned.1, fixed);
        if slot_ns > cell.slot_ns {
            // The frame keeps its length or has four blocks, as far as the budget bears frames so long.
            let most = (self.longest_ns / (slot_ns * state.profiles.len() as u64)).max(1);
            cell.blocks = self.per_arm_ns.div_ceil(slot_ns).max(4).min(most) as u32;
            cell.slot_ns = slot_ns;
        }
        cell.settling_ns = settling_ns.min(cell.slot_ns / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::cell, *};

    const MS: u64 = 1_000_000;

    /// Slot in ms and blocks after each of `frames`, which all were `sparse` or not.
    fn grown(mut cell: Cell, longest_ns: u64, slot_fixed: bool, sparse: bool, frames: usize) -> Vec<(u64, u32)> {
        let mut growth = Growth::new(&cell, 2, slot_fixed);
        growth.longest_ns = longest_ns;
        let mut frame = || {
            growth.suit(&mut cell, sparse);
            (cell.slot_ns / MS, cell.blocks)
        };
        (0..frames).map(|_| frame()).collect()
    }

    #[test]
    fn sparse_slots_double_up_to_a_second_and_frames_keep_their_length_as_far_as_the_budget_bears_it() {
        let closed = || cell(Design::Interleaved, Arrivals::Closed);
        let doubled = [(40, 10), (80, 5), (160, 4), (320, 4), (640, 4), (640, 4)];
        assert_eq!(grown(closed(), u64::MAX, false, true, 6), doubled);
        assert_eq!(grown(closed(), 1000 * MS, false, true, 5), [(40, 10), (80, 5), (160, 3), (320, 1), (640, 1)]);
        assert_eq!(grown(closed(), u64::MAX, false, false, 2), [(20, 20), (20, 20)]);
        assert_eq!(grown(closed(), u64::MAX, true, true, 2), [(20, 20), (20, 20)]);
        assert_eq!(grown(cell(Design::Sequential, Arrivals::Closed), u64::MAX, false, true, 1), [(20, 20)]);
        assert_eq!(grown(cell(Design::Interleaved, Arrivals::Even(9.0)), u64::MAX, false, true, 1), [(20, 20)]);
    }

    #[test]
    fn one_disturbance_early_on_makes_no_slot_longer() {
        use tithe_model::record::PHASES_NS;
        let mut cell = cell(Design::Interleaved, Arrivals::Closed);
        let mut growth = Growth::new(&cell, 1, false);
        // Dearer by a third until 8 ms of each slot: a settling time of 8 ms asks for a slot of 40 ms.
        let mut profile = Profile::default();
        for (phase, of_phase) in profile.iter_mut().enumerate() {
            let dearer = PHASES_NS.get(phase).is_some_and(|end| *end <= 8 * MS);
            *of_phase = (10_000, 10_000.0 * if dearer { 10.3 } else { 10.0 });
        }
        growth.add(0, &[profile]);
        let mut slots = Vec::new();
        for _ in 0..FRAMES_BEFORE_GROWTH {
            growth.suit(&mut cell, false);
            slots.push((cell.slot_ns / MS, cell.settling_ns / MS));
        }
        assert_eq!(slots, [(20, 5), (20, 5), (20, 5), (20, 5), (40, 8)]);
    }
}
