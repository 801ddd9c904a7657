//! How much each arm of a cell served at most: what a rate "at 70 % of saturation" is a share of.

use std::collections::BTreeMap;

use tithe_model::{
    experiment::Arrivals,
    plan::{Cell, Plan},
    record::Slot,
};

/// Operations and the time that they took, by cell and arm.
#[derive(Debug, Default)]
pub struct Served(BTreeMap<(u32, u32), Work>);

#[derive(Debug, Default, Clone, Copy)]
struct Work {
    operations: u64,
    wall_ns: u64,
    lanes: u32,
}

impl Served {
    /// Adds `slots` of any cells.
    pub fn add<'a>(&mut self, slots: impl IntoIterator<Item = &'a Slot>) {
        for slot in slots {
            let work = self.0.entry((slot.cell, slot.arm)).or_default();
            work.operations += slot.operations;
            work.wall_ns += slot.wall_ns;
            work.lanes = work.lanes.max(slot.lane + 1);
        }
    }

    /// What the slowest arm served at most in the closed cells that are like cell `number` of `plan` but for their
    /// clients, operations per second; `None` where no such cell was measured.
    pub fn of_slowest(&self, plan: &Plan, number: usize) -> Option<f64> {
        let settings = |cell: &Cell| &plan.experiment.resources[cell.resources].settings;
        let cell = &plan.cells[number];
        let alike = |other: &Cell| {
            other.arrivals == Arrivals::Closed && other.workload == cell.workload && settings(other) == settings(cell)
        };
        let mut most: BTreeMap<u32, f64> = BTreeMap::new();
        for ((of_cell, arm), work) in &self.0 {
            if plan.cells.get(*of_cell as usize).is_some_and(alike) && work.wall_ns > 0 {
                let rate = work.operations as f64 * f64::from(work.lanes) * 1e9 / work.wall_ns as f64;
                let highest = most.entry(*arm).or_default();
                *highest = highest.max(rate);
            }
        }
        most.into_values().min_by(f64::total_cmp)
    }
}
