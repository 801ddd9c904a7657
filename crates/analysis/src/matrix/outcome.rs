//! The result of one task, as stored in its folder (`task.json`) and in the gathered document.

use serde::{Deserialize, Serialize};
use tithe_model::{
    ending::CellEnding,
    experiment::Metric,
    matrix::FORMAT,
    plan::STARTS_MIN,
    record::{Host, Machine},
};
use tithe_statistics::{
    distribution::{normal_upper, t_upper},
    hosts::UnitEffect,
    inference::FEWEST_MERGED,
    null,
};

use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Figure, Flag, Interval, Proof,
    deciding::{self, EndsBy},
    figures,
};

/// The result of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Identity of the plan of the task.
    pub plan: String,
    /// Its number.
    pub task: usize,
    /// Version of the program that measured.
    pub tithe: String,
    /// When it began, s since 1970.
    pub started_unix_s: u64,
    /// The database.
    pub database: String,
    /// The largest cost that counts as none, natural-log ratio.
    pub margin: f64,
    /// The host.
    pub machine: Machine,
    /// The cells, in the experiment's order.
    pub cells: Vec<CellOutcome>,
}

/// The result of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellOutcome {
    /// Its short name.
    pub cell: String,
    /// Number of frames that count.
    pub frames: usize,
    /// Why it was not measured, or not completely; `None` if it was.
    #[serde(deserialize_with = "Option::deserialize")]
    pub failed: Option<String>,
    /// Mean of the host's state over the frames.
    pub host: Host,
    /// The protected arms, in the experiment's order; the A/A arm is left out.
    pub arms: Vec<ArmOutcome>,
}

/// The deciding estimate of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmOutcome {
    /// Name of the arm.
    pub arm: String,
    /// Its protections.
    pub protections: Vec<String>,
    /// Was it proven to be protected?
    pub proof: Proof,
    /// The estimate's metric: `net time per op`.
    #[serde(with = "figures::by_title")]
    pub figure: Metric,
    /// Natural-log ratio protected/plain with its interval, simultaneous over the arms of the cell.
    pub effect: Interval,
    /// Its standard error, natural-log ratio.
    #[serde(with = "null::or_unknown")]
    pub error: f64,
    /// Number of frames.
    pub count: usize,
    /// Number of starts of the servers.
    pub starts: usize,
    /// Plain and protected levels in `unit`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub levels: Option<(f64, f64)>,
    /// Unit of `levels`.
    pub unit: String,
    /// Its limits.
    pub flags: Vec<Flag>,
}

impl Outcome {
    /// The result of task `task` of `plan`, which began at `started_unix_s`, from its `analysis`.
    pub fn of(analysis: &Analysis, plan: &str, task: usize, started_unix_s: u64) -> Self {
        Self {
            format: FORMAT,
            plan: plan.to_owned(),
            task,
            tithe: analysis.tithe.clone(),
            started_unix_s,
            database: analysis.database.clone(),
            margin: analysis.margin,
            machine: analysis.machine.clone(),
            cells: analysis.cells.iter().map(CellOutcome::of).collect(),
        }
    }
}

impl CellOutcome {
    fn of(cell: &CellAnalysis) -> Self {
        let failed = match &cell.ending {
            Some(CellEnding::Failed(reason)) => Some(reason.clone()),
            _ if cell.frames == 0 => Some("not one frame was measured".to_owned()),
            _ => None,
        };
        let arms = cell.arms.iter().filter(|arm| !arm.aa).filter_map(|arm| ArmOutcome::of(cell, arm));
        Self { cell: cell.id.clone(), frames: cell.frames, failed, host: cell.host, arms: arms.collect() }
    }
}

impl ArmOutcome {
    fn of(cell: &CellAnalysis, arm: &ArmAnalysis) -> Option<Self> {
        let estimate = arm.primary()?;
        // Only metrics decide.
        let Figure::Metric(figure) = estimate.name else { return None };
        Some(Self {
            arm: arm.name.clone(),
            protections: arm.protections.clone(),
            proof: arm.proof.clone(),
            figure,
            effect: estimate.effect,
            error: standard_error(cell, estimate),
            count: estimate.count,
            starts: estimate.starts,
            levels: estimate.levels,
            unit: estimate.unit.to_string(),
            flags: estimate.flags.clone(),
        })
    }

    /// As a unit of the next level; `None` without an interval.
    pub fn unit(&self) -> Option<UnitEffect> {
        let known = self.effect.estimate.is_finite() && self.error.is_finite();
        let by_starts = self.starts >= STARTS_MIN as usize;
        let degrees = if by_starts { self.starts as f64 - 1.0 } else { f64::INFINITY };
        known.then_some(UnitEffect { effect: self.effect.estimate, variance: self.error * self.error, degrees })
    }

    /// Degrees of freedom of the quantiles that widen its interval for a smaller error.
    ///
    /// If frames share starts, they are those of the starts. A task records neither how many consecutive frames were
    /// averaged, nor the degrees of the spread that widened an interval on few starts. So the smallest possible number
    /// is used for these: with a larger one the interval would be widened too little.
    pub fn degrees(&self) -> f64 {
        let values = match self.starts {
            // The fewest starts from which `tithe calibrate --starts` computes a spread.
            few if few < STARTS_MIN as usize => self.count.min(STARTS_MIN as usize),
            starts if starts < self.count => starts,
            _ => self.count.min(FEWEST_MERGED),
        };
        (values as f64 - 1.0).max(1.0)
    }
}

/// The standard error behind an interval: half of its width divided by its quantile.
///
/// If there are enough starts to estimate their spread, the quantile is Student's. Otherwise the normal distribution's
/// is used, which is never larger, so the precision of a host is never overestimated. The same holds for a host whose
/// cell ended by its answers.
fn standard_error(cell: &CellAnalysis, estimate: &Estimate) -> f64 {
    let protected = cell.arms.len().saturating_sub(1);
    let tail = deciding::alpha(protected, EndsBy::of(false, cell.ending.as_ref())) / 2.0;
    let by_starts = !estimate.widened && estimate.starts >= STARTS_MIN as usize;
    let quantile = if by_starts { t_upper(tail, estimate.starts as f64 - 1.0) } else { normal_upper(tail) };
    let error = estimate.effect.half_width() / quantile;
    if error.is_finite() { error } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn of(change: impl Fn(&mut CellAnalysis)) -> CellOutcome {
        let mut analysis = sample::full();
        analysis.cells[0].arms.truncate(2);
        change(&mut analysis.cells[0]);
        Outcome::of(&analysis, "", 0, 0).cells.remove(0)
    }

    #[test]
    fn the_error_of_a_host_is_its_interval_by_the_quantile_that_made_it() {
        let quantile = |starts: usize, widened: bool, ending: CellEnding| {
            let cell = of(|cell| {
                cell.ending = Some(ending.clone());
                let tls = &mut cell.arms[1].estimates[0];
                (tls.starts, tls.widened) = (starts, widened);
            });
            cell.arms[0].effect.half_width() / cell.arms[0].error
        };
        // R 4.3: qnorm(0.975), qt(0.975, 3), qt(0.975, 7), and qnorm(0.98) for a cell that ended by its precision.
        for (found, right) in [
            (quantile(3, false, CellEnding::Budget), 1.959_963_985),
            (quantile(8, true, CellEnding::Budget), 1.959_963_985),
            (quantile(4, false, CellEnding::Budget), 3.182_446_305),
            (quantile(8, false, CellEnding::Budget), 2.364_624_252),
            (quantile(3, false, CellEnding::Precision), 2.053_748_911),
        ] {
            assert!((found - right).abs() < 1e-6, "{found} {right}");
        }
    }

    #[test]
    fn an_arm_is_a_unit_if_its_cost_and_its_error_are_known() {
        let arm = of(|_| ()).arms.remove(0);
        let unit = |starts: usize, estimate: f64, error: f64| {
            let effect = Interval { estimate, ..arm.effect };
            ArmOutcome { starts, effect, error, ..arm.clone() }.unit()
        };
        // Fewer than four starts show nothing of their own error.
        for (starts, degrees) in [(1, f64::INFINITY), (3, f64::INFINITY), (4, 3.0), (8, 7.0)] {
            assert_eq!(unit(starts, 0.3, 0.5), Some(UnitEffect { effect: 0.3, variance: 0.25, degrees }));
        }
        assert_eq!([unit(8, f64::NAN, 0.5), unit(8, f64::INFINITY, 0.5), unit(8, 0.3, f64::NAN)], [None; 3]);
    }

    #[test]
    fn a_cell_without_frames_says_why() {
        let failed = |frames: usize, ending: CellEnding| {
            of(|cell| (cell.frames, cell.ending) = (frames, Some(ending.clone()))).failed
        };
        assert_eq!(failed(30, CellEnding::Budget), None);
        assert_eq!(failed(0, CellEnding::Budget).as_deref(), Some("not one frame was measured"));
        assert_eq!(failed(30, CellEnding::Failed("gone".to_owned())).as_deref(), Some("gone"));
    }
}
