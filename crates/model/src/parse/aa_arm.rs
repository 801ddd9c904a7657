//! The A/A arm: when Tithe adds a second instance of the baseline as the negative control.

use crate::{
    catalogue::Catalogue,
    experiment::{Arm, Design, Experiment},
    plan,
};

/// The A/A arm joins by default if it takes at most one part in this many of the measured load.
const SHARES: usize = 5;

/// `experiment` with an A/A arm if it was `asked` for, or if the file does not mention it and the default applies.
pub(super) fn added(mut experiment: Experiment, asked: Option<bool>, catalogue: &Catalogue) -> Experiment {
    if asked.unwrap_or_else(|| joins(&experiment, catalogue)) {
        let aa_arm = aa_arm_of(&experiment.arms);
        experiment.arms.extend(aa_arm);
    }
    experiment
}

/// Tithe's own second instance of the baseline, unless there is one. Its true cost is zero, so any cost it shows comes
/// from the set-up. If the file has an arm that protects nothing, Tithe cannot know how else it differs.
pub fn aa_arm_of(arms: &[Arm]) -> Option<Arm> {
    let baseline = arms.first()?;
    if arms.iter().any(|arm| arm.aa) {
        return None;
    }
    let taken = |name: &str| arms.iter().any(|arm| arm.name == name);
    let numbered = (2..).map(|number| format!("A/A {number}"));
    let name = std::iter::once("A/A".to_owned()).chain(numbered).find(|name| !taken(name))?;
    Some(Arm { name, aa: true, ..baseline.clone() })
}

/// True if the A/A arm costs little, Tithe sets up the database and offers the load, and the budget is enough for both.
fn joins(experiment: &Experiment, catalogue: &Catalogue) -> bool {
    experiment.arms.len() + 1 >= SHARES
        && experiment.measure.design != Design::Sequential
        && is_own(experiment, catalogue)
        && is_own_load(experiment, catalogue)
        && leaves_enough(experiment, catalogue)
}

/// Databases that Tithe sets up itself: neither attached nor simulated.
fn is_own(experiment: &Experiment, catalogue: &Catalogue) -> bool {
    let entry = catalogue.entry(&experiment.database);
    entry.is_some_and(|entry| !entry.simulated) && experiment.arms.iter().all(|arm| arm.url.is_none())
}

/// No other program offers the load of a workload.
fn is_own_load(experiment: &Experiment, catalogue: &Catalogue) -> bool {
    let program = |workload| plan::shape(workload, catalogue).is_some_and(|shape| shape.program);
    !experiment.workloads.iter().any(program)
}

/// What can be measured without the arm can be measured with it: no experiment fails because of an arm that its author
/// did not ask for.
fn leaves_enough(experiment: &Experiment, catalogue: &Catalogue) -> bool {
    let with = added(experiment.clone(), Some(true), catalogue);
    plan::plan_problems(&with, &plan::cells(&with, catalogue)).is_empty()
}
