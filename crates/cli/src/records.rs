//! From a run folder to its analysis, with one cell in memory at a time, or from a document that contains one.

use std::path::Path;

use tithe_analysis::{
    Analysis,
    assess::Assessor,
    report::{
        html::{PageData, PageDataBuilder},
        json,
    },
};
use tithe_harness::folder::{self, CellRecords, Parts};
use tithe_machine::fault::Fault;
use tithe_model::records::Records;

use crate::exit::{self, Stop};

/// The content of a run folder or a document.
pub struct Assessed {
    /// The analysis.
    pub analysis: Analysis,
    /// Further data for a page.
    pub page_data: PageData,
    /// Frames that could not be used because their records are damaged, one line each.
    pub damage: Vec<String>,
}

/// The content of `path`: a run folder, or a report as JSON (`report.json`).
///
/// # Errors
/// When it is neither, of another format, or a damaged document.
pub fn read(path: &Path) -> Result<Assessed, Stop> {
    if path.is_file() {
        return document(path).map_err(|why| Stop::new(exit::USAGE, format!("{}: {why}", path.display())));
    }
    assess(path).map_err(|fault| Stop::new(exit::USAGE, fault))
}

/// The document at `path`, or why it cannot be shown.
fn document(path: &Path) -> Result<Assessed, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8, so it is no report as JSON".to_owned())?;
    // Editors of Windows write a mark before the text.
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('<') {
        return Err("it is a page, which a run has made: name the run folder, or its report.json".to_owned());
    }
    let (analysis, page_data) = json::read(text)?;
    Ok(Assessed { analysis, page_data, damage: Vec::new() })
}

/// Assesses the run folder at `path` with one cell in memory at a time.
///
/// # Errors
/// When it is not a run folder, or of another format.
pub fn assess(path: &Path) -> Result<Assessed, Fault> {
    let (mut records, parts): (Records, Parts) = folder::open(path)?;
    let mut assessor = Assessor::new(&records);
    let mut builder = PageDataBuilder::default();
    let mut all_damage = Vec::new();
    for cell in 0..records.plan.cells.len() {
        let CellRecords { frames, slots, damage } = parts.cell(cell)?;
        (records.frames, records.slots) = (frames, slots);
        all_damage.extend(damage);
        assessor.next_cell(&records);
        builder.add_cell(&records.frames, &records);
    }
    records.damage = all_damage;
    Ok(Assessed {
        analysis: assessor.finish(&records),
        page_data: builder.build(&experiment(path)),
        damage: records.damage,
    })
}

/// The experiment file in the run folder at `path`; empty if it cannot be read.
fn experiment(path: &Path) -> String {
    std::fs::read_to_string(path.join("experiment.toml")).unwrap_or_default()
}
