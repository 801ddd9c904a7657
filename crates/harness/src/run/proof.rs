//! The checks before and after measuring: whether the data are right, and whether each protection was on.

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::{
    experiment,
    record::{Event, Finding, Phase, Role, Verdict},
};
use tithe_plugin::{
    data,
    database::Connect,
    evidence::{self, Check, CheckContext, CheckEntry, Control},
    session::Session,
    setup::Setup,
    workload::{Load, Workload},
};

use super::{EpochPlan, EventLog, Run};
use crate::load::frame::StartedArm;

impl Run<'_> {
    /// Checks the data of every arm and every claim of every protected one.
    pub(super) fn prove(
        &self,
        part: &EpochPlan<'_>,
        phase: Phase,
        arms: &[StartedArm],
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        self.check_data(part, phase, arms, event_log)?;
        self.check_answers(part, phase, arms, event_log)?;
        self.evidence(part, phase, arms, event_log)
    }

    /// Checks whether the data of every arm satisfy the workload's rules. Wrong data make all figures of the cell
    /// worthless, so that is an error and not a finding.
    fn check_data(
        &self,
        part: &EpochPlan<'_>,
        phase: Phase,
        arms: &[StartedArm],
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        arms.iter()
            .enumerate()
            .try_for_each(|arm| self.check_data_of(part, (phase, phase == Phase::Before), arm, event_log))
    }

    /// The same for one arm, whose data are `fresh` if no load has changed them.
    pub(super) fn check_data_of(
        &self,
        part: &EpochPlan<'_>,
        (phase, fresh): (Phase, bool),
        (arm, started): (usize, &StartedArm),
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let workload = self.workloads[part.cell.workload].as_ref();
        // Only the other program knows its rules for the data.
        let Load::Clients(clients) = workload.offered_by() else { return Ok(()) };
        let mut session = self.session_of(&started.server, &started.setup, workload)?;
        let name = |fault| match fault {
            Fault::Wrong(broken) => Fault::Wrong(format!("arm {}: {broken}", self.plan.experiment.arms[arm].name)),
            other => other,
        };
        let Some(holds) = clients.check(&mut session, fresh).map_err(name)? else { return Ok(()) };
        let claim = "the data are as the workload's rules say";
        let control = "none: a broken rule ends the cell";
        event_log.found(self.disclosed(part, (phase, arm), ("consistency", claim), (holds, control)))
    }

    /// A session of the workload on `server`, outside of the load.
    pub(super) fn session_of(&self, server: &Server, setup: &Setup, workload: &dyn Workload) -> Result<Session, Fault> {
        let how = Connect::blocking(workload.table());
        data::connect(self.product, server, setup, &how, workload)
    }

    /// Runs a `check` of the workload's own on arm `arm`: if it fails, the cell ends without a finding.
    pub(super) fn disclosed(
        &self,
        part: &EpochPlan<'_>,
        (phase, arm): (Phase, usize),
        (check, claim): (&str, &str),
        (protected, control): (String, &str),
    ) -> Finding {
        Finding {
            cell: part.number as u32,
            epoch: part.epoch,
            arm: arm as u32,
            phase,
            protection: self.plan.experiment.workloads[part.cell.workload].kind.clone(),
            check: check.to_owned(),
            claim: claim.to_owned(),
            role: Role::Disclosure,
            verdict: Verdict::Holds,
            protected,
            control: control.to_owned(),
        }
    }

    /// All checks of arm `arm` at `address`, each with the protection that it is about.
    pub(super) fn checks_of<'w>(
        &self,
        arm: usize,
        workload: &'w dyn Workload,
        address: &Address,
    ) -> Vec<(&experiment::Protection, Box<dyn Check + 'w>)> {
        let mut checks = Vec::new();
        for (protection, chosen) in self.arms.get(arm).map_or(&[][..], |resolved| &resolved.protections[..]) {
            let of_one = protection.evidence_in(chosen, workload).into_iter();
            checks.extend(of_one.filter(|check| check.concerns(address)).map(|check| (*chosen, check)));
        }
        checks
    }

    /// Checks every claim of every protected arm, and the plain arm for its control.
    fn evidence(
        &self,
        part: &EpochPlan<'_>,
        phase: Phase,
        arms: &[StartedArm],
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let workload = self.workloads[part.cell.workload].as_ref();
        let table = workload.table();
        let setups: Vec<Setup> = arms.iter().map(of_measured_sessions).collect();
        let context = |arm: usize| CheckContext {
            database: self.product,
            server: &arms[arm].server,
            setup: &setups[arm],
            table: &table,
            protected: arm > 0,
            nonce: evidence::fresh_nonce(),
            narrowed: None,
        };
        for (arm, started) in arms.iter().enumerate().skip(1) {
            for (chosen, check) in self.checks_of(arm, workload, &started.server.address) {
                if self.cancelled() && phase == Phase::Before {
                    return Ok(());
                }
                let (cell, of) = (part.number as u32, arm as u32);
                event_log.listener.event(&Event::Looking { cell, arm: of, phase, claim: check.claim() });
                let protected = CheckResult::of(&*check, context(arm));
                let of_plain = || evidence::seen_by(&*check, &mut context(0));
                let plain = (check.entry().control == Control::PlainArm).then(of_plain);
                event_log.found(finding(part, (phase, arm), (chosen, &*check), &protected, plain.as_ref()))?;
            }
        }
        Ok(())
    }
}

/// The result of one check, and what its claim was narrowed to.
pub(super) struct CheckResult {
    pub observation: Observation,
    pub narrowed: Option<&'static str>,
}

impl CheckResult {
    /// Of `check` in `context`.
    pub fn of(check: &dyn Check, mut context: CheckContext<'_>) -> Self {
        let observation = evidence::seen_by(check, &mut context);
        Self { observation, narrowed: context.narrowed }
    }
}

/// What the `check` of a `chosen` protection proves on arm `arm`: by its result there and by its observation on the
/// plain arm, unless it has a control of its own.
pub(super) fn finding(
    part: &EpochPlan<'_>,
    (phase, arm): (Phase, usize),
    (chosen, check): (&experiment::Protection, &dyn Check),
    protected: &CheckResult,
    plain: Option<&Observation>,
) -> Finding {
    let CheckEntry { id, role, control } = check.entry();
    Finding {
        cell: part.number as u32,
        epoch: part.epoch,
        arm: arm as u32,
        phase,
        protection: chosen.id.clone(),
        check: id.to_owned(),
        claim: evidence::claimed(check, protected.narrowed),
        role,
        verdict: evidence::judge(control, &protected.observation, plain),
        protected: protected.observation.quotation().to_owned(),
        control: plain.map_or(evidence::OWN_CONTROL, Observation::quotation).to_owned(),
    }
}

/// The set-up of `arm` with its sessions switched like the measured ones.
pub(super) fn of_measured_sessions(arm: &StartedArm) -> Setup {
    let mut setup = arm.setup.loaded().into_owned();
    setup.session_statements.extend(arm.on.iter().cloned());
    setup
}
