//! The report as JSON, for programs and for archives: the complete input of every report of a run, without rounding,
//! under a published schema.
//!
//! The document is `{"format": 3, "tithe_report": …, "page": …}`: the analysis, and the content of a page beyond it.
//! Effects are natural-log ratios protected/plain; for throughput they are those of the time per operation. See
//! [`null`](tithe_statistics::null) for figures that are not finite. [`read`] parses a document; reports made from it
//! are identical to those of the run folder, byte for byte. Only `ycsb` cannot be made from one: it needs the
//! histograms of single frames.

mod layout;
mod read;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use self::read::read;
use super::html::PageData;
use crate::Analysis;

/// Version of the document; increased when a reader of the old one could be misled.
pub const FORMAT: u32 = 3;

/// The JSON Schema (draft 2020-12) that every document of [`render`] follows.
pub fn schema() -> &'static str {
    include_str!("../../schema/report.schema.json")
}

/// The document on `analysis` and `page_data`, one estimate per line, ending with a line break.
pub fn render(analysis: &Analysis, page_data: &PageData) -> String {
    let document = Document { format: FORMAT, tithe_report: Cow::Borrowed(analysis), page: Cow::Borrowed(page_data) };
    let text = serde_json::to_string(&document);
    layout::laid_out(&text.expect("every map of a report has text for keys, and nothing else can fail"))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    format: u32,
    tithe_report: Cow<'a, Analysis>,
    page: Cow<'a, PageData>,
}

#[cfg(test)]
mod tests;
