//! A matrix: experiments × kinds of machine × replicates, as tasks that a batch engine places on hosts.
//!
//! Everything here is a pure function of the file: the same file gives the same tasks, with the same numbers,
//! everywhere. A task is independent of the others: an engine needs a number to start one and its exit status to judge
//! it. Choosing hosts, ordering tasks and starting them again is the engine's business; [`script`] writes its job file.

pub mod script;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the files of a matrix (`task.json`, the gathered document): a reader refuses other versions.
pub const FORMAT: u32 = 1;

/// Most tasks of a matrix: a larger number is a typing error.
pub const TASKS_MAX: usize = 100_000;

/// The content of a matrix file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The line that its reports start with.
    pub title: String,
    /// Paths of the experiment files as written, from the folder of the matrix file on.
    pub experiments: Vec<String>,
    /// How often each experiment is measured on machines of each kind; each time on another host, if the engine has
    /// enough.
    pub replicates: u32,
    /// From one replicate's beginning to the next if one host measures all of them, s.
    pub every_s: f64,
    /// The kinds of machine.
    pub machines: Vec<MachineKind>,
}

/// A kind of machine, whose hosts are assumed to be alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineKind {
    /// Its name in reports.
    pub name: String,
    /// Options of `sbatch` that request one.
    pub slurm: Vec<String>,
    /// Labels of the Kubernetes nodes of this kind.
    pub kubernetes: BTreeMap<String, String>,
}

/// One experiment, measured once on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its number, from 0.
    pub index: usize,
    /// Index of its kind of machine.
    pub machine: usize,
    /// Index of its experiment.
    pub experiment: usize,
    /// Which of the replicates, from 0.
    pub replicate: u32,
}

impl Matrix {
    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.machines.len() * self.experiments.len() * self.replicates as usize
    }

    /// True if there are no tasks, which is never so for a file that was read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The task with number `index`: the replicates of one experiment on one kind of machine are consecutive, so that
    /// an engine can request them as one job on several hosts.
    pub fn task(&self, index: usize) -> Option<Task> {
        let (group, replicate) = (index / self.replicates as usize, index % self.replicates as usize);
        let (machine, experiment) = (group / self.experiments.len(), group % self.experiments.len());
        (machine < self.machines.len()).then_some(Task { index, machine, experiment, replicate: replicate as u32 })
    }

    /// All tasks, in the order of their numbers.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        (0..self.len()).filter_map(|index| self.task(index))
    }

    /// The number of the first replicate of `experiment` on machines of kind `machine`.
    pub fn first(&self, machine: usize, experiment: usize) -> usize {
        (machine * self.experiments.len() + experiment) * self.replicates as usize
    }
}
