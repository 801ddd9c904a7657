//! One lane: the thread that offers operations and receives their answers, slot after slot.
//!
//! A lane with one connection per arm sends and waits in the kernel (two system calls per operation); a lane with
//! several drives them from one `epoll_wait`. Keys and values are made before the operation's clock starts, but within
//! the slot: their processor time is part of the client's. [`slot_run`] does the work within a slot; a lane reads the
//! usage of client and servers before and after it.

mod arm;
mod connection;
mod paced;
mod poll;
mod slot_run;

use tithe_machine::{
    clock::{Clock, CpuTimes},
    watch::{
        process::{TaskUsage, TaskWatch},
        stalls::{Shares, StallWatch},
    },
};
use tithe_model::{experiment::Arrivals, invalid::Invalid, record::Slot, schedule::block_order};

use self::slot_run::SlotRun;
pub use self::{
    arm::{Arm, LogWriter},
    connection::{ClientConnection, Reconnect},
};
use super::{Schedule, Turn, arrivals, pause_gate::PauseGate};

/// The number of the draw for the order in which arms are warmed up; block numbers are smaller.
const WARM_UP: u64 = u64::MAX - 1;

/// When the operations of a slot ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Index of the arm.
    pub arm: usize,
    /// When the first began, ns.
    pub from_ns: u64,
    /// When the last ended, ns.
    pub to_ns: u64,
    /// False for lead-in slots.
    pub counts: bool,
}

/// One thread with connections to every arm.
pub struct Lane<'a> {
    /// Its number.
    pub number: usize,
    /// The number of lanes.
    pub lanes: usize,
    /// Its clock.
    pub clock: Clock,
    /// When operations start.
    pub arrivals: Arrivals,
    /// The arms, in the experiment's order.
    pub arms: Vec<Arm<'a>>,
    /// Index of the cell, for the records.
    pub cell: u32,
    /// The times of its slots in this frame, including lead-in slots.
    pub spans: Vec<Span>,
    /// Operations that one request of a client stands for.
    operations_per_request: u64,
    /// How it sees the time that other programs take of its slots.
    stalls: StallWatch,
    intended: Vec<u64>,
}

impl<'a> Lane<'a> {
    /// A lane over `arms`.
    pub fn new(number: usize, lanes: usize, clock: Clock, arrivals: Arrivals, arms: Vec<Arm<'a>>, cell: u32) -> Self {
        let stalls = match &clock {
            Clock::Real => StallWatch::Unseen,
            Clock::Virtual(time) => StallWatch::Virtual(time.clone()),
        };
        let (spans, intended) = (Vec::new(), Vec::with_capacity(1 << 16));
        let operations_per_request = 1;
        Self { number, lanes, clock, arrivals, arms, cell, spans, operations_per_request, stalls, intended }
    }

    /// The same, which sees by `stalls` the time that other programs take of its slots.
    #[must_use]
    pub fn stalled_as(mut self, stalls: StallWatch) -> Self {
        self.stalls = stalls;
        self
    }

    /// The same, in which one request of a client stands for this number of `operations`, as in its rate.
    #[must_use]
    pub fn of_requests(mut self, operations: u64) -> Self {
        self.operations_per_request = operations;
        self.arrivals = match self.arrivals {
            Arrivals::Even(rate) => Arrivals::Even(rate / operations as f64),
            Arrivals::Poisson(rate) => Arrivals::Poisson(rate / operations as f64),
            other => other,
        };
        self
    }

    /// Runs every arm for `length_ns` so that connections and caches are warm, and longer if an arm is behind by `lag`
    /// operations. Forgets what was recorded. Returns the operations done, by arm.
    ///
    /// An arm does not catch up for longer than `timeout_ns`. The arm that is warmed up last is drawn for each frame.
    pub fn warm_up(&mut self, schedule: &Schedule, length_ns: u64, lag: &[u64], timeout_ns: u64) -> Vec<u64> {
        let watch = self.own_watch();
        let mut done = vec![0; self.arms.len()];
        let order = block_order(schedule.seed, schedule.frame.into(), WARM_UP, self.arms.len());
        for arm in order.into_iter().filter(|arm| schedule.has(*arm)) {
            let begun_ns = self.clock.now();
            loop {
                let start_ns = self.clock.now();
                let turn = Turn { block: None, arm, start_ns, end_ns: start_ns + length_ns };
                self.turn(schedule, turn, &watch);
                let recorder = &self.arms[arm].recorder;
                done[arm] = recorder.lead_in;
                // Clients that pause cannot go faster to catch up.
                let enough = self.arms[arm].is_paced() || done[arm] >= lag.get(arm).copied().unwrap_or(0);
                // Nor can those of a server that refuses nearly everything.
                let fails = recorder.invalid.is_some() || recorder.failed > done[arm];
                if enough || fails || self.clock.now() >= begun_ns + timeout_ns {
                    break;
                }
            }
            let invalid = self.arms[arm].recorder.invalid.take();
            self.arms[arm].recorder.clear();
            self.arms[arm].recorder.invalid = invalid;
        }
        done
    }

    /// Runs all turns of a frame, each through `pause_gate`; stops early when `cancelled` returns true. Returns the
    /// slots that count.
    pub fn run(&mut self, schedule: &Schedule, pause_gate: &PauseGate, cancelled: &dyn Fn() -> bool) -> Vec<Slot> {
        let watch = self.own_watch();
        let mut slots = Vec::with_capacity(schedule.blocks as usize * schedule.arms);
        self.spans.clear();
        self.spans.reserve(2 * slots.capacity());
        for turn in schedule.turns(self.number) {
            if cancelled() {
                break;
            }
            self.clock.wait_until(turn.start_ns);
            let _resumed = pause_gate.enter(turn.arm);
            let slot = self.turn(schedule, turn, &watch);
            if turn.block.is_some() {
                slots.push(slot);
            }
        }
        slots
    }

    /// Why earlier and later slots cannot be compared: a session is not as it was. One client of each arm shows it.
    /// Called once before the first slot and after the last.
    pub fn lasting_change(&mut self) -> Option<Invalid> {
        for (number, arm) in self.arms.iter_mut().enumerate() {
            // Statements that switch a protection, and new connections, change sessions rightly.
            let skipped = arm.broken || !arm.on.is_empty();
            let Some(conn) = arm.connections.first_mut().filter(|conn| !skipped && conn.reconnect.is_none()) else {
                continue;
            };
            if let Some(words) = conn.lasting_change().unwrap_or_else(|fault| Some(fault.to_string())) {
                return Some(Invalid::OfArm(number, Box::new(Invalid::Other(words))));
            }
        }
        None
    }

    fn own_watch(&self) -> TaskWatch {
        match &self.clock {
            Clock::Real => TaskWatch::this_thread(),
            Clock::Virtual(time) => TaskWatch::Simulated(time.clone()),
        }
    }

    fn turn(&mut self, schedule: &Schedule, turn: Turn, watch: &TaskWatch) -> Slot {
        self.draw_intended(schedule, turn);
        let arm = &mut self.arms[turn.arm];
        let mut slot = Slot {
            cell: self.cell,
            frame: schedule.frame,
            block: turn.block.unwrap_or_default(),
            lane: self.number as u32,
            arm: turn.arm as u32,
            ..Slot::default()
        };
        if arm.broken {
            return slot;
        }
        for conn in &mut arm.connections {
            conn.client.seed(schedule.stream(turn, conn.number));
        }
        arm.toggle(true);
        arm.put_back();
        let stalls_before = self.stalls.read();
        let simulated_before = self.clock.simulated_server_cpu();
        let log_writer_before_ns = arm.log_writer_ns();
        let before =
            Usage { server: arm.server_usage(), client: watch.read(), cpu_times: self.clock.thread_cpu_times() };
        let mut slot_run =
            SlotRun::new(&self.clock, &mut slot, turn, schedule.settling_ns, self.arrivals != Arrivals::Closed)
                .of_requests(self.operations_per_request);
        let result = slot_run.drive(arm, &self.intended);
        let SlotRun { first_ns, last_ns, idle_cpu_ns, idle_cpu_times, .. } = slot_run;
        // In the opposite order: each reading encloses those that were nearer to the slot.
        let after =
            Usage { cpu_times: self.clock.thread_cpu_times(), client: watch.read(), server: arm.server_usage() };
        let (charged_ns, here_ns) = arm.of_log_writer(log_writer_before_ns);
        arm.recorder.spent(after.cpu_times_since(&before).map(|cpu_times| cpu_times.since(idle_cpu_times)));
        if let Err(fault) = result {
            arm.recorder.invalidate(fault.to_string());
            arm.broken = true;
        }
        arm.toggle(false);
        slot.wall_ns = last_ns.saturating_sub(first_ns);
        after.charge(&before, &mut slot);
        slot.client_cpu_ns = slot.client_cpu_ns.saturating_sub(idle_cpu_ns);
        slot.server_cpu_ns += self.clock.simulated_server_cpu() - simulated_before;
        let cpu_ns = slot.client_cpu_ns + slot.server_cpu_ns + here_ns;
        slot.server_cpu_ns += charged_ns;
        let shares = Shares { wall_ns: slot.wall_ns, cpu_ns, wait_ns: slot.wait_ns };
        slot.stalled_ns = self.stalls.since(stalls_before, shares);
        self.spans.push(Span { arm: turn.arm, from_ns: first_ns, to_ns: last_ns, counts: turn.block.is_some() });
        slot
    }

    /// Draws when the operations of `turn` are intended to start.
    fn draw_intended(&mut self, schedule: &Schedule, turn: Turn) {
        // Lanes with even arrivals alternate, so that all draw the same.
        let drawn_for = if matches!(self.arrivals, Arrivals::Even(_)) { self.lanes } else { self.number };
        let seed = schedule.stream(turn, u64::MAX - drawn_for as u64);
        let (start_ns, end_ns) = (turn.start_ns, turn.end_ns);
        arrivals::intended(self.arrivals, self.lanes, self.number, seed, start_ns, end_ns, &mut self.intended);
    }
}

/// The usage of client and servers at one end of a slot.
struct Usage {
    server: TaskUsage,
    client: TaskUsage,
    cpu_times: Option<CpuTimes>,
}

impl Usage {
    fn cpu_times_since(&self, before: &Self) -> Option<CpuTimes> {
        before.cpu_times.zip(self.cpu_times).map(|(before, after)| after.since(before))
    }

    /// Writes the usage since `before` into `slot`.
    fn charge(&self, before: &Self, slot: &mut Slot) {
        slot.client_cpu_ns = self.client.cpu_ns - before.client.cpu_ns;
        slot.server_cpu_ns = self.server.cpu_ns.saturating_sub(before.server.cpu_ns);
        let of_server = self.server.wait_ns.saturating_sub(before.server.wait_ns);
        slot.wait_ns = (self.client.wait_ns - before.client.wait_ns) + of_server;
    }
}

#[cfg(test)]
mod tests;
