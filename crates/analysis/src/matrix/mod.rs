//! From the tasks of a matrix to what a protection costs on hosts of a kind.
//!
//! A task leaves an [`Outcome`]: the deciding estimate of every arm, and what its host is. All of them, and what became
//! of the others, are a [`Gathered`] document, from which [`figures`](figures::figures) and every report are made. A
//! task that failed, or whose folder is torn, is a row with its reason.
//!
//! Left out: all other estimates, latencies and evidence, which each task's own report has.

pub mod against;
pub mod facts;
pub mod figures;
pub mod outcome;

use serde::{Deserialize, Serialize};

pub use figures::{Answer, Basis, HostFigure, MatrixFigure, Repeat, figures};
pub use outcome::{ArmOutcome, CellOutcome, Outcome};

/// What was gathered of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gathered {
    /// The line that the reports start with.
    pub title: String,
    /// Identity of the plan: of the matrix, its experiments and the version of the program.
    pub plan: String,
    /// Version of the program that gathered.
    pub tithe: String,
    /// The tasks, in the order of their numbers.
    pub tasks: Vec<Row>,
    /// What else was in the folder.
    pub strays: Vec<Stray>,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its number.
    pub task: usize,
    /// Path of its experiment, as the matrix file has it.
    pub experiment: String,
    /// Its kind of machine.
    pub machine: String,
    /// Which of the replicates, from 0.
    pub replicate: u32,
    /// What became of it.
    pub state: State,
}

/// What became of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It was carried out, and left this.
    Whole(Box<Outcome>),
    /// It was tried and could not be carried out, for this reason.
    Failed(String),
    /// What it left cannot be used, for this reason: it was ended on its way, or is still under way.
    Torn(String),
    /// It left nothing.
    Missing,
}

impl State {
    /// Why there is nothing of the task; `None` where there is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Whole(_) => None,
            Self::Failed(reason) | Self::Torn(reason) => Some(reason),
            Self::Missing => Some("no folder: it was not started, or its folder is elsewhere"),
        }
    }
}

/// What is in the folder and is no task of this plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stray {
    /// Its name in the folder.
    pub name: String,
    /// Why it does not count.
    pub reason: String,
}

impl Row {
    /// What it left, where it is whole.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Whole(outcome) => Some(outcome),
            _ => None,
        }
    }
}
