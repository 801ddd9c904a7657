//! The highest throughput of each arm of a cell: the base of a rate "at 70 % of saturation".

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{
    experiment::Arrivals,
    plan::{Cell, Plan},
    record::{Frame, Slot},
};

/// Operations and their time, by cell and arm.
#[derive(Debug, Default)]
pub struct Served(BTreeMap<(u32, u32), Work>);

#[derive(Debug, Default, Clone, Copy)]
struct Work {
    operations: u64,
    wall_ns: u64,
    lanes: u32,
}

impl Served {
    /// Adds those of `slots`, which belong to `frames` of any cells, that show what a server can serve: slots of frames
    /// that are neither invalid nor free. Throughput in other frames is no base for a later cell's rate.
    pub fn add(&mut self, frames: &[Frame], slots: &[Slot]) {
        let usable = frames.iter().filter(|frame| frame.is_used());
        let usable: BTreeSet<(u32, u32)> = usable.map(|frame| (frame.cell, frame.frame)).collect();
        for slot in slots.iter().filter(|slot| usable.contains(&(slot.cell, slot.frame))) {
            let work = self.0.entry((slot.cell, slot.arm)).or_default();
            work.operations += slot.operations;
            work.wall_ns += slot.wall_ns;
            work.lanes = work.lanes.max(slot.lane + 1);
        }
    }

    /// The highest throughput of the slowest arm, in the closed cells that differ from cell `number` of `plan` only in
    /// their clients, operations per second; `None` if no such cell was measured.
    pub fn of_slowest(&self, plan: &Plan, number: usize) -> Option<f64> {
        let cell = &plan.cells[number];
        let alike = |other: &Cell| other.arrivals == Arrivals::Closed && plan.differ_by_load_alone(other, cell);
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

#[cfg(test)]
mod tests {
    use tithe_model::invalid::Invalid;

    use super::*;
    use crate::catalogue::tests::planned;

    #[test]
    fn slots_of_invalid_and_of_free_frames_say_nothing_of_what_was_served() {
        let frame = |number: u32, invalid: Option<&str>, free: bool| Frame {
            cell: 1,
            frame: number,
            invalid: invalid.map(|words| Invalid::Other(words.to_owned())),
            free,
            ..Frame::default()
        };
        let frames = [frame(0, None, false), frame(1, Some("late"), false), frame(2, None, true)];
        let slot = |cell, frame, arm| Slot { cell, frame, arm, operations: 1, ..Slot::default() };
        let slots = [slot(1, 0, 0), slot(1, 0, 1), slot(1, 1, 0), slot(1, 2, 0), slot(0, 0, 0)];
        let mut served = Served::default();
        served.add(&frames, &slots);
        let operations: Vec<_> = served.0.iter().map(|(of, work)| (*of, work.operations)).collect();
        assert_eq!(operations, [((1, 0), 1), ((1, 1), 1)], "frames are numbered again in each cell");
        let slot = |lane, operations, wall_ns| Slot { cell: 1, lane, operations, wall_ns, ..Slot::default() };
        let mut served = Served::default();
        served.add(&frames, &[slot(0, 3, 100), slot(2, 5, 200)]);
        served.add(&frames, &[slot(1, 7, 400)]);
        let Work { operations, wall_ns, lanes } = served.0[&(1, 0)];
        assert_eq!((operations, wall_ns, lanes), (15, 700, 3));
    }

    /// A sweep over two numbers of clients, a cell below saturation, and cells of other resources.
    const SWEEP: &str = "title = \"t\"\ndatabase = \"simulated\"\ndata.records = 1000\n[load]\nclients = [1, 4]\n\
        [[resources]]\nname = \"one\"\nsettings = { service_us = 10 }\n[[resources]]\nname = \"two\"\nsettings = { service_us = 20 }\n\
        [[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n";

    #[test]
    fn saturation_is_the_most_that_the_slowest_arm_did_in_closed_cells_of_the_same_kind() {
        let plan = planned(SWEEP);
        assert_eq!(plan.cells.len(), 6, "three of each resources");
        let mut served = Served::default();
        let mut did = |cell: u32, arm: u32, lanes: u32, operations: u64, wall_ns: u64| {
            served.0.insert((cell, arm), Work { operations, wall_ns, lanes });
        };
        const S: u64 = 1_000_000_000;
        did(0, 0, 1, 100, S);
        did(0, 1, 1, 250, S);
        // Two lanes of one second each.
        did(1, 0, 2, 600, 2 * S);
        did(1, 1, 2, 200, 2 * S);
        // The cell below saturation itself, one without any time, and one of other resources.
        did(2, 0, 1, 9000, S);
        did(2, 1, 1, 9000, S);
        did(3, 0, 1, 7000, S);
        did(3, 1, 1, 8000, S);
        did(4, 0, 1, 9000, 0);
        // Arm 0 did at most 600 a second, arm 1 at most 250.
        assert_eq!(served.of_slowest(&plan, 2), Some(250.0));
        assert_eq!(served.of_slowest(&plan, 5), Some(7000.0));
        assert_eq!(Served::default().of_slowest(&plan, 2), None);
    }
}
