//! One lane: the loop that offers operations and takes their answers.
//!
//! A lane with one connection an arm sends and waits in the kernel (two system calls an operation); a lane
//! with several drives them from one `epoll_wait`. Per operation it reads the clock twice, and it neither
//! allocates nor locks. Keys and values are made before the operation's clock starts, but within the slot:
//! their processor time is part of the client's.

mod paced;
mod poll;

use std::{collections::VecDeque, os::fd::RawFd};

use tithe_model::{
    experiment::Arrivals,
    record::Slot,
    schedule::{block_order, stream_seed},
};

use super::{
    Schedule, Turn, arrivals,
    recorder::{PartTimes, Recorder},
    turnstile::Turnstile,
};
use crate::{
    clock::{Clock, Modes},
    fault::Fault,
    session::{Connection, Progress, Session},
    watch::{
        process::{TaskUsage, TaskWatch},
        stalls::{Shares, StallWatch},
    },
    workload::Client,
};
use poll::{Epoll, Poll};

/// The draw of the order in which arms are warmed; block numbers are smaller.
const WARM_UP: u64 = u64::MAX - 1;

/// How a client closes its connection and opens a new one while it is measured.
pub struct Renewal<'a> {
    /// Operations that a connection lasts.
    pub every: u32,
    /// Opens a connection, as the first one was opened.
    pub open: Box<dyn Fn() -> Result<Session, Fault> + Send + 'a>,
}

/// One connection with the client that uses it.
pub struct Seat<'a> {
    /// The connection; `None` once it could not be opened again, which breaks the arm.
    session: Option<Session>,
    /// What it does.
    pub client: Box<dyn Client>,
    /// Number of the client over all lanes.
    pub number: u64,
    renewal: Option<Renewal<'a>>,
    /// Operations of the connection so far; not counted without a renewal.
    served: u32,
    /// Bytes sent and received by the connections before this one.
    earlier_bytes: (u64, u64),
    /// Where a new connection is to be registered, and under which number.
    poll: Option<(Epoll, usize)>,
    watch: Option<TaskWatch>,
    busy: Option<Busy>,
    /// What is left of the pause before the operation that is prepared, ns; `None` when none is prepared.
    pause_left_ns: Option<u64>,
}

/// An operation under way.
#[derive(Debug, Clone, Copy)]
struct Busy {
    begun_ns: u64,
    part_ns: u64,
    intended_ns: u64,
}

impl<'a> Seat<'a> {
    /// Seats `client` number `number` at `session`.
    pub fn new(mut session: Session, mut client: Box<dyn Client>, number: u64) -> Self {
        client.take_seat(number);
        let watch = TaskWatch::server(&session.connection().server_task());
        Self {
            session: Some(session),
            client,
            number,
            renewal: None,
            served: 0,
            earlier_bytes: (0, 0),
            poll: None,
            watch,
            busy: None,
            pause_left_ns: None,
        }
    }

    /// The same, whose connection is closed and opened anew as `renewal` says.
    #[must_use]
    pub fn renewed(mut self, renewal: Option<Renewal<'a>>) -> Self {
        self.renewal = renewal;
        self
    }

    /// Fills the caches that this connection reads through.
    ///
    /// # Errors
    /// The server's error.
    pub fn warm(&mut self) -> Result<(), Fault> {
        self.connection()?.warm()
    }

    fn connection(&mut self) -> Result<&mut dyn Connection, Fault> {
        open(&mut self.session).map(Session::connection)
    }

    /// True when the connection has done its operations.
    fn is_spent(&self) -> bool {
        self.renewal.as_ref().is_some_and(|renewal| self.served >= renewal.every)
    }

    /// Closes the connection, then opens a new one and prepares it.
    fn renew(&mut self) -> Result<(), Fault> {
        let Some(renewal) = &self.renewal else { return Ok(()) };
        if let Some(mut ended) = self.session.take() {
            let (sent, received) = ended.connection().wire_bytes();
            self.earlier_bytes = (self.earlier_bytes.0 + sent, self.earlier_bytes.1 + received);
        }
        let mut session = (renewal.open)()?;
        self.client.open(&mut session)?;
        // The kernel forgets a closed descriptor by itself (epoll(7)).
        if let (Some((epoll, number)), Some(descriptor)) = (self.poll, session.connection().descriptor()) {
            epoll.add(descriptor, number)?;
        }
        self.session = Some(session);
        self.served = 0;
        Ok(())
    }

    fn wire_bytes(&mut self) -> (u64, u64) {
        let (sent, received) = self.connection().map_or((0, 0), |connection| connection.wire_bytes());
        (self.earlier_bytes.0 + sent, self.earlier_bytes.1 + received)
    }
}

/// The session of a seat.
fn open(session: &mut Option<Session>) -> Result<&mut Session, Fault> {
    session.as_mut().ok_or_else(|| Fault::Connection("the connection could not be opened again".to_owned()))
}

/// All connections of a lane to one arm.
pub struct Arm<'a> {
    /// The connections; at least one.
    pub seats: Vec<Seat<'a>>,
    /// What was seen.
    pub recorder: Recorder,
    /// Statements that switch the protection on before a slot, where arms share a server.
    pub on: Vec<String>,
    /// Statements that switch it off after the slot.
    pub off: Vec<String>,
    poll: Option<Poll>,
    /// Seats without an operation, in an open loop: who waits longest is next.
    free: VecDeque<usize>,
    broken: bool,
}

impl<'a> Arm<'a> {
    /// An arm of a lane.
    ///
    /// # Errors
    /// When the kernel gives no epoll descriptor.
    pub fn new(mut seats: Vec<Seat<'a>>, recorder: Recorder, on: Vec<String>, off: Vec<String>) -> Result<Self, Fault> {
        let descriptors: Vec<Option<RawFd>> =
            seats.iter_mut().map(|seat| Ok(seat.connection()?.descriptor())).collect::<Result<_, Fault>>()?;
        let poll = match descriptors.into_iter().collect::<Option<Vec<RawFd>>>() {
            Some(descriptors) if descriptors.len() > 1 => Some(Poll::new(&descriptors)?),
            _ => None,
        };
        for (number, seat) in seats.iter_mut().enumerate() {
            seat.poll = poll.as_ref().map(|poll| (poll.epoll, number));
        }
        let free = VecDeque::with_capacity(seats.len());
        Ok(Self { seats, recorder, on, off, poll, free, broken: false })
    }

    /// Bytes sent and received by all connections so far.
    pub fn wire_bytes(&mut self) -> (u64, u64) {
        self.seats.iter_mut().fold((0, 0), |(sent, received), seat| {
            let (more_sent, more_received) = seat.wire_bytes();
            (sent + more_sent, received + more_received)
        })
    }

    /// Statements sent by all clients so far.
    pub fn statements(&self) -> u64 {
        self.seats.iter().map(|seat| seat.client.statements()).sum()
    }

    /// Charges what `watch` sees of a whole server to this lane's part of its clients: for servers whose threads serve
    /// whoever comes, and where connections come and go, so that no task belongs to a client. Between two arms' slots
    /// such a server is idle.
    pub fn watch_whole(&mut self, watch: Option<TaskWatch>) {
        self.seats.iter_mut().for_each(|seat| seat.watch = None);
        if let Some(seat) = self.seats.first_mut() {
            seat.watch = watch;
        }
    }

    /// True when its clients pause between operations.
    fn is_paced(&self) -> bool {
        self.seats.first().is_some_and(|seat| seat.client.pauses())
    }

    fn server_usage(&self) -> TaskUsage {
        self.seats.iter().filter_map(|seat| seat.watch.as_ref()).map(TaskWatch::read).fold(
            TaskUsage::default(),
            |sum, usage| TaskUsage { cpu_ns: sum.cpu_ns + usage.cpu_ns, wait_ns: sum.wait_ns + usage.wait_ns },
        )
    }

    fn toggle(&mut self, on: bool) {
        let statements = if on { &self.on } else { &self.off };
        for seat in &mut self.seats {
            for statement in statements {
                let outcome = seat.connection().and_then(|connection| connection.run_statement(statement));
                if let Err(fault) = outcome {
                    self.recorder.spoil(format!("`{statement}`: {fault}"));
                    self.broken = true;
                }
            }
        }
    }
}

/// One thread with connections to every arm.
pub struct Lane<'a> {
    /// Its number.
    pub number: usize,
    /// How many there are.
    pub lanes: usize,
    /// Its clock.
    pub clock: Clock,
    /// When operations start.
    pub arrivals: Arrivals,
    /// The arms, in the experiment's order.
    pub arms: Vec<Arm<'a>>,
    /// Index of the cell, for the records.
    pub cell: u32,
    /// How it sees what neighbours take of its slots.
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
        Self { number, lanes, clock, arrivals, arms, cell, stalls, intended: Vec::with_capacity(1 << 16) }
    }

    /// The same, which sees by `stalls` what neighbours take of its slots.
    #[must_use]
    pub fn stalled_as(mut self, stalls: StallWatch) -> Self {
        self.stalls = stalls;
        self
    }

    /// Runs every arm for `length_ns` so that connections and caches are warm, and longer an arm that is `behind` by so
    /// many operations; forgets what was recorded. Returns the operations done, by arm.
    ///
    /// An arm does not catch up for longer than `patience_ns`. Which arm is warmed last is drawn for each frame.
    pub fn warm_up(&mut self, schedule: &Schedule, length_ns: u64, behind: &[u64], patience_ns: u64) -> Vec<u64> {
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
                done[arm] = recorder.settling;
                // Clients that pause cannot go faster to catch up.
                let enough = self.arms[arm].is_paced() || done[arm] >= behind.get(arm).copied().unwrap_or(0);
                if enough || recorder.spoiled.is_some() || self.clock.now() >= begun_ns + patience_ns {
                    break;
                }
            }
            let spoiled = self.arms[arm].recorder.spoiled.take();
            self.arms[arm].recorder.clear();
            self.arms[arm].recorder.spoiled = spoiled;
        }
        done
    }

    /// Runs all turns of a frame, each through `turnstile`; stops early when `cancelled` says so. Returns the slots
    /// that count.
    pub fn run(&mut self, schedule: &Schedule, turnstile: &Turnstile, cancelled: &dyn Fn() -> bool) -> Vec<Slot> {
        let watch = self.own_watch();
        let mut slots = Vec::with_capacity(schedule.blocks as usize * schedule.arms);
        for turn in schedule.turns(self.number) {
            if cancelled() {
                break;
            }
            self.clock.wait_until(turn.start_ns);
            let _stay = turnstile.enter(turn.arm);
            let slot = self.turn(schedule, turn, &watch);
            if turn.block.is_some() {
                slots.push(slot);
            }
        }
        slots
    }

    fn own_watch(&self) -> TaskWatch {
        match &self.clock {
            Clock::Real => TaskWatch::this_thread(),
            Clock::Virtual(time) => TaskWatch::simulated_client(time.clone()),
        }
    }

    fn turn(&mut self, schedule: &Schedule, turn: Turn, watch: &TaskWatch) -> Slot {
        let block_seed =
            stream_seed(schedule.seed, u64::from(schedule.frame), turn.stream(), u64::MAX - self.number as u64);
        arrivals::intended(
            self.arrivals,
            self.lanes,
            self.number,
            block_seed,
            turn.start_ns,
            turn.end_ns,
            &mut self.intended,
        );
        let arm = &mut self.arms[turn.arm];
        let mut slot = Slot {
            cell: self.cell,
            frame: schedule.frame,
            block: turn.block.unwrap_or_default(),
            client: self.number as u32,
            arm: turn.arm as u32,
            ..Slot::default()
        };
        if arm.broken {
            return slot;
        }
        for seat in &mut arm.seats {
            seat.client.seed(stream_seed(schedule.seed, u64::from(schedule.frame), turn.stream(), seat.number));
        }
        arm.toggle(true);
        let stalls_before = self.stalls.read();
        let server_before = arm.server_usage();
        let client_before = watch.read();
        let modes_before = self.clock.thread_modes();
        let simulated_before = simulated_server_cpu(&self.clock);
        let mut visit = Visit {
            clock: &self.clock,
            slot: &mut slot,
            turn,
            counts_from_ns: if turn.block.is_some() { turn.start_ns + schedule.guard_ns } else { u64::MAX },
            open: self.arrivals != Arrivals::Closed,
            idle_cpu_ns: 0,
            idle_modes: Modes::default(),
            first_ns: 0,
            last_ns: 0,
        };
        let result = visit.drive(arm, &self.intended);
        let (first_ns, last_ns, idle_cpu_ns) = (visit.first_ns, visit.last_ns, visit.idle_cpu_ns);
        let idle_modes = visit.idle_modes;
        let modes = modes_before.zip(self.clock.thread_modes()).map(|(before, after)| after.since(before));
        arm.recorder.spent(modes.map(|modes| modes.since(idle_modes)));
        let client_after = watch.read();
        let server_after = arm.server_usage();
        if let Err(fault) = result {
            arm.recorder.spoil(fault.to_string());
            arm.broken = true;
        }
        arm.toggle(false);
        slot.wall_ns = last_ns.saturating_sub(first_ns);
        slot.client_cpu_ns = (client_after.cpu_ns - client_before.cpu_ns).saturating_sub(idle_cpu_ns);
        slot.server_cpu_ns = server_after.cpu_ns.saturating_sub(server_before.cpu_ns)
            + (simulated_server_cpu(&self.clock) - simulated_before);
        let of_server = server_after.wait_ns.saturating_sub(server_before.wait_ns);
        slot.wait_ns = (client_after.wait_ns - client_before.wait_ns) + of_server;
        let cpu_ns = slot.client_cpu_ns + slot.server_cpu_ns;
        let shares = Shares { wall_ns: slot.wall_ns, cpu_ns, wait_ns: slot.wait_ns };
        slot.stalled_ns = self.stalls.since(stalls_before, shares);
        slot
    }
}

fn simulated_server_cpu(clock: &Clock) -> u64 {
    match clock {
        Clock::Real => 0,
        Clock::Virtual(time) => time.server_cpu.load(std::sync::atomic::Ordering::Relaxed),
    }
}

/// One lane's stay at one arm.
struct Visit<'a> {
    clock: &'a Clock,
    slot: &'a mut Slot,
    turn: Turn,
    counts_from_ns: u64,
    open: bool,
    /// Client processor time spent waiting for an intended start: not the operation's.
    idle_cpu_ns: u64,
    /// The same by mode.
    idle_modes: Modes,
    first_ns: u64,
    last_ns: u64,
}

impl Visit<'_> {
    fn drive(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<(), Fault> {
        self.last_ns = self.clock.now();
        self.first_ns = self.last_ns;
        if self.open {
            let started = self.open_loop(arm, intended)?;
            if self.turn.block.is_some() {
                arm.recorder.undrained += (intended.len() - started) as u64;
            }
            return Ok(());
        }
        if arm.is_paced() {
            return self.paced(arm);
        }
        if arm.seats.len() == 1 { self.closed_single(arm) } else { self.closed_many(arm) }
    }

    fn closed_single(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let seat = &mut arm.seats[0];
        while self.last_ns < self.turn.end_ns {
            self.begin(seat, &mut arm.recorder, None)?;
            self.finish(seat, &mut arm.recorder)?;
        }
        Ok(())
    }

    /// One operation after the other: a single connection, or an embedded database, whose connections take turns.
    fn open_in_turn(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<usize, Fault> {
        let seats = arm.seats.len();
        for (started, at) in intended.iter().enumerate() {
            if self.last_ns >= self.turn.end_ns {
                return Ok(started);
            }
            self.idle_until(*at);
            let seat = &mut arm.seats[started % seats];
            self.begin(seat, &mut arm.recorder, Some(*at))?;
            self.finish(seat, &mut arm.recorder)?;
        }
        Ok(intended.len())
    }

    fn closed_many(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let Some(poll) = &mut arm.poll else { return self.round_robin(arm) };
        for seat in &mut arm.seats {
            self.begin(seat, &mut arm.recorder, None)?;
        }
        let mut busy = arm.seats.len();
        while busy > 0 {
            for number in poll.wait(None)? {
                let seat = &mut arm.seats[number];
                if self.advance(seat, &mut arm.recorder)? {
                    if self.last_ns < self.turn.end_ns {
                        self.begin(seat, &mut arm.recorder, None)?;
                    } else {
                        busy -= 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Several connections to an embedded database: one after the other.
    fn round_robin(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        loop {
            for seat in &mut arm.seats {
                if self.last_ns >= self.turn.end_ns {
                    return Ok(());
                }
                self.begin(seat, &mut arm.recorder, None)?;
                self.finish(seat, &mut arm.recorder)?;
            }
        }
    }

    /// Starts what is intended when it is due and a connection is free; the number of operations started.
    fn open_loop(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<usize, Fault> {
        let Some(poll) = &mut arm.poll else { return self.open_in_turn(arm, intended) };
        arm.free.clear();
        arm.free.extend(0..arm.seats.len());
        let mut started = 0;
        loop {
            let mut now = self.clock.now();
            while started < intended.len() && intended[started] <= now && now < self.turn.end_ns {
                let Some(number) = arm.free.pop_front() else { break };
                self.begin(&mut arm.seats[number], &mut arm.recorder, Some(intended[started]))?;
                started += 1;
                now = self.clock.now();
            }
            let more = started < intended.len() && now < self.turn.end_ns;
            if arm.free.len() == arm.seats.len() && !more {
                return Ok(started);
            }
            let deadline = (more && !arm.free.is_empty()).then(|| intended[started].saturating_sub(now));
            for number in poll.wait(deadline)? {
                if self.advance(&mut arm.seats[number], &mut arm.recorder)? {
                    arm.free.push_back(number);
                }
            }
        }
    }

    /// Waits for an intended start; the processor time of waiting is not the operation's.
    fn idle_until(&mut self, at: u64) {
        if at <= self.clock.now() {
            return;
        }
        let (before, modes) = (self.clock.thread_cpu(), self.clock.thread_modes());
        self.clock.wait_until(at);
        if let (Some(before), Some(after)) = (modes, self.clock.thread_modes()) {
            self.idle_modes += after.since(before);
        }
        // Last, so that looking is not charged to the operation either.
        self.idle_cpu_ns += self.clock.thread_cpu() - before;
    }

    #[inline]
    fn begin(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder, intended_ns: Option<u64>) -> Result<(), Fault> {
        seat.client.prepare();
        self.begin_prepared(seat, recorder, intended_ns)
    }

    #[inline]
    fn begin_prepared(
        &mut self,
        seat: &mut Seat<'_>,
        recorder: &mut Recorder,
        intended_ns: Option<u64>,
    ) -> Result<(), Fault> {
        if seat.renewal.is_some() {
            self.renew_if_spent(seat, recorder)?;
        }
        let begun_ns = self.clock.now();
        seat.busy = Some(Busy { begun_ns, part_ns: begun_ns, intended_ns: intended_ns.unwrap_or(begun_ns) });
        seat.client.submit(open(&mut seat.session)?)
    }

    /// Renews a connection that has done its operations. The lane waits for it: its other connections are not looked at
    /// meanwhile. The time belongs to the slot and to its operations together, and is recorded by itself as well.
    fn renew_if_spent(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder) -> Result<(), Fault> {
        if seat.is_spent() {
            let begun_ns = self.clock.now();
            seat.renew()?;
            let latency_ns = self.clock.now() - begun_ns;
            if begun_ns >= self.counts_from_ns {
                self.slot.wall_g_ns += latency_ns;
                recorder.connection(latency_ns);
            }
        }
        seat.served += 1;
        Ok(())
    }

    /// Carries the operation of `seat` to its end.
    fn finish(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder) -> Result<(), Fault> {
        while !self.advance(seat, recorder)? {
            crate::session::wait_ready(seat.connection()?)?;
        }
        Ok(())
    }

    /// Takes what has arrived; true when the operation is over.
    #[inline]
    fn advance(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder) -> Result<bool, Fault> {
        let Some(busy) = &mut seat.busy else { return Ok(false) };
        let counts = busy.begun_ns >= self.counts_from_ns;
        let now = || self.clock.now();
        let mut parts = PartTimes::new(recorder, &now, busy.part_ns, counts);
        let result = seat.client.advance(open(&mut seat.session)?, &mut parts);
        busy.part_ns = parts.since_ns();
        let busy = *busy;
        match result {
            Ok(Progress::Pending) => return Ok(false),
            Ok(Progress::Done(_)) => {}
            Err(Fault::Server(message)) => {
                recorder.failed += 1;
                seat.busy = None;
                self.last_ns = self.clock.now();
                // A few failures are counted; many make the frame worthless, and the first one says why.
                if recorder.failed * 100 > recorder.operations + recorder.settling + 100 {
                    recorder.spoil(format!("more than 1 % of the operations failed, the first with: {message}"));
                }
                return Ok(true);
            }
            Err(Fault::Wrong(message)) => {
                recorder.spoil(format!("wrong answer: {message}"));
                seat.busy = None;
                self.last_ns = self.clock.now();
                return Ok(true);
            }
            Err(fault) => return Err(fault),
        }
        let end_ns = self.clock.now();
        seat.busy = None;
        self.last_ns = end_ns;
        let latency_ns = end_ns - busy.begun_ns;
        self.slot.n += 1;
        if self.turn.block.is_none() {
            recorder.settling += 1;
        } else {
            recorder.operations += 1;
            recorder.phase(busy.begun_ns.saturating_sub(self.turn.start_ns), latency_ns);
        }
        if counts {
            self.slot.n_g += 1;
            self.slot.wall_g_ns += latency_ns;
            recorder.latency(seat.client.operation(), latency_ns);
            if self.open {
                recorder.from_intended(seat.client.operation(), end_ns.saturating_sub(busy.intended_ns));
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
