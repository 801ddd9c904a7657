//! A frame whose lanes are on several load machines: a part of it measured here, or the parts of all machines combined.

use std::sync::atomic::AtomicBool;

use tithe_machine::fault::Fault;
use tithe_model::record::{Counters, Stalls};
use tithe_plugin::workload::ArmState;

use super::{
    CellRunner, Offer,
    context::CellContext,
    lanes::Lanes,
    machines::{ArmPart, LaneRange, LoadMachines, PartRequest, PartResult, Parts, PartsRequest, Serving},
    measured::{ArmMeasured, FrameRequest},
    threads::LanesMeasured,
};

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

    /// The same as one of several load machines, with the lanes `here` and servers on another machine.
    #[must_use]
    pub fn as_part(mut self, here: LaneRange) -> Self {
        self.context.divide(here);
        self.context.servers_remote = true;
        if let Offer::Lanes(lanes) = &mut self.offer {
            lanes.servers_are_remote();
        }
        self
    }

    /// The shared state of each arm's clients, in the experiment's order.
    pub fn states(&self) -> Vec<&dyn ArmState> {
        match &self.offer {
            Offer::Lanes(lanes) => lanes.states.iter().map(|state| &**state).collect(),
            Offer::Slices(_) => Vec::new(),
        }
    }

    /// Measures this machine's part of the frame that is `asked` for. When its lanes are connected and warm it calls
    /// `start` with the tasks that serve them. `start` returns when the first slot begins on this machine's clock, ns,
    /// or `None` if there will be no frame. Returns `None` in that case and when it was `cancelled`.
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
        let asked =
            FrameRequest { number: *number, free: *free, profiled: false, warmup_ns: *warmup_ns, done: &[], cancelled };
        let begun_ns = context.clocks[0].now();
        let pause_gate = context.pause_gate()?;
        let measured = lanes.measure_here(context, &asked, lag.clone(), &pause_gate, start)?;
        let invented_ns = context.time_is_virtual().then(|| (begun_ns, context.clocks[0].now()));
        let states = lanes.states.iter().map(|state| state.reached()).collect();
        Ok(measured.map(|LanesMeasured { slots, arms, .. }| {
            let part = |arm: ArmMeasured| {
                let ArmMeasured { record, warmed_up, profiles, first_failure, invalid } = arm;
                ArmPart { record, warmed_up, profiles, first_failure, invalid }
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
        let stalls = Stalls::Unseen("the tasks that serve clients are on another machine".to_owned());
        Ok(Some(LanesMeasured { slots, arms, stalls, agents, invalid, invented_ns, profile: None }))
    }
}

impl ArmMeasured {
    /// Adds the results of another load machine, which has this `share` of all lanes. Histograms are added, so that
    /// percentiles are those of all operations.
    fn add(&mut self, part: ArmPart, share: f64) {
        let ArmPart { record: from, warmed_up, profiles, first_failure, invalid } = part;
        self.warmed_up += warmed_up;
        self.profiles.extend(profiles);
        self.first_failure = self.first_failure.take().or(first_failure);
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
        // Each machine has the mean over its own lanes, weighted by its share of all lanes.
        into.connect_ns += (from.connect_ns as f64 * share).round() as u64;
        into.connecting.add(&from.connecting);
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

/// The sum of the clients' counters on two machines.
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
    use tithe_model::{connecting::Connecting, histogram::Histogram, invalid::Invalid, record::ArmFrame};

    use super::*;
    use crate::load::carry_over::Profile;

    fn part(latencies: &[u64]) -> ArmPart {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|latency| histogram.record(*latency));
        let mut record = ArmFrame { operations: latencies.len() as u64, ..ArmFrame::default() };
        record.latency.insert("READ".to_owned(), histogram);
        ArmPart { record, warmed_up: 1, profiles: Vec::new(), first_failure: None, invalid: None }
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
        let other = |words: &str| Some(Invalid::Other(words.to_owned()));
        sum.add(ArmPart { invalid: other("one"), ..part(&[1]) }, 0.5);
        sum.add(ArmPart { invalid: other("two"), ..part(&[2]) }, 0.5);
        assert_eq!(sum.invalid, other("one"));
        // Whether too many failed is decided for all machines together: here 1 of 40 on each of two machines.
        let mut sum = ArmMeasured::default();
        let record = ArmFrame { operations: 39, failed: 1, ..ArmFrame::default() };
        for why in ["one", "two"] {
            sum.add(ArmPart { record: record.clone(), first_failure: Some(why.to_owned()), ..part(&[]) }, 0.5);
        }
        assert_eq!(sum.why_invalid(), other("more than 1 % of the operations failed, the first with: one"));
        assert_eq!(sum.record.counters, Counters::default());
        let bytes = |bytes| Counters { sent_bytes: bytes, ..Counters::default() };
        assert_eq!(super::sum(bytes(Some(3)), bytes(None)).sent_bytes, Some(3));
    }

    #[test]
    fn counts_are_added_and_the_time_to_connect_is_weighed_by_lanes() {
        let mut intended = Histogram::default();
        intended.record(9);
        let record = ArmFrame {
            operations: 7,
            operations_lead_in: 5,
            failed: 3,
            unfinished: 2,
            intended: [("READ".to_owned(), intended)].into(),
            connecting: Connecting { connections: 2, ..Connecting::default() },
            phases: vec![(4, 2.0)],
            counters: Counters {
                sent_bytes: Some(1),
                received_bytes: Some(20),
                client_user_ns: Some(300),
                client_system_ns: Some(4_000),
                statements: Some(50_000),
                ..Counters::default()
            },
            ..ArmFrame::default()
        };
        let part = |connect_ns: u64| ArmPart {
            record: ArmFrame { connect_ns, ..record.clone() },
            warmed_up: 6,
            profiles: vec![Profile::default()],
            first_failure: None,
            invalid: None,
        };
        let mut all = ArmMeasured::default();
        all.add(part(1_000), 0.25);
        all.add(part(2_000), 0.75);
        assert_eq!((all.warmed_up, all.profiles.len()), (12, 2));
        let seen = all.record;
        assert_eq!((seen.operations, seen.operations_lead_in, seen.failed, seen.unfinished), (14, 10, 6, 4));
        assert_eq!((seen.connect_ns, seen.connecting.connections, seen.intended["READ"].total()), (1_750, 4, 2));
        assert_eq!(seen.phases, [(8, 2.0)]);
        let twice = Counters {
            sent_bytes: Some(2),
            received_bytes: Some(40),
            client_user_ns: Some(600),
            client_system_ns: Some(8_000),
            statements: Some(100_000),
            ..Counters::default()
        };
        assert_eq!(seen.counters, twice);
    }
}
