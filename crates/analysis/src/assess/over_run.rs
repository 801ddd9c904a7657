//! Headlines: what the deciding figures of all cells say together.
//!
//! The intervals of a cell hold together over its arms. A run of several cells has more answers than that, and a reader
//! of the largest cost, or of a status, has checked all of them. So the deciding figure of every arm
//! is judged a second time, at an error that Šidák's inequality divides over arms and cells; headlines and statuses go
//! by this interval alone. The other figures of a cell are not adjusted: reports say so.

use tithe_model::experiment::{Design, Metric};
use tithe_statistics::inference::sidak;

use super::{measured::Measured, sequential, slots, switched};
use crate::{ArmAnalysis, Estimate, OverRun};

/// Judges the deciding figure of each of `arms` over all `cells` of the run. Alone a cell is the run.
pub(super) fn judge(measured: &mut Measured<'_>, arms: &mut [ArmAnalysis], primary: Metric, cells: usize) {
    if cells < 2 {
        return;
    }
    // An error that is divided over the arms of its cell already is divided further.
    measured.alpha = sidak(measured.alpha, cells);
    for (index, arm) in arms.iter_mut().enumerate() {
        if let Some(estimate) = arm.estimates.iter_mut().find(|estimate| estimate.primary) {
            let judged = deciding(measured, index, primary).filter(|estimate| measured.has_enough_frames(estimate));
            estimate.over_run = judged.map(over_run);
        }
    }
}

/// The deciding figure of arm `arm` at the error of `measured`.
pub(super) fn deciding(measured: &Measured<'_>, arm: usize, primary: Metric) -> Option<Estimate> {
    match measured.cell.design {
        Design::Sequential => sequential::estimates(measured, arm, primary).into_iter().find(|it| it.primary),
        Design::Switched { .. } => Some(switched::deciding(measured, arm, primary)),
        _ => Some(slots::deciding(measured, arm, primary)),
    }
}

fn over_run(estimate: Estimate) -> OverRun {
    OverRun { effect: estimate.effect, difference: estimate.difference, verdict: estimate.verdict }
}
