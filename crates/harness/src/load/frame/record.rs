//! The results of each lane in a frame, and those of all lanes for one arm, as one record.

use tithe_machine::clock::CpuTimes;
use tithe_model::{
    invalid::Invalid,
    record::{ArmFrame, Counters, Slot},
};

use super::{context::CellContext, measured::ArmMeasured, opening::Opened};
use crate::load::{
    CONNECT,
    carry_over::{self, Profile},
    lane::{Arm, Lane},
    recorder::Recorder,
};

/// The results of a lane in a frame.
pub(super) struct LaneRecord<'a> {
    pub opened: Opened<'a>,
    /// The thread that it ran in.
    pub thread: i32,
    pub slots: Vec<Slot>,
    /// Bytes that its clients sent and received in its slots, by arm.
    pub traffic: Vec<Traffic>,
    /// Operations before the first slot, by arm.
    pub warmed_up: Vec<u64>,
}

/// The traffic of an arm's clients.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub statements: u64,
}

impl Traffic {
    /// The traffic of all arms of `lane` so far.
    pub fn of(lane: &mut Lane<'_>) -> Vec<Self> {
        let of_arm = |arm: &mut Arm<'_>| {
            let (sent_bytes, received_bytes) = arm.wire_bytes();
            Self { sent_bytes, received_bytes, statements: arm.statements() }
        };
        lane.arms.iter_mut().map(of_arm).collect()
    }

    /// Adds the traffic of another lane's clients.
    fn add(&mut self, more: Self) {
        self.sent_bytes += more.sent_bytes;
        self.received_bytes += more.received_bytes;
        self.statements += more.statements;
    }

    /// The traffic since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes - before.sent_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            statements: self.statements - before.statements,
        }
    }
}

/// The results of all lanes for `arm`, which `has` slots in this frame or not.
pub(super) fn measured(context: &CellContext<'_>, arm: usize, has: bool, seen: &[LaneRecord<'_>]) -> ArmMeasured {
    let recorders = || seen.iter().map(|seen| &seen.opened.lane.arms[arm].recorder);
    let record = record(context, arm, seen);
    let nothing = has && record.operations == 0;
    let profile = |phases| {
        let mut profile = Profile::default();
        carry_over::add(&mut profile, phases);
        profile
    };
    ArmMeasured {
        warmed_up: seen.iter().map(|seen| seen.warmed_up[arm]).sum(),
        profiles: recorders().map(|recorder| profile(recorder.phases())).collect(),
        first_failure: recorders().find_map(|recorder| recorder.first_failure.clone()),
        invalid: recorders()
            .find_map(|recorder| recorder.invalid.clone())
            .map(Invalid::Other)
            .or(nothing.then_some(Invalid::NothingDone)),
        record,
    }
}

/// The record of `arm` from its clients.
fn record(context: &CellContext<'_>, arm: usize, seen: &[LaneRecord<'_>]) -> ArmFrame {
    let mut frame = ArmFrame::default();
    let mut phases = Profile::default();
    let mut cpu_times: Option<CpuTimes> = None;
    let mut traffic = Traffic::default();
    let reconnects = context.cell.reconnect_every.is_some();
    let mut names = context.workload.operations();
    names.extend(reconnects.then_some(CONNECT));
    for seen in seen {
        let recorder = &seen.opened.lane.arms[arm].recorder;
        add(&mut frame, recorder, &names);
        carry_over::add(&mut phases, recorder.phases());
        frame.connect_ns += seen.opened.connect_ns[arm] / context.lanes_here.count as u64;
        frame.connecting.add(&seen.opened.lane.arms[arm].connecting());
        if let Some(of_lane) = recorder.cpu_times {
            *cpu_times.get_or_insert_default() += of_lane;
        }
        traffic.add(seen.traffic[arm]);
    }
    frame.phases = phases.iter().map(|(count, sum)| (*count, sum / (*count).max(1) as f64)).collect();
    frame.counters = Counters {
        sent_bytes: context.is_wired().then_some(traffic.sent_bytes),
        received_bytes: context.is_wired().then_some(traffic.received_bytes),
        client_user_ns: cpu_times.map(|cpu_times| cpu_times.user_ns),
        client_system_ns: cpu_times.map(|cpu_times| cpu_times.system_ns),
        statements: Some(traffic.statements).filter(|statements| *statements > 0),
        ..Counters::default()
    };
    frame
}

/// The counters of clients and of their arm's server, combined.
pub(super) fn counted(clients: Counters, server: Counters) -> Counters {
    let Counters { sent_bytes, received_bytes, client_user_ns, client_system_ns, statements, .. } = clients;
    Counters { sent_bytes, received_bytes, client_user_ns, client_system_ns, statements, ..server }
}

/// Adds the counts and latencies of one lane's `recorder` to `frame`; `names` are those of its operations.
fn add(frame: &mut ArmFrame, recorder: &Recorder, names: &[&str]) {
    frame.operations += recorder.operations;
    frame.operations_lead_in += recorder.lead_in;
    frame.failed += recorder.failed;
    frame.unfinished += recorder.unfinished;
    for (into, from) in
        [(&mut frame.latency, recorder.latencies(names)), (&mut frame.intended, recorder.intended(names))]
    {
        for (name, histogram) in from {
            into.entry(name).or_default().merge(&histogram);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tithe_model::histogram::Histogram;

    use super::*;

    #[test]
    fn what_clients_count_is_theirs_also_where_they_do_not_know_it() {
        let all = |count| Counters {
            server_cpu_ns: count,
            server_user_ns: count,
            server_system_ns: count,
            client_user_ns: count,
            client_system_ns: count,
            wal_bytes: count,
            log_bytes: count,
            read_bytes: count,
            written_bytes: count,
            sent_bytes: count,
            received_bytes: count,
            statements: count,
            switches: count,
            memory_bytes: count,
            disk_bytes: count,
        };
        for of_clients in [None, Some(1)] {
            let theirs = Counters {
                client_user_ns: of_clients,
                client_system_ns: of_clients,
                sent_bytes: of_clients,
                received_bytes: of_clients,
                statements: of_clients,
                ..all(Some(2))
            };
            assert_eq!(counted(all(of_clients), all(Some(2))), theirs);
        }
    }

    #[test]
    fn the_traffic_before_and_the_traffic_since_are_the_traffic() {
        let before = Traffic { sent_bytes: 10, received_bytes: 200, statements: 3 };
        let after = Traffic { sent_bytes: 14, received_bytes: 205, statements: 9 };
        let since = after.since(before);
        let seen = |traffic: Traffic| (traffic.sent_bytes, traffic.received_bytes, traffic.statements);
        assert_eq!(seen(since), (4, 5, 6));
        let mut sum = before;
        sum.add(since);
        assert_eq!(seen(sum), seen(after));
    }

    #[test]
    fn the_record_of_lanes_is_the_sum_of_theirs() {
        let mut frame = ArmFrame::default();
        for times in [1, 10] {
            let mut recorder = Recorder::new(3, false, true);
            (recorder.operations, recorder.lead_in, recorder.failed, recorder.unfinished) =
                (5 * times, 2 * times, 3 * times, 4 * times);
            for _ in 0..times {
                recorder.latency(0, 100 * times);
                recorder.latency(1, 7);
                recorder.latency(1, 7);
                recorder.from_intended(1, 1000);
            }
            add(&mut frame, &recorder, &["READ", "UPDATE", "NONE"]);
        }
        assert_eq!((frame.operations, frame.operations_lead_in, frame.failed, frame.unfinished), (55, 22, 33, 44));
        let totals = |histograms: &BTreeMap<String, Histogram>| {
            histograms.iter().map(|(name, histogram)| (name.clone(), histogram.total())).collect::<Vec<_>>()
        };
        assert_eq!(totals(&frame.latency), [("READ".to_owned(), 11), ("UPDATE".to_owned(), 22)]);
        assert_eq!(totals(&frame.intended), [("UPDATE".to_owned(), 11)]);
        // Each lane's latencies stay their own.
        assert_eq!(frame.latency["READ"].buckets().map(|(_, count)| count).collect::<Vec<_>>(), [1, 10]);
    }
}
