//! Everything that a run folder holds: what `run` writes, and what reports are made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ending::{self, CellEnding},
    idle::IdleWindow,
    plan::Plan,
    profile::ProfiledFrame,
    record::{ArmFacts, Event, Finding, Frame, Machine, Slot, WarmedUp},
};

/// How each cell is carried out: what the plan cannot know before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellFacts {
    /// How arms are paired (`twin`, `session`).
    pub mode: String,
    /// All arms are on one server and only read, so that start-to-start variation is the same for all of them.
    #[serde(default)]
    pub shares_starts: bool,
    /// Lines about the workload.
    pub notes: Vec<(String, String)>,
    /// Why the cell ended; `None` while it has not.
    #[serde(with = "ending::or_empty")]
    pub ending: Option<CellEnding>,
    /// The arms, in the experiment's order; none while the cell has not begun.
    pub arms: Vec<ArmFacts>,
    /// How long each start was warmed up until it was steady; none where warm-ups do not end so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warm_ups: Vec<WarmedUp>,
    /// What the servers used while they were idle; none where they were not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<IdleWindow>,
    /// Operations that are statements of the user's own, each with its text as reports show it: without values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statements: BTreeMap<String, String>,
}

/// What a run folder holds. Frames and slots may be those of one cell alone, where a report is made cell by cell.
#[derive(Debug, Clone)]
pub struct Records {
    /// Name of the run folder.
    pub run: String,
    /// What was to be done.
    pub plan: Plan,
    /// Where it was done.
    pub machine: Machine,
    /// How each cell of the plan was carried out: one for each, which analyses rely on.
    pub cells: Vec<CellFacts>,
    /// Complete frames, cell by cell.
    pub frames: Vec<Frame>,
    /// Slots of the complete frames, cell by cell.
    pub slots: Vec<Slot>,
    /// What the evidence checks saw.
    pub findings: Vec<Finding>,
    /// What happened.
    pub events: Vec<Event>,
    /// Profiled frames, which are not among the others.
    pub profile: Vec<ProfiledFrame>,
    /// Frames whose slots are damaged, which are invalid for that: each with the file and its line.
    pub damage: Vec<String>,
}

impl Records {
    /// What went wrong or should be known, in order.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.events.iter().filter_map(|event| match event {
            Event::Warning { message } => Some(message),
            _ => None,
        });
        told.chain(&self.damage).cloned().collect()
    }

    /// Version of the program that measured last; empty where nothing did.
    pub fn tithe(&self) -> &str {
        let version = self.events.iter().rev().find_map(|event| match event {
            Event::RunStarted { tithe, .. } => Some(tithe.as_str()),
            _ => None,
        });
        version.unwrap_or_default()
    }
}
