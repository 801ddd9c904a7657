//! Parses a document that [`render`](super::render) wrote, or explains why it cannot be shown.

use serde_json::{Value, error::Category};

use super::{Document, FORMAT};
use crate::{Analysis, report::html::PageData};

/// Maximum number of frames of a cell: records count them in 32 bits.
const MOST_FRAMES: usize = u32::MAX as usize;

/// The analysis in the document `text`, and the content of a page beyond it.
///
/// # Errors
/// Why `text` cannot be shown, with the place: it is not a report, has another format, is cut short, or damaged.
pub fn read(text: &str) -> Result<(Analysis, PageData), String> {
    let value: Value = serde_json::from_str(text).map_err(cause)?;
    if value.get("tithe_report").is_none() {
        return Err("it is JSON and no report of tithe, which has a `tithe_report`".to_owned());
    }
    match value.get("format").and_then(Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => return Err(other_format(format)),
        None => return Err("it does not say its `format` as a whole number".to_owned()),
    }
    let Document { tithe_report, page, .. } = serde_json::from_str(text).map_err(cause)?;
    let (analysis, page_data) = (tithe_report.into_owned(), page.into_owned());
    match strays(&analysis, &page_data) {
        Some(stray) => Err(stray),
        None => Ok((analysis, page_data)),
    }
}

fn other_format(format: u64) -> String {
    if format > u64::from(FORMAT) {
        format!("it is of format {format}, which a newer tithe wrote; this one reads format {FORMAT}")
    } else {
        format!(
            "it is of format {format}, which an older tithe wrote and which lacks what reports are made from; this one \
             reads format {FORMAT}: make the document again from its run folder (tithe report RUN --format json)"
        )
    }
}

/// Where `text` stops being a valid document, and why.
fn cause(error: serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    let told = error.to_string();
    let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(told, _)| told);
    match error.classify() {
        Category::Eof => format!("it ends at {place} in the middle of a value: it is cut short"),
        Category::Syntax => format!("{place} is not JSON: {told}"),
        Category::Data | Category::Io => format!("{place} is damaged: {told}"),
    }
}

/// The first place with a cell or an arm that does not exist, with more frames than possible, or with an invalid unit:
/// units are printed next to figures unchanged.
fn strays(analysis: &Analysis, page_data: &PageData) -> Option<String> {
    let cells = &analysis.cells;
    let too_many = cells.iter().position(|cell| cell.frames > MOST_FRAMES);
    let log = cells.iter().position(|cell| cell.log_over_start.iter().any(|place| place.arms.len() != cell.arms.len()));
    let curve =
        page_data.curves.iter().position(|curve| cells.get(curve.cell).is_none_or(|cell| curve.arm >= cell.arms.len()));
    let is_unit = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || "/% ".contains(letter));
    let unit = cells.iter().position(|cell| {
        let estimates = cell.arms.iter().flat_map(|arm| &arm.estimates).map(|it| &it.unit);
        let levels = cell.arms.iter().flat_map(|arm| &arm.levels).map(|it| &it.unit);
        estimates.chain(levels).any(|it| !is_unit(it))
    });
    let moment = page_data.moments.iter().position(|moment| moment.cell >= cells.len());
    [
        (too_many, "tithe_report.cells", "has more frames than a cell can have"),
        (log, "tithe_report.cells", "has the log of other arms than its own"),
        (unit, "tithe_report.cells", "has a figure with an invalid unit"),
        (curve, "page.curves", "names a cell or an arm that is not in the report"),
        (moment, "page.moments", "names a cell that is not in the report"),
    ]
    .into_iter()
    .find_map(|(index, list, words)| index.map(|index| format!("{list}[{index}] is damaged: it {words}")))
}
