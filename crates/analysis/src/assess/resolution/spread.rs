//! Start-to-start variation from identical arms: how much they differ from one start of the servers to the next, and
//! how wide that makes the interval of a run with one start.
//!
//! There are two spreads. The true one, without the scatter of frames, has an interval; it is for readers. The observed
//! one of the starts' effects, including the scatter of frames, is for a file of spreads. It is never 0 by accident and
//! has the degrees of freedom of Student's t, so an interval widened by it has at most its nominal error.

use std::collections::BTreeSet;

use tithe_model::{
    experiment::{Experiment, Metric},
    quantity,
    records::Records,
    start_spread::StartSpread,
};
use tithe_statistics::{
    starts::{IntervalOptions, KnownSpread, infer_over_starts},
    variance,
};

use super::super::{measured::Measured, slots};
use crate::{
    CONFIDENCE, Interval,
    figures::{METRICS, metric_title},
};

/// The result for the starts of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpread {
    /// The cell's short name.
    pub id: String,
    /// Number of starts that count.
    pub starts: usize,
    /// Number of frames that count.
    pub frames: usize,
    /// Seconds of measured load.
    pub load_s: f64,
    /// The metrics that apply here, the deciding one first; none if starts are too few.
    pub metrics: Vec<MetricSpread>,
}

/// How much starts differ in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSpread {
    /// The metric.
    pub metric: Metric,
    /// Its title in a table.
    pub title: String,
    /// Standard deviation of ln(second instance ÷ first) from start to start, without the scatter of frames.
    pub spread: Interval,
    /// The same including that scatter, and its degrees of freedom: one less than there are starts, because both arms
    /// of a start make one ratio.
    pub seen: KnownSpread,
}

impl MetricSpread {
    /// The smallest half-width of an interval on `starts` starts, however much is measured on them, natural-log ratio.
    pub fn least(&self, starts: usize) -> f64 {
        self.seen.widening(starts, 1.0 - CONFIDENCE)
    }
}

/// The start-to-start variation in the records of a calibration, cell by cell.
pub fn spreads(records: &Records) -> Vec<CellSpread> {
    (0..records.plan.cells.len()).map(|index| of_cell(records, index)).collect()
}

fn of_cell(records: &Records, index: usize) -> CellSpread {
    let measured = Measured::new(records, index);
    let primary = measured.seen.deciding(records.plan.experiment.measure.primary);
    let mut metrics: Vec<Metric> = METRICS.into_iter().filter(|metric| measured.seen.tells(*metric)).collect();
    metrics.sort_by_key(|metric| *metric != primary);
    CellSpread {
        id: measured.cell.id.clone(),
        starts: measured.starts(),
        frames: measured.frames.len(),
        load_s: measured.load_s(),
        metrics: metrics.into_iter().filter_map(|metric| of_metric(&measured, metric)).collect(),
    }
}

fn of_metric(measured: &Measured<'_>, metric: Metric) -> Option<MetricSpread> {
    let asked = IntervalOptions { alpha: 1.0 - CONFIDENCE, by_decision: false, known: None };
    let over_starts = infer_over_starts(&slots::effects(measured, 1, metric), asked);
    // `None` unless starts are enough and some have several frames; otherwise frames contain both kinds of scatter.
    let spread = over_starts.spread?;
    let of_starts = &over_starts.inference.merged;
    let seen = KnownSpread { spread: variance(of_starts).sqrt(), degrees: of_starts.len() as f64 - 1.0, of_cost: None };
    Some(MetricSpread { metric, title: metric_title(metric).to_owned(), spread, seen })
}

/// The content of a file of spreads after this calibration, measured on `date`: for each metric the widest of all
/// cells.
pub fn lines(records: &Records, cells: &[CellSpread], date: &str) -> Vec<StartSpread> {
    let all = || (0..).zip(cells).flat_map(|(index, cell)| cell.metrics.iter().map(move |it| (index, cell, it)));
    let metrics: BTreeSet<Metric> = all().map(|(.., it)| it.metric).collect();
    let widest = |metric: Metric| {
        let told = all().filter(|(.., it)| it.metric == metric);
        told.max_by(|(.., a), (.., b)| a.seen.spread.total_cmp(&b.seen.spread))
    };
    let line = |(index, cell, it): (usize, &CellSpread, &MetricSpread)| StartSpread {
        metric: it.metric,
        spread: it.seen.spread,
        degrees: it.seen.degrees,
        source: format!("{}, {date}", source(records, index, cell)),
    };
    metrics.into_iter().filter_map(widest).map(line).collect()
}

/// A description of the measurement of cell `index`.
fn source(records: &Records, index: usize, cell: &CellSpread) -> String {
    let planned = &records.plan.cells[index];
    let Experiment { database, data, workloads, .. } = &records.plan.experiment;
    let version = records.cells[index].arms.first().map_or(database.as_str(), |arm| arm.version.as_str());
    let clients = if planned.clients == 1 { "1 client".to_owned() } else { format!("{} clients", planned.clients) };
    format!(
        "{version}: two identical arms over {} starts, {} frames, workload {}, {} records, {clients}, {} processors ({})",
        cell.starts,
        cell.frames,
        workloads[planned.workload].name,
        quantity::count(data.records),
        records.machine.processors,
        records.machine.processor,
    )
}
