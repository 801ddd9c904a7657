//! A program that offers load in Tithe's place: its job, and its report.

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

    /// The protocols that it speaks: it can drive every database whose servers speak one of them.
    fn drives(&self) -> &[WireProtocol];

    /// Why the load cannot be offered like this; the words follow `pgbench`.
    fn refuses(&self, _arrivals: Arrivals) -> Option<String> {
        None
    }

    /// Why it cannot speak `protocol` to a server with this `setup`; the words follow `pgbench`.
    fn refuses_setup(&self, _protocol: WireProtocol, _setup: &Setup) -> Option<String> {
        None
    }

    /// True if it changes data.
    fn writes(&self) -> bool;

    /// Searches for it on this machine.
    ///
    /// # Errors
    /// Where it searched, and how to install it.
    fn find(&self) -> Result<PathBuf, Missing>;

    /// Statements that an administrator runs before everything else.
    fn statements(&self, _at: &ProgramContext<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Files that it needs in its folder, by name; only the servers' account reads them.
    ///
    /// # Errors
    /// A certificate that cannot be read.
    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault>;

    /// Commands that load the data; run in this order.
    fn prepare(&self, at: &ProgramContext<'_>) -> Vec<Command>;

    /// The command that runs one slice.
    fn run(&self, at: &ProgramContext<'_>, job: &Job) -> Command;

    /// Reads the results of the slice: its output, and files in its folder, which are removed.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with the missing or inconsistent part.
    fn read(&self, at: &ProgramContext<'_>, job: &Job, printed: &str) -> Result<ProgramReport, Fault>;

    /// Words that it sends while it works, by which its traffic is recognised; `None` if there are none.
    fn needle(&self) -> Option<&[u8]>;

    /// Properties to show in the report.
    fn describe(&self) -> Vec<(String, String)>;

    /// Properties that have no effect here, each with the reason; [`Program::describe`] includes them too.
    fn ignored(&self) -> Vec<(String, &'static str)> {
        Vec::new()
    }
}

/// Where a program works: on which server, and in which folders.
#[derive(Debug, Clone)]
pub struct ProgramContext<'a> {
    /// The program itself.
    pub executable: &'a Path,
    /// The server's protocol.
    pub protocol: WireProtocol,
    /// How to connect to it.
    pub reach: &'a Reach,
    /// The program's own folder; not on the volume of the server.
    pub folder: &'a Path,
    /// A folder next to the server's data, on the volume of the server.
    pub data: &'a Path,
}

/// One slice.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Connections that are busy at the same time.
    pub clients: u32,
    /// Requested transactions per second; `None` for as many as possible.
    pub rate: Option<f64>,
    /// Length, s.
    pub seconds: u64,
    /// Seed of the program's random choices: the block's seed, so that all arms get the same load.
    pub seed: u32,
}

/// A program's report of one slice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramReport {
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Time in which they were done, ns; without connecting if the program excludes it.
    pub wall_ns: u64,
    /// Sum of the latencies, from the intended start if the load is offered at a rate, ns; `None` if the program does
    /// not report it.
    pub latency_sum_ns: Option<u64>,
    /// Latencies from the actual start; empty if the program does not report them.
    pub latency: Histogram,
    /// Latencies from the intended start; empty if the load is not offered at a rate.
    pub intended: Histogram,
}

impl ProgramReport {
    /// Sum of the latencies, ns. If the program does not report it, the sum for clients that were never idle (Little's
    /// law).
    pub fn latency_sum_ns(&self, job: &Job) -> u64 {
        self.latency_sum_ns.unwrap_or(self.wall_ns.saturating_mul(u64::from(job.clients)))
    }

    /// Transactions that were intended but not done. The program draws its start times at random, so only a shortfall
    /// of more than three standard deviations of a Poisson count is due to lack of time.
    pub fn unfinished(&self, job: &Job) -> u64 {
        let intended = job.rate.unwrap_or(0.0) * job.seconds as f64;
        let missing = intended - (self.transactions + self.failed) as f64;
        if missing > 3.0 * intended.sqrt() { missing as u64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rate: Option<f64>) -> Job {
        Job { clients: 4, rate, seconds: 10, seed: 0 }
    }

    #[test]
    fn a_shortfall_is_more_than_three_deviations_of_a_count() {
        let unfinished = |rate: Option<f64>, transactions: u64, failed: u64| {
            ProgramReport { transactions, failed, ..ProgramReport::default() }.unfinished(&job(rate))
        };
        // Of 1,000 intended ones, 3 · √1000 = 94.9 may be missing by chance.
        assert_eq!([unfinished(Some(100.0), 905, 0), unfinished(Some(100.0), 906, 0)], [95, 0]);
        assert_eq!([unfinished(Some(100.0), 900, 5), unfinished(Some(100.0), 900, 6)], [95, 0], "failed ones began");
        assert_eq!(unfinished(Some(100.0), 0, 0), 1000);
        assert_eq!([unfinished(Some(100.0), 2000, 0), unfinished(None, 5, 0)], [0, 0]);
    }

    #[test]
    fn latencies_that_are_not_reported_are_those_of_clients_that_were_never_idle() {
        let sum_ns = |latency_sum_ns| {
            ProgramReport { wall_ns: 1000, latency_sum_ns, ..ProgramReport::default() }.latency_sum_ns(&job(None))
        };
        assert_eq!([sum_ns(Some(70)), sum_ns(None)], [70, 4000]);
    }
}
