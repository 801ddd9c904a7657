//! A frame as it is asked for, and the results of its slots.

use std::sync::atomic::AtomicBool;

use tithe_model::{
    invalid::Invalid,
    profile::ProfiledFrame,
    record::{AgentFrame, ArmFrame, Slot, Stalls},
};

use super::watch::FrameConditions;
use crate::load::carry_over::Profile;

/// One frame as it is asked for.
pub(super) struct FrameRequest<'a> {
    pub number: u32,
    /// Nothing is pinned to a processor.
    pub free: bool,
    /// What the processors run is sampled.
    pub profiled: bool,
    /// Load on each arm before its first slot, ns.
    pub warmup_ns: u64,
    /// Operations of each arm before the frame.
    pub done: &'a [u64],
    /// Set when the frame is to end early.
    pub cancelled: &'a AtomicBool,
}

/// The results of the slots of a frame.
pub(super) struct Measured {
    pub slots: Vec<Slot>,
    /// In the experiment's order.
    pub arms: Vec<ArmMeasured>,
    /// How lanes saw the time that other programs took of their slots.
    pub stalls: Stalls,
    /// The load machines, if there are some.
    pub agents: Vec<AgentFrame>,
    /// Why nothing of it must be used: a load machine was lost, or a server is not as it was before.
    pub invalid: Option<Invalid>,
    /// Invented time when it began and ended, ns, if other processes invent it.
    pub invented_ns: Option<(u64, u64)>,
    /// What the processors ran, if that was asked for.
    pub profile: Option<ProfiledFrame>,
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
    /// The error of the first operation that failed; `None` if another program offers the load.
    pub first_failure: Option<String>,
    /// Why the frame must not be used, apart from failed operations.
    pub invalid: Option<Invalid>,
}

impl ArmMeasured {
    /// Why the frame must not be used; `None` if it may be.
    pub fn why_invalid(&self) -> Option<Invalid> {
        self.too_many_failed().or_else(|| self.invalid.clone())
    }

    /// The reason if more than 1 % of the operations of Tithe's own clients failed, and more than one.
    fn too_many_failed(&self) -> Option<Invalid> {
        let first = self.first_failure.as_ref()?;
        let ArmFrame { operations, operations_lead_in, failed, .. } = self.record;
        (failed > 1 && 100 * failed > operations + operations_lead_in + failed)
            .then(|| Invalid::Other(format!("more than 1 % of the operations failed, the first with: {first}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_and_more_than_a_hundredth_are_too_many() {
        let told = |operations, failed| {
            let record = ArmFrame { operations, failed, ..ArmFrame::default() };
            let arm = ArmMeasured { record, first_failure: Some("no".to_owned()), ..ArmMeasured::default() };
            arm.why_invalid()
        };
        for (operations, failed) in [(0, 1), (10, 1), (198, 2), (50_000, 2)] {
            assert_eq!(told(operations, failed), None, "{operations} {failed}");
        }
        let too_many = Some(Invalid::Other("more than 1 % of the operations failed, the first with: no".to_owned()));
        for (operations, failed) in [(0, 2), (10, 2), (197, 2)] {
            assert_eq!(told(operations, failed), too_many, "{operations} {failed}");
        }
    }
}
