//! From the tasks of a matrix to the cost of a protection on hosts of a kind.
//!
//! A task leaves an [`Outcome`]: the deciding estimate of every arm, and a description of its host. All of them, and
//! the states of the others, form a [`Gathered`] document, from which [`figures`](figures::figures) and every report
//! are made. A task that failed, or whose folder is torn, is a row with its reason.
//!
//! Left out: all other estimates, latencies and evidence, which are in each task's own report.

pub mod against;
pub mod facts;
pub mod figures;
pub mod outcome;

use serde::{Deserialize, Serialize};

pub use figures::{Answer, Basis, HostFigure, MatrixFigure, Repeat, figures};
pub use outcome::{ArmOutcome, CellOutcome, Outcome};

/// The gathered results of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gathered {
    /// The line that the reports start with.
    pub title: String,
    /// Identity of the plan: of the matrix, its experiments and the program's version.
    pub plan: String,
    /// Version of the program that gathered.
    pub tithe: String,
    /// The tasks, in the order of their numbers.
    pub tasks: Vec<Row>,
    /// Other contents of the folder.
    pub strays: Vec<Stray>,
}

/// One task and its state.
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
    /// Its state.
    pub state: State,
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It completed, with this result.
    Whole(Box<Outcome>),
    /// It failed, for this reason.
    Failed(String),
    /// Its results cannot be used, for this reason: it was interrupted, or is still running.
    Torn(String),
    /// It left nothing.
    Missing,
}

impl State {
    /// Why the task has no result; `None` if it has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Whole(_) => None,
            Self::Failed(reason) | Self::Torn(reason) => Some(reason),
            Self::Missing => Some("no folder: it was not started, or its folder is elsewhere"),
        }
    }
}

/// An entry of the folder that is not a task of this plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stray {
    /// Its name in the folder.
    pub name: String,
    /// Why it does not count.
    pub reason: String,
}

impl Row {
    /// Its result, if it completed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Whole(outcome) => Some(outcome),
            _ => None,
        }
    }
}
