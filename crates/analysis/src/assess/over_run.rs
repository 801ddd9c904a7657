//! Headlines: the deciding figures of all cells together.
//!
//! The intervals of a cell hold simultaneously for its arms. A run of several cells has more answers, and a reader of
//! the largest cost, or of a status, has read all of them. So the deciding figure of every arm is judged a second
//! time, at an error that Šidák's inequality divides over arms and cells; headlines and statuses use only this
//! interval. The other figures of a cell are not adjusted: reports note this.

use tithe_model::experiment::{Design, Metric};
use tithe_statistics::inference::sidak;

use super::{measured::Measured, sequential, slots, switched};
use crate::{ArmAnalysis, Estimate, OverRun};

/// Judges the deciding figure of each of `arms` over all `cells` of the run. A single cell is the whole run.
pub(super) fn judge(measured: &mut Measured<'_>, arms: &mut [ArmAnalysis], primary: Metric, cells: usize) {
    if cells < 2 {
        return;
    }
    // The error is already divided over the arms of the cell; this divides it over the cells.
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
