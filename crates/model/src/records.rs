//! Everything in a run folder: `run` writes it, and reports are made from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ending::{self, CellEnding},
    idle::IdleWindow,
    plan::Plan,
    profile::ProfiledFrame,
    record::{ArmFacts, Event, Finding, Frame, Machine, Slot, WarmedUp},
};

/// Facts of each cell that are known only during the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellFacts {
    /// How arms are paired (`twin`, `session`).
    pub mode: String,
    /// All arms share one server and only read, so that start-to-start variation is the same for all of them.
    #[serde(default)]
    pub shares_starts: bool,
    /// Lines about the workload.
    pub notes: Vec<(String, String)>,
    /// Why the cell ended; `None` if it has not ended.
    #[serde(with = "ending::or_empty")]
    pub ending: Option<CellEnding>,
    /// The arms, in the experiment's order; none if the cell has not begun.
    pub arms: Vec<ArmFacts>,
    /// How long each start was warmed up until it was steady; none if warm-ups do not end so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warm_ups: Vec<WarmedUp>,
    /// What the servers used while they were idle; none if they were not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<IdleWindow>,
    /// Operations that are the user's own statements, each with its text in reports: without values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statements: BTreeMap<String, String>,
}

/// The content of a run folder. If a report is made cell by cell, frames and slots are those of one cell.
#[derive(Debug, Clone)]
pub struct Records {
    /// Name of the run folder.
    pub run: String,
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub machine: Machine,
    /// The facts of each cell of the plan: exactly one per cell, which analyses rely on.
    pub cells: Vec<CellFacts>,
    /// Complete frames, cell by cell.
    pub frames: Vec<Frame>,
    /// Slots of the complete frames, cell by cell.
    pub slots: Vec<Slot>,
    /// The results of the evidence checks.
    pub findings: Vec<Finding>,
    /// The events.
    pub events: Vec<Event>,
    /// Profiled frames, which are separate from the others.
    pub profile: Vec<ProfiledFrame>,
    /// Frames that are invalid because their slots are damaged: each with the file and its line.
    pub damage: Vec<String>,
}

impl Records {
    /// Problems and remarks, in order.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.events.iter().filter_map(|event| match event {
            Event::Warning { message } => Some(message),
            _ => None,
        });
        told.chain(&self.damage).cloned().collect()
    }

    /// The frames of cell `cell`.
    pub fn frames_of(&self, cell: usize) -> &[Frame] {
        of_cell(&self.frames, cell, |frame| frame.cell)
    }

    /// The slots of cell `cell`.
    pub fn slots_of(&self, cell: usize) -> &[Slot] {
        of_cell(&self.slots, cell, |slot| slot.cell)
    }

    /// Version of the program that measured last; empty if none did.
    pub fn tithe(&self) -> &str {
        let version = self.events.iter().rev().find_map(|event| match event {
            Event::RunStarted { tithe, .. } => Some(tithe.as_str()),
            _ => None,
        });
        version.unwrap_or_default()
    }
}

/// Those of cell `cell`, of records that come cell by cell.
fn of_cell<T>(all: &[T], cell: usize, cell_of: impl Fn(&T) -> u32) -> &[T] {
    let begin = all.partition_point(|each| (cell_of(each) as usize) < cell);
    let length = all[begin..].partition_point(|each| cell_of(each) as usize == cell);
    &all[begin..begin + length]
}
