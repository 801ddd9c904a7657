//! The content of a document beyond the analysis: the machine over time, for the page, and complete latency curves, for
//! programs. The page draws percentiles with their intervals instead, because a curve has none.
//!
//! Built once from the records, and small for a run of any length: a curve has a fixed number of points, and frames are
//! merged into about [`MOMENTS`] moments at most.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tithe_model::{
    histogram::Histogram,
    record::{ArmFrame, Frame, Host},
    records::Records,
};

use crate::assess::counts_in;

/// Maximum number of moments in the timeline of one cell; each further cell may add one.
const MOMENTS: usize = 360;

/// Percentiles of a curve, as decimal logarithms of 1/(1 − share): 0.3 is the median, 3 is p99.9.
const STEPS: [f64; 14] = [0.046, 0.125, 0.301, 0.5, 0.7, 0.85, 1.0, 1.15, 1.301, 1.5, 1.75, 2.0, 2.5, 3.0];

/// Samples needed beyond a point of a curve to draw it.
const BEYOND: f64 = 10.0;

/// The content beyond the analysis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageData {
    /// The experiment file as stored in the run folder.
    pub experiment: String,
    /// Latency curves, by cell, operation and arm.
    pub curves: Vec<Curve>,
    /// The machine over time.
    pub moments: Vec<Moment>,
}

/// The latency of one operation on one arm, over all frames that count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Index of the cell.
    pub cell: usize,
    /// The operation: `READ`.
    pub operation: String,
    /// Index of the arm.
    pub arm: usize,
    /// Positions as −log10(1 − share), with the latency there, µs.
    pub points: Vec<(f64, f64)>,
}

/// A part of the run: one frame, or several merged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Index of the cell; of the first if frames of several are merged.
    pub cell: usize,
    /// When it began, s since the first frame.
    pub start_s: f64,
    /// Duration, s.
    pub duration_s: f64,
    /// Share of the time in which some task waited for a processor, 0–1; the largest of the merged frames.
    #[serde(deserialize_with = "Option::deserialize")]
    pub cpu_pressure: Option<f64>,
    /// The same for storage.
    #[serde(deserialize_with = "Option::deserialize")]
    pub io_pressure: Option<f64>,
    /// Steal time as a share of processor time, 0–1, the largest.
    #[serde(deserialize_with = "Option::deserialize")]
    pub steal: Option<f64>,
    /// Load average, the largest.
    pub load: f64,
    /// Number of invalid frames in it.
    pub invalid: u32,
}

impl PageData {
    /// The page data of a run; `experiment` is the text of its file.
    pub fn of(records: &Records, experiment: &str) -> Self {
        let mut builder = PageDataBuilder::default();
        for cell in records.frames.chunk_by(|one, other| one.cell == other.cell) {
            builder.add_cell(cell, records);
        }
        builder.build(experiment)
    }
}

/// Builds page data cell by cell, for records that are not all in memory at once.
#[derive(Debug, Default)]
pub struct PageDataBuilder {
    curves: Vec<Curve>,
    glances: Vec<Glance>,
}

/// The data of a frame for the timeline.
#[derive(Debug, Clone, Copy)]
struct Glance {
    cell: u32,
    start_unix_ns: u64,
    duration_ns: u64,
    host: Host,
    invalid: bool,
}

impl PageDataBuilder {
    /// Adds all frames of one cell of `records`.
    pub fn add_cell(&mut self, frames: &[Frame], records: &Records) {
        self.curves.extend(curves(frames, records));
        self.glances.extend(frames.iter().map(|frame| Glance {
            cell: frame.cell,
            start_unix_ns: frame.start_unix_ns,
            duration_ns: frame.duration_ns,
            host: frame.host,
            invalid: frame.invalid.is_some(),
        }));
    }

    /// The page data of everything added; `experiment` is the text of its file.
    pub fn build(self, experiment: &str) -> PageData {
        PageData { experiment: experiment.to_owned(), curves: self.curves, moments: moments(self.glances) }
    }
}

/// The curves of one cell, without starts whose servers were not steady.
fn curves(frames: &[Frame], records: &Records) -> Vec<Curve> {
    let counts = counts_in(records, frames.first().map_or(0, |frame| frame.cell as usize));
    let mut sums: BTreeMap<(usize, String, usize), Histogram> = BTreeMap::new();
    let open = frames.iter().any(|frame| frame.arms.iter().any(|arm| !arm.intended.is_empty()));
    let read: fn(&ArmFrame) -> &BTreeMap<String, Histogram> =
        if open { |arm| &arm.intended } else { |arm| &arm.latency };
    for frame in frames.iter().filter(|frame| counts(frame)) {
        for (arm, seen) in frame.arms.iter().enumerate() {
            for (operation, histogram) in read(seen) {
                sums.entry((frame.cell as usize, operation.clone(), arm)).or_default().merge(histogram);
            }
        }
    }
    let curve = |((cell, operation, arm), sum): ((usize, String, usize), Histogram)| {
        let far_enough = |step: &&f64| sum.total() as f64 * 10f64.powf(-**step) >= BEYOND;
        let point = |step: &f64| Some((*step, sum.quantile(1.0 - 10f64.powf(-step))? / 1e3));
        Curve { cell, operation, arm, points: STEPS.iter().filter(far_enough).filter_map(point).collect() }
    };
    sums.into_iter().map(curve).filter(|curve| curve.points.len() > 1).collect()
}

/// Merges consecutive frames of a cell, and of consecutive cells if there are too many of them.
fn moments(mut glances: Vec<Glance>) -> Vec<Moment> {
    glances.sort_by_key(|glance| glance.start_unix_ns);
    let Some(first) = glances.first().map(|glance| glance.start_unix_ns) else { return Vec::new() };
    let together = glances.len().div_ceil(MOMENTS);
    let stretches = glances.chunk_by(|one, other| one.cell == other.cell);
    if stretches.clone().count() > MOMENTS / 2 {
        return glances.chunks(together).map(|glances| moment(glances, first)).collect();
    }
    stretches.flat_map(|glances| glances.chunks(together)).map(|glances| moment(glances, first)).collect()
}

/// One moment from consecutive frames; there is at least one.
fn moment(glances: &[Glance], first_ns: u64) -> Moment {
    let largest = |read: fn(&Host) -> Option<f64>| glances.iter().filter_map(|it| read(&it.host)).reduce(f64::max);
    let seconds = |ns: u64| ns.saturating_sub(first_ns) as f64 / 1e9;
    let start_s = seconds(glances[0].start_unix_ns);
    let ends = glances.iter().map(|glance| seconds(glance.start_unix_ns) + glance.duration_ns as f64 / 1e9);
    Moment {
        cell: glances[0].cell as usize,
        start_s,
        duration_s: rounded(ends.fold(start_s, f64::max) - start_s),
        cpu_pressure: largest(|host| host.cpu_pressure).map(rounded),
        io_pressure: largest(|host| host.io_pressure).map(rounded),
        steal: largest(|host| host.steal).map(rounded),
        load: largest(|host| Some(host.load)).unwrap_or(0.0),
        invalid: glances.iter().filter(|glance| glance.invalid).count() as u32,
    }
}

/// `value` to nine decimals: enough for times in seconds and for drawings, and it keeps documents short.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}
