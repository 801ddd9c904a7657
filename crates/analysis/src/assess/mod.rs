//! Records → analysis.
//!
//! [`assess`] treats each cell alone. `measured` selects the frames and slots that count, and `levels` describes each
//! arm. `slots`, `percentiles`, `counters` and `sizes` compare the protected arms with the baseline. `proof` and
//! `difference` describe the arms' protections and configuration. `control` compares the other arms with the A/A arm,
//! `over_run` judges headlines over all cells, and `persistence` guards figures that include waiting. All of it is a
//! pure function of the records.
//!
//! Left out: absolute comparisons between cells, and figures of frames that are invalid or have no record.

mod agents;
mod carry_over;
mod connecting;
pub(crate) mod control;
mod counters;
pub(crate) mod course;
mod difference;
pub(crate) mod estimate;
mod idle;
mod levels;
mod measured;
pub(crate) mod moved;
mod over_run;
mod over_start;
mod percentiles;
pub(crate) mod persistence;
mod profile;
mod proof;
mod published;
pub mod resolution;
mod sequential;
mod sizes;
mod slots;
mod stand_in;
mod statements;
mod sums;
mod sweep;
mod switched;
pub(crate) mod warm_up;
mod within_frame;

use tithe_model::{
    experiment::{Arm, Design, Metric, Resources},
    fact::Fact,
    record::{ArmFacts, CIPHER_DRIVER, Finding, Host, Verdict},
    records::Records,
};

use crate::{Analysis, ArmAnalysis, CONFIDENCE, CellAnalysis, Estimate, Figure, Flag, Level, counted::holds_waiting};
pub(crate) use levels::{busy_ns, throughput};
use measured::Measured;
pub(crate) use measured::counts_in;

/// The analysis of records. The same records always give the same analysis.
pub fn assess(records: &Records) -> Analysis {
    let mut assessor = Assessor::new(records);
    (0..records.plan.cells.len()).for_each(|_| assessor.next_cell(records));
    assessor.finish(records)
}

/// Assesses a run cell by cell, for records that are not all in memory at once.
pub struct Assessor {
    cells: Vec<CellAnalysis>,
    warnings: Vec<String>,
    /// ln(operations per second) by cell, arm and frame, for results over several cells.
    throughputs: Vec<Vec<Vec<f64>>>,
    /// When the first frame began, ns since 1970.
    began_unix_ns: Option<u64>,
}

impl Assessor {
    /// For a run; this does not read frames and slots.
    pub fn new(records: &Records) -> Self {
        Self { cells: Vec::new(), warnings: records.warnings(), throughputs: Vec::new(), began_unix_ns: None }
    }

    /// Assesses the next cell in the plan's order. `records` must hold at least its frames and slots.
    pub fn next_cell(&mut self, records: &Records) {
        let index = self.cells.len();
        let of_cell = records.frames.iter().filter(|frame| frame.cell as usize == index);
        self.began_unix_ns = of_cell.map(|frame| frame.start_unix_ns).chain(self.began_unix_ns).min();
        let measured = Measured::new(records, index);
        let arms = 0..records.plan.experiment.arms.len();
        self.throughputs.push(arms.map(|arm| sweep::throughputs(&measured, arm)).collect());
        self.cells.push(assess_cell(records, index, measured, &mut self.warnings));
    }

    /// The analysis, once every cell is assessed.
    pub fn finish(self, records: &Records) -> Analysis {
        let experiment = &records.plan.experiment;
        Analysis {
            run: records.run.clone(),
            title: experiment.title.clone(),
            database: experiment.database.clone(),
            tithe: records.tithe().to_owned(),
            seed: experiment.measure.seed,
            records: experiment.data.records,
            began_unix_s: self.began_unix_ns.map(|began| began / 1_000_000_000),
            confidence: CONFIDENCE,
            margin: experiment.measure.margin,
            precision: Some(experiment.measure.precision),
            machine: records.machine.clone(),
            sweeps: sweep::sweeps(records, &self.cells, &self.throughputs),
            cells: self.cells,
            warnings: self.warnings,
        }
    }
}

fn assess_cell(
    records: &Records,
    index: usize,
    mut measured: Measured<'_>,
    warnings: &mut Vec<String>,
) -> CellAnalysis {
    let (cell, experiment) = (measured.cell, &records.plan.experiment);
    let asked = experiment.measure.primary;
    let mut notes: Vec<String> = Vec::new();
    let cells = records.plan.cells.len();
    // Without data there is no reason against the requested metric.
    let deciding = if measured.frames.is_empty() { asked } else { measured.seen.deciding(asked) };
    let waiting = persistence::differs(&measured, deciding, cells);
    let (primary, because) = match &waiting {
        _ if measured.frames.is_empty() => (asked, None),
        // Processor time does not contain the work of a volume.
        Some((_, words)) if holds_waiting(deciding) && has_volume(&records.cells[index].arms) => {
            notes.push(format!("{words}: figures that include waiting are wider by as much as it may differ"));
            (deciding, None)
        }
        Some((_, words)) if holds_waiting(deciding) => (Metric::Cpu, Some(words.clone())),
        _ => (deciding, measured.cannot_decide(asked)),
    };
    // Figures that do not decide are shown as well. An unprotected arm of the experiment says nothing about them.
    let taken_back = waiting.clone().filter(|(arm, _)| experiment.arms[*arm].aa && !holds_waiting(primary));
    if let Some((_, words)) = taken_back.as_ref().filter(|_| !holds_waiting(deciding)) {
        notes.push(format!("{words}: figures that include waiting are no answers"));
    }
    notes.extend(because.map(|because| format!("{because}; CPU per op decides instead")));
    notes.extend(measured.diagnostics());
    let log_over_start = over_start::log_over_start(&measured);
    notes.extend(over_start::words(&log_over_start, &experiment.arms, measured.starts()));
    let warm_ups = measured::warm_ups(records, index);
    notes.extend(warm_up::warning(cell, &experiment.arms, &warm_ups));
    let agents = agents::agents(&measured);
    notes.extend(agents::warnings(&agents));
    notes.extend(stand_in::stand_ins(records.cells[index].arms.iter()));
    let findings: Vec<Finding> = records.findings.iter().filter(|it| it.cell as usize == index).cloned().collect();
    notes.extend(proof::cut_short(&findings, &measured.epochs).into_iter().map(|epoch| {
        format!("the run was killed in epoch {}, so not every protection was checked again after its frames", epoch + 1)
    }));
    let mut arms = arms(records, index, &measured, primary);
    if taken_back.is_some() {
        persistence::take_back(&mut arms);
    }
    if !measured.frames.is_empty() {
        let estimates = arms.iter_mut().flat_map(|arm| &mut arm.estimates);
        estimates
            .filter(|estimate| !is_spread(estimate) && !measured.has_enough_frames(estimate))
            .for_each(|estimate| estimate::without_interval(&measured, estimate));
    }
    adjust_p(&mut arms);
    let asymmetry = control::asymmetry(&mut measured, &arms, primary, cells);
    if asymmetry.is_some() {
        let estimates = arms.iter_mut().flat_map(|arm| &mut arm.estimates);
        // A deciding figure is flagged even without a p value.
        let flagged = estimates.filter(|it| (it.p.is_some() || it.primary) && it.is_symmetric());
        flagged.for_each(|estimate| estimate.flags.push(Flag::Asymmetric));
    }
    over_run::judge(&mut measured, &mut arms, primary, cells);
    if let Some((control, _)) = waiting.filter(|_| holds_waiting(primary)) {
        persistence::widen(&measured, &mut arms, control);
    }
    control::hold(&mut arms);
    persistence::hold(&measured, &mut arms);
    moved::hold(&mut arms, measured.margin);
    warm_up::hold(&mut arms, &warm_ups, &measured.start_numbers().collect::<Vec<_>>(), measured.margin);
    arms.iter_mut().for_each(idle::weigh);
    let profile = profile::profile(records, index, &arms);
    notes.extend(asymmetry);
    warnings.extend(notes.into_iter().map(|note| format!("{}: {note}.", cell.id)));

    CellAnalysis {
        id: cell.id.clone(),
        workload: experiment.workloads.get(cell.workload).map(|it| it.name.clone()).unwrap_or_default(),
        resources: experiment.resources.get(cell.resources).map(|it| it.name.clone()).unwrap_or_default(),
        version: experiment.resources.get(cell.resources).map(Resources::version_words).unwrap_or_default(),
        clients: cell.clients,
        arrivals: cell.arrivals.to_string(),
        notes: records.cells[index].notes.clone(),
        mode: records.cells[index].mode.clone(),
        slot_ms: measured.slot_ns as f64 / 1e6,
        frames: measured.frames.len(),
        // There is one server; how often its provider starts it is unknown.
        starts: if cell.design.is_switched() { measured.starts().min(1) } else { measured.starts() },
        pairs: if cell.design.is_switched() { measured.starts() } else { 0 },
        epochs: if cell.design.is_switched() { 1 } else { measured.epochs.len() as u32 },
        ending: records.cells[index].ending.clone(),
        host: mean_host(measured.frames.iter().map(|frame| &frame.record.host)),
        wait_share: measured.wait_share(),
        // Also those of a cell that ended before its first frame.
        warm_up: warm_up::words(cell, &records.cells[index].warm_ups),
        log_over_start,
        statements: statements::statements(&measured, &records.cells[index]),
        agents,
        arms,
        profile,
        invalid: measured.invalid,
    }
}

/// True if an arm is on another volume than the plain arm.
fn has_volume(arms: &[ArmFacts]) -> bool {
    arms.iter().any(|arm| arm.reported(Fact::Volume) != arms[0].reported(Fact::Volume))
}

fn arms(records: &Records, cell: usize, measured: &Measured<'_>, primary: Metric) -> Vec<ArmAnalysis> {
    let experiment = &records.plan.experiment;
    let arms = &experiment.arms;
    let facts = |arm: usize| records.cells[cell].arms.get(arm).cloned().unwrap_or_default();
    let levels: Vec<Vec<Level>> = (0..arms.len()).map(|arm| levels::levels(measured, arm)).collect();
    let plain = facts(0);
    let known = measured.asked(Metric::Cpu).known;
    let mut idle = idle::idle(&records.cells[cell].idle, arms.len(), known).into_iter();
    let assess_arm = |(index, arm): (usize, &Arm)| {
        let protected = facts(index);
        let findings: Vec<Finding> = records
            .findings
            .iter()
            .filter(|it| (it.cell as usize, it.arm as usize) == (cell, index))
            .cloned()
            .collect();
        ArmAnalysis {
            name: arm.name.clone(),
            aa: arm.aa,
            protections: arm.protections.iter().map(|protection| protection.id.clone()).collect(),
            difference: if index == 0 { Vec::new() } else { difference::difference(&plain, &protected) },
            proof: if arm.is_second(&arms[0]) {
                crate::Proof::Baseline
            } else {
                proof::proof(arm, &findings, &measured.epochs)
            },
            // A cell without frames has no figures, not even a deciding one.
            estimates: if index == 0 || measured.frames.is_empty() {
                Vec::new()
            } else {
                flagged(estimates(measured, index, primary, &levels), &findings)
            },
            levels: levels[index].clone(),
            course: course::course(measured, index, primary),
            idle: idle.next().flatten(),
            connecting: connecting::connecting(measured, index),
            published: published::of(experiment, measured.cell, &arm.name),
            facts: protected,
            findings,
        }
    };
    arms.iter().enumerate().map(assess_arm).collect()
}

/// `estimates`, with a flag if `findings` limit them to machines like this one.
fn flagged(mut estimates: Vec<Estimate>, findings: &[Finding]) -> Vec<Estimate> {
    let slow = |finding: &Finding| finding.check == CIPHER_DRIVER && finding.verdict == Verdict::Fails;
    if findings.iter().any(slow) {
        estimates.iter_mut().for_each(|estimate| estimate.flags.push(Flag::SlowCipher));
    }
    estimates
}

/// All estimates of arm `arm` against the baseline, the primary first.
fn estimates(measured: &Measured<'_>, arm: usize, primary: Metric, levels: &[Vec<Level>]) -> Vec<Estimate> {
    let mut estimates = match measured.cell.design {
        // A frame holds one arm only: there are no pairs.
        Design::Sequential => sequential::estimates(measured, arm, primary),
        Design::Switched { .. } => switched::estimates(measured, arm, primary),
        _ => slots::estimates(measured, arm, primary),
    };
    if !measured.cell.design.has_one_arm_a_frame() {
        estimates.extend(percentiles::estimates(measured, arm));
        estimates.extend(counters::estimates(measured, arm));
        estimates.extend(sizes::estimates(measured, arm));
    }
    for estimate in &mut estimates {
        let name = estimate.name.level();
        let of_arm = |arm: usize| levels[arm].iter().find(|level| level.name == name);
        if let (Some(plain), Some(protected)) = (of_arm(0), of_arm(arm)) {
            estimate.levels = Some((plain.value, protected.value));
            estimate.unit = protected.unit.clone();
        }
    }
    estimates
}

/// Holm's adjustment of the p of each figure over the arms: the smallest error at which this arm's effect would still
/// be reported (Holm 1979).
fn adjust_p(arms: &mut [ArmAnalysis]) {
    let names: Vec<Figure> = arms.iter().flat_map(|arm| &arm.estimates).map(|estimate| estimate.name.clone()).collect();
    for name in std::collections::BTreeSet::from_iter(names) {
        let of_name = arms.iter_mut().flat_map(|arm| &mut arm.estimates).filter(|estimate| estimate.name == name);
        let mut of_name: Vec<&mut Estimate> = of_name.filter(|estimate| estimate.p.is_some()).collect();
        let p: Vec<f64> = of_name.iter().filter_map(|estimate| estimate.p).collect();
        for (estimate, adjusted) in of_name.iter_mut().zip(tithe_statistics::inference::holm_adjusted(&p)) {
            estimate.p = Some(adjusted);
        }
    }
}

/// True for figures whose range is the spread over the frames and not an interval.
fn is_spread(estimate: &Estimate) -> bool {
    matches!(estimate.name, Figure::Size(_))
}

/// Mean of the machine's state; a figure that is in no frame stays unknown.
fn mean_host<'a>(hosts: impl Iterator<Item = &'a Host> + Clone) -> Host {
    let mean = |read: fn(&Host) -> Option<f64>| {
        let seen: Vec<f64> = hosts.clone().filter_map(read).collect();
        (!seen.is_empty()).then(|| tithe_statistics::mean(&seen))
    };
    Host {
        load: mean(|host| Some(host.load)).unwrap_or_default(),
        cpu_pressure: mean(|host| host.cpu_pressure),
        io_pressure: mean(|host| host.io_pressure),
        steal: mean(|host| host.steal),
        throttled: mean(|host| host.throttled),
    }
}
