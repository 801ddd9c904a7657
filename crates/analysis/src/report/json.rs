//! The report as JSON, for programs and to be kept: everything that any report of a run is made from, nothing rounded,
//! under a published schema.
//!
//! The document is `{"format": 2, "tithe_report": …, "page": …}`: the analysis, and what a page tells beyond it.
//! Effects are natural-log ratios protected/plain, of throughput those of what an operation takes; how figures that are
//! not finite are written stands in [`null`](tithe_statistics::null). [`read`] takes a document in again, and reports
//! made from it are those of the run folder, byte for byte. Only `ycsb` cannot be made from one: it needs the
//! histograms of single frames.

mod layout;
mod read;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use self::read::read;
use super::html::PageData;
use crate::Analysis;

/// Version of the document; it grows when a reader of the old one could be misled.
pub const FORMAT: u32 = 3;

/// The JSON Schema (draft 2020-12) that every document of [`render`] follows.
pub fn schema() -> &'static str {
    include_str!("../../schema/report.schema.json")
}

/// The document on `analysis` and `page_data`, an estimate a line, ending with a line break.
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
