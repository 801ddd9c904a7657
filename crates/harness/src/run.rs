//! Carries out a plan: starts the arms of each cell, loads them, gathers evidence, measures frame by frame.
//!
//! Everything seen goes to the run folder at once, and to an [`EventListener`], which may end a cell. This module
//! estimates and prints nothing.

mod answers;
mod arm_server;
mod cache;
mod caches;
pub mod child_process;
mod data_sets;
mod draw;
mod epoch_setup;
mod held_servers;
mod idle;
mod invalid;
pub mod learn;
mod located;
mod profile;
mod proof;
mod rotating;
mod sharing;
mod starts;
mod switched;
mod switched_server;
mod together;

use std::{
    collections::BTreeMap,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tithe_machine::{
    descriptors,
    fault::Fault,
    launch::{Command, Install},
    sandbox::{
        self,
        held::{remove_abandoned, remove_abandoned_beside},
    },
    watch::{borrowed_threads::BorrowedThreads, stalls::Home, swap},
};
use tithe_model::{
    ending::CellEnding,
    experiment::{Arrivals, Observed},
    fact::{Fact, SERVERS_STOPPED},
    plan::{Cell, FRAMES_MIN, Plan, Starts, WarmUp},
    record::{Event, Finding, Frame, Phase, Slot},
    records::Records,
};
use tithe_plugin::{
    data,
    database::CacheUse,
    product::Product,
    session::{TIMEOUT_S, answered_within},
    wire,
    workload::Workload,
};

use crate::{
    agents::coordinator::{ServerObserver, Team},
    arms::{self, Resolved},
    folder::{FileNames, RunFolder},
    limits,
    load::{
        frame::{CellRunner, StartedArm, machines::LoadMachines},
        timeout::FIRST_ANSWER_S,
    },
    saturation::Served,
};
use caches::Caches;
use child_process::ChildProcesses;
use data_sets::DataSets;
use epoch_setup::{
    EpochSetup,
    again::{Again, Restarted},
};
use held_servers::HeldServers;
use invalid::InvalidInARow;
use profile::{Profiling, StartAnew};
use rotating::Rotations;
use starts::StartsOfEpoch;
use switched_server::{SwitchedServer, before_killed};
use together::together;

/// Receives events, and decides when a cell has been measured enough.
pub trait EventListener {
    /// Something happened.
    fn event(&mut self, event: &Event);

    /// A frame is complete; returns what to do next.
    fn frame(&mut self, frame: &Frame, slots: &[Slot]) -> Advice;
}

/// What to do after a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Advice {
    /// The cell has been measured well enough.
    pub enough: bool,
    /// The number of starts to divide the cell's load among, including those so far; `None` leaves it as it is.
    pub starts: Option<u32>,
}

/// Everything that a run needs.
pub struct Run<'a> {
    product: &'a dyn Product,
    /// The installation that each arm is started from, by resources and arm.
    installs: Vec<Vec<Install>>,
    plan: &'a Plan,
    names: FileNames,
    workloads: &'a [Box<dyn Workload>],
    cancelled: &'a AtomicBool,
    /// The experiment's arms.
    arms: Vec<Resolved<'a>>,
    /// Some arm rotates its key during the measurement.
    rotates: bool,
    /// The command that starts this program again, to measure an embedded database in a process of its own.
    child_process: Option<Command>,
    /// Threads of servers that Tithe did not start; `None` if no process could restore them.
    borrowed_threads: Option<BorrowedThreads>,
    /// The agents that offer its load; `None` if Tithe's own process does.
    team: Option<&'a Team<'a>>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every cell was measured.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// Some cell could not be measured to its end; its record has the reason.
    Failed,
}

impl<'a> Run<'a> {
    /// The run of `plan` on `product`, with one of the `installs` for each of the experiment's resources and one of the
    /// `workloads` for each of its workloads. `cancelled` is set by ctrl-C: the run ends after its current step, and
    /// keeps what was measured.
    ///
    /// # Errors
    /// When the plan names a protection that the product does not have, or programs that are missing.
    pub fn new(
        product: &'a dyn Product,
        installs: Vec<Install>,
        plan: &'a Plan,
        workloads: &'a [Box<dyn Workload>],
        cancelled: &'a AtomicBool,
    ) -> Result<Self, Fault> {
        let arms = arms::resolve(product, &plan.experiment)?;
        let rotates = arms.iter().any(Resolved::rotates);
        let of_arms = |install: &Install| {
            plan.experiment.arms.iter().map(|arm| arms::install_of(product, arm, install)).collect::<Result<_, _>>()
        };
        let installs = installs.iter().map(of_arms).collect::<Result<Vec<_>, _>>();
        let installs = installs.map_err(|missing| Fault::Machine(format!("{} was not found", missing.what)))?;
        let (child_process, borrowed_threads, team) = (None, None, None);
        let names = FileNames::of(plan);
        Ok(Self {
            product,
            installs,
            plan,
            names,
            workloads,
            cancelled,
            arms,
            rotates,
            child_process,
            borrowed_threads,
            team,
        })
    }

    /// The installation that arm `arm` is started from in `cell`.
    fn install(&self, cell: &Cell, arm: usize) -> &Install {
        &self.installs[cell.resources][arm]
    }

    /// The same, which measures an embedded database in a process of its own for every start. `program` is this
    /// program, with the arguments that call [`child_process::serve`].
    #[must_use]
    pub fn child_process(mut self, program: Command) -> Self {
        self.child_process = Some(program);
        self
    }

    /// The same, which pins threads of attached servers while they serve its clients. `keeper` is this program, with
    /// the arguments that call [`keep`](tithe_machine::watch::borrowed_threads::keep).
    #[must_use]
    pub fn borrowing_threads(mut self, keeper: Command) -> Self {
        self.borrowed_threads = Some(BorrowedThreads::new(keeper));
        self
    }

    /// The same, whose load the agents of `team` offer.
    #[must_use]
    pub fn loaded_by(mut self, team: Option<&'a Team<'a>>) -> Self {
        self.team = team;
        self
    }

    /// Measures every cell that `before` does not contain; a cell that failed in it continues after its last frame.
    ///
    /// # Errors
    /// When the run folder cannot be written, or this process may not have as many connections as the plan has. A fault
    /// within a cell is recorded, and the next cell is measured.
    pub fn carry_out(
        &self,
        folder: &mut RunFolder,
        before: Option<&Records>,
        listener: &mut dyn EventListener,
    ) -> Result<Ending, Fault> {
        if !self.product.simulated() {
            descriptors::allow(self.plan.connections())?;
        }
        if self.plan.experiment.is_attached() {
            // A network may drop packets silently, so no answer is waited for longer than that.
            wire::hasten(FIRST_ANSWER_S);
        }
        // Also if no further server needs to be started.
        remove_abandoned(folder.path());
        remove_abandoned_beside(folder.path());
        // Servers that start after this can be put into one group with their lane; if that is impossible, frames record
        // it.
        let _home = Home::hold().ok();
        let mut event_log = EventLog { folder, listener };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        event_log.add(Event::RunStarted { tithe: version, resumed: before.is_some() })?;
        if let Some(words) = arms::ways_warning(self.product, &self.plan.experiment) {
            event_log.warn(words)?;
        }
        if let Some(words) = arms::swap_warning(self.product, &self.plan.experiment, &swap::swaps()) {
            event_log.warn(words)?;
        }
        let data_sets = DataSets::new(event_log.folder.path());
        let mut run_state = RunState {
            served: Served::default(),
            data_sets,
            held_servers: HeldServers::default(),
            rotations: Rotations::default(),
            invalid: InvalidInARow::default(),
            before_killed: None,
        };
        if let Some(before) = before {
            run_state.served.add(&before.frames, &before.slots);
            run_state.before_killed = before_killed(&before.events);
        }
        let mut ending = Ending::Complete;
        for number in 0..self.plan.cells.len() {
            match before.and_then(|records| records.cells[number].ending.as_ref()) {
                None | Some(CellEnding::Interrupted) => {}
                Some(CellEnding::Failed(fault)) => self.take_up_again(number, fault, &mut event_log)?,
                Some(CellEnding::Precision | CellEnding::Decided | CellEnding::Budget) => continue,
            }
            event_log.add(Event::CellStarted { cell: number as u32 })?;
            let reason = match self.cell(number, &mut run_state, before, &mut event_log) {
                Ok(reason) => reason,
                Err(fault) => {
                    ending = Ending::Failed;
                    CellEnding::Failed(fault.to_string())
                }
            };
            let later = &self.plan.cells[number + 1..];
            run_state.data_sets.discard(|workload| later.iter().any(|cell| cell.workload == workload));
            let interrupted = self.cancelled();
            let kept = match interrupted {
                true => Ok(()),
                false => event_log.folder.cell(number, |facts| facts.ending = Some(reason.clone())),
            };
            let told = event_log.tell(Event::CellDone { cell: number as u32, reason });
            kept.and(told)?;
            if interrupted {
                ending = Ending::Interrupted;
                break;
            }
        }
        event_log.add(Event::RunDone { interrupted: ending == Ending::Interrupted })?;
        event_log.folder.check()?;
        Ok(ending)
    }

    /// Clears the failure of cell `number` with `fault`, and reports that.
    fn take_up_again(&self, number: usize, fault: &str, event_log: &mut EventLog<'_>) -> Result<(), Fault> {
        event_log.folder.cell(number, |facts| facts.ending = None)?;
        event_log.warn(format!("cell {} is measured again after it failed: {fault}", self.plan.cells[number].id))
    }

    /// Load that cell `number` may take, ns, with the slots and frames of `cell`. This is the planned load; if load
    /// machines have longer frames, it is as many of them as a cell needs.
    fn budget_ns(&self, number: usize, cell: &Cell) -> u64 {
        let arms = self.plan.experiment.arms.len();
        let least_ns = cell.frame_ns(arms).saturating_mul(u64::from(FRAMES_MIN));
        self.plan.cells[number].budget_ns(arms).max(least_ns)
    }

    /// Measures one cell over its epochs; returns why it ended.
    fn cell(
        &self,
        number: usize,
        run_state: &mut RunState,
        before: Option<&Records>,
        event_log: &mut EventLog<'_>,
    ) -> Result<CellEnding, Fault> {
        let mut cell = self.with_rate(number, &run_state.served)?;
        if let Some(team) = self.team {
            // Slots of invented time do not depend on clocks.
            if !self.product.simulated() {
                cell = team.suited(&cell)?;
            }
        }
        run_state.rotations = Rotations::default();
        run_state.invalid = InvalidInARow::default();
        if let Some(words) = limits::crowding(self.product, &self.plan.experiment, cell.resources) {
            event_log.warn(format!("cell {}: {words}", cell.id))?;
        }
        if self.plan.experiment.measure.profile && cell.design.is_switched() {
            event_log.warn(format!("cell {} is not profiled: the provider switches its server", cell.id))?;
        }
        let done = before.map_or(&[][..], |records| records.frames_of(number));
        let pairs = switched::pairs_left(&cell, done);
        let (frames_done, epochs_done, starts_done) = done.iter().fold((0, 0, 0), |(frames, epochs, starts), frame| {
            (frames.max(frame.frame + 1), epochs.max(frame.epoch + 1), starts.max(frame.start + 1))
        });
        let mut frame = frames_done;
        let mut start = starts_done;
        let mut epoch = epochs_done;
        let arms = self.plan.experiment.arms.len();
        // The budget is one of load and not of frames: with longer slots it allows fewer frames.
        let budget_ns = self.budget_ns(number, &cell);
        let mut left_ns = budget_ns.saturating_sub(load_before(&cell, number, arms, before));
        let epochs = cell.epochs.max(epochs_done + 1);
        let profiled = before.map_or(0, |records| profile::pairs_done(&records.profile, number as u32));
        loop {
            let load_ns = left_ns / u64::from((epochs - epoch).max(1));
            let (first, first_start) = (frame, start);
            let part = EpochPlan { number, cell: &cell, epoch, first, first_start, load_ns, profiled, pairs };
            let Epoch { frames, starts, load_ns, enough } = self.epoch(&part, run_state, event_log)?;
            frame += frames;
            start += starts;
            left_ns = left_ns.saturating_sub(load_ns);
            epoch += 1;
            if self.cancelled() {
                return Ok(CellEnding::Interrupted);
            }
            if enough {
                let decided = self.plan.experiment.measure.until_decided;
                return Ok(if decided { CellEnding::Decided } else { CellEnding::Precision });
            }
            if left_ns < cell.frame_ns(arms) || epoch >= epochs {
                return Ok(CellEnding::Budget);
            }
        }
    }

    /// One fresh start of every arm.
    fn epoch(
        &self,
        part: &EpochPlan<'_>,
        run_state: &mut RunState,
        event_log: &mut EventLog<'_>,
    ) -> Result<Epoch, Fault> {
        let mut epoch_setup = EpochSetup::new(self.product, event_log.folder, &self.plan.experiment)?;
        let switched = SwitchedServer::of(self, part.number as u32);
        let mut switched = switched.map(|switched| switched.left_by_killed(run_state.before_killed));
        let result = match &mut switched {
            Some(switched) => self.measure_switched(part, (&mut epoch_setup, switched), run_state, event_log),
            None => self.measure(part, &mut epoch_setup, run_state, event_log),
        };
        // Data were loaded as the plain arm, and are removed in the same way.
        let plain = match &mut switched {
            Some(switched) if epoch_setup.has_remote_data() => switched.turn_back(0, event_log),
            _ => Ok(()),
        };
        // A server that stopped answering gets a short timeout the second time.
        let timeout_s = if matches!(result, Err(Fault::Connection(_))) { FIRST_ANSWER_S } else { TIMEOUT_S };
        let clear = || epoch_setup.clear(self.workloads[part.cell.workload].as_ref());
        // If the server could not be switched to the plain arm, this is why its data could not be removed.
        let cleared = answered_within(timeout_s, clear).map_err(|fault| plain.err().unwrap_or(fault));
        // A full disk must not prevent us from restoring the server's settings.
        let told = cleared.as_ref().err().map_or(Ok(()), |fault| {
            event_log.warn(format!("cell {}: the data on an attached server was not removed: {fault}", part.cell.id))
        });
        let left = switched.as_mut().map_or(Ok(None), |switched| switched.leave(event_log))?;
        told?;
        epoch_setup.keep_logs(event_log.folder, &format!("{}--epoch{}", self.names.cells[part.number], part.epoch));
        // A server that has died explains a broken connection better than the connection's own error.
        let result = result.map_err(|fault| {
            let is_broken = matches!(fault, Fault::Connection(_));
            let ended = if is_broken { epoch_setup.ended_soon() } else { epoch_setup.ended() };
            ended.map_or(fault, Fault::Connection)
        });
        drop(epoch_setup);
        // The next cell may not pin any threads.
        self.borrowed_threads.iter().for_each(BorrowedThreads::give_back_all);
        sandbox::left_behind().into_iter().try_for_each(|words| event_log.warn(words))?;
        // A server that is not as it was is a failure, whatever was measured on it.
        let cleared = cleared.map_err(|fault| fault.of("the data on an attached server was not removed"));
        let as_before = left.map_or(cleared, Err);
        result.and_then(|epoch| as_before.map(|()| epoch))
    }

    /// Sets the epoch up, proves, measures frame by frame, and proves again.
    fn measure(
        &self,
        part: &EpochPlan<'_>,
        epoch_setup: &mut EpochSetup<'_>,
        run_state: &mut RunState,
        event_log: &mut EventLog<'_>,
    ) -> Result<Epoch, Fault> {
        let EpochPlan { number, cell, epoch, first, first_start, load_ns, profiled, .. } = *part;
        let workload = self.workloads[cell.workload].as_ref();
        let slot_fixed = self.plan.experiment.measure.slot_ms.is_some();
        epoch_setup.set(self, part, None, run_state, event_log)?;
        if self.cancelled() {
            return Ok(Epoch::default());
        }
        let cold = self.plan.experiment.resources[cell.resources].limits.cold;
        let runner = CellRunner::new(self.product, workload, cell, number as u32, slot_fixed, epoch_setup.take_arms());
        let mut runner = runner
            .loaded_by(self.team.map(|team| team as &dyn LoadMachines))
            .left_cold(cold)
            .borrowing(self.borrowed_threads.as_ref())
            .in_workspaces(epoch_setup.take_workspaces())
            .pausing_in(epoch_setup.pauses_in(cell, self.rotates));
        let arms = runner.arms().len();
        runner = runner.in_frames_of(self.budget_ns(number, cell) / u64::from(FRAMES_MIN));
        if !epoch_setup.is_quiet() {
            self.quiesce(runner.arms(), workload)?;
        }
        self.prove(part, Phase::Before, runner.arms(), event_log)?;
        // Checks write, most of all on the plain arm, which is the control of all others. Without this its data would
        // be the least tidy, and every protection would look cheaper than it is.
        self.quiesce(runner.arms(), workload)?;
        let data_sets = &run_state.data_sets;
        let again = |start, written| Again { run: self, part, data_sets, start, written, cold };
        let start_anew =
            |start: u32, setup: &mut EpochSetup<'_>, runner: &mut CellRunner<'_>, event_log: &mut EventLog<'_>| {
                self.start_anew(&again(start, workload.writes()), setup, runner, event_log)
            };
        if let Some(how) = self.empty_cache(&again(first_start, false), epoch_setup, runner.arms_mut())? {
            self.note(number, event_log, |_| Some((Fact::Cache, how.clone())))?;
        }
        self.warm_up(part, first_start, &mut runner, event_log)?;
        let mut child_process = ChildProcesses::new(self, part, arms);
        let mut caches = Caches::of(self.cache_use(runner.arms(), child_process.as_ref()));
        let rotating = self.rotate(&runner)?;
        let (mut measured, mut spent_ns) = (0, 0);
        let mut starts = StartsOfEpoch::new(cell, first_start);
        let mut enough = false;
        let mut free = 0;
        let last_epoch = epoch + 1 >= cell.epochs;
        let free_frames = if last_epoch { cell.free_frames } else { 0 };
        let mut profiling = match last_epoch {
            true => Profiling::of(self, number, profiled, &runner, event_log)?,
            false => None,
        };
        while !self.cancelled() {
            let is_free = spent_ns + runner.frame_ns() > load_ns || enough;
            if is_free && free >= free_frames {
                break;
            }
            let starts_anew = measured + free > 0 && starts.is_due(spent_ns, runner.frame_ns(), load_ns, is_free);
            let is_turn = |it: &&Profiling| starts_anew || it.follows_frames();
            let pairs = profiling.as_ref().filter(is_turn).map_or(0, |it| it.due(spent_ns, load_ns));
            if let Some(profiling) = profiling.as_mut().filter(|_| pairs > 0) {
                caches.stop(&self.cache_use(runner.arms(), child_process.as_ref()));
                let number_of = (epoch, first_start + starts.begun);
                let place = (&mut runner, &mut child_process);
                let start_anew: &mut StartAnew<'_> =
                    &mut |start, runner, event_log| start_anew(start, epoch_setup, runner, event_log);
                profiling.measure(self, pairs, number_of, place, start_anew, event_log)?;
                caches.begun = self.cache_use(runner.arms(), child_process.as_ref());
            }
            if starts_anew {
                caches.stop(&self.cache_use(runner.arms(), child_process.as_ref()));
                end_process(&mut child_process, event_log)?;
                starts.next(spent_ns);
                start_anew(first_start + starts.begun, epoch_setup, &mut runner, event_log)?;
                caches.begun = self.cache_use(runner.arms(), child_process.as_ref());
            }
            let number_of = (epoch, first_start + starts.begun);
            let frame = first + measured + free;
            let place = (&mut runner, &mut child_process);
            let Some((frame, slots)) = self.frame(place, frame, number_of, is_free)? else { break };
            event_log.folder.frame(&frame, &slots)?;
            let invalid = frame.invalid.clone();
            event_log.add(Event::FrameDone { cell: number as u32, frame: frame.frame, invalid })?;
            if is_free {
                free += 1;
            } else {
                let advice = event_log.listener.frame(&frame, &slots);
                starts.follow(advice);
                run_state.served.add(slice::from_ref(&frame), &slots);
                measured += 1;
                spent_ns += cell.load_ns(&frame, &slots, arms);
                // Every planned epoch and every start is run to its end, whatever the precision: they show the
                // variation between starts.
                enough = advice.enough && last_epoch && starts.is_whole(spent_ns, runner.frame_ns(), load_ns);
            }
            if let Some(words) = epoch_setup.ended() {
                return Err(Fault::Connection(words));
            }
            if !is_free {
                run_state.invalid.add(frame.invalid.as_ref())?;
            }
            if rotating.failed() {
                break;
            }
        }
        caches.stop(&self.cache_use(runner.arms(), child_process.as_ref()));
        if let Some(profiling) = profiling.as_mut().filter(|_| !rotating.failed()) {
            let start_anew: &mut StartAnew<'_> =
                &mut |start, runner, event_log| start_anew(start, epoch_setup, runner, event_log);
            let number_of = (epoch, first_start + starts.begun);
            profiling.finish(self, number_of, (&mut runner, &mut child_process), start_anew, event_log)?;
        }
        rotating.end(&mut run_state.rotations)?;
        self.tell_rotations(number, &run_state.rotations, event_log)?;
        end_process(&mut child_process, event_log)?;
        self.note(number, event_log, |arm| caches.hits(arm))?;
        self.watch_idle(part, &runner, event_log)?;
        self.prove(part, Phase::After, runner.arms(), event_log)?;
        Ok(Epoch { frames: measured, starts: starts.begun + 1, load_ns: spent_ns, enough })
    }

    /// Measures frame `number` of this epoch and start, in the database's own process if it has one; `None` if the run
    /// was cancelled.
    fn frame(
        &self,
        (runner, child_process): (&mut CellRunner<'_>, &mut Option<ChildProcesses<'_>>),
        number: u32,
        number_of: (u32, u32),
        is_free: bool,
    ) -> Result<Option<(Frame, Vec<Slot>)>, Fault> {
        match child_process {
            Some(child_process) => child_process.frame(runner, number, number_of, is_free),
            None => runner.frame(number, number_of, is_free, self.cancelled),
        }
    }

    /// Cell `number`, with a rate of its own if the plan names a share of an earlier throughput.
    fn with_rate(&self, number: usize, served: &Served) -> Result<Cell, Fault> {
        let mut cell = self.plan.cells[number].clone();
        if let Arrivals::OfSaturation(share) = cell.arrivals {
            let most = served.of_slowest(self.plan, number).ok_or_else(|| {
                Fault::Machine(
                    "no cell before this one was measured, so there is no saturation to take a share of".to_owned(),
                )
            })?;
            cell.arrivals = Arrivals::Poisson((share * most).max(1.0));
        }
        Ok(cell)
    }

    /// Empties the page cache if the resources of a cell ask for it, starting its servers `again` if they must be
    /// stopped for it; returns when and how, as text.
    fn empty_cache(
        &self,
        again: &Again<'_>,
        epoch_setup: &mut EpochSetup<'_>,
        arms: &mut [StartedArm],
    ) -> Result<Option<String>, Fault> {
        let cell = again.part.cell;
        let limits = self.plan.experiment.resources[cell.resources].limits;
        if limits.cold {
            let how = epoch_setup.restart(again, arms)?.emptied.unwrap_or_default();
            let when = match cell.starts {
                Starts::EveryFrame => "frame",
                Starts::Several(_) => "start",
                Starts::Once => "epoch",
            };
            return Ok(Some(format!("emptied before each {when}: {SERVERS_STOPPED}{how}")));
        }
        if limits.memory.is_some() {
            // A page is charged to the process that read it first. Pages that Tithe has copied or searched would be a
            // cache outside the limit of every server.
            let how = epoch_setup.empty_cache()?;
            return Ok(Some(format!("emptied before each epoch, servers fill it on their own account: {how}")));
        }
        Ok(None)
    }

    /// Starts the servers `again` and brings them to the state in which they are measured.
    fn start_anew(
        &self,
        again: &Again<'_>,
        epoch_setup: &mut EpochSetup<'_>,
        runner: &mut CellRunner<'_>,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let Again { part, start, .. } = *again;
        let began = Instant::now();
        let restarted = epoch_setup.restart(again, runner.arms_mut())?;
        if restarted.put_back {
            runner.data_put_back();
        }
        let answers = Instant::now();
        self.warm_up(part, start, runner, event_log)?;
        if runner.time_is_virtual() {
            return Ok(());
        }
        let Restarted { stop_s, put_back_s, start_s, .. } = restarted;
        let (took_s, warm_up_s) = (began.elapsed().as_secs_f64(), answers.elapsed().as_secs_f64());
        let cell = part.number as u32;
        event_log.add(Event::StartedAnew { cell, start, took_s, stop_s, put_back_s, start_s, warm_up_s })
    }

    /// Brings the servers, which have just started for the time `start`, to the state in which they are measured.
    fn warm_up(
        &self,
        part: &EpochPlan<'_>,
        start: u32,
        runner: &mut CellRunner<'_>,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let (window_ns, at_most_ns) = match part.cell.after_start {
            WarmUp::None => return Ok(()),
            WarmUp::Fixed { ns } => {
                runner.warm_up_next(ns);
                return Ok(());
            }
            WarmUp::UntilSteady { window_ns, at_most_ns } => (window_ns, at_most_ns),
        };
        let workload = self.workloads[part.cell.workload].as_ref();
        if workload.writes() && !self.plan.experiment.resources[part.cell.resources].limits.cold {
            together(runner.arms(), |arm| data::precondition(self.product, &arm.server, &arm.setup, workload))?;
        }
        let cell = part.number as u32;
        let mut tell = |done_ns: u64| {
            let (done_s, at_most_s) = (done_ns as f64 / 1e9, at_most_ns as f64 / 1e9);
            event_log.listener.event(&Event::WarmingUp { cell, done_s, at_most_s });
        };
        let warmed_up = runner.warm_up(start, (window_ns, at_most_ns), self.cancelled, &mut tell)?;
        if let Some(warmed_up) = &warmed_up {
            event_log.listener.event(&Event::WarmedUp(warmed_up.clone()));
        }
        event_log.folder.cell(part.number, |facts| facts.warm_ups.extend(warmed_up))
    }

    /// Cache use of each arm's server so far. If the frames are measured in a child process, it reports this.
    fn cache_use(&self, arms: &[StartedArm], child_process: Option<&ChildProcesses<'_>>) -> Vec<Option<CacheUse>> {
        match child_process {
            Some(child_process) => child_process.cache_use().to_vec(),
            None => arms.iter().map(|arm| self.product.cache_use(&arm.server, &arm.setup)).collect(),
        }
    }

    /// True if the database is measured in a process of its own for every start. False if a key is rotated by an engine
    /// that must be open in Tithe's own process, if the data are in a process's memory, and if time is invented.
    fn uses_child_processes(&self) -> bool {
        let entry = self.product.entry();
        self.child_process.is_some() && entry.embedded && entry.keeps_data && !entry.simulated && !self.rotates
    }

    /// Adds a fact to every arm of a cell that has one.
    fn note(
        &self,
        cell: usize,
        event_log: &mut EventLog<'_>,
        fact: impl Fn(usize) -> Option<(Fact, String)>,
    ) -> Result<(), Fault> {
        event_log.folder.cell(cell, |known| {
            for (arm, known) in known.arms.iter_mut().enumerate() {
                fact(arm).into_iter().for_each(|(fact, text)| known.set(fact, text));
            }
        })
    }

    fn quiesce(&self, arms: &[StartedArm], workload: &dyn Workload) -> Result<(), Fault> {
        together(arms, |arm| data::quiesce(self.product, &arm.server, &arm.setup, workload)).map(drop)
    }

    /// The observer for the server of arm `number`, and what it observes; `None` if there is none.
    fn observer_of(&self, number: usize) -> Option<(&'a Arc<ServerObserver>, &'a Observed)> {
        let observed = self.plan.experiment.arms.get(number)?.observer.as_ref()?;
        Some((self.team?.observer(&observed.name)?, observed))
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }
}

/// Ends the process of this start in which an embedded database is measured, if there is one.
fn end_process(child_process: &mut Option<ChildProcesses<'_>>, event_log: &mut EventLog<'_>) -> Result<(), Fault> {
    let said = child_process.as_mut().map(ChildProcesses::end).transpose()?.flatten();
    said.map_or(Ok(()), |words| event_log.warn(words))
}

/// State that one cell leaves for later ones.
struct RunState {
    served: Served,
    data_sets: DataSets,
    held_servers: HeldServers,
    /// Rotations of the cell that is being measured, all epochs together.
    rotations: Rotations,
    /// Invalid frames of the cell that is being measured, all epochs together.
    invalid: InvalidInARow,
    /// See [`before_killed`].
    before_killed: Option<usize>,
}

/// The frames of a cell between two starts of its servers.
struct EpochPlan<'a> {
    number: usize,
    cell: &'a Cell,
    epoch: u32,
    /// Number of the first frame.
    first: u32,
    /// Number of the first start.
    first_start: u32,
    /// Load that they may take together, ns.
    load_ns: u64,
    /// Pairs of profiled frames from the earlier run that this one continues.
    profiled: u32,
    /// For a server that its provider switches: the first pair of sides to measure, and the one after the last.
    pairs: (u32, u32),
}

/// The measurement between two starts.
#[derive(Default)]
struct Epoch {
    frames: u32,
    /// Starts of the servers.
    starts: u32,
    /// Load of these frames, ns.
    load_ns: u64,
    /// The listener had enough.
    enough: bool,
}

/// Load of the frames of cell `number` in `before`, ns.
fn load_before(cell: &Cell, number: usize, arms: usize, before: Option<&Records>) -> u64 {
    let Some(before) = before else { return 0 };
    let by_frame = before.slots_of(number).chunk_by(|one, next| one.frame == next.frame);
    let by_frame: BTreeMap<u32, &[Slot]> = by_frame.map(|slots| (slots[0].frame, slots)).collect();
    let load_ns = |frame: &Frame| cell.load_ns(frame, by_frame.get(&frame.frame).copied().unwrap_or_default(), arms);
    before.frames_of(number).iter().filter(|frame| !frame.free).map(load_ns).sum()
}

/// Records and reports all events.
struct EventLog<'a> {
    folder: &'a mut RunFolder,
    listener: &'a mut dyn EventListener,
}

impl EventLog<'_> {
    fn add(&mut self, event: Event) -> Result<(), Fault> {
        self.folder.event(&event)?;
        self.listener.event(&event);
        Ok(())
    }

    fn warn(&mut self, message: String) -> Result<(), Fault> {
        self.tell(Event::Warning { message })
    }

    /// The listener gets it even if it cannot be recorded.
    fn tell(&mut self, event: Event) -> Result<(), Fault> {
        let written = self.folder.event(&event);
        self.listener.event(&event);
        written
    }

    fn found(&mut self, finding: Finding) -> Result<(), Fault> {
        self.folder.finding(&finding)?;
        self.add(Event::Evidence(finding))
    }
}

#[cfg(test)]
mod tests;
