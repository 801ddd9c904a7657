//! What will be done about an experiment: cells, slots, frames, seeds.
//!
//! A pure function of the experiment: the same file gives the same plan on every machine.

use serde::{Deserialize, Serialize};

use crate::experiment::{Arrivals, Experiment};

/// Version of the run folder's format; a reader refuses another.
pub const FORMAT: u32 = 1;

/// Everything that `run` needs, and everything that repeats it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`FORMAT`] of the program that made it.
    pub format: u32,
    /// The resolved experiment.
    pub experiment: Experiment,
    /// The cells, in the order they run.
    pub cells: Vec<Cell>,
}

/// One database × workload × load shape × resources. Arms are compared within a cell only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Short name, unique in the plan: `c/in-memory`.
    pub id: String,
    /// Index into the experiment's workloads.
    pub workload: usize,
    /// Index into the experiment's resources.
    pub resources: usize,
    /// Connections that are busy at the same time, per arm.
    pub clients: u32,
    /// When operations start.
    pub arrivals: Arrivals,
    /// Seed of this cell's orders and key streams.
    pub seed: u64,
    /// Length of a slot, ns.
    pub slot_ns: u64,
    /// Part of the slot, from its start, whose operations do not count for latency: carry-over from the arm before, ns.
    pub guard_ns: u64,
    /// Load before the first slot of a frame, so that fresh connections are warm, ns per arm.
    pub warmup_ns: u64,
    /// Blocks in a frame.
    pub blocks: u32,
    /// Frames at which the cell is stopped if the precision is not reached: what the budget buys.
    pub frames_max: u32,
    /// Fresh starts of all servers.
    pub epochs: u32,
}

impl Cell {
    /// Planned length of one frame's slots, ns.
    pub fn frame_ns(&self, arms: usize) -> u64 {
        self.slot_ns * u64::from(self.blocks) * arms as u64
    }
}
