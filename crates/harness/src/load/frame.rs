//! Runs one frame: fresh connections, warm-up, all slots, counters before and after.
//!
//! With fresh connections, the processes that serve them and their memory get new places. Both are random, and a random
//! effect that lasts longer than a frame would look like a cost.
//!
//! [`CellRunner::frame`] has the parts that every frame shares. Its slots are measured either in [`lanes`] of Tithe's
//! own clients ([`threads`], [`opening`], [`record`]), or in [`slices`] of another program. [`context`] is the base of
//! both, [`watch`] reads clocks and counters of a frame, and [`growth`] sets the length of the next frame's slots.

mod context;
mod growth;
mod idle;
mod lanes;
pub mod machines;
mod measured;
mod opening;
mod part;
mod process_tree;
mod profile;
mod record;
mod slices;
mod started_arm;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod warm_up;
mod watch;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
};

use serde::{Deserialize, Serialize};
use tithe_machine::{
    fault::Fault,
    sandbox::sidecar::Sidecar,
    watch::{borrowed_threads::BorrowedThreads, process},
};
use tithe_model::{
    invalid::Invalid,
    plan::Cell,
    profile::ProfiledFrame,
    record::{ArmFrame, Frame, Slot},
};
use tithe_plugin::{
    database::Database,
    workload::{Load, Workload},
    workspace::Workspace,
};

use self::{
    context::CellContext,
    lanes::Lanes,
    measured::{ArmMeasured, FrameRequest, Measured},
    slices::Slices,
    warm_up::WarmedUpBefore,
    watch::{FrameConditions, Watch},
};
pub use self::{profile::CONNECTIONS_END, started_arm::StartedArm};
use super::Schedule;

/// All arms of a cell, ready to be measured.
pub struct CellRunner<'a> {
    context: CellContext<'a>,
    offer: Offer<'a>,
    /// Operations of each arm since its data was loaded or put back, warm-up included.
    done: Vec<u64>,
    /// Load before the next frame, in addition to that of every frame, per arm, ns.
    extra_warmup_ns: u64,
    /// The next frame is profiled.
    profiles_next: bool,
    /// The profile of the last frame, until it is taken.
    profile: Option<ProfiledFrame>,
    /// Results of the warm-ups so far.
    warmed_up: WarmedUpBefore,
}

/// How the load is offered.
enum Offer<'a> {
    /// By Tithe's own clients, all lanes at a time.
    Lanes(Box<Lanes<'a>>),
    /// By another program, one slice after the other.
    Slices(Slices<'a>),
}

/// The state that frames leave for later ones, if another process measures those.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerState {
    /// Operations of each arm since its data was loaded, warm-up included.
    done: Vec<u64>,
    /// Further load before the next frame, per arm, ns.
    extra_warmup_ns: u64,
    slot_ns: u64,
    settling_ns: u64,
    blocks: u32,
    /// `None` if another program offers the load.
    by_lanes: Option<LanesState>,
}

/// The state of Tithe's own clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LanesState {
    state: growth::GrowthState,
    /// The shared state of each arm's clients, from [`ArmState::reached`](tithe_plugin::workload::ArmState::reached).
    states: Vec<Vec<i64>>,
}

impl<'a> CellRunner<'a> {
    /// A runner over started and loaded `arms`. `slot_fixed`: the experiment sets the slot, so it is not adapted.
    pub fn new(
        database: &'a dyn Database,
        workload: &'a dyn Workload,
        cell: &Cell,
        cell_index: u32,
        slot_fixed: bool,
        arms: Vec<StartedArm>,
    ) -> Self {
        let done = vec![0; arms.len()];
        let context = CellContext::new(database, workload, cell, cell_index, arms);
        let offer = match workload.offered_by() {
            Load::Clients(clients) => Offer::Lanes(Box::new(Lanes::new(clients, &context, slot_fixed))),
            Load::Program(program) => Offer::Slices(Slices { program, workspaces: Vec::new() }),
        };
        Self {
            context,
            offer,
            done,
            extra_warmup_ns: 0,
            profiles_next: false,
            profile: None,
            warmed_up: WarmedUpBefore::default(),
        }
    }

    /// The same, whose load the workload's program offers at `workspaces`, one per arm.
    #[must_use]
    pub fn in_workspaces(mut self, workspaces: Vec<Workspace>) -> Self {
        if let Offer::Slices(slices) = &mut self.offer {
            slices.workspaces = workspaces;
        }
        self
    }

    /// The same, which pins threads of servers that Tithe did not start by way of `borrowed`.
    #[must_use]
    pub fn borrowing(mut self, borrowed: Option<&'a BorrowedThreads>) -> Self {
        self.context.borrowed_threads = borrowed;
        self
    }

    /// The same, whose servers are paused while another arm is measured, if they are in the sandbox of this folder.
    #[must_use]
    pub fn pausing_in(mut self, sandbox: Option<PathBuf>) -> Self {
        self.context.pauses_in = sandbox;
        self
    }

    /// The same, whose lanes do not read the data into the servers' caches first.
    #[must_use]
    pub fn left_cold(mut self, cold: bool) -> Self {
        self.context.cold = cold;
        self
    }

    /// The same, whose databases have just been opened: the caches that their sessions share are filled before the
    /// first frame.
    #[must_use]
    pub fn freshly_started(mut self) -> Self {
        self.context.fresh = true;
        self
    }

    /// The same, whose frames grow with their slots, but not beyond `longest_ns` unless one block needs more.
    #[must_use]
    pub fn in_frames_of(mut self, longest_ns: u64) -> Self {
        if let Offer::Lanes(lanes) = &mut self.offer {
            lanes.growth.longest_ns = longest_ns;
        }
        self
    }

    /// The state that its frames have left so far.
    pub fn runner_state(&self) -> RunnerState {
        let by_lanes = match &self.offer {
            Offer::Lanes(lanes) => Some(LanesState {
                state: lanes.growth.state.clone(),
                states: lanes.states.iter().map(|state| state.reached()).collect(),
            }),
            Offer::Slices(_) => None,
        };
        let Cell { slot_ns, settling_ns, blocks, .. } = self.context.cell;
        RunnerState {
            done: self.done.clone(),
            extra_warmup_ns: self.extra_warmup_ns,
            slot_ns,
            settling_ns,
            blocks,
            by_lanes,
        }
    }

    /// Continues after the frames of another runner of the same cell, which left `runner_state`.
    pub fn go_on(&mut self, runner_state: RunnerState) {
        let RunnerState { done, extra_warmup_ns, slot_ns, settling_ns, blocks, by_lanes } = runner_state;
        self.done = done;
        self.extra_warmup_ns = extra_warmup_ns;
        let cell = &mut self.context.cell;
        (cell.slot_ns, cell.settling_ns, cell.blocks) = (slot_ns, settling_ns, blocks);
        if let (Offer::Lanes(lanes), Some(LanesState { state, states })) = (&mut self.offer, by_lanes) {
            lanes.growth.state = state;
            lanes.states.iter().zip(&states).for_each(|(state, reached)| state.go_on(reached));
        }
    }

    /// Length of the next frame's slots, ns.
    pub fn frame_ns(&self) -> u64 {
        self.context.cell.frame_ns(self.context.arms.len())
    }

    /// How long each arm's server has been paused so far, ns; the values keep growing.
    pub fn paused_ns(&self) -> &[Arc<AtomicU64>] {
        &self.context.paused_ns
    }

    /// The sidecar that runs programs for each arm's server, and is paused with it; `None` if none is needed.
    pub fn sidecars(&self) -> &[Option<Sidecar>] {
        &self.context.sidecars
    }

    /// The arms, in the experiment's order.
    pub fn arms(&self) -> &[StartedArm] {
        &self.context.arms
    }

    /// Time is invented, so the machine's clock means nothing for it.
    pub fn time_is_virtual(&self) -> bool {
        self.context.time_is_virtual()
    }

    /// The arms, so that their servers can be restarted between two frames.
    pub fn arms_mut(&mut self) -> &mut [StartedArm] {
        &mut self.context.arms
    }

    /// Tells the clients that the data of every arm are those that were loaded again: what they wrote is gone.
    pub fn data_put_back(&mut self) {
        if let Offer::Lanes(lanes) = &mut self.offer {
            lanes.states = lanes::states(lanes.clients, &self.context.arms);
            lanes.machines.into_iter().for_each(|machines| machines.data_put_back());
        }
        self.done.fill(0);
    }

    /// Starts the next frame, and no other, with `length_ns` of further load on each arm: its servers have just
    /// started.
    pub fn warm_up_next(&mut self, length_ns: u64) {
        self.extra_warmup_ns = length_ns;
    }

    /// Profiles the next frame, and no other.
    pub fn profile_next(&mut self) {
        self.profiles_next = true;
    }

    /// True if the next frame is to be profiled; cleared by the call.
    pub fn take_profiles_next(&mut self) -> bool {
        std::mem::take(&mut self.profiles_next)
    }

    /// The profile of the last frame, if there is one; removed by the call.
    pub fn take_profile(&mut self) -> Option<ProfiledFrame> {
        self.profile.take()
    }

    /// Sets the profile from another runner.
    pub fn set_profile(&mut self, profile: Option<ProfiledFrame>) {
        self.profile = profile;
    }

    /// Runs frame `number`; `cancelled` ends it early, and it is then not returned. A `free` frame pins nothing to a
    /// processor.
    ///
    /// # Errors
    /// When connections cannot be opened, or a thread of Tithe's own panics. A fault during the load invalidates the
    /// frame instead.
    pub fn frame(
        &mut self,
        number: u32,
        (epoch, start): (u32, u32),
        free: bool,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Frame, Vec<Slot>)>, Fault> {
        let warmup_ns = self.context.cell.warmup_ns + std::mem::take(&mut self.extra_warmup_ns);
        self.context.reached = Schedule::new(&self.context.cell, number, self.context.arms.len(), 0).reached();
        let profiled = self.take_profiles_next();
        self.context.note_conditions();
        let measured = self.measure(number, (free, profiled), warmup_ns, cancelled)?;
        self.context.fresh = false;
        Ok(measured.map(|(start_unix_ns, mut measured)| {
            // It explains wrong answers.
            measured.invalid = measured.invalid.or_else(|| self.context.changed());
            self.recorded((number, epoch, start, free), start_unix_ns, measured)
        }))
    }

    /// Measures one frame: returns when it began, ns since 1970 or of invented time, and its result.
    fn measure(
        &self,
        number: u32,
        (free, profiled): (bool, bool),
        warmup_ns: u64,
        cancelled: &AtomicBool,
    ) -> Result<Option<(u64, Measured)>, Fault> {
        let asked = FrameRequest { number, free, profiled, warmup_ns, done: &self.done, cancelled };
        let watch = Watch::begin(&self.context);
        let measured = match &self.offer {
            Offer::Lanes(lanes) => lanes.measure(&self.context, &watch, &asked)?,
            Offer::Slices(slices) => slices.measure(&self.context, &watch, &asked)?,
        };
        Ok(measured.map(|measured| (watch.start_unix_ns(), measured)))
    }

    /// The record of a frame, from which the next one learns.
    fn recorded(
        &mut self,
        (number, epoch, start, free): (u32, u32, u32, bool),
        start_unix_ns: u64,
        measured: Measured,
    ) -> (Frame, Vec<Slot>) {
        let Measured { mut slots, arms, stalls, agents, invalid, invented_ns, profile, mut grown } = measured;
        self.profile = profile;
        slots.sort_by_key(|slot| (slot.block, slot.lane, slot.arm));
        let start_unix_ns = invented_ns.map_or(start_unix_ns, |(begun_ns, _)| begun_ns);
        grown.duration_ns = invented_ns.map_or(grown.duration_ns, |(begun_ns, ended_ns)| ended_ns - begun_ns);
        let is_invalid = invalid.is_some();
        let mut frame = Frame {
            cell: self.context.cell_index,
            frame: number,
            epoch,
            start,
            start_unix_ns,
            duration_ns: grown.duration_ns,
            invalid: invalid.or_else(|| why_invalid(&grown, &arms)),
            free,
            slot_ns: self.context.cell.slot_ns,
            settling_ns: self.context.cell.settling_ns,
            stalls,
            arms: self.arm_records(arms),
            agents,
            host: grown.host,
        };
        self.check_processors(&mut frame);
        if let Offer::Lanes(lanes) = &mut self.offer
            && !is_invalid
        {
            // Here and not before the next frame, because its length is needed for the decision about the next one.
            lanes.growth.adapt(&mut self.context, &frame, slots.len());
        }
        (frame, slots)
    }

    /// The records of the arms, numbered among all operations since the data was loaded.
    fn arm_records(&mut self, arms: Vec<ArmMeasured>) -> Vec<ArmFrame> {
        let mut records = Vec::with_capacity(arms.len());
        for ((number, arm), done) in arms.into_iter().enumerate().zip(&mut self.done) {
            let mut record = arm.record;
            record.operations_before = *done + arm.warmed_up;
            *done = record.operations_before + record.all_operations();
            if let Offer::Lanes(lanes) = &mut self.offer {
                lanes.growth.add(number, &arm.profiles);
            }
            records.push(record);
        }
        records
    }

    /// Invalidates a frame during which processors were added or removed, and continues with those that are there now.
    fn check_processors(&mut self, frame: &mut Frame) {
        let now = process::processors();
        if now != self.context.processors && !now.is_empty() {
            let listed =
                |processors: &[usize]| processors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let (before, after) = (listed(&self.context.processors), listed(&now));
            let reason = format!("the usable processors changed from {before} to {after}");
            frame.invalid.get_or_insert(Invalid::Other(reason));
            self.context.processors = now;
        }
    }
}

/// Why a frame must not be used; the first of all reasons.
fn why_invalid(grown: &FrameConditions, arms: &[ArmMeasured]) -> Option<Invalid> {
    let of_arm = |(number, arm): (usize, &ArmMeasured)| Some(Invalid::OfArm(number, Box::new(arm.why_invalid()?)));
    let of_arms = || arms.iter().enumerate().find_map(of_arm);
    let told = |words: &Option<String>| words.clone().map(Invalid::Other);
    let before = told(&grown.not_paused).or_else(|| told(&grown.observer_lost));
    before.or_else(of_arms).or_else(|| told(&grown.clock_fault))
}
