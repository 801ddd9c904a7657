//! Measures an embedded database in a process of its own for every start.
//!
//! The addresses of a process's code, heap and stack are chosen when it starts and stay the same until it ends, which
//! looks like a cost (Mytkowicz et al. 2009, "Producing wrong data without doing anything obviously wrong"; Curtsinger
//! and Berger 2013, "Stabilizer"). Servers are restarted for that reason. For a database that works in the threads of
//! its clients, the clients' process must be restarted. So Tithe starts itself again for every start: the *child* opens
//! the database of all arms and measures the frames that it is asked for. The length of its environment, which sets the
//! address of its stack, is drawn from the cell's seed and the number of the start; the kernel draws the rest.
//!
//! Loading, evidence, records and decisions stay with the parent, which closes the database before. The state that
//! frames leave for later ones is sent with each frame in both directions ([`RunnerState`]). In three cases the
//! database stays in Tithe's own process. A key is rotated during the measurement, because the rotator works on the
//! engine that the clients use; the data are in the memory of a process and not in files; time is invented.
//!
//! Both sides exchange lines of JSON over the child's standard input and output: once a [`ChildSetup`], then a
//! [`FrameRequest`] and a [`FrameReply`] for each frame. Keys and passwords are sent only this way. While a frame is
//! measured, neither side reads or writes there.

mod child;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tithe_machine::{fault::Fault, launch::Command, sandbox::coprocess::Coprocess, secret::Secret};
use tithe_model::{
    plan::{Cell, Plan},
    profile::ProfiledFrame,
    record::{Frame, Slot},
};
use tithe_plugin::{database::CacheUse, setup::Setup};

pub use child::{serve, uncalled};

use super::{
    EpochPlan, Run,
    draw::{Draw, pad},
};
use crate::{
    agents::message,
    load::frame::{CellRunner, RunnerState, StartedArm},
};

/// The data that a child gets before its first frame.
#[derive(Serialize, Deserialize)]
struct ChildSetup {
    plan: Plan,
    /// Index of the cell.
    number: u32,
    /// The cell, with a rate of its own if the plan names a share of an earlier throughput.
    cell: Cell,
    /// The folder of each arm.
    folders: Vec<PathBuf>,
    keys: Keys,
}

/// Secrets, in hexadecimal, which must not be printed: the messages have no `Debug`.
#[derive(Serialize, Deserialize)]
struct Keys {
    password: String,
    key: String,
    second_key: String,
    /// The key with which each arm's clients encrypt columns; `None` if they do not.
    columns: Vec<Option<String>>,
}

/// A frame as it is asked for.
#[derive(Serialize, Deserialize)]
struct FrameRequest {
    frame: u32,
    epoch: u32,
    start: u32,
    free: bool,
    profiled: bool,
    runner_state: RunnerState,
}

/// The answer to it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FrameReply {
    MeasuredFrame(Box<MeasuredFrame>),
    /// The child was asked to stop meanwhile.
    Cancelled,
    /// The frame could not be measured, for this reason.
    Failed(String),
}

/// A frame that was measured.
#[derive(Serialize, Deserialize)]
struct MeasuredFrame {
    frame: Frame,
    slots: Vec<Slot>,
    runner_state: RunnerState,
    /// Pages that each arm's engine was asked for since the child began, and those that it had to read; `None` if it
    /// does not report them.
    cache_use: Vec<Option<(u64, u64)>>,
    /// What the processors ran, if that was asked for.
    profile: Option<ProfiledFrame>,
}

/// The processes in which the frames of one epoch are measured.
pub(super) struct ChildProcesses<'a> {
    run: &'a Run<'a>,
    program: &'a Command,
    part: &'a EpochPlan<'a>,
    /// The current one.
    coprocess: Option<Coprocess>,
    cache_use: Vec<Option<CacheUse>>,
}

impl<'a> ChildProcesses<'a> {
    /// For the epoch `part` of this number of `arms`; `None` if they are measured in Tithe's own process.
    pub(super) fn new(run: &'a Run<'a>, part: &'a EpochPlan<'a>, arms: usize) -> Option<Self> {
        let program = run.child_process.as_ref().filter(|_| run.uses_child_processes())?;
        Some(Self { run, program, part, coprocess: None, cache_use: unused(arms) })
    }

    /// As [`CellRunner::frame`], in the process of this start, which is started if there is none; `runner` continues
    /// with its result.
    ///
    /// # Errors
    /// As [`CellRunner::frame`]; when the process cannot be started, ends, or gives an answer that does not fit.
    pub(super) fn frame(
        &mut self,
        runner: &mut CellRunner<'_>,
        number: u32,
        (epoch, start): (u32, u32),
        free: bool,
    ) -> Result<Option<(Frame, Vec<Slot>)>, Fault> {
        let mut coprocess = match self.coprocess.take() {
            Some(coprocess) => coprocess,
            None => self.begin(runner.arms(), start)?,
        };
        let profiled = runner.take_profiles_next();
        let asked = FrameRequest { frame: number, epoch, start, free, profiled, runner_state: runner.runner_state() };
        coprocess.send(&message::write(&asked)?)?;
        let answer = message::read(&coprocess.answer(self.run.cancelled)?)
            .ok_or_else(|| Fault::Machine(format!("{} sends an answer that cannot be read", self.name())))?;
        let measured = match answer {
            FrameReply::MeasuredFrame(measured) => Some(*measured),
            FrameReply::Cancelled => None,
            FrameReply::Failed(words) => return Err(Fault::Machine(words)),
        };
        self.coprocess = Some(coprocess);
        measured.map(|measured| self.taken(runner, &asked, measured)).transpose()
    }

    /// Takes the frame that was `asked` for from the answer.
    fn taken(
        &mut self,
        runner: &mut CellRunner<'_>,
        asked: &FrameRequest,
        measured: MeasuredFrame,
    ) -> Result<(Frame, Vec<Slot>), Fault> {
        let MeasuredFrame { frame, slots, runner_state, cache_use, profile } = measured;
        let number_of = (self.part.number as u32, asked.frame, asked.start);
        if !is_asked((&frame, &slots), number_of, runner.arms().len()) {
            return Err(Fault::Machine(format!("{} answers another frame than it was asked for", self.name())));
        }
        let used = |(asked, missed)| CacheUse { asked, missed };
        self.cache_use = cache_use.into_iter().map(|of_arm| of_arm.map(used)).collect();
        runner.go_on(runner_state);
        runner.set_profile(profile);
        Ok((frame, slots))
    }

    /// Cache use of each arm's engine since the process of this start began.
    pub(super) fn cache_use(&self) -> &[Option<CacheUse>] {
        &self.cache_use
    }

    /// Ends the process of this start, if there is one, which closes the database; returns its standard error, `None`
    /// if that is empty.
    ///
    /// # Errors
    /// When it ends with an error.
    pub(super) fn end(&mut self) -> Result<Option<String>, Fault> {
        self.cache_use = unused(self.cache_use.len());
        let said = self.coprocess.take().map(Coprocess::end).transpose()?.unwrap_or_default();
        Ok((!said.trim().is_empty()).then(|| format!("{} said: {}", self.name(), said.trim())))
    }

    /// Starts the process of start `start` and sends it its set-up.
    fn begin(&self, arms: &[StartedArm], start: u32) -> Result<Coprocess, Fault> {
        // A storage engine opens its files in one process at a time.
        arms.iter().for_each(|arm| self.run.product.close(&arm.server));
        let folder = std::env::current_dir().map_err(|error| Fault::machine("the folder of this process", error))?;
        let mut program = self.program.clone();
        pad(&mut program.environment, Draw::of(self.part.cell.seed, start, 1).paddings[0]);
        let mut coprocess = Coprocess::start(&program, &self.name(), &folder)?;
        coprocess.send(&message::write(&self.child_setup(arms))?)?;
        Ok(coprocess)
    }

    fn child_setup(&self, arms: &[StartedArm]) -> ChildSetup {
        ChildSetup {
            plan: self.run.plan.clone(),
            number: self.part.number as u32,
            cell: self.part.cell.clone(),
            folders: arms.iter().map(|arm| arm.server.folder.clone()).collect(),
            keys: Keys::of(arms),
        }
    }

    /// The name of the process in messages.
    fn name(&self) -> String {
        format!("the process that {} is measured in", self.run.product.title())
    }
}

impl Keys {
    /// Those of `arms`, which all have the credentials of their epoch.
    fn of(arms: &[StartedArm]) -> Self {
        let credentials = arms.first().map(|arm| &arm.setup.credentials);
        let hex = |secret: Option<&Secret>| secret.map(Secret::expose_hex).unwrap_or_default();
        let column = |setup: &Setup| Some(setup.columns.as_ref()?.key.expose_hex());
        Self {
            password: hex(credentials.map(|credentials| &credentials.password)),
            key: hex(credentials.map(|credentials| &credentials.key)),
            second_key: hex(credentials.map(|credentials| &credentials.second_key)),
            columns: arms.iter().map(|arm| column(&arm.setup)).collect(),
        }
    }
}

/// True if `frame` has these numbers of its cell, itself and its start, this number of `arms`, and its own `slots`.
fn is_asked((frame, slots): (&Frame, &[Slot]), number_of: (u32, u32, u32), arms: usize) -> bool {
    (frame.cell, frame.frame, frame.start) == number_of
        && frame.arms.len() == arms
        && slots.iter().all(|slot| (slot.cell, slot.frame) == (frame.cell, frame.frame))
}

/// The cache use of this number of engines before they are opened.
fn unused(arms: usize) -> Vec<Option<CacheUse>> {
    vec![Some(CacheUse::default()); arms]
}

#[cfg(test)]
mod tests {
    use tithe_model::record::ArmFrame;

    use super::*;

    #[test]
    fn an_answer_is_the_frame_that_was_asked_for_with_its_own_slots() {
        let frame = |cell: u32, frame: u32, start: u32| {
            let arms = vec![ArmFrame::default(); 2];
            Frame { cell, frame, start, arms, ..Frame::default() }
        };
        let slot = |cell: u32, frame: u32| Slot { cell, frame, ..Slot::default() };
        let is_it = |frame: Frame, slots: &[Slot]| is_asked((&frame, slots), (3, 5, 7), 2);
        assert!(is_it(frame(3, 5, 7), &[]) && is_it(frame(3, 5, 7), &[slot(3, 5); 4]));
        for other in [frame(2, 5, 7), frame(3, 4, 7), frame(3, 5, 6), Frame { arms: Vec::new(), ..frame(3, 5, 7) }] {
            let slots = [slot(other.cell, other.frame)];
            assert!(!is_it(other.clone(), &slots), "{other:?}");
        }
        for foreign in [slot(2, 5), slot(3, 6)] {
            assert!(!is_it(frame(3, 5, 7), &[slot(3, 5), foreign]), "{foreign:?}");
        }
    }
}
