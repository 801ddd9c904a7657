//! Cells that differ only in their number of clients: where each arm is saturated, and what it costs there.

use tithe_model::{experiment::Arrivals, plan::Cell, records::Records};
use tithe_statistics::{order::median_interval, saturation::saturation};

use super::{
    levels::throughput,
    measured::{Measured, MeasuredFrame},
};
use crate::{CONFIDENCE, CellAnalysis, Sweep, SweepArm, SweepStep};

/// One sweep for each workload and set of resources that was measured with several numbers of clients.
///
/// `throughputs`: those of [`throughputs`], by cell and arm.
pub(super) fn sweeps(records: &Records, analysed: &[CellAnalysis], throughputs: &[Vec<Vec<f64>>]) -> Vec<Sweep> {
    let cells = &records.plan.cells;
    let alike = |a: &Cell, b: &Cell| records.plan.differ_by_load_alone(a, b);
    let mut sweeps = Vec::new();
    for (first, cell) in cells.iter().enumerate() {
        let of_sweep: Vec<usize> = (0..cells.len()).filter(|other| alike(&cells[*other], cell)).collect();
        let mut closed: Vec<usize> =
            of_sweep.iter().copied().filter(|index| cells[*index].arrivals == Arrivals::Closed).collect();
        closed.sort_by_key(|index| cells[*index].clients);
        closed.dedup_by_key(|index| cells[*index].clients);
        if of_sweep[0] == first && closed.len() > 1 {
            let rated = of_sweep.into_iter().find(|index| matches!(cells[*index].arrivals, Arrivals::OfSaturation(_)));
            sweeps.push(sweep(records, (analysed, throughputs), &closed, rated));
        }
    }
    sweeps
}

/// The sweep over the `closed` cells, by rising clients, with the cell at a rate below saturation.
fn sweep(
    records: &Records,
    (analysed, throughputs): (&[CellAnalysis], &[Vec<Vec<f64>>]),
    closed: &[usize],
    rated: Option<usize>,
) -> Sweep {
    let of_arm = |(arm, name): (usize, String)| {
        let steps: Vec<(u32, Vec<f64>)> =
            closed.iter().map(|cell| (records.plan.cells[*cell].clients, throughputs[*cell][arm].clone())).collect();
        let saturated_at = saturation(&steps);
        // A run that was interrupted has not measured the steps with most clients.
        let last = steps.iter().rposition(|(_, rates)| !rates.is_empty()).unwrap_or(0);
        let at = steps.iter().position(|(clients, _)| Some(*clients) == saturated_at).unwrap_or(last);
        let most = tithe_statistics::mean(&steps[at].1).exp();
        let mut cells = vec![closed[0], closed[at]];
        cells.dedup();
        cells.extend(rated);
        let cost = |index: usize| {
            let cell = &analysed[index];
            let primary = cell.arms[arm].primary()?;
            Some((cell.id.clone(), primary.text.clone()))
        };
        let step = |(index, (clients, rates)): (&usize, &(u32, Vec<f64>))| {
            let rates: Vec<f64> = rates.iter().map(|rate| rate.exp()).collect();
            let throughput = median_interval(&rates, 1.0 - CONFIDENCE);
            let cell = analysed[*index].id.clone();
            (!rates.is_empty()).then_some(SweepStep { cell, clients: *clients, throughput, frames: rates.len() })
        };
        let steps = closed.iter().zip(&steps).filter_map(step).collect();
        SweepArm { name, saturated_at, most, steps, costs: cells.into_iter().filter_map(cost).collect() }
    };
    let arms = records.plan.experiment.arms.iter().map(|arm| arm.name.clone()).enumerate();
    let CellAnalysis { workload, resources, .. } = &analysed[closed[0]];
    Sweep { workload: workload.clone(), resources: resources.clone(), arms: arms.map(of_arm).collect() }
}

/// ln(operations per second) of arm `arm`, by frame.
pub(super) fn throughputs(measured: &Measured<'_>, arm: usize) -> Vec<f64> {
    let of_frame = |frame: &MeasuredFrame<'_>| throughput(measured.cell, frame.record, &frame.slots, arm);
    let rates = measured.frames.iter().filter_map(of_frame);
    rates.map(f64::ln).filter(|rate| rate.is_finite()).collect()
}
