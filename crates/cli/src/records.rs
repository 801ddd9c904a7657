//! From a run folder to its analysis, one cell in memory at a time.

use std::path::Path;

use tithe_analysis::{
    Analysis,
    assess::Assessor,
    report::html::{Story, Teller},
};
use tithe_harness::{
    fault::Fault,
    folder::{self, CellRecords, Parts},
};
use tithe_model::records::Records;

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
pub fn assess_opened(path: &Path, (mut records, parts): (Records, Parts)) -> Result<Assessed, Fault> {
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
    records.damage = all_damage;
    Ok(Assessed { analysis: assessor.finish(&records), story: teller.tell(&experiment(path)), damage: records.damage })
}

/// The experiment file as the run folder at `path` keeps it; empty where it cannot be read.
fn experiment(path: &Path) -> String {
    std::fs::read_to_string(path.join("experiment.toml")).unwrap_or_default()
}
