//! A frame whose lanes are spread over several load machines: what is asked of each, and what it answers.
//!
//! Which arm a lane serves at a time follows from the clock and the seed alone, so the machines need to agree on one
//! moment, the start of the first slot, and on nothing after it. Who carries questions and answers is not known here:
//! [`LoadMachines`] are given by whoever has them.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use tithe_machine::{fault::Fault, launch::Address};
use tithe_model::{
    plan::Cell,
    record::{AgentFrame, ArmFrame, Counters, Slot, Stalls},
};
use tithe_plugin::workload::ArmState;

use super::{
    ArmMeasured, CellRunner, FrameRequest, Offer, StartedArm, context::CellContext, lanes::Lanes,
    threads::LanesMeasured,
};
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
    pub invalid: Option<String>,
}

/// What one load machine has measured in a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// Slots of its lanes.
    pub slots: Vec<Slot>,
    /// In the experiment's order.
    pub arms: Vec<ArmPart>,
    /// What the clients of each arm share, as [`ArmState::reached`] tells it.
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
    /// Why the frame must not be used.
    pub invalid: Option<String>,
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

impl<'a> CellRunner<'a> {
    /// The same, whose load `machines` offer.
    #[must_use]
    pub fn loaded_by(mut self, machines: Option<&'a dyn LoadMachines>) -> Self {
        if let (Some(machines), Offer::Lanes(lanes)) = (machines, &mut self.offer) {
            machines.data_put_back();
            let of = machines.lanes(self.context.cell.clients);
            self.context.divide(LaneRange { first: 0, count: 0, of });
            self.context.servers_remote = true;
            lanes.offered_remotely(machines);
        }
        self
    }

    /// The same as one of several load machines, with the lanes `here`, whose servers another machine has.
    #[must_use]
    pub fn as_part(mut self, here: LaneRange) -> Self {
        self.context.divide(here);
        self.context.servers_remote = true;
        if let Offer::Lanes(lanes) = &mut self.offer {
            lanes.servers_are_remote();
        }
        self
    }

    /// What the clients of each arm share, in the experiment's order.
    pub fn states(&self) -> Vec<&dyn ArmState> {
        match &self.offer {
            Offer::Lanes(lanes) => lanes.states.iter().map(|state| &**state).collect(),
            Offer::Slices(_) => Vec::new(),
        }
    }

    /// Measures this machine's part of the frame that is `asked` for. When its lanes are connected and warm it calls
    /// `start` with whoever serves them, which says when the first slot begins on this machine's clock, ns, or `None`
    /// where there will be no frame. `None` then and when it was `cancelled`.
    ///
    /// # Errors
    /// When a connection cannot be opened, or a thread panics.
    pub fn part(
        &mut self,
        asked: &PartRequest,
        start: &mut dyn FnMut(Vec<Serving>) -> Option<u64>,
        cancelled: &AtomicBool,
    ) -> Result<Option<PartResult>, Fault> {
        let PartRequest { cell, number, free, warmup_ns, lag, fresh, cold } = asked;
        let context = &mut self.context;
        (context.cell, context.fresh, context.cold) = (cell.clone(), *fresh, *cold);
        let (context, Offer::Lanes(lanes)) = (&self.context, &self.offer) else {
            return Err(Fault::Refused("another program offers this load, which agents do not run".to_owned()));
        };
        let asked = FrameRequest { number: *number, free: *free, warmup_ns: *warmup_ns, done: &[], cancelled };
        let begun_ns = context.clocks[0].now();
        let pause_gate = context.pause_gate()?;
        let measured = lanes.measure_here(context, &asked, lag.clone(), &pause_gate, start)?;
        let invented_ns = context.time_is_virtual().then(|| (begun_ns, context.clocks[0].now()));
        let states = lanes.states.iter().map(|state| state.reached()).collect();
        Ok(measured.map(|LanesMeasured { slots, arms, .. }| {
            let part = |arm: ArmMeasured| {
                let ArmMeasured { record, warmed_up, profiles, invalid } = arm;
                ArmPart { record, warmed_up, profiles, invalid }
            };
            PartResult { slots, arms: arms.into_iter().map(part).collect(), states, invented_ns }
        }))
    }
}

impl Lanes<'_> {
    /// One frame of which `machines` measure a part each; `None` when it was cancelled.
    ///
    /// # Errors
    /// As [`LoadMachines::measure`].
    pub(super) fn measure_remotely(
        &self,
        context: &CellContext<'_>,
        (asked, lag): (&FrameRequest<'_>, Vec<u64>),
        machines: &dyn LoadMachines,
        count: &mut dyn FnMut(),
    ) -> Result<Option<LanesMeasured>, Fault> {
        let FrameRequest { number, free, warmup_ns, cancelled, .. } = *asked;
        let (cell, fresh, cold) = (context.cell.clone(), context.fresh, context.cold);
        let frame = PartRequest { cell, number, free, warmup_ns, lag, fresh, cold };
        let (cell_index, arms, lanes) = (context.cell_index, &context.arms, context.lanes());
        let asked = PartsRequest { cell_index, frame, arms, lanes, cancelled };
        let Some(Parts { parts, agents, invalid }) = machines.measure(&asked, count)? else { return Ok(None) };
        let mut arms: Vec<ArmMeasured> = Vec::new();
        arms.resize_with(context.arms.len(), ArmMeasured::default);
        let (mut slots, lanes) = (Vec::new(), context.lanes().max(1) as u64);
        let mut invented_ns: Option<(u64, u64)> = None;
        for (part, agent) in parts.into_iter().zip(&agents) {
            let lanes_there = u64::from(agent.lanes);
            for (into, from) in arms.iter_mut().zip(part.arms) {
                into.add(from, lanes_there as f64 / lanes as f64);
            }
            invented_ns = invented_ns.or(part.invented_ns);
            slots.extend(part.slots);
        }
        let stalls = Stalls::Unseen("what serves clients is on another machine".to_owned());
        Ok(Some(LanesMeasured { slots, arms, stalls, agents, invalid, invented_ns }))
    }
}

impl ArmMeasured {
    /// Adds what another load machine saw, which has this `share` of all lanes. Histograms are added, so that
    /// percentiles are those of all operations.
    fn add(&mut self, part: ArmPart, share: f64) {
        let ArmPart { record: from, warmed_up, profiles, invalid } = part;
        self.warmed_up += warmed_up;
        self.profiles.extend(profiles);
        self.invalid = self.invalid.take().or(invalid);
        let into = &mut self.record;
        into.operations += from.operations;
        into.operations_lead_in += from.operations_lead_in;
        into.failed += from.failed;
        into.unfinished += from.unfinished;
        for (into, from) in [(&mut into.latency, from.latency), (&mut into.intended, from.intended)] {
            for (name, histogram) in from {
                into.entry(name).or_default().merge(&histogram);
            }
        }
        // Each machine tells the mean over its own lanes as its part of all lanes.
        into.connect_ns += (from.connect_ns as f64 * share).round() as u64;
        into.phases = together(&into.phases, &from.phases);
        into.counters = sum(into.counters, from.counters);
    }
}

/// Operations and mean logarithm of each phase of two parts.
fn together(one: &[(u64, f64)], other: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let at = |phases: &[(u64, f64)], phase: usize| phases.get(phase).copied().unwrap_or_default();
    let both = |phase| {
        let ((count, mean), (more, other_mean)) = (at(one, phase), at(other, phase));
        let all = count + more;
        (all, (mean * count as f64 + other_mean * more as f64) / all.max(1) as f64)
    };
    (0..one.len().max(other.len())).map(both).collect()
}

/// What clients on two machines counted.
fn sum(one: Counters, other: Counters) -> Counters {
    let add = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
    };
    Counters {
        sent_bytes: add(one.sent_bytes, other.sent_bytes),
        received_bytes: add(one.received_bytes, other.received_bytes),
        client_user_ns: add(one.client_user_ns, other.client_user_ns),
        client_system_ns: add(one.client_system_ns, other.client_system_ns),
        statements: add(one.statements, other.statements),
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tithe_model::histogram::Histogram;

    use super::*;

    fn part(latencies: &[u64]) -> ArmPart {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|latency| histogram.record(*latency));
        let mut record = ArmFrame { operations: latencies.len() as u64, ..ArmFrame::default() };
        record.latency.insert("READ".to_owned(), histogram);
        ArmPart { record, warmed_up: 1, profiles: Vec::new(), invalid: None }
    }

    proptest! {
        #[test]
        fn the_histogram_of_all_parts_is_that_of_all_values(
            parts in proptest::collection::vec(proptest::collection::vec(0u64..10_000_000_000, 0..50), 1..5)
        ) {
            let mut sum = ArmMeasured::default();
            parts.iter().for_each(|latencies| sum.add(part(latencies), 1.0 / parts.len() as f64));
            let all = part(&parts.concat());
            prop_assert_eq!(&sum.record.latency, &all.record.latency);
            prop_assert_eq!(sum.record.operations, all.record.operations);
            prop_assert_eq!(sum.warmed_up, parts.len() as u64);
        }

        #[test]
        fn phases_together_are_those_of_all_operations(
            one in proptest::collection::vec((0u64..1000, -5.0f64..20.0), 0..9),
            other in proptest::collection::vec((0u64..1000, -5.0f64..20.0), 0..9),
        ) {
            let both = together(&one, &other);
            let total = |phases: &[(u64, f64)]| phases.iter().map(|(count, mean)| *count as f64 * mean).sum::<f64>();
            let count = |phases: &[(u64, f64)]| phases.iter().map(|(count, _)| count).sum::<u64>();
            prop_assert_eq!(count(&both), count(&one) + count(&other));
            prop_assert!((total(&both) - total(&one) - total(&other)).abs() < 1e-6 * (1.0 + total(&both).abs()));
        }
    }

    #[test]
    fn the_first_reason_stays_and_counters_that_nobody_has_stay_unknown() {
        let mut sum = ArmMeasured::default();
        sum.add(ArmPart { invalid: Some("one".to_owned()), ..part(&[1]) }, 0.5);
        sum.add(ArmPart { invalid: Some("two".to_owned()), ..part(&[2]) }, 0.5);
        assert_eq!(sum.invalid.as_deref(), Some("one"));
        assert_eq!(sum.record.counters, Counters::default());
        let bytes = |bytes| Counters { sent_bytes: bytes, ..Counters::default() };
        assert_eq!(super::sum(bytes(Some(3)), bytes(None)).sent_bytes, Some(3));
    }
}
