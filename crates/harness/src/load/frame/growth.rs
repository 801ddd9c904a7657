//! How long the slots of a closed loop are from frame to frame: long enough for carry-over and for slow operations.

use serde::{Deserialize, Serialize};
use tithe_model::{
    experiment::{Arrivals, Design},
    plan::Cell,
    record::Frame,
};

use super::context::CellContext;
use crate::load::carry_over::{self, Profile};

/// Operations that a slot should hold on average: a slot with fewer than 20 is too imprecise and does not count.
const OPERATIONS_PER_SLOT: u64 = 40;

/// Requests that a slot should hold on average if each stands for many operations: their time is long compared with the
/// overhead of a slot.
const REQUESTS_PER_SLOT: u64 = 4;

/// The pace is the best of this number of frames: a disk that hangs for some of them must not count as slow operations.
const FRAMES_OF_PACE: usize = 5;

/// Frames after which carry-over may make slots longer. The last phases of one frame cover only a few milliseconds, in
/// which one disturbance looks like carry-over, and a slot that has grown stays long.
const FRAMES_BEFORE_GROWTH: u32 = 5;

/// Longest slot that slow operations may need, ns.
const SLOT_MAX_NS: u64 = 1_000_000_000;

/// What the frames so far have shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct GrowthState {
    /// Carry-over of each arm.
    profiles: Vec<Profile>,
    /// Settling time and slot as planned, ns.
    planned: (u64, u64),
    /// Slot that slow operations need, ns.
    filled_ns: u64,
    /// Slot that carry-over needs, ns: it never falls.
    carried_ns: u64,
    /// For each of the last frames: the operations that the slowest arm did per nanosecond of slot, divided by those
    /// that a slot should hold.
    paces: Vec<f64>,
    /// How many frames there were.
    frames: u32,
}

impl GrowthState {
    /// Before the first frame of a `cell` with this number of `arms`.
    fn new(cell: &Cell, arms: usize) -> Self {
        Self {
            profiles: vec![Profile::default(); arms],
            planned: (cell.settling_ns, cell.slot_ns),
            filled_ns: cell.slot_ns,
            carried_ns: 0,
            paces: Vec::new(),
            frames: 0,
        }
    }

    /// Adds the pace of the next frame.
    fn add(&mut self, pace: f64) {
        self.frames += 1;
        self.paces.push(pace);
        let old = self.paces.len().saturating_sub(FRAMES_OF_PACE);
        self.paces.drain(..old);
    }

    /// Doubles the slot for operations if the best of the last frames would not fill it, and halves it if that frame
    /// would fill it twice.
    fn fill(&mut self) {
        let best = self.paces.iter().copied().fold(0.0, f64::max);
        let filled = |slot_ns: u64| best * slot_ns as f64;
        if filled(self.filled_ns) < 1.0 && self.filled_ns * 2 <= SLOT_MAX_NS {
            self.filled_ns *= 2;
        }
        while self.filled_ns / 2 >= self.planned.1 && filled(self.filled_ns / 2) >= 2.0 {
            self.filled_ns /= 2;
        }
    }
}

/// What was seen so far, and the slots that follow from it.
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
    /// Of a `cell` with this number of `arms`. `slot_fixed`: the experiment sets the slot, so it is not adapted.
    pub fn new(cell: &Cell, arms: usize, slot_fixed: bool) -> Self {
        Self {
            longest_ns: u64::MAX,
            state: GrowthState::new(cell, arms),
            slot_fixed,
            per_arm_ns: cell.slot_ns * u64::from(cell.blocks),
        }
    }

    /// Adds the carry-over of `arm` that each lane saw.
    pub fn add(&mut self, arm: usize, by_lane: &[Profile]) {
        by_lane.iter().for_each(|profile| carry_over::add(&mut self.state.profiles[arm], profile.iter().copied()));
    }

    /// Adapts the next frame to what was seen, after a `frame` with this number of `slots`.
    pub fn adapt(&mut self, context: &mut CellContext<'_>, frame: &Frame, slots: usize) {
        let clients = u64::from(context.cell.clients).div_ceil(context.lanes() as u64);
        let waiting = if context.embedded { 0 } else { clients };
        let share = slots as u64 / context.arms.len() as u64;
        let enough = enough(share, waiting, context.workload.operations_per_request());
        let fewest = frame.arms.iter().map(|arm| arm.operations).min().unwrap_or(0);
        self.suit(&mut context.cell, fewest as f64 / enough as f64);
    }

    /// Adapts settling time and slot of a closed loop to what was seen so far. `filled`: the operations that the
    /// slowest arm did, divided by those that its slots should hold.
    fn suit(&mut self, cell: &mut Cell, filled: f64) {
        let adaptable = matches!(cell.design, Design::Interleaved | Design::Duet) && cell.arrivals == Arrivals::Closed;
        if !adaptable {
            return;
        }
        let state = &mut self.state;
        state.add(filled / cell.slot_ns as f64);
        if !self.slot_fixed {
            state.fill();
        }
        let fixed = self.slot_fixed || state.frames < FRAMES_BEFORE_GROWTH;
        let (_, slot_ns) = carry_over::suited(&state.profiles, state.planned.0, state.filled_ns, fixed);
        if slot_ns > state.filled_ns {
            state.carried_ns = state.carried_ns.max(slot_ns);
        }
        let slot_ns = state.filled_ns.max(state.carried_ns);
        if slot_ns != cell.slot_ns {
            cell.slot_ns = slot_ns;
            cell.blocks = self.blocks(slot_ns);
        }
        let (settling_ns, _) = carry_over::suited(&self.state.profiles, self.state.planned.0, slot_ns, true);
        cell.settling_ns = settling_ns;
    }

    /// The number of blocks in a frame: with a slot that has grown, the frame keeps its length or has four blocks, as
    /// far as the budget allows frames of that length.
    fn blocks(&self, slot_ns: u64) -> u32 {
        let kept = self.per_arm_ns.div_ceil(slot_ns);
        if slot_ns == self.state.planned.1 {
            return kept as u32;
        }
        let most = (self.longest_ns / (slot_ns * self.state.profiles.len() as u64)).max(1);
        kept.max(4).min(most) as u32
    }
}

/// Operations that this number of `slots` of an arm should hold. `waiting`: clients of a lane that wait for a server;
/// `each`: operations that one request stands for.
fn enough(slots: u64, waiting: u64, each: u64) -> u64 {
    let requests = if each > 1 { REQUESTS_PER_SLOT } else { OPERATIONS_PER_SLOT };
    // A slot in which many connections wait only for the first answer lasts as long as that takes, and not as planned.
    (requests.max(2 * waiting) * each * slots).max(1)
}

#[cfg(test)]
mod tests {
    use tithe_model::record::ArmFrame;
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::{
            machines::LaneRange,
            tests::{Idle, cell, context},
        },
        *,
    };

    const MS: u64 = 1_000_000;

    /// Slot in ms and blocks after each of `frames`: the operations that a slot of 20 ms would have held, of which 40
    /// are enough.
    fn grown(mut cell: Cell, longest_ns: u64, slot_fixed: bool, frames: &[u64]) -> Vec<(u64, u32)> {
        let mut growth = Growth::new(&cell, 2, slot_fixed);
        growth.longest_ns = longest_ns;
        let mut after = |operations: &u64| {
            let held = operations * cell.slot_ns / (20 * MS);
            growth.suit(&mut cell, held as f64 / OPERATIONS_PER_SLOT as f64);
            (cell.slot_ns / MS, cell.blocks)
        };
        frames.iter().map(&mut after).collect()
    }

    #[test]
    fn sparse_slots_double_up_to_a_second_and_frames_keep_their_length_as_far_as_the_budget_bears_it() {
        let closed = || cell(Design::Interleaved, Arrivals::Closed);
        let doubled = [(40, 10), (80, 5), (160, 4), (320, 4), (640, 4), (640, 4)];
        assert_eq!(grown(closed(), u64::MAX, false, &[1; 6]), doubled);
        assert_eq!(grown(closed(), 1000 * MS, false, &[1; 5]), [(40, 10), (80, 5), (160, 3), (320, 1), (640, 1)]);
        assert_eq!(grown(closed(), u64::MAX, false, &[40; 2]), [(20, 20), (20, 20)]);
        assert_eq!(grown(closed(), u64::MAX, false, &[15; 3]), [(40, 10), (80, 5), (80, 5)]);
        assert_eq!(grown(closed(), u64::MAX, true, &[1; 2]), [(20, 20), (20, 20)]);
        assert_eq!(grown(cell(Design::Sequential, Arrivals::Closed), u64::MAX, false, &[1]), [(20, 20)]);
        assert_eq!(grown(cell(Design::Interleaved, Arrivals::Even(9.0)), u64::MAX, false, &[1]), [(20, 20)]);
    }

    #[test]
    fn slots_grow_to_a_second_itself() {
        let half = Cell { slot_ns: 500 * MS, ..cell(Design::Interleaved, Arrivals::Closed) };
        assert_eq!(grown(half, u64::MAX, false, &[0; 3]), [(1000, 10); 3]);
    }

    #[test]
    fn slots_hold_forty_operations_or_four_requests_and_two_for_each_client_that_waits() {
        assert_eq!([enough(10, 0, 1), enough(10, 20, 1), enough(10, 21, 1)], [400, 400, 420]);
        assert_eq!([enough(10, 0, 100), enough(10, 2, 100), enough(10, 3, 100)], [4000, 4000, 6000]);
        assert_eq!(enough(0, 3, 1), 1, "without slots nothing is missing");
    }

    #[test]
    fn the_slowest_arm_decides_how_well_slots_are_filled() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let pace = |embedded: bool, clients: u32, operations: [u64; 2]| {
            let cell = Cell { clients, ..cell(Design::Interleaved, Arrivals::Closed) };
            let mut at = context(&idle, &cell, &bench);
            (at.embedded, at.cell.slot_ns) = (embedded, 10);
            at.divide(LaneRange { first: 0, count: 1, of: 3 });
            let arm = |operations| ArmFrame { operations, ..ArmFrame::default() };
            let mut growth = Growth::new(&cell, 2, true);
            growth.adapt(&mut at, &Frame { arms: operations.map(arm).into(), ..Frame::default() }, 40);
            // Of 20 slots of 10 ns.
            (growth.state.paces[0] * 1000.0).round()
        };
        assert_eq!([pace(false, 2, [800, 1600]), pace(false, 2, [1600, 400])], [100.0, 50.0]);
        // 61 clients are 21 in a lane, which do two operations each.
        assert_eq!([pace(false, 60, [800, 800]), pace(false, 61, [840, 840])], [100.0; 2]);
        assert_eq!([pace(false, 61, [420, 840]), pace(true, 61, [800, 1600])], [50.0, 100.0]);
    }

    #[test]
    fn a_disk_that_stands_still_for_some_frames_makes_no_slot_longer_for_good() {
        let closed = || cell(Design::Interleaved, Arrivals::Closed);
        assert_eq!(grown(closed(), u64::MAX, false, &[60, 1, 0, 0, 1, 60]), [(20, 20); 6]);
        // Nothing else was seen before, or only briefly.
        assert_eq!(grown(closed(), u64::MAX, false, &[0, 0, 100, 100]), [(40, 10), (80, 5), (20, 20), (20, 20)]);
        let slots: Vec<u64> =
            grown(closed(), u64::MAX, false, &[60, 0, 0, 0, 0, 0, 0, 100]).iter().map(|it| it.0).collect();
        assert_eq!(slots, [20, 20, 20, 20, 20, 40, 80, 20]);
        // Slower for good.
        let slots: Vec<u64> =
            grown(closed(), u64::MAX, false, &[60, 15, 15, 15, 15, 15, 15, 15]).iter().map(|it| it.0).collect();
        assert_eq!(slots, [20, 20, 20, 20, 20, 40, 80, 80]);
    }

    #[test]
    fn one_disturbance_early_on_makes_no_slot_longer() {
        use tithe_model::record::PHASES_NS;
        let mut cell = cell(Design::Interleaved, Arrivals::Closed);
        let mut growth = Growth::new(&cell, 1, false);
        // More expensive by a third until 8 ms of each slot: a settling time of 8 ms needs a slot of 40 ms.
        let mut profile = Profile::default();
        for (phase, of_phase) in profile.iter_mut().enumerate() {
            let dearer = PHASES_NS.get(phase).is_some_and(|end| *end <= 8 * MS);
            *of_phase = (10_000, 10_000.0 * if dearer { 10.3 } else { 10.0 });
        }
        growth.add(0, &[profile]);
        let mut slots = Vec::new();
        for _ in 0..FRAMES_BEFORE_GROWTH {
            growth.suit(&mut cell, 1.0);
            slots.push((cell.slot_ns / MS, cell.settling_ns / MS));
        }
        assert_eq!(slots, [(20, 5), (20, 5), (20, 5), (20, 5), (40, 8)]);
    }
}
