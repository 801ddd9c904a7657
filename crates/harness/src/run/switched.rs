//! An epoch of a server that its provider switches: sides of minutes, in pairs whose order is drawn.
//!
//! Both arms are the same server, on the same data. Before each side the server is switched, if necessary, and checked;
//! then come the side's frames, and another check. The checks of both sides of a pair make its findings: a protection
//! must be seen on one side and not on the other. Readers of the records treat a pair as an epoch and a start, because
//! the switch is what repeats.

use std::slice;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{
    experiment::ProviderSwitch,
    plan::{Cell, WarmUp},
    record::{Event, Finding, Frame, Phase, Role, TOLD_BY_PROVIDER},
    schedule::first_of_pair,
};
use tithe_plugin::{
    data,
    evidence::{self, CheckContext, Control},
};

use super::{
    Epoch, EpochPlan, EventLog, Run, RunState,
    epoch_setup::EpochSetup,
    proof::{self, CheckResult},
    switched_server::SwitchedServer,
};
use crate::load::frame::{CellRunner, StartedArm};

/// The name of the provider's switch in findings, in place of a protection.
const SWITCH: &str = "switch";

/// The claim if only the provider's statement is available.
fn provider_claim(switch: Option<&ProviderSwitch>) -> String {
    let by_command = switch.is_some_and(|switch| !switch.ready_command.is_empty());
    let who = if by_command { "its own `ready`" } else { "the server" };
    format!("the provider's command succeeded, and {who} reports that it is on, and off on the other side")
}

/// The pairs of sides of `cell` that are left to be measured: the first, and the one after the last. `done` are the
/// frames of an earlier run that is resumed. A pair that was cut short does not count and is not continued, because the
/// server is on other data now.
pub(super) fn pairs_left(cell: &Cell, done: &[Frame]) -> (u32, u32) {
    let first = done.iter().map(|frame| frame.start + 1).max().unwrap_or(0);
    (first, first + cell.pairs().saturating_sub(cell.whole_pairs(done).len() as u32))
}

/// Number of the first frame of a side of `pair`, which is its first (0) or its second one (1). The schedule finds pair
/// and arm of a frame by its number.
fn first_frame(cell: &Cell, pair: u32, side: u32) -> u32 {
    (2 * pair + side) * cell.frames_a_side()
}

/// The evidence of one arm at one end of its side: of each check, and last the server's own report.
struct SideEvidence {
    checks: Vec<Option<CheckResult>>,
    told: Observation,
}

/// Both ends of one side.
struct Side {
    before: SideEvidence,
    after: SideEvidence,
}

impl Run<'_> {
    /// Sets the server up, and measures it side by side until the cell has its pairs, in all runs together.
    pub(super) fn measure_switched(
        &self,
        part: &EpochPlan<'_>,
        (epoch_setup, switched): (&mut EpochSetup<'_>, &mut SwitchedServer<'_>),
        run_state: &mut RunState,
        event_log: &mut EventLog<'_>,
    ) -> Result<Epoch, Fault> {
        let cell = part.cell;
        switched.find()?;
        epoch_setup.set(self, part, Some(&mut *switched), run_state, event_log)?;
        if self.cancelled() {
            return Ok(Epoch::default());
        }
        let workload = self.workloads[cell.workload].as_ref();
        let arms = epoch_setup.take_arms();
        let mut runner = CellRunner::new(self.product, workload, cell, part.number as u32, true, arms)
            .borrowing(self.borrowed_threads.as_ref());
        let mut measured = Epoch::default();
        for pair in part.pairs.0..part.pairs.1 {
            let first = first_of_pair(cell.seed, pair);
            let of_pair = EpochPlan { epoch: pair, first_start: pair, ..*part };
            let mut sides: [Option<Side>; 2] = [None, None];
            for (side, arm) in (0..).zip([first, 1 - first]) {
                switched.turn(arm, event_log)?;
                let of_side = EpochPlan { first: first_frame(cell, pair, side), ..of_pair };
                sides[arm] =
                    self.side(&of_side, arm, (&*switched, &mut runner), (&mut *run_state, &mut measured), event_log)?;
                if self.cancelled() {
                    return Ok(measured);
                }
            }
            measured.starts += 1;
            if let [Some(plain), Some(protected)] = sides {
                self.tell_pair(&of_pair, [plain, protected], runner.arms(), event_log)?;
            }
        }
        Ok(measured)
    }

    /// One side of the pair of `part`, while the server is `arm`; `None` if the run was stopped in it.
    fn side(
        &self,
        part: &EpochPlan<'_>,
        arm: usize,
        (switched, runner): (&SwitchedServer<'_>, &mut CellRunner<'_>),
        (run_state, measured): (&mut RunState, &mut Epoch),
        event_log: &mut EventLog<'_>,
    ) -> Result<Option<Side>, Fault> {
        let (cell, workload) = (part.cell, self.workloads[part.cell.workload].as_ref());
        let settle = |started: &StartedArm| data::quiesce(self.product, &started.server, &started.setup, workload);
        if self.cancelled() {
            return Ok(None);
        }
        let fresh = measured.frames == 0;
        self.check_data_of(part, (Phase::Before, fresh), (arm, &runner.arms()[arm]), event_log)?;
        let before = self.gather_evidence(part, Phase::Before, (arm, switched), runner.arms(), event_log);
        // Checks write, and their writes must not be settled while the side is measured.
        settle(&runner.arms()[arm])?;
        if let WarmUp::Fixed { ns } = cell.after_start {
            runner.warm_up_next(ns);
        }
        for number in part.first..part.first + cell.frames_a_side() {
            let number_of = (part.epoch, part.first_start);
            let Some((frame, slots)) = runner.frame(number, number_of, false, self.cancelled)? else {
                return Ok(None);
            };
            event_log.folder.frame(&frame, &slots)?;
            let invalid = frame.invalid.clone();
            event_log.add(Event::FrameDone { cell: part.number as u32, frame: frame.frame, invalid })?;
            // A pair counts as a whole or not at all, so nothing ends a cell between its sides.
            _ = event_log.listener.frame(&frame, &slots);
            run_state.served.add(slice::from_ref(&frame), &slots);
            run_state.invalid.add(frame.invalid.as_ref())?;
            measured.frames += 1;
            measured.load_ns += cell.load_ns(&frame, &slots, self.plan.experiment.arms.len());
        }
        let after = self.gather_evidence(part, Phase::After, (arm, switched), runner.arms(), event_log);
        self.check_data_of(part, (Phase::After, false), (arm, &runner.arms()[arm]), event_log)?;
        Ok(Some(Side { before, after }))
    }

    /// Checks the server while it is `arm`, with every check of the protected arm.
    fn gather_evidence(
        &self,
        part: &EpochPlan<'_>,
        phase: Phase,
        (arm, switched): (usize, &SwitchedServer<'_>),
        arms: &[StartedArm],
        event_log: &mut EventLog<'_>,
    ) -> SideEvidence {
        let workload = self.workloads[part.cell.workload].as_ref();
        let (started, table) = (&arms[arm], workload.table());
        let setup = proof::of_measured_sessions(started);
        let mut checks = Vec::new();
        for check in self.checks_of(1, workload, &started.server.address).into_iter().map(|(_, check)| check) {
            // A check with a control of its own needs no result from the side without the protection.
            if arm == 0 && check.entry().control != Control::PlainArm {
                checks.push(None);
                continue;
            }
            let claim = check.claim();
            event_log.listener.event(&Event::Looking { cell: part.number as u32, arm: arm as u32, phase, claim });
            let context = CheckContext {
                database: self.product,
                server: &started.server,
                setup: &setup,
                table: &table,
                protected: arm == 1,
                nonce: evidence::fresh_nonce(),
                narrowed: None,
            };
            checks.push(Some(CheckResult::of(&*check, context)));
        }
        SideEvidence { checks, told: switched.observe(arm) }
    }

    /// Records what the checks of both sides of a pair, the plain one first, prove together.
    fn tell_pair(
        &self,
        part: &EpochPlan<'_>,
        [plain, protected]: [Side; 2],
        arms: &[StartedArm],
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let workload = self.workloads[part.cell.workload].as_ref();
        let ends = [(Phase::Before, plain.before, protected.before), (Phase::After, plain.after, protected.after)];
        for (phase, plain, protected) in ends {
            let (cell, epoch) = (part.number as u32, part.epoch);
            let checks = self.checks_of(1, workload, &arms[1].server.address);
            for (((chosen, check), plain), protected) in checks.into_iter().zip(&plain.checks).zip(&protected.checks) {
                let Some(protected) = protected else { continue };
                let plain = plain.as_ref().map(|result| &result.observation);
                event_log.found(proof::finding(part, (phase, 1), (chosen, &*check), protected, plain))?;
            }
            event_log.found(Finding {
                cell,
                epoch,
                arm: 1,
                phase,
                protection: SWITCH.to_owned(),
                check: TOLD_BY_PROVIDER.to_owned(),
                claim: provider_claim(self.plan.experiment.switch()),
                role: Role::Strengthens,
                verdict: evidence::judge(Control::PlainArm, &protected.told, Some(&plain.told)),
                protected: protected.told.quotation().to_owned(),
                control: plain.told.quotation().to_owned(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tithe_model::{
        experiment::{Arrivals, Design},
        schedule::side_of,
    };

    use super::*;
    use crate::load::frame::tests::cell;

    /// The first frames of a pair.
    fn of_pair(pair: u32, frames: u32) -> impl Iterator<Item = Frame> {
        (6 * pair..6 * pair + frames).map(move |frame| Frame { frame, start: pair, epoch: pair, ..Frame::default() })
    }

    #[test]
    fn a_resumed_cell_measures_the_pairs_that_are_not_whole() {
        let cell = cell(Design::Switched { frames_a_side: 3 }, Arrivals::Closed);
        let left = |done: &[(u32, u32)]| {
            let done: Vec<Frame> = done.iter().flat_map(|(pair, frames)| of_pair(*pair, *frames)).collect();
            pairs_left(&cell, &done)
        };
        // A hundred frames are sixteen pairs.
        assert_eq!(left(&[]), (0, 16));
        assert_eq!(left(&[(0, 6), (1, 6)]), (2, 16));
        assert_eq!(left(&[(0, 6), (1, 4)]), (2, 17), "a pair that was cut short is measured again under a new number");
        assert_eq!(left(&(0..16).map(|pair| (pair, 6)).collect::<Vec<_>>()), (16, 16));
    }

    #[test]
    fn frames_of_a_side_have_the_numbers_by_which_readers_find_it() {
        let cell = cell(Design::Switched { frames_a_side: 3 }, Arrivals::Closed);
        for pair in 0..20 {
            let first = first_of_pair(cell.seed, pair);
            for (side, arm) in (0..).zip([first, 1 - first]) {
                let begin = first_frame(&cell, pair, side);
                assert!((begin..begin + 3).all(|frame| side_of(cell.seed, frame, 3) == (pair, arm)), "{pair} {arm}");
            }
        }
    }

    #[test]
    fn a_claim_says_who_reports_that_the_switch_is_on() {
        let claim = |ready_command: Option<&str>| {
            let switch = ready_command.map(|command| ProviderSwitch {
                on: vec!["on".to_owned()],
                off: vec!["off".to_owned()],
                ready: String::new(),
                ready_command: command.split_whitespace().map(str::to_owned).collect(),
                side_s: 60.0,
                timeout_s: 60.0,
            });
            provider_claim(switch.as_ref())
        };
        let words = |who: &str| {
            format!("the provider's command succeeded, and {who} reports that it is on, and off on the other side")
        };
        assert_eq!(claim(Some("./ready now")), words("its own `ready`"));
        assert_eq!([claim(Some("")), claim(None)], [words("the server"), words("the server")]);
    }
}
