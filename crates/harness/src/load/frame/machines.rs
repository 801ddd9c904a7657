//! What is asked of load machines that offer the load of a cell together, and what they answer, as data.
//!
//! Which arm a lane serves at a time follows from the clock and the seed alone, so the machines need to agree on one
//! moment, the start of the first slot, and on nothing after it. Who carries questions and answers is not known here:
//! [`LoadMachines`] are given by the caller.

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
    /// How many are there.
    pub count: usize,
    /// How many there are on all machines together.
    pub of: usize,
}

/// Machines that offer the load of a cell together.
pub trait LoadMachines: Sync {
    /// Lanes of all together where so many `clients` are asked for.
    fn lanes(&self, clients: u32) -> usize;

    /// Says that the data of every arm are those that were loaded: clients know nothing that they wrote.
    fn data_put_back(&self);

    /// Has all of them measure the frame that `asked` describes, and calls `count` when each is connected and warm,
    /// before the first slot. `None` when it was cancelled.
    ///
    /// # Errors
    /// When a machine cannot measure, or has been away for longer than is waited for. One that goes away meanwhile
    /// makes the frame invalid instead.
    fn measure(&self, asked: &PartsRequest<'_>, count: &mut dyn FnMut()) -> Result<Option<Parts>, Fault>;
}

/// A frame as it is asked of all load machines.
pub struct PartsRequest<'a> {
    /// Index of the cell.
    pub cell_index: u32,
    /// What every machine is asked alike.
    pub frame: PartRequest,
    /// The arms, started.
    pub arms: &'a [StartedArm],
    /// Lanes of all machines together.
    pub lanes: usize,
    /// Set when the frame is to end early.
    pub cancelled: &'a AtomicBool,
}

impl PartsRequest<'_> {
    /// True where slots take the time of clocks, and not an invented one.
    pub fn time_is_real(&self) -> bool {
        self.arms.iter().all(|arm| !matches!(arm.server.address, Address::Nowhere))
    }
}

/// A frame as one load machine is asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartRequest {
    /// The cell, with slots as long as the frames before have made them.
    pub cell: Cell,
    /// Number of the frame.
    pub number: u32,
    /// Nothing is bound to a processor.
    pub free: bool,
    /// Load on each arm before its first slot, ns.
    pub warmup_ns: u64,
    /// Operations of each arm that each lane is to do more than the others while it warms up.
    pub lag: Vec<u64>,
    /// The servers have just been started.
    pub fresh: bool,
    /// Their caches stay as empty as a fresh start leaves them.
    pub cold: bool,
}

/// What all load machines have measured in a frame.
pub struct Parts {
    /// Each machine's part; empty where the frame is invalid.
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
    /// What the clients of each arm share, as [`ArmState::reached`](tithe_plugin::workload::ArmState::reached) tells
    /// it.
    pub states: Vec<Vec<i64>>,
    /// Invented time where the frame began and ended, ns; `None` where time is the machine's.
    pub invented_ns: Option<(u64, u64)>,
}

/// What the clients of one load machine saw of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmPart {
    /// With what clients can count, and nothing of the server.
    pub record: ArmFrame,
    /// Operations before the first slot.
    pub warmed_up: u64,
    /// Carry-over as each lane saw it.
    pub profiles: Vec<Profile>,
    /// What the first operation that failed did so with.
    pub first_failure: Option<String>,
    /// Why the frame must not be used, whatever failed.
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
