//! Runs one frame: fresh connections, warm-up, all slots, counters before and after.
//!
//! Fresh connections draw anew where the scheduler puts the processes that serve them and where their memory lies. Both
//! are luck, and luck that lasted longer than a frame would pass for a cost.

mod slices;

use std::{
    path::PathBuf,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tithe_model::{
    experiment::{Arrivals, Design},
    plan::Cell,
    record::{ArmFrame, Counters, Frame, Host, Slot, Stalls},
    schedule::block_order,
};

use super::{
    CONNECT, Schedule,
    carry_over::{self, Profile},
    lane::{Arm, Lane, Renewal, Seat},
    look::{Look, sizes},
    recorder::Recorder,
    turnstile::{Turnstile, Workers},
};
use crate::{
    clock::{Clock, Modes, VirtualTime},
    data,
    database::{Connect, Database},
    fault::Fault,
    launch::Server,
    proc::{Census, ServerTask},
    sandbox::companion::Companion,
    session::Session,
    setup::Setup,
    watch::{
        host::HostSample,
        process::{self, TaskWatch},
        stalls::{Lanes, ProcessorUse, StallWatch},
    },
    workload::{ArmState, Workload},
    workloads::program::desk::Desk,
};

/// Operations that a slot should hold on average: one with fewer than 20 says too little and does not count.
const OPERATIONS_PER_SLOT: u64 = 40;

/// Frames after which carry-over may make slots longer. The last phases of one frame stand on a few milliseconds, in
/// which one disturbance looks like carry-over, and a slot that has grown stays.
const FRAMES_BEFORE_GROWTH: u32 = 5;

/// Longest slot that few operations may ask for, ns.
const SLOT_MAX_NS: u64 = 1_000_000_000;

/// One arm of a cell, started and loaded.
pub struct ArmRig {
    /// Its server.
    pub server: Server,
    /// How it is set up.
    pub setup: Setup,
    /// What its clients share.
    pub state: Arc<dyn ArmState>,
    /// Statements before a slot.
    pub on: Vec<String>,
    /// Statements after a slot.
    pub off: Vec<String>,
}

/// All arms of a cell, ready to be measured.
pub struct Rig<'a> {
    site: Site<'a>,
    /// Operations of each arm since its data was loaded, warm-up included.
    done: Vec<u64>,
    /// Carry-over that the arms have shown.
    profiles: Vec<Profile>,
    planned: (u64, u64),
    /// The slots of the last frame held too few operations of some arm.
    sparse: bool,
    /// Frames so far.
    frames: u32,
    slot_fixed: bool,
    /// Planned length of an arm's slots in a frame, ns.
    per_arm_ns: u64,
    /// Length that a frame should not exceed when its slots grow, ns.
    longest_ns: u64,
    /// Load before the next frame beside that of every frame, per arm, ns.
    extra_warmup_ns: u64,
}

/// What the lanes share.
struct Site<'a> {
    database: &'a dyn Database,
    workload: &'a dyn Workload,
    cell: Cell,
    cell_index: u32,
    processors: Vec<usize>,
    clocks: Vec<Clock>,
    arms: Vec<ArmRig>,
    /// Caches stay as empty as a fresh start leaves them.
    cold: bool,
    /// Where another program works, by arm; empty where Tithe's own clients do.
    desks: Vec<Desk>,
    /// The folder of the servers' sandbox, where they stand still while another arm is measured.
    stands_in: Option<PathBuf>,
    /// How long each arm's server has stood still, ns.
    stood: Vec<Arc<AtomicU64>>,
    /// What runs programs beside each arm's server; `None` where none is needed.
    companions: Vec<Option<Companion>>,
    /// Keys are rotated: what a server does in the background of its slots is its own.
    rotates: bool,
    /// A control group for each lane with whoever serves it; `None` where there can be none, or it would tell nothing.
    groups: Option<Lanes>,
}

/// A lane with its connections, and what opening them took.
struct Opened<'a> {
    lane: Lane<'a>,
    connect_ns: Vec<u64>,
    /// How the lane sees what neighbours take of its slots.
    stalls: Stalls,
}

/// How the threads of one frame meet.
struct Shared<'a> {
    barrier: &'a Barrier,
    start_ns: &'a AtomicU64,
    failed: &'a AtomicBool,
    cancelled: &'a AtomicBool,
    turnstile: &'a Turnstile,
    warmup_ns: u64,
}

/// What a lane saw in a frame.
struct Seen<'a> {
    opened: Opened<'a>,
    slots: Vec<Slot>,
    wire: Vec<(u64, u64)>,
    statements: Vec<u64>,
    /// Operations before the first slot, by arm.
    warmed_up: Vec<u64>,
}

impl<'a> Rig<'a> {
    /// A rig over started and loaded `arms`. `slot_fixed`: the slot was asked for and is not to be adapted.
    pub fn new(
        database: &'a dyn Database,
        workload: &'a dyn Workload,
        cell: &Cell,
        cell_index: u32,
        slot_fixed: bool,
        arms: Vec<ArmRig>,
    ) -> Self {
        let processors = process::processors();
        let lanes = processors.len().min(cell.clients as usize).max(1);
        let clock =
            || if database.simulated() { Clock::Virtual(Arc::new(VirtualTime::default())) } else { Clock::Real };
        let clocks = (0..lanes).map(|_| clock()).collect();
        let stood = arms.iter().map(|_| Arc::default()).collect();
        let rotates = arms.iter().any(|arm| arm.setup.changes_keys());
        let companions = arms.iter().map(|arm| arm.setup.rotates_volume().then(Companion::default)).collect();
        let mut site = Site {
            database,
            workload,
            cell: cell.clone(),
            cell_index,
            processors,
            clocks,
            arms,
            cold: false,
            desks: Vec::new(),
            stands_in: None,
            stood,
            companions,
            rotates,
            groups: None,
        };
        let apart = !database.embedded() && !database.simulated();
        // Where the kernel has no such groups, waits tell less, and each frame says by what it was measured.
        site.groups = (apart && site.hides_stalls().is_none()).then(|| Lanes::make(lanes).ok()).flatten();
        Self {
            done: vec![0; site.arms.len()],
            profiles: vec![Profile::default(); site.arms.len()],
            planned: (cell.guard_ns, cell.slot_ns),
            sparse: false,
            frames: 0,
            slot_fixed,
            per_arm_ns: cell.slot_ns * u64::from(cell.blocks),
            longest_ns: u64::MAX,
            extra_warmup_ns: 0,
            site,
        }
    }

    /// The same, whose load the workload's program offers at `desks`, one an arm.
    #[must_use]
    pub fn at_desks(mut self, desks: Vec<Desk>) -> Self {
        self.site.desks = desks;
        self
    }

    /// The same, whose servers stand still while another arm is measured, where they are in the sandbox of this folder.
    #[must_use]
    pub fn standing_in(mut self, sandbox: Option<PathBuf>) -> Self {
        self.site.stands_in = sandbox;
        self
    }

    /// The same, whose lanes do not read the data into the servers' caches first.
    #[must_use]
    pub fn left_cold(mut self, cold: bool) -> Self {
        self.site.cold = cold;
        self
    }

    /// The same, whose frames grow with their slots to `longest_ns` and no further, as far as one block allows it.
    #[must_use]
    pub fn in_frames_of(mut self, longest_ns: u64) -> Self {
        self.longest_ns = longest_ns;
        self
    }

    /// Length of the next frame's slots, ns.
    pub fn frame_ns(&self) -> u64 {
        self.site.cell.frame_ns(self.site.arms.len())
    }

    /// How long each arm's server has stood still, ns, as it grows.
    pub fn stood(&self) -> &[Arc<AtomicU64>] {
        &self.site.stood
    }

    /// What runs programs beside each arm's server, and stands still when it does; `None` where none is needed.
    pub fn companions(&self) -> &[Option<Companion>] {
        &self.site.companions
    }

    /// The arms, in the experiment's order.
    pub fn arms(&self) -> &[ArmRig] {
        &self.site.arms
    }

    /// The arms, so that their servers can be started anew between two frames.
    pub fn arms_mut(&mut self) -> &mut [ArmRig] {
        &mut self.site.arms
    }

    /// Has the next frame, and no other, begin with `length_ns` of further load on each arm: its servers have just
    /// started.
    pub fn warm_up_next(&mut self, length_ns: u64) {
        self.extra_warmup_ns = length_ns;
    }

    /// Runs frame `number`; `cancelled` ends it early, and it is then not returned. A `free` frame binds nothing to a
    /// processor.
    ///
    /// # Errors
    /// When connections cannot be opened. A fault during the load spoils the frame instead.
    pub fn frame(
        &mut self,
        number: u32,
        epoch: u32,
        free: bool,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Frame, Vec<Slot>)>, Fault> {
        let behind = self.behind();
        let warmup_ns = self.site.cell.warmup_ns + std::mem::take(&mut self.extra_warmup_ns);
        if let Some(program) = self.site.workload.program() {
            return self.sliced(program, (number, epoch), warmup_ns, cancelled);
        }
        let site = &self.site;
        let pinned = site.cell.pinned && !free;
        let around = HostSample::take();
        let began = std::time::Instant::now();
        let virtual_began = site.clocks[0].now();
        let start_unix_ns = if site.database.simulated() { virtual_began } else { unix_ns() };
        let barrier = Barrier::new(site.lanes() + 1);
        let start_ns = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let turnstile = site.turnstile()?;
        let (seen, before, host) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..site.lanes())
                .map(|lane| {
                    let (barrier, start_ns, failed, turnstile) = (&barrier, &start_ns, &failed, &turnstile);
                    let shared = Shared { barrier, start_ns, failed, cancelled, turnstile, warmup_ns };
                    let behind = &behind;
                    scope.spawn(move || site.run_lane(lane, number, pinned, behind, &shared))
                })
                .collect();
            barrier.wait(); // every lane is connected and warm, or has failed
            let before = site.look();
            turnstile.close();
            let host = HostSample::take();
            // Far enough away for every lane to be there in time.
            start_ns.store(Clock::Real.now() + 500_000, Ordering::SeqCst);
            barrier.wait(); // every lane knows when to start
            let seen: Vec<Result<Option<Seen<'_>>, Fault>> = threads
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|_| Err(Fault::Machine("a client thread panicked".to_owned())))
                })
                .collect();
            (seen, before, host)
        });
        let not_stopped = turnstile.open();
        let (after, host) = (site.look(), host.until_now());
        // Where one lane could not connect, the others saw nothing, and its fault is the one that is told.
        let seen = seen.into_iter().collect::<Result<Vec<Option<Seen<'_>>>, Fault>>()?;
        let seen: Vec<Seen<'_>> = seen.into_iter().flatten().collect();
        if cancelled.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let (host, duration_ns) = if site.database.simulated() {
            (Host::default(), site.clocks[0].now() - virtual_began)
        } else {
            (host, began.elapsed().as_nanos() as u64)
        };
        let mut frame = Frame {
            cell: site.cell_index,
            frame: number,
            epoch,
            start_unix_ns,
            duration_ns,
            spoiled: not_stopped,
            free,
            slot_ns: site.cell.slot_ns,
            guard_ns: site.cell.guard_ns,
            stalls: seen.first().map(|seen| seen.opened.stalls.clone()).unwrap_or_default(),
            arms: Vec::new(),
            host,
        };
        for arm in 0..site.arms.len() {
            frame.arms.push(site.arm_frame(arm, &seen, before[arm].grown(&after[arm])));
            let reason = seen.iter().find_map(|seen| seen.opened.lane.arms[arm].recorder.spoiled.clone());
            if let Some(reason) = reason {
                frame.spoiled.get_or_insert(format!("arm {arm}: {reason}"));
            } else if frame.arms[arm].operations == 0 && Schedule::new(&site.cell, number, site.arms.len(), 0).has(arm)
            {
                frame.spoiled.get_or_insert(format!("arm {arm}: no operation succeeded"));
            }
            let warmed_up: u64 = seen.iter().map(|seen| seen.warmed_up[arm]).sum();
            frame.arms[arm].operations_before = self.done[arm] + warmed_up;
        }
        if let Some(fault) = (!site.database.simulated()).then(|| around.clock_fault()).flatten() {
            frame.spoiled.get_or_insert(fault);
        }
        for (done, arm) in self.done.iter_mut().zip(&frame.arms) {
            *done = arm.operations_before + arm.all_operations();
        }
        for seen in &seen {
            for (profile, arm) in self.profiles.iter_mut().zip(&seen.opened.lane.arms) {
                carry_over::add(profile, arm.recorder.phases());
            }
        }
        let mut slots: Vec<Slot> = seen.iter().flat_map(|seen| seen.slots.iter().copied()).collect();
        slots.sort_by_key(|slot| (slot.block, slot.client, slot.arm));
        drop(seen);
        let share = slots.len() as u64 / self.site.arms.len() as u64;
        // A slot in which many connections wait for the first answer only is as long as that takes, and not as planned.
        let waits = !self.site.database.embedded();
        let twice_each =
            if waits { 2 * u64::from(self.site.cell.clients).div_ceil(self.site.lanes() as u64) } else { 0 };
        let enough = OPERATIONS_PER_SLOT.max(twice_each) * share;
        self.sparse = frame.arms.iter().any(|arm| arm.operations < enough);
        self.check_processors(&mut frame);
        // Here and not before the next frame, so that its length is known to whoever decides whether there is one.
        self.adapt();
        Ok(Some((frame, slots)))
    }

    /// Spoils a frame during which processors went or came, and goes on with those that are there now.
    fn check_processors(&mut self, frame: &mut Frame) {
        let now = process::processors();
        if now != self.site.processors && !now.is_empty() {
            let reason = format!("the usable processors changed from {:?} to {now:?}", self.site.processors);
            frame.spoiled.get_or_insert(reason);
            self.site.processors = now;
        }
    }

    /// Suits guard and slot of a closed loop to the carry-over that was seen so far.
    fn adapt(&mut self) {
        let arms = self.site.arms.len() as u64;
        let cell = &mut self.site.cell;
        let adaptable = matches!(cell.design, Design::Interleaved | Design::Duet) && cell.arrivals == Arrivals::Closed;
        if !adaptable {
            return;
        }
        if self.sparse && !self.slot_fixed && self.planned.1 * 2 <= SLOT_MAX_NS {
            self.planned.1 *= 2;
        }
        self.frames += 1;
        let fixed = self.slot_fixed || self.frames < FRAMES_BEFORE_GROWTH;
        let (guard_ns, slot_ns) = carry_over::suited(&self.profiles, self.planned.0, self.planned.1, fixed);
        if slot_ns > cell.slot_ns {
            // The frame keeps its length or has four blocks, as far as the budget bears frames so long.
            let most = (self.longest_ns / (slot_ns * arms)).max(1);
            cell.blocks = self.per_arm_ns.div_ceil(slot_ns).max(4).min(most) as u32;
            cell.slot_ns = slot_ns;
        }
        cell.guard_ns = guard_ns.min(cell.slot_ns / 4);
    }

    /// How many operations each arm of a writing workload is behind the furthest: servers that have written as much as
    /// each other are the same distance from their last checkpoint, and their tables have grown alike.
    fn behind(&self) -> Vec<u64> {
        let site = &self.site;
        let even = site.workload.writes()
            && !site.database.embedded()
            && site.cell.arrivals == Arrivals::Closed
            && site.cell.design != Design::Sequential;
        let furthest = self.done.iter().copied().max().unwrap_or(0);
        self.done.iter().map(|done| if even { furthest - done } else { 0 }).collect()
    }
}

impl Site<'_> {
    /// Threads that offer load, one a processor.
    fn lanes(&self) -> usize {
        self.clocks.len()
    }

    /// Who stands still while another is measured: nobody, where the arms take turns every few milliseconds.
    fn turnstile(&self) -> Result<Turnstile, Fault> {
        match &self.stands_in {
            Some(folder) => {
                let of = |(arm, companion): (&ArmRig, &Option<Companion>)| Workers {
                    server: arm.server.process,
                    companion: companion.clone(),
                };
                Turnstile::new(folder, self.arms.iter().zip(&self.companions).map(of).collect(), self.stood.clone())
            }
            None => Ok(Turnstile::open_to(self.arms.len())),
        }
    }

    /// One lane's part of a frame; `None` where another lane could not connect.
    fn run_lane(
        &self,
        number: usize,
        frame: u32,
        pinned: bool,
        behind: &[u64],
        shared: &Shared<'_>,
    ) -> Result<Option<Seen<'_>>, Fault> {
        let Shared { barrier, start_ns, failed, cancelled, turnstile, warmup_ns } = *shared;
        let bound = self.prepare_thread(number, pinned);
        let mut schedule = Schedule::new(&self.cell, frame, self.arms.len(), 0);
        let opened = self.open(number, frame, pinned);
        let behind: Vec<u64> = behind.iter().map(|behind| behind.div_ceil(self.lanes() as u64)).collect();
        let patience_ns = self.cell.frame_ns(self.arms.len());
        let opened = opened.map(|mut opened| {
            let warmed_up = opened.lane.warm_up(&schedule, warmup_ns, &behind, patience_ns);
            if let Err(reason) = &bound {
                opened.lane.arms.iter_mut().for_each(|arm| arm.recorder.spoil(reason.clone()));
            }
            (opened, warmed_up)
        });
        // A lane that failed must still pass both barriers, or the others wait for it for ever.
        if opened.is_err() {
            failed.store(true, Ordering::SeqCst);
        }
        barrier.wait();
        barrier.wait();
        let (mut opened, warmed_up) = opened?;
        if failed.load(Ordering::SeqCst) {
            return Ok(None);
        }
        schedule.start_ns = match &opened.lane.clock {
            Clock::Real => start_ns.load(Ordering::SeqCst),
            Clock::Virtual(_) => opened.lane.clock.now(),
        };
        let wire_before: Vec<(u64, u64)> = opened.lane.arms.iter_mut().map(|arm| arm.wire_bytes()).collect();
        let statements_before: Vec<u64> = opened.lane.arms.iter().map(|arm| arm.statements()).collect();
        let slots = opened.lane.run(&schedule, turnstile, &|| cancelled.load(Ordering::Relaxed));
        let wire = opened.lane.arms.iter_mut().zip(wire_before).map(|(arm, (sent, received))| {
            let (sent_now, received_now) = arm.wire_bytes();
            (sent_now - sent, received_now - received)
        });
        let wire = wire.collect();
        let statements = opened.lane.arms.iter().zip(statements_before).map(|(arm, before)| arm.statements() - before);
        let statements = statements.collect();
        Ok(Some(Seen { opened, slots, wire, statements, warmed_up }))
    }

    /// Binds the calling thread to the processor of lane `number`, or to none, and lets its sleeps end on time.
    fn prepare_thread(&self, number: usize, pinned: bool) -> Result<(), String> {
        // SAFETY: PR_SET_TIMERSLACK takes a number and concerns this thread only.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let processor = self.processors[number % self.processors.len()];
        if pinned && !process::pin(0, processor) {
            return Err(format!("a client thread could not be bound to processor {processor}"));
        }
        Ok(())
    }

    /// Opens the connections of one lane to every arm.
    ///
    /// The order of the arms is drawn anew in each frame: whose memory comes first must not be a property of an arm.
    fn open(&self, number: usize, frame: u32, pinned: bool) -> Result<Opened<'_>, Fault> {
        let lanes = self.lanes();
        let clients: Vec<u64> =
            (0..u64::from(self.cell.clients)).filter(|client| *client as usize % lanes == number).collect();
        let clock = self.clocks[number].clone();
        let open_loop = self.cell.arrivals != Arrivals::Closed;
        let cache_each = self.database.embedded() && !self.database.entry().restarts;
        let caches_are_empty = cache_each || (self.cell.restarts && number == 0);
        let mut opened: Vec<(usize, Arm<'_>, u64)> = Vec::with_capacity(self.arms.len());
        let mut tasks = Vec::with_capacity(clients.len() * self.arms.len());
        for index in block_order(self.cell.seed, frame.into(), u64::MAX, self.arms.len()) {
            let rig = &self.arms[index];
            let how = Connect {
                blocking: clients.len() == 1,
                lane: number,
                clock: clock.clone(),
                table: self.workload.table(),
            };
            let mut seats = Vec::with_capacity(clients.len());
            let begun_ns = clock.now();
            let mut task = ServerTask::Unknown;
            for client in &clients {
                let mut session = self.connect(rig, &how, pinned)?;
                task = session.connection().server_task();
                tasks.push(task.clone());
                let mut terminal = self.workload.client(&rig.state);
                if let Some(compute) = rig.setup.compute {
                    terminal.compute_in(compute);
                }
                terminal.open(&mut session)?;
                let renewal = self.cell.reconnect_every.map(|every| {
                    let how = how.clone();
                    Renewal { every, open: Box::new(move || self.connect(rig, &how, pinned)) }
                });
                seats.push(Seat::new(session, terminal, *client).renewed(renewal));
            }
            let connect_ns = (clock.now() - begun_ns) / clients.len().max(1) as u64;
            if caches_are_empty && !self.cold {
                // One connection warms what all share.
                let cold = if cache_each { seats.len() } else { 1 };
                seats[..cold].iter_mut().try_for_each(Seat::warm)?;
            }
            let renews = self.cell.reconnect_every.is_some();
            let recorder = Recorder::new(self.workload.operations().len(), renews, open_loop);
            let mut arm = Arm::new(seats, recorder, rig.on.clone(), rig.off.clone())?;
            match (rig.server.process, task) {
                (Some(process), task) if renews => arm.watch_whole(TaskWatch::of_changing(process, &task, lanes)),
                (Some(process), _) if self.rotates => arm.watch_whole(TaskWatch::whole(process, lanes)),
                (Some(process), ServerTask::Unknown) => arm.watch_whole(TaskWatch::whole(process, lanes)),
                _ => {}
            }
            opened.push((index, arm, connect_ns));
        }
        opened.sort_by_key(|(index, ..)| *index);
        let (arms, connect_ns) = opened.into_iter().map(|(_, arm, connect_ns)| (arm, connect_ns)).unzip();
        let (watch, stalls) = self.stall_watch(number, clients.len(), &tasks, pinned);
        let lane = Lane::new(number, lanes, clock, self.cell.arrivals, arms, self.cell_index);
        let lane = if self.database.simulated() { lane } else { lane.stalled_as(watch) };
        Ok(Opened { lane, connect_ns, stalls })
    }

    /// Why nobody can tell what neighbours take of a lane's slots, whatever the kernel offers; `None` where one can.
    fn hides_stalls(&self) -> Option<&'static str> {
        let cell = &self.cell;
        let paced = || self.workload.client(&self.arms[0].state).pauses();
        match () {
            () if cell.program => Some("another program's waits for a processor are not seen"),
            () if cell.arrivals != Arrivals::Closed => Some("operations start at times of their own"),
            () if cell.reconnect_every.is_some() => Some("who serves a client changes with its connections"),
            () if self.rotates => Some("what clients wait for may be the rotation of a key"),
            () if !cell.pinned => Some("clients and servers were not bound to processors"),
            () if paced() => Some("clients pause between operations"),
            () => None,
        }
    }

    /// How lane `number`, whose connections are served by `tasks`, sees what neighbours take of its slots. The caller
    /// is the lane's own thread.
    fn stall_watch(&self, number: usize, clients: usize, tasks: &[ServerTask], pinned: bool) -> (StallWatch, Stalls) {
        let unseen = |reason: &str| (StallWatch::Unseen, Stalls::Unseen(reason.to_owned()));
        if let Some(reason) = self.hides_stalls() {
            return unseen(reason);
        }
        if self.database.simulated() {
            return (StallWatch::Unseen, Stalls::Waits);
        }
        if !pinned {
            return unseen("clients and servers were not bound to processors");
        }
        if tasks.iter().any(|task| matches!(task, ServerTask::Unknown)) {
            return unseen("no process or thread of the server serves one client alone, as far as can be seen");
        }
        let processor = || ProcessorUse::of(self.processors[number % self.processors.len()]);
        let pressure = self.groups.as_ref().and_then(|groups| {
            groups.join(number, 0).ok()?;
            tasks.iter().filter_map(ServerTask::thread).try_for_each(|thread| groups.join(number, thread)).ok()?;
            groups.pressure(number).ok()
        });
        match pressure {
            Some(pressure) => (StallWatch::Pressure(pressure, processor()), Stalls::Pressure),
            None if clients == 1 || self.database.embedded() => (StallWatch::Waits(processor()), Stalls::Waits),
            None => unseen("a lane drives several connections, and the kernel keeps no pressure of a group for them"),
        }
    }

    /// Opens one connection to an arm, and binds whoever serves it to the lane's processor.
    fn connect(&self, rig: &ArmRig, how: &Connect, pinned: bool) -> Result<Session, Fault> {
        let mut session = data::connect(self.database, &rig.server, &rig.setup, how, self.workload)?;
        if let (true, Some(thread)) = (pinned, session.connection().server_task().thread()) {
            process::pin(thread, self.processors[how.lane % self.processors.len()]);
        }
        Ok(session)
    }

    /// Looks at every arm's counters.
    fn look(&self) -> Vec<Look> {
        if self.database.simulated() {
            return self.arms.iter().map(|_| Look::default()).collect();
        }
        let census = Census::take();
        let look = |arm: &ArmRig| Look {
            tree: match arm.server.process {
                Some(process) => Some(census.usage(process)),
                None => self.database.usage(&arm.server, &arm.setup),
            },
            wal_bytes: self.database.wal_position(&arm.server, &arm.setup),
            log_bytes: (!arm.server.paths.logs.is_empty()).then(|| sizes(&arm.server.paths.logs).0),
            disk_bytes: (!arm.server.paths.data.is_empty()).then(|| sizes(&arm.server.paths.data).1),
        };
        self.arms.iter().map(look).collect()
    }

    fn arm_frame(&self, arm: usize, seen: &[Seen<'_>], mut counters: Counters) -> ArmFrame {
        let mut frame = ArmFrame::default();
        let mut phases = Profile::default();
        let renews = self.cell.reconnect_every.is_some();
        let names: Vec<&str> = self.workload.operations().iter().copied().chain(renews.then_some(CONNECT)).collect();
        let (mut sent, mut received, mut statements) = (0, 0, 0);
        let mut modes: Option<Modes> = None;
        for seen in seen {
            let recorder = &seen.opened.lane.arms[arm].recorder;
            frame.operations += recorder.operations;
            frame.operations_settling += recorder.settling;
            frame.failed += recorder.failed;
            frame.undrained += recorder.undrained;
            carry_over::add(&mut phases, recorder.phases());
            for (into, from) in
                [(&mut frame.latency, recorder.latencies(&names)), (&mut frame.intended, recorder.intended(&names))]
            {
                for (name, histogram) in from {
                    into.entry(name).or_default().merge(&histogram);
                }
            }
            frame.connect_ns += seen.opened.connect_ns[arm] / self.lanes() as u64;
            if let Some(of_lane) = recorder.modes {
                *modes.get_or_insert_default() += of_lane;
            }
            sent += seen.wire[arm].0;
            received += seen.wire[arm].1;
            statements += seen.statements[arm];
        }
        frame.phases = phases.iter().map(|(count, sum)| (*count, sum / (*count).max(1) as f64)).collect();
        let wired = !self.database.embedded() && !self.database.simulated();
        counters.sent_bytes = wired.then_some(sent);
        counters.received_bytes = wired.then_some(received);
        counters.client_user_ns = modes.map(|modes| modes.user_ns);
        counters.client_system_ns = modes.map(|modes| modes.system_ns);
        counters.statements = Some(statements).filter(|statements| *statements > 0);
        frame.counters = counters;
        frame
    }
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
