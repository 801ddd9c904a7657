//! From a run to its extract for the atlas: what qualifies, and what does not, in words.
//!
//! The atlas compares hosts, so a run must be one that every host can repeat: an experiment of the atlas, unchanged,
//! measured to its end by this version of Tithe on an otherwise idle machine, with undamaged records. An arm that was
//! not proven stays, and its place says why there is no figure.

use tithe_model::{
    ending::CellEnding,
    plan::FRAMES_MIN,
    quantity::{fixed, percentage},
};
use tithe_statistics::verdict::digits;

use super::{AtlasArm, AtlasCell, AtlasProfile, AtlasRun, FORMAT, Kind};
use crate::{Analysis, ArmAnalysis, ArmProfile, CellAnalysis, Flag, Proof, matrix::Outcome};

/// Highest steal time, a share: more is another virtual machine's load.
const STEAL_MOST: f64 = 0.01;

/// Highest one-minute load average for each processor. Servers and clients of an experiment of the atlas need up to
/// three.
const LOAD_MOST: f64 = 5.0;

/// Most parts of a profiled cost that are kept.
const PARTS: usize = 5;

/// Where a run comes from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Version of this program.
    pub tithe: &'a str,
    /// Name of the experiment of the atlas that was run unchanged; `None` if it was none, or was changed.
    pub experiment: Option<&'a str>,
    /// Commit of the program that measured.
    pub commit: &'a str,
    /// Damaged records of the run folder.
    pub damage: &'a [String],
}

/// The extract of a run.
///
/// # Errors
/// Every reason why the run does not qualify, whole sentences.
pub fn entry(analysis: &Analysis, source: &Source<'_>) -> Result<AtlasRun, Vec<String>> {
    let refusals = refusals(analysis, source);
    let (Some(experiment), Some(began), []) = (source.experiment, analysis.began_unix_s, refusals.as_slice()) else {
        return Err(refusals);
    };
    Ok(AtlasRun {
        format: FORMAT,
        experiment: experiment.to_owned(),
        run: analysis.run.clone(),
        commit: source.commit.to_owned(),
        cells: analysis.cells.iter().map(cell).collect(),
        outcome: Outcome::of(analysis, experiment, 0, began),
    })
}

fn refusals(analysis: &Analysis, source: &Source<'_>) -> Vec<String> {
    let mut refusals = Vec::new();
    if source.experiment.is_none() {
        refusals.push(
            "Its experiment is none of the atlas, or was changed in the file or by an option: run a file of \
             experiments/atlas as it is, with --profile or without."
                .to_owned(),
        );
    }
    if analysis.tithe != source.tithe {
        refusals
            .push(format!("It was measured by tithe {}, and this is {}: measure again.", analysis.tithe, source.tithe));
    }
    if let Some(first) = source.damage.first() {
        refusals.push(format!("Records are damaged ({first}): measure again."));
    }
    if analysis.began_unix_s.is_none() || analysis.machine.boot.is_empty() {
        refusals.push("It does not say when, or on which boot of a kernel, it was measured.".to_owned());
    }
    for cell in &analysis.cells {
        refusals.extend(
            of_cell(cell, analysis.machine.processors).into_iter().map(|why| format!("Cell {}: {why}", cell.id)),
        );
    }
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| is_compared(arm));
    if !arms().any(|arm| arm.proof.stands()) {
        refusals.push("No protection was proven to be on.".to_owned());
    }
    if analysis.cells.iter().all(|cell| kind(cell).is_none()) {
        refusals.push("No cell is of a kind of work that the atlas has.".to_owned());
    }
    refusals
}

/// Why a cell does not qualify.
fn of_cell(cell: &CellAnalysis, processors: u32) -> Vec<String> {
    let mut refusals = Vec::new();
    match &cell.ending {
        None | Some(CellEnding::Interrupted) => refusals.push("it was not measured to its end.".to_owned()),
        Some(CellEnding::Failed(why)) => refusals.push(format!("it failed: {why}.")),
        Some(CellEnding::Precision | CellEnding::Decided | CellEnding::Budget) => (),
    }
    if cell.frames < FRAMES_MIN as usize {
        refusals.push(format!("it has {} frames, and an interval needs {FRAMES_MIN}.", cell.frames));
    }
    if let Some(steal) = cell.host.steal.filter(|steal| *steal > STEAL_MOST) {
        let [steal, most] = [steal, STEAL_MOST].map(|share| percentage(&digits(100.0 * share)));
        refusals.push(format!("steal time was {steal}, and may be {most}: the hypervisor ran other machines."));
    }
    let most = LOAD_MOST * f64::from(processors);
    if cell.host.load > most {
        let load = fixed(cell.host.load, 1);
        refusals.push(format!("the load average was {load}, and may be {most} here: other programs ran."));
    }
    let flags = || cell.arms.iter().filter_map(ArmAnalysis::primary).flat_map(|estimate| &estimate.flags);
    if flags().any(|flag| *flag == Flag::Throttled) {
        refusals.push("a quota throttled it.".to_owned());
    }
    if flags().any(|flag| *flag == Flag::Asymmetric) {
        refusals.push("the plain arm differs from itself: the set-up is not symmetric.".to_owned());
    }
    refusals
}

fn is_compared(arm: &ArmAnalysis) -> bool {
    !arm.aa && arm.proof != Proof::Baseline
}

fn kind(cell: &CellAnalysis) -> Option<Kind> {
    Kind::of(&cell.workload, &cell.resources)
}

fn cell(cell: &CellAnalysis) -> AtlasCell {
    let kind = kind(cell);
    let resources = Some(cell.resources.as_str()).filter(|name| !name.is_empty());
    let name = [Some(cell.workload.as_str()), resources].into_iter().flatten().collect::<Vec<_>>().join(", ");
    // The columns of reads say what the cache holds.
    let of_reads = matches!(kind, Some(Kind::ReadsInMemory | Kind::ReadsBeyondCache));
    let control = cell.arms.iter().find(|arm| arm.aa).and_then(ArmAnalysis::primary).map(|estimate| estimate.effect);
    let compared = cell.arms.iter().filter(|arm| !arm.aa && arm.primary().is_some());
    AtlasCell {
        kind,
        name: if of_reads { kind.map_or("", Kind::title).to_owned() } else { name },
        version: cell.arms.first().map_or(String::new(), |arm| arm.facts.version.clone()),
        clients: cell.clients,
        control: control.filter(|interval| interval.half_width().is_finite()),
        arms: compared.map(|arm| self::arm(cell, arm)).collect(),
    }
}

fn arm(cell: &CellAnalysis, arm: &ArmAnalysis) -> AtlasArm {
    let mut profiled = cell.profile.iter().flat_map(|profile| &profile.arms);
    let profiled = profiled.find(|it| it.name == arm.name);
    AtlasArm {
        difference: arm.primary().and_then(|it| it.difference).filter(|it| it.half_width().is_finite()),
        profile: profiled.filter(|it| !it.components.is_empty()).map(self::profile),
    }
}

fn profile(arm: &ArmProfile) -> AtlasProfile {
    let parts = |is_counted: bool| {
        let parts = arm.parts(is_counted).into_iter().take(PARTS);
        parts.map(|it| (format!("{}, {}", it.side.words(), it.component), it.difference)).collect()
    };
    AtlasProfile { sum: arm.sum, parts: parts(true), beside: parts(false) }
}
