//! A database with a known cost per protection, on simulated time.
//!
//! With it the whole program runs without a server: plan, load, evidence, frames, statistics, report. Records are kept
//! in memory and written to a file on settling, so that evidence about files is evidence about real files. Under a
//! virtual [`Clock`](tithe_machine::clock::Clock) each operation advances the lane's time by a simulated service time;
//! under the real clock it takes no time of its own. Noise depends only on the lane and its simulated time, so the same
//! plan gives the same run on every machine.
//!
//! Left out: durability, transactions, a wire, a server process.

mod protections;
mod session;
mod spinning;
#[cfg(test)]
pub mod sql_bench;
mod store;
#[cfg(test)]
pub mod table_bench;
#[cfg(any(test, feature = "test-bench"))]
pub mod test_bench;
mod timing;

use std::{collections::BTreeMap, path::PathBuf};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Install, Launch, Missing, Place, Search, Server, Step},
    paths::Paths,
};
use tithe_model::{catalogue::DatabaseEntry, record::ArmFacts};

use crate::{
    database::{Connect, Database},
    product::Product,
    protection::Protection,
    session::{Session, Table},
    setup::Setup,
};

/// The simulated database, on one of two clocks, with a compiler, or restarted.
///
/// Its settings, all numbers unless noted otherwise:
///
/// | setting | default | meaning |
/// |---|---|---|
/// | `service_us` | 20 | time of one operation without noise and cost, µs |
/// | `noise` | 0.15 | spread of single operations, as a natural-log standard deviation |
/// | `drift` | 0.2 | largest slowing by another program, common to all arms: misleads a sequential design |
/// | `stalls` | 0 | share of operations that wait 5 ms for a processor |
/// | `fail_every` | 0 | one in this many operations is answered with an error; 0: never |
/// | `wrong_answer_every` | 0 | one in this many operations that return rows returns a wrong value; 0: never |
/// | `dies_after_operations` | 0 | the server breaks all connections after this many operations; 0: never |
/// | `refuses_to_start` | false | `true`: starting fails |
/// | `slow_start` | 0 | additional time of the first operation after a start, as a multiple, on simulated time |
/// | `slow_operations` | 10,000 | operations after which half of that remains |
/// | `luck` | 0 | how much starts differ: standard deviation of ln(one server ÷ another) from one start of both to the
/// next |
/// | `luck_seed` | 1 | seed of the start-to-start variation, together with the start's number |
pub enum Simulation {
    /// On simulated time. Id `simulated`. The four faults affect only measured operations, those on simulated time.
    Simulated,
    /// On real time: an operation is a loop of known length on a real processor. Id `spinning`. Simulated noise and
    /// faults do not apply.
    Spinning,
    /// As the first, and compiling its operations, so that load is offered after a start until it is steady. Id
    /// `compiling`.
    Compiling,
    /// As the first, and restarted on its data if requested. Id `lucky`.
    Lucky,
}

pub use Simulation::{Compiling, Lucky, Simulated, Spinning};

/// The description of the database on simulated time.
static SIMULATED: DatabaseEntry = DatabaseEntry {
    id: "simulated",
    title: "simulated database",
    embedded: true,
    simulated: true,
    reserved_settings: &RESERVED,
    ..DatabaseEntry::BARE
};

/// The description of the database on real time.
static SPINNING: DatabaseEntry = DatabaseEntry {
    id: "spinning",
    title: "simulated database on real time",
    embedded: true,
    reserved_settings: &RESERVED,
    ..DatabaseEntry::BARE
};

/// The description of the database that compiles.
static COMPILING: DatabaseEntry =
    DatabaseEntry { id: "compiling", title: "simulated database that compiles", compiles: true, ..SIMULATED };

/// The description of the database that is restarted.
static LUCKY: DatabaseEntry =
    DatabaseEntry { id: "lucky", title: "simulated database that is started again", keeps_data: true, ..SIMULATED };

/// Settings that an experiment may set.
const KNOWN: [&str; 12] = [
    "service_us",
    "noise",
    "drift",
    "stalls",
    "fail_every",
    "wrong_answer_every",
    "dies_after_operations",
    "refuses_to_start",
    "slow_start",
    "slow_operations",
    "luck",
    "luck_seed",
];

/// Settings that protections set.
const RESERVED: [(&str, &str); 4] = [
    ("seal_cost", "the protection `seal` sets it"),
    ("audit_cost", "the protection `audit` sets it"),
    ("audit_lose", "the protection `audit` sets it"),
    ("placebo_cost", "the protection `placebo` sets it"),
];

impl Database for Simulation {
    fn entry(&self) -> &'static DatabaseEntry {
        match self {
            Simulated => &SIMULATED,
            Spinning => &SPINNING,
            Compiling => &COMPILING,
            Lucky => &LUCKY,
        }
    }

    fn find(&self, _search: &Search) -> Result<Install, Missing> {
        Ok(Install { version: VERSION.to_owned(), ..Install::default() })
    }

    fn launch(&self, _install: &Install, setup: &Setup, place: &Place) -> Launch {
        let data = place.folder.join("data");
        let mut steps = vec![Step::Folder(data.clone())];
        if setup.settings.get("refuses_to_start").is_some_and(|value| value == "true") {
            steps.push(Step::Run(refusal()));
        }
        let paths = Paths { data: vec![data], journal: Vec::new(), logs: vec![place.folder.join("audit.log")] };
        Launch { steps, paths, ..Launch::default() }
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let store = store::find(server)?;
        let model = Model::of(&setup.settings)?.on_start(store.start());
        let length_ns = model.service_ns * model.cost;
        let session = session::SimulatedSession::new(store, model, server, how)?;
        Ok(Session::KeyValue(Box::new(match self {
            Simulated | Compiling | Lucky => session,
            Spinning => session.spinning(spinning::turns(length_ns)),
        })))
    }

    fn create(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        Model::of(&setup.settings)?;
        store::create(server, setup.at_rest.as_ref())
    }

    fn remove(&self, server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
        store::remove(server)
    }

    fn quiesce(&self, server: &Server, setup: &Setup, _table: &Table) -> Result<(), Fault> {
        store::find(server)?.write(setup.at_rest.as_ref())
    }

    fn close(&self, server: &Server) {
        store::start_anew(server);
    }

    fn facts(&self, _server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        let configuration = setup.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let cipher = setup.at_rest.as_ref().map(|at_rest| ("cipher".to_owned(), at_rest.cipher.clone()));
        Ok(ArmFacts { version: VERSION.to_owned(), facts: cipher.into_iter().collect(), configuration })
    }
}

impl Product for Simulation {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        &[&protections::Seal, &protections::Audit, &protections::Placebo]
    }
}

const VERSION: &str = "simulated 1";

/// A command that fails with the reason: launching is described as data and cannot fail itself.
fn refusal() -> Command {
    Command {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), "echo 'the simulated server was told to refuse' >&2; exit 1".to_owned()],
        environment: BTreeMap::new(),
    }
}

/// The settings of one arm, read.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    /// Mean time of a plain operation, ns.
    service_ns: f64,
    noise: f64,
    drift: f64,
    stalls: f64,
    fail_every: u64,
    wrong_answer_every: u64,
    dies_after_operations: u64,
    slow_start: f64,
    slow_operations: u64,
    luck: f64,
    luck_seed: u64,
    /// The factor of the arm's protections on the service time.
    cost: f64,
    /// `Some`: operations are logged, except this share of them.
    audit_lose: Option<f64>,
}

impl Model {
    fn of(settings: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let unknown =
            |name: &&String| !KNOWN.contains(&name.as_str()) && RESERVED.iter().all(|(known, _)| known != name);
        if let Some(name) = settings.keys().find(unknown) {
            return Err(Fault::Refused(format!("there is no setting `{name}`; there are {}", KNOWN.join(", "))));
        }
        let number = |name: &str, default: f64| match settings.get(name).map(|value| value.parse::<f64>()) {
            None => Ok(default),
            Some(Ok(number)) if number.is_finite() && number > -1.0 => Ok(number),
            Some(_) => Err(Fault::Refused(format!("setting `{name}` is not a number that makes sense here"))),
        };
        let mut cost = 1.0;
        for name in ["seal_cost", "audit_cost", "placebo_cost"] {
            cost *= 1.0 + number(name, 0.0)?;
        }
        Ok(Self {
            service_ns: number("service_us", 20.0)? * 1000.0,
            noise: number("noise", 0.15)?,
            drift: number("drift", 0.2)?,
            stalls: number("stalls", 0.0)?,
            fail_every: number("fail_every", 0.0)? as u64,
            wrong_answer_every: number("wrong_answer_every", 0.0)? as u64,
            dies_after_operations: number("dies_after_operations", 0.0)? as u64,
            slow_start: number("slow_start", 0.0)?,
            slow_operations: number("slow_operations", 10_000.0)?.max(1.0) as u64,
            luck: number("luck", 0.0)?,
            luck_seed: number("luck_seed", 1.0)? as u64,
            cost,
            audit_lose: if settings.contains_key("audit_lose") { Some(number("audit_lose", 0.0)?) } else { None },
        })
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod tests;
