//! What each lane saw in a frame, and what all of them saw of an arm, as one record.

use tithe_machine::clock::Modes;
use tithe_model::record::{ArmFrame, Counters, Slot};

use super::{ArmMeasured, opening::Opened, site::Site};
use crate::load::{
    CONNECT,
    carry_over::{self, Profile},
    lane::{Arm, Lane},
    recorder::Recorder,
};

/// What a lane saw in a frame.
pub(super) struct Seen<'a> {
    pub opened: Opened<'a>,
    pub slots: Vec<Slot>,
    /// What its clients sent and received in its slots, by arm.
    pub traffic: Vec<Traffic>,
    /// Operations before the first slot, by arm.
    pub warmed_up: Vec<u64>,
}

/// What the clients of an arm have sent and received.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub statements: u64,
}

impl Traffic {
    /// By all arms of `lane` so far.
    pub fn of(lane: &mut Lane<'_>) -> Vec<Self> {
        let of_arm = |arm: &mut Arm<'_>| {
            let (sent_bytes, received_bytes) = arm.wire_bytes();
            Self { sent_bytes, received_bytes, statements: arm.statements() }
        };
        lane.arms.iter_mut().map(of_arm).collect()
    }

    /// Adds what another lane's clients did.
    fn add(&mut self, more: Self) {
        self.sent_bytes += more.sent_bytes;
        self.received_bytes += more.received_bytes;
        self.statements += more.statements;
    }

    /// What was sent and received since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes - before.sent_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            statements: self.statements - before.statements,
        }
    }
}

/// What all lanes saw of `arm`, which `has` slots in this frame.
pub(super) fn measured(site: &Site<'_>, arm: usize, has: bool, seen: &[Seen<'_>], counters: Counters) -> ArmMeasured {
    let recorders = || seen.iter().map(|seen| &seen.opened.lane.arms[arm].recorder);
    let record = record(site, arm, seen, counters);
    let nothing = has && record.operations == 0;
    let profile = |phases| {
        let mut profile = Profile::default();
        carry_over::add(&mut profile, phases);
        profile
    };
    ArmMeasured {
        warmed_up: seen.iter().map(|seen| seen.warmed_up[arm]).sum(),
        profiles: recorders().map(|recorder| profile(recorder.phases())).collect(),
        spoiled: recorders()
            .find_map(|recorder| recorder.spoiled.clone())
            .or_else(|| nothing.then(|| "no operation succeeded".to_owned())),
        record,
    }
}

/// The record of `arm`, whose server's counters have grown by `counters`.
fn record(site: &Site<'_>, arm: usize, seen: &[Seen<'_>], counters: Counters) -> ArmFrame {
    let mut frame = ArmFrame::default();
    let mut phases = Profile::default();
    let mut modes: Option<Modes> = None;
    let mut traffic = Traffic::default();
    let renews = site.cell.reconnect_every.is_some();
    let names: Vec<&str> = site.workload.operations().iter().copied().chain(renews.then_some(CONNECT)).collect();
    for seen in seen {
        let recorder = &seen.opened.lane.arms[arm].recorder;
        add(&mut frame, recorder, &names);
        carry_over::add(&mut phases, recorder.phases());
        frame.connect_ns += seen.opened.connect_ns[arm] / site.lanes() as u64;
        if let Some(of_lane) = recorder.modes {
            *modes.get_or_insert_default() += of_lane;
        }
        traffic.add(seen.traffic[arm]);
    }
    frame.phases = phases.iter().map(|(count, sum)| (*count, sum / (*count).max(1) as f64)).collect();
    frame.counters = Counters {
        sent_bytes: site.is_wired().then_some(traffic.sent_bytes),
        received_bytes: site.is_wired().then_some(traffic.received_bytes),
        client_user_ns: modes.map(|modes| modes.user_ns),
        client_system_ns: modes.map(|modes| modes.system_ns),
        statements: Some(traffic.statements).filter(|statements| *statements > 0),
        ..counters
    };
    frame
}

/// Adds the counts and latencies of one lane's `recorder` to `frame`; `names` are those of its operations.
fn add(frame: &mut ArmFrame, recorder: &Recorder, names: &[&str]) {
    frame.operations += recorder.operations;
    frame.operations_settling += recorder.settling;
    frame.failed += recorder.failed;
    frame.undrained += recorder.undrained;
    for (into, from) in
        [(&mut frame.latency, recorder.latencies(names)), (&mut frame.intended, recorder.intended(names))]
    {
        for (name, histogram) in from {
            into.entry(name).or_default().merge(&histogram);
        }
    }
}
