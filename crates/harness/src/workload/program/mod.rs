//! Load that another program offers: pgbench, sysbench, any command.
//!
//! Such a program is a workload of an experiment like any other, with two differences. Its load cannot be cut into short
//! slots, so each arm is given whole slices of it, some seconds each, in the drawn order of a frame; and what an operation
//! took is what the program itself says. Beside that stand Tithe's own figures: the processor time of the server while the
//! program ran, and that of the program as the kernel accounts it when it ends.
//!
//! Each program is one file here. It says what to run, as data, and reads what was printed; [`desk`] runs it, in the
//! sandbox and under the servers' account. A program is given servers that Tithe launched, and no others: it makes tables
//! of its own there, and nothing that Tithe did not make may be touched.
//!
//! Left out: protections by Tithe's own client (encrypted columns, statements for every session), which another program
//! does not have; and the bytes that a program sends, which nobody counts.

pub mod command;
pub mod desk;
mod libpq;
mod output;
pub mod pgbench;
pub mod sysbench;
mod words;

use std::{
    any::Any,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use tithe_model::{
    catalogue::PropertyProblem,
    experiment::{Arrivals, Experiment},
    histogram::Histogram,
};

use super::{ArmState, Client, Parts, Table, Workload};
use crate::{
    database::{Command, Content, Database, Missing, Reach, WireProtocol},
    fault::Fault,
    protection::{Setup, named},
    session::{Progress, Session},
};

/// A program that offers load. One file below `workload/program/`, one line in the list of kinds.
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
    fn statements(&self, _at: &At<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Files that it needs in its folder, by name; only the servers' account reads them.
    ///
    /// # Errors
    /// A certificate that cannot be read.
    fn files(&self, at: &At<'_>) -> Result<Vec<(String, Content)>, Fault>;

    /// What loads the data; run in this order.
    fn prepare(&self, at: &At<'_>) -> Vec<Command>;

    /// What runs one slice.
    fn run(&self, at: &At<'_>, job: &Job) -> Command;

    /// Takes what the slice left behind: what was printed, and files in its folder, which are removed.
    ///
    /// # Errors
    /// [`Fault::Wrong`] with what is missing or does not fit together.
    fn read(&self, at: &At<'_>, job: &Job, printed: &str) -> Result<Told, Fault>;

    /// Words that it sends when it works, by which its talk is known on the wire; `None` where there are none.
    fn needle(&self) -> Option<&[u8]>;

    /// Properties worth a line in the report.
    fn describe(&self) -> Vec<(String, String)>;
}

/// Where a program works: on which server, and in which folders.
#[derive(Debug, Clone)]
pub struct At<'a> {
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
pub struct Told {
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

impl Told {
    /// Sum of the latencies, ns. Where the program does not say it, that of clients which were never idle (Little's law).
    pub fn latency_sum_ns(&self, job: &Job) -> u64 {
        self.latency_sum_ns.unwrap_or(self.wall_ns.saturating_mul(u64::from(job.clients)))
    }

    /// Transactions that were intended and not done. The program draws when to begin, so that only what is missing beyond
    /// three standard deviations of a Poisson count is missing for want of time.
    pub fn undrained(&self, job: &Job) -> u64 {
        let intended = job.rate.unwrap_or(0.0) * job.seconds as f64;
        let missing = intended - (self.transactions + self.failed) as f64;
        if missing > 3.0 * intended.sqrt() { missing as u64 } else { 0 }
    }
}

/// The one operation that is recorded.
const OPERATION: &str = "TRANSACTION";

/// The table where evidence writes canaries, beside the program's own.
const CANARIES: &str = "tithe_canary";

/// A workload whose load `program` offers.
pub struct ByProgram<P> {
    program: P,
}

impl<P: Program + 'static> ByProgram<P> {
    /// The workload that `program` offers.
    pub fn boxed(program: P) -> Box<dyn Workload> {
        Box::new(Self { program })
    }
}

impl<P: Program> Workload for ByProgram<P> {
    fn operations(&self) -> &[&'static str] {
        &[OPERATION]
    }

    fn writes(&self) -> bool {
        self.program.writes()
    }

    fn table(&self) -> Table {
        Table { name: CANARIES.to_owned(), fields: 10, field_prefix: "field".to_owned() }
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(NoState)
    }

    /// Nothing: the program loads its data by itself.
    fn load(&self, _session: &mut Session, _partition: u64, _of: u64, _done: &AtomicU64) -> Result<(), Fault> {
        Ok(())
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(NoClient)
    }

    fn describe(&self) -> Vec<(String, String)> {
        let mut lines = vec![("program".to_owned(), self.program.name().to_owned())];
        lines.extend(self.program.describe());
        lines
    }

    fn program(&self) -> Option<&dyn Program> {
        Some(&self.program)
    }
}

/// A program's clients share nothing that Tithe knows of.
struct NoState;

impl ArmState for NoState {
    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}

/// Stands where a client of Tithe's would: none is asked to do anything, for the program does it.
struct NoClient;

impl NoClient {
    fn fault() -> Fault {
        Fault::Protocol("the load of this workload is offered by another program".to_owned())
    }
}

impl Client for NoClient {
    fn seed(&mut self, _seed: u64) {}

    fn prepare(&mut self) {}

    fn submit(&mut self, _session: &mut Session) -> Result<(), Fault> {
        Err(Self::fault())
    }

    fn advance(&mut self, _session: &mut Session, _parts: &mut dyn Parts) -> Result<Progress, Fault> {
        Err(Self::fault())
    }

    fn operation(&self) -> usize {
        0
    }
}

/// Looks whether the programs of `workloads` can do what `experiment` asks of them, before anything is started.
///
/// # Errors
/// The first workload's name and why not.
pub fn check(database: &dyn Database, experiment: &Experiment, workloads: &[Box<dyn Workload>]) -> Result<(), String> {
    for (workload, described) in workloads.iter().zip(&experiment.workloads) {
        let Some(program) = workload.program() else { continue };
        let refused = |why: String| Err(format!("workload {}: {} {why}", described.name, program.name()));
        let Some(protocol) = database.wire_protocol().filter(|protocol| program.drives().contains(protocol)) else {
            let spoken: Vec<&str> = program.drives().iter().map(|protocol| protocol.name()).collect();
            let spoken = spoken.join(" or ");
            return refused(format!(
                "does not drive {}; it drives what speaks the protocol of {spoken}",
                database.id()
            ));
        };
        let loads = experiment.resources.iter().map(|resources| resources.arrivals);
        for arrivals in loads.map(|arrivals| arrivals.unwrap_or(experiment.load.arrivals)) {
            if let Some(why) = program.refuses(arrivals) {
                return refused(why);
            }
        }
        for arm in &experiment.arms {
            if arm.url.is_some() {
                return refused(format!("is given servers that Tithe starts; arm {} names a `url`", arm.name));
            }
            let mut setup = Setup::bare();
            for chosen in &arm.protections {
                named(database, &chosen.id).map_err(|fault| fault.to_string())?.apply(chosen, &mut setup);
            }
            if setup.columns.is_some() || !setup.session_statements.is_empty() {
                return refused(format!("has none of what arm {} asks of Tithe's own clients", arm.name));
            }
            if let Some(why) = program.refuses_setup(protocol, &setup) {
                return refused(format!("{why} (arm {})", arm.name));
            }
        }
    }
    Ok(())
}

/// Programs of `workloads` that this machine does not have.
pub fn missing(workloads: &[Box<dyn Workload>]) -> Vec<Missing> {
    let mut all: Vec<Missing> = Vec::new();
    for missing in workloads.iter().filter_map(|workload| workload.program()?.find().err()) {
        if !all.contains(&missing) {
            all.push(missing);
        }
    }
    all
}

/// The first of `folders`, and of those in `PATH`, that holds `name`.
fn find_in(folders: Vec<PathBuf>, name: &str, package: &str) -> Result<PathBuf, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = folders.into_iter().chain(std::env::split_paths(&path)).collect();
    places.iter_mut().for_each(|folder| folder.push(name));
    if let Some(found) = places.iter().find(|place| is_program(place)) {
        return Ok(found.clone());
    }
    Err(Missing {
        what: format!("the program {name}"),
        looked_in: places.iter().map(|place| place.display().to_string()).collect(),
        how_to_install: vec![package.to_owned()],
    })
}

/// True for a file that can be executed.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A whole number among `properties`, `usual` where it is not given; what is wrong goes to `problems`.
fn whole(
    properties: &tithe_model::catalogue::Properties,
    name: &str,
    usual: u64,
    problems: &mut Vec<PropertyProblem>,
) -> u64 {
    let Some(text) = properties.get(name) else { return usual };
    text.parse().ok().filter(|number| (1..=1_000_000_000).contains(number)).unwrap_or_else(|| {
        problems.push((name.to_owned(), format!("{text:?} is not a whole number from 1 on"), format!("write {usual}")));
        usual
    })
}

/// The word of `known` that a property is, `usual` where it is not given; what is wrong goes to `problems`.
fn one_of(
    properties: &tithe_model::catalogue::Properties,
    (name, usual): (&str, &str),
    known: &[&str],
    problems: &mut Vec<PropertyProblem>,
) -> String {
    let text = properties.get(name).map_or(usual, String::as_str);
    if !known.contains(&text) {
        let help = format!("write {}", known.join(" or "));
        problems.push((name.to_owned(), format!("{text:?} is not known"), help));
    }
    text.to_owned()
}

/// A complaint about every property that is not one of `known`.
fn unknown(properties: &tithe_model::catalogue::Properties, known: &[&str], problems: &mut Vec<PropertyProblem>) {
    for name in properties.keys().filter(|name| !known.contains(&name.as_str())) {
        let help = format!("there are: {}", known.join(", "));
        problems.push((name.clone(), "is not known".to_owned(), help));
    }
}

#[cfg(test)]
mod tests;
