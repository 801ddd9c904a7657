//! A frame as it is asked for, and what its slots came to.

use std::sync::atomic::AtomicBool;

use tithe_model::record::{AgentFrame, ArmFrame, Slot, Stalls};

use super::watch::FrameConditions;
use crate::load::carry_over::Profile;

/// One frame as it is asked for.
pub(super) struct FrameRequest<'a> {
    pub number: u32,
    /// Nothing is bound to a processor.
    pub free: bool,
    /// Load on each arm before its first slot, ns.
    pub warmup_ns: u64,
    /// Operations of each arm before the frame.
    pub done: &'a [u64],
    /// Set when the frame is to end early.
    pub cancelled: &'a AtomicBool,
}

/// What the slots of a frame came to.
pub(super) struct Measured {
    pub slots: Vec<Slot>,
    /// In the experiment's order.
    pub arms: Vec<ArmMeasured>,
    /// How lanes saw what neighbours took of their slots.
    pub stalls: Stalls,
    /// The load machines, where there are some.
    pub agents: Vec<AgentFrame>,
    /// Why nothing of it must be used: a load machine was lost.
    pub invalid: Option<String>,
    /// Invented time where it began and ended, ns, where other processes invent it.
    pub invented_ns: Option<(u64, u64)>,
    pub grown: FrameConditions,
}

/// What one arm did in a frame.
#[derive(Default)]
pub(super) struct ArmMeasured {
    pub record: ArmFrame,
    /// Operations before the first slot.
    pub warmed_up: u64,
    /// Carry-over as each lane saw it.
    pub profiles: Vec<Profile>,
    /// Why the frame must not be used.
    pub invalid: Option<String>,
}
