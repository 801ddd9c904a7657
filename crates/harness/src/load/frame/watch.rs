//! Clocks, counters and the machine's state during one frame.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tithe_machine::watch::host::HostSample;
use tithe_model::record::{Counters, Host};

use super::{context::CellContext, started_arm::StartedArm};
use crate::load::{pause_gate::PauseGate, reading::Reading};

/// The duration of one frame from its very beginning, including connecting and warming up.
pub(super) struct Watch<'a> {
    context: &'a CellContext<'a>,
    began: FrameStart,
}

/// When a frame began.
enum FrameStart {
    Real {
        unix_ns: u64,
        at: Instant,
        clocks: HostSample,
    },
    /// On the clock of the first lane, ns. Nothing of the machine is checked.
    Virtual(u64),
}

/// The counters when the slots begin.
pub(super) struct StartCounters {
    arms: Vec<Reading>,
    host: Option<HostSample>,
}

/// The state of clocks and machine when the slots have ended.
pub(super) struct FrameConditions {
    /// Other programs' use of the machine meanwhile.
    pub host: Host,
    /// Time since the frame began, ns.
    pub duration_ns: u64,
    /// Why a server was not paused while another one was measured.
    pub not_paused: Option<String>,
    /// The observer that did not answer.
    pub observer_lost: Option<String>,
    /// Why times of this frame cannot be trusted.
    pub clock_fault: Option<String>,
}

impl<'a> Watch<'a> {
    /// A frame begins.
    pub fn begin(context: &'a CellContext<'a>) -> Self {
        let began = if context.time_is_virtual() {
            FrameStart::Virtual(context.clocks[0].now())
        } else {
            let clocks = HostSample::take();
            FrameStart::Real { unix_ns: unix_ns(), at: Instant::now(), clocks }
        };
        Self { context, began }
    }

    /// When it began, ns since 1970, or of invented time.
    pub fn start_unix_ns(&self) -> u64 {
        match self.began {
            FrameStart::Real { unix_ns, .. } => unix_ns,
            FrameStart::Virtual(now_ns) => now_ns,
        }
    }

    /// Its slots begin: reads all counters, and pauses the servers whose turn it is not.
    pub fn count(&self, pause_gate: &PauseGate) -> StartCounters {
        let arms = self.context.counters_at_start();
        pause_gate.close();
        StartCounters { arms, host: (!self.context.time_is_virtual()).then(HostSample::take) }
    }

    /// Its slots have ended: lets all servers run, and returns what has grown since `before`, the counters of each arm
    /// separately.
    pub fn grown_since(&self, before: StartCounters, pause_gate: PauseGate) -> (Vec<Counters>, FrameConditions) {
        let not_paused = pause_gate.open();
        let after = self.context.counters_at_end();
        let lost = |(arm, (before, after)): (&StartedArm, (&Reading, &Reading))| {
            let remote = arm.server.remote.as_ref().filter(|_| before.lost || after.lost)?;
            Some(format!("observer {} was lost", remote.by.name()))
        };
        let observer_lost = self.context.arms.iter().zip(before.arms.iter().zip(&after)).find_map(lost);
        let host = before.host.map_or_else(Host::default, |host| host.until_now());
        let (duration_ns, clock_fault) = match &self.began {
            FrameStart::Real { at, clocks, .. } => (at.elapsed().as_nanos() as u64, clocks.clock_fault()),
            FrameStart::Virtual(now_ns) => (self.context.clocks[0].now() - now_ns, None),
        };
        let counters = before.arms.iter().zip(&after).map(|(before, after)| before.grown(after)).collect();
        (counters, FrameConditions { host, duration_ns, not_paused, observer_lost, clock_fault })
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
