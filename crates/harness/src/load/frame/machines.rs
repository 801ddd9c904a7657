//! Requests to load machines that offer the load of a cell together, and their answers, as data.
//!
//! The arm that a lane serves follows from the clock and the seed alone. So the machines must agree on one moment, the
//! start of the first slot, and on nothing after it. This module knows nothing of the transport: the caller provides
//! the [`LoadMachines`].

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tithe_machine::{fault::Fault, launch::Address};
use tithe_model::{
    invalid::Invalid,
    plan::Cell,
    record::{AgentFrame, ArmFrame, Slot},
};

use super::started_arm::StartedArm;
use crate::load::carry_over::Profile;

/// Which of all lanes of a cell are on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRange {
    /// Number of the first.
    pub first: usize,
    /// The number of lanes there.
    pub count: usize,
    /// The number of lanes on all machines together.
    pub of: usize,
}

/// Machines that offer the load of a cell together.
pub trait LoadMachines: Sync {
    /// The number of lanes of all machines for this number of `clients`.
    fn lanes(&self, clients: u32) -> usize;

    /// Tells them that the data of every arm are those that were loaded: what clients wrote is gone.
    fn data_put_back(&self);

    /// Measures the frame that `asked` describes on all of them, and calls `count` when each is connected and warm,
    /// before the first slot. `None` when it was cancelled.
    ///
    /// # Errors
    /// When a machine cannot measure, or has been away for longer than the waiting time. One that goes away meanwhile
    /// makes the frame invalid instead.
    fn measure(&self, asked: &PartsRequest<'_>, count: &mut dyn FnMut()) -> Result<Option<Parts>, Fault>;
}

/// A frame as all load machines are asked for it.
pub struct PartsRequest<'a> {
    /// Index of the cell.
    pub cell_index: u32,
    /// The part of the request that is the same for every machine.
    pub frame: PartRequest,
    /// The arms, started.
    pub arms: &'a [StartedArm],
    /// Lanes of all machines together.
    pub lanes: usize,
    /// Set when the frame is to end early.
    pub cancelled: &'a AtomicBool,
}

impl PartsRequest<'_> {
    /// True if slots take real time, and not invented time.
    pub fn time_is_real(&self) -> bool {
        self.arms.iter().all(|arm| !matches!(arm.server.address, Address::Nowhere))
    }
}

/// A frame as one load machine is asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartRequest {
    /// The cell, with slots as long as the earlier frames have made them.
    pub cell: Cell,
    /// Number of the frame.
    pub number: u32,
    /// Nothing is pinned to a processor.
    pub free: bool,
    /// Load on each arm before its first slot, ns.
    pub warmup_ns: u64,
    /// Additional operations of each lane on each arm during warm-up, so that arms that did fewer catch up.
    pub lag: Vec<u64>,
    /// The servers have just been started.
    pub fresh: bool,
    /// Their caches stay as empty as they are after a fresh start.
    pub cold: bool,
}

/// What all load machines have measured in a frame.
pub struct Parts {
    /// Each machine's part; empty if the frame is invalid.
    pub parts: Vec<PartResult>,
    /// What is known of each machine, in the same order.
    pub agents: Vec<AgentFrame>,
    /// Why the frame must not be used.
    pub invalid: Option<Invalid>,
}

/// What one load machine has measured in a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// Slots of its lanes.
    pub slots: Vec<Slot>,
    /// In the experiment's order.
    pub arms: Vec<ArmPart>,
    /// The shared state of each arm's clients, from [`ArmState::reached`](tithe_plugin::workload::ArmState::reached).
    pub states: Vec<Vec<i64>>,
    /// Invented time when the frame began and ended, ns; `None` if time is real.
    pub invented_ns: Option<(u64, u64)>,
}

/// What the clients of one load machine saw of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmPart {
    /// The counts of the clients, without those of the server.
    pub record: ArmFrame,
    /// Operations before the first slot.
    pub warmed_up: u64,
    /// Carry-over as each lane saw it.
    pub profiles: Vec<Profile>,
    /// The error of the first operation that failed.
    pub first_failure: Option<String>,
    /// Why the frame must not be used, apart from failed operations.
    pub invalid: Option<Invalid>,
}

/// A process or thread that serves one connection, as its server numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// The lane of the connection.
    pub lane: usize,
    /// Index of the arm.
    pub arm: usize,
    /// Process on the server's machine.
    pub process: i32,
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::{Arrivals, Design};
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::tests::{Idle, cell, context},
        *,
    };

    #[test]
    fn the_time_of_arms_that_are_nowhere_is_invented() {
        let (bench, idle) = (Bench::plain(), Idle { writes: false });
        let is_real = |addresses: [Address; 2]| {
            let cell = cell(Design::Interleaved, Arrivals::Closed);
            let mut at = context(&idle, &cell, &bench);
            at.arms.iter_mut().zip(addresses).for_each(|(arm, address)| arm.server.address = address);
            let frame =
                PartRequest { cell, number: 0, free: false, warmup_ns: 0, lag: Vec::new(), fresh: false, cold: false };
            let cancelled = AtomicBool::new(false);
            PartsRequest { cell_index: 0, frame, arms: &at.arms, lanes: 1, cancelled: &cancelled }.time_is_real()
        };
        let port = || Address::Tcp { host: "db".to_owned(), port: 1 };
        assert_eq!([is_real([port(), port()]), is_real([Address::Nowhere, port()])], [true, false]);
        assert!(!is_real([Address::Nowhere, Address::Nowhere]));
    }
}
