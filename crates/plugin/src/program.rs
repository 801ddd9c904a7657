//! A program that offers load in Tithe's place: what it is asked, and what it says.

use std::path::{Path, PathBuf};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Missing},
};
use tithe_model::{catalogue::WireProtocol, experiment::Arrivals, histogram::Histogram};

use crate::setup::{Reach, Setup};

/// A program that offers load. One file below `workloads/program/`, one line in the list of kinds.
pub trait Program: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// The protocols that it speaks: it drives every database whose servers speak one of them.
    fn drives(&self) -> &[WireProtocol];

    /// Why the load cannot be offered like this; the words follow `pgbench`.
    fn refuses(&self, _arrivals: Arrivals) -> Option<String> {
        None
    }

    /// Why it cannot speak `protocol` to a server that is set up as `setup` says; the words follow `pgbench`.
    fn refuses_setup(&self, _protocol: WireProtocol, _setup: &Setup) -> Option<String> {
        None
    }

    /// True when it changes data.
    fn writes(&self) -> bool;

    /// Looks for it on this machine.
    ///
    /// # Errors
    /// Where it looked, and how to install it.
    fn find(&self) -> Result<PathBuf, Missing>;

    /// Statements of an administrator before everything else.
    fn statements(&self, _at: &ProgramContext<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Files that it needs in its folder, by name; only the servers' account reads them.
    ///
    /// # Errors
    /// A certificate that cannot be read.
    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault>;

    /// What loads the data; run in this order.
    fn prepare(&self, at: &ProgramContext<'_>) -> Vec<Command>;

    /// What runs one slice.
    fn run(&self, at: &ProgramContext<'_>, job: &Job) -> Command;

    /// Takes what the slice left behind: what was printed, and files in its folder, which are removed.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with what is missing or does not fit together.
    fn read(&self, at: &ProgramContext<'_>, job: &Job, printed: &str) -> Result<ProgramReport, Fault>;

    /// Words that it sends when it works, by which its talk is known on the wire; `None` where there are none.
    fn needle(&self) -> Option<&[u8]>;

    /// Properties worth a line in the report.
    fn describe(&self) -> Vec<(String, String)>;

    /// Properties that have no effect here, each with the reason; [`Program::describe`] says them too.
    fn ignored(&self) -> Vec<(String, &'static str)> {
        Vec::new()
    }
}

/// Where a program works: on which server, and in which folders.
#[derive(Debug, Clone)]
pub struct ProgramContext<'a> {
    /// The program itself.
    pub executable: &'a Path,
    /// What the server speaks.
    pub protocol: WireProtocol,
    /// How it is reached.
    pub reach: &'a Reach,
    /// The program's own folder; not on the volume of the server.
    pub folder: &'a Path,
    /// A folder beside the server's data, on the volume of the server.
    pub data: &'a Path,
}

/// One slice.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Connections that are busy at the same time.
    pub clients: u32,
    /// Transactions per second that are asked for; `None` for as many as there can be.
    pub rate: Option<f64>,
    /// Length, s.
    pub seconds: u64,
    /// Seed of what the program draws: that of the block, so that all arms are asked for the same.
    pub seed: u32,
}

/// What a program says of one slice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramReport {
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Time in which they were done, connecting left out where the program leaves it out, ns.
    pub wall_ns: u64,
    /// Sum of the latencies, ns; `None` where the program does not say it.
    pub latency_sum_ns: Option<u64>,
    /// Latencies from the actual start; empty where the program does not say them.
    pub latency: Histogram,
    /// Latencies from the intended start; empty where the load is not offered at a rate.
    pub intended: Histogram,
}

impl ProgramReport {
    /// Sum of the latencies, ns. Where the program does not say it, that of clients which were never idle (Little's
    /// law).
    pub fn latency_sum_ns(&self, job: &Job) -> u64 {
        self.latency_sum_ns.unwrap_or(self.wall_ns.saturating_mul(u64::from(job.clients)))
    }

    /// Transactions that were intended and not done. The program draws when to begin, so that only what is missing
    /// beyond three standard deviations of a Poisson count is missing for lack of time.
    pub fn unfinished(&self, job: &Job) -> u64 {
        let intended = job.rate.unwrap_or(0.0) * job.seconds as f64;
        let missing = intended - (self.transactions + self.failed) as f64;
        if missing > 3.0 * intended.sqrt() { missing as u64 } else { 0 }
    }
}
