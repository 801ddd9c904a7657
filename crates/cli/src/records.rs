//! From the run folder's contents to what the analysis takes.

use std::path::Path;

use tithe_analysis::{
    Analysis, Records,
    assess::Assessor,
    report::html::{Story, Teller},
};
use tithe_harness::{
    fault::Fault,
    folder::{self, CellRecords, Contents, Parts},
};
use tithe_model::record::Event;

/// The records of the run folder at `path`.
pub fn of(path: &Path, contents: Contents) -> Records {
    let run = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let run = run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut warnings = Vec::new();
    let mut tithe = String::new();
    for event in &contents.events {
        match event {
            Event::Warning { message } => warnings.push(message.clone()),
            Event::RunStarted { tithe: version, .. } => tithe.clone_from(version),
            _ => {}
        }
    }
    let Contents { plan, machine, cells, frames, mut slots, findings, damage, .. } = contents;
    warnings.extend(damage);
    slots.sort_by_key(|slot| slot.cell);
    Records {
        run,
        plan,
        machine,
        frames,
        slots,
        findings,
        warnings,
        tithe,
        facts: cells.iter().map(|cell| cell.arms.clone()).collect(),
        modes: cells.iter().map(|cell| cell.mode.clone()).collect(),
        endings: cells.iter().map(|cell| cell.ending.clone()).collect(),
        workload_notes: cells.into_iter().map(|cell| cell.notes).collect(),
    }
}

/// What a run folder says.
pub struct Assessed {
    /// The analysis.
    pub analysis: Analysis,
    /// What a page tells beyond it.
    pub story: Story,
    /// Frames that could not be used because their records are damaged, a line each.
    pub damage: Vec<String>,
}

/// Assesses the run folder at `path` with one cell in memory at a time.
///
/// # Errors
/// When it is not a run folder, or of another format.
pub fn assess(path: &Path) -> Result<Assessed, Fault> {
    assess_opened(path, folder::open(path)?)
}

/// The same of one that is open.
///
/// # Errors
/// As [`assess`].
pub fn assess_opened(path: &Path, (contents, parts): (Contents, Parts)) -> Result<Assessed, Fault> {
    let mut records = of(path, contents);
    let mut assessor = Assessor::new(&records);
    let mut teller = Teller::default();
    let mut all_damage = Vec::new();
    for cell in 0..records.plan.cells.len() {
        let CellRecords { frames, slots, damage } = parts.cell(cell)?;
        (records.frames, records.slots) = (frames, slots);
        all_damage.extend(damage);
        assessor.next_cell(&records);
        teller.hear(&records.frames, records.plan.experiment.arms.len());
    }
    records.warnings.extend(all_damage.iter().cloned());
    Ok(Assessed { analysis: assessor.finish(&records), story: teller.tell(&experiment(path)), damage: all_damage })
}

/// The experiment file as the run folder at `path` keeps it; empty where it cannot be read.
fn experiment(path: &Path) -> String {
    std::fs::read_to_string(path.join("experiment.toml")).unwrap_or_default()
}
