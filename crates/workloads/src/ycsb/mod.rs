//! YCSB's core workload (Cooper et al., SoCC 2010), as in `site.ycsb:core:0.17.0`.
//!
//! It reads YCSB's property files ([`properties`], [`config`]), draws the same operations on the same keys from the
//! same seed ([`operation`], [`generator`]), and checks every returned row ([`values`]).
//!
//! Differences from YCSB, and why:
//!
//! * Each client has its own generators, and its stream restarts with each slot, so that all arms get the same
//!   operations. The numbers of inserted records, and the position of the sequential distribution, belong to the arm:
//!   all its clients share them, and no seed resets them.
//! * The whole table is loaded, even if `insertstart` and `insertcount` limit the requested records.
//! * An insert that was prepared but not sent returns its number. One that failed leaves a record that may be missing
//!   without counting as lost.
//! * Values come from a pool (see [`values`]), unless `dataintegrity=true`.
//! * A missing record, a wrong value or a write that changes no row invalidates the frame; YCSB counts it at most. A
//!   session must therefore count the rows that a write matched, not only those that it changed.
//!
//! A workload with inserts can run as long as the database has space. The table grows by a record for each insert; the
//! memory of the workload stays the same. Under `zipfian`, records beyond twice the predicted number of inserts are
//! never requested, as in YCSB; `latest` follows the newest without limit, for about 20 ns per inserted record and
//! client, outside the measured time.

mod client;
pub mod config;
pub mod generator;
mod key;
mod names;
pub mod operation;
mod operation_kind;
mod presets;
pub mod properties;
mod record;
pub mod values;
mod verify;

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tithe_machine::fault::Fault;
use tithe_model::{
    catalogue::{Asked, PropertyProblem},
    experiment::{self, Values},
    operation::Share,
};
use tithe_plugin::{
    session::{Discard, Fields, Request, Session, Table},
    workload::{ArmState, Client, Clients, Load, Workload},
};

pub(crate) use client::key_value;
pub use config::check;
pub use names::ignored;
pub use presets::{PRESETS, entry};

use self::{
    client::YcsbClient,
    config::{Config, Distribution, KeySpace, Length},
    operation::{Records, Stream},
    operation_kind::OperationKind,
    record::Record,
    values::{Lengths, Pool},
};

/// YCSB's core workload with the properties of one experiment.
pub struct Ycsb {
    shared: Arc<Shared>,
    space: KeySpace,
    operations: Vec<&'static str>,
    values: Values,
    /// Settings that belong elsewhere in an experiment.
    asked: Vec<Asked>,
    /// Names of properties that are not used, with the reason.
    ignored: Vec<(String, &'static str)>,
}

/// Shared by all clients of all arms, and never changed.
struct Shared {
    config: Config,
    lengths: Lengths,
    /// A stream before its seed: each client takes a copy.
    stream: Stream,
    /// `None` if values are derived from their keys.
    pool: Option<Pool>,
    /// Where each kind is in the list of recorded operations.
    indices: [usize; OperationKind::ALL.len()],
}

impl Shared {
    /// The longest value, bytes; the only length if values are derived from their keys.
    fn longest_value(&self) -> usize {
        self.lengths.longest()
    }

    /// Least bytes at the beginning of a derived value, before it is cut: its key and the name of its field.
    fn longest_start(&self) -> usize {
        self.config.keys.longest() + self.config.field_prefix.len() + 32
    }

    fn index_of(&self, kind: OperationKind) -> usize {
        self.indices[kind as usize]
    }
}

impl Ycsb {
    /// The workload of `properties` on `records` records, which replace the properties' `recordcount`, with values
    /// that look like `values` and follow from `seed`.
    ///
    /// Reads the file of a length histogram, if the properties name one.
    ///
    /// # Errors
    /// Every problem with the properties.
    pub fn new(
        properties: &BTreeMap<String, String>,
        records: u64,
        values: Values,
        seed: u64,
    ) -> Result<Self, Vec<PropertyProblem>> {
        let (config, space) = config::resolve(properties, records)?;
        let problem = |name: &str, problem: String, help: &str| vec![(name.to_owned(), problem, help.to_owned())];
        if config.integrity && values == Values::Incompressible {
            let text = "values that follow from their key are not incompressible".to_owned();
            return Err(problem("dataintegrity", text, "take out dataintegrity, or ask for values = \"ycsb\""));
        }
        let lengths = Lengths::new(&config.length, &|path| std::fs::read_to_string(path)).map_err(|text| {
            problem("fieldlengthhistogram", text, "the path is relative to the folder in which tithe was started")
        })?;
        let (operations, indices) = recorded(&config);
        let ignored = names::ignored(properties).into_iter().map(|(name, why)| (name.to_owned(), why)).collect();
        let shared = Shared {
            stream: Stream::new(&config, &space, &lengths),
            pool: (!config.integrity).then(|| Pool::new(values, lengths.clone(), seed)),
            config,
            lengths,
            indices,
        };
        let asked = config::asks(properties);
        Ok(Self { shared: Arc::new(shared), space, operations, values, asked, ignored })
    }
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// As [`Ycsb::new`].
pub fn make(
    described: &experiment::Workload,
    data: &experiment::Data,
    seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    Ok(Box::new(Ycsb::new(&described.properties, data.records, data.values, seed)?))
}

/// The operations that appear in the report, in order, and the place of each kind among them. A read-modify-write
/// is recorded as a whole and in its two parts, as YCSB does.
fn recorded(config: &Config) -> (Vec<&'static str>, [usize; OperationKind::ALL.len()]) {
    let happens = |kind: OperationKind| config.weights.iter().any(|&(_, other)| other == kind);
    let mut names = Vec::new();
    let mut indices = [0; OperationKind::ALL.len()];
    for kind in OperationKind::ALL {
        let is_part =
            matches!(kind, OperationKind::Read | OperationKind::Update) && happens(OperationKind::ReadModifyWrite);
        if happens(kind) || is_part {
            indices[kind as usize] = names.len();
            names.push(kind.name());
        }
    }
    (names, indices)
}

impl ArmState for Records {
    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }

    fn reached(&self) -> Vec<i64> {
        Self::reached(self)
    }

    fn go_on(&self, reached: &[i64]) {
        Self::go_on(self, reached);
    }

    fn divide(&self, part: u64, of: u64) {
        Self::divide(self, part as i64, of as i64);
    }
}

/// Records that are written durably together while loading.
const BULK: i64 = 1000;

impl Workload for Ycsb {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        self.operations.clone()
    }

    fn writes(&self) -> bool {
        self.shared.config.weights.iter().any(|(_, kind)| kind.writes())
    }

    fn scans(&self) -> bool {
        self.shared.config.weights.iter().any(|(_, kind)| *kind == OperationKind::Scan)
    }

    fn table(&self) -> Table {
        let config = &self.shared.config;
        Table { name: config.table.clone(), fields: config.fields, field_prefix: config.field_prefix.clone() }
    }

    fn describe(&self) -> Vec<(String, String)> {
        let config = &self.shared.config;
        let mut lines = vec![("requestdistribution".to_owned(), distribution_text(&config.distribution))];
        let sum: f64 = config.weights.iter().map(|(weight, _)| weight).sum();
        for (weight, kind) in &config.weights {
            lines.push(Share { operation: kind.name(), percent: percent(weight / sum) }.note());
        }
        lines.push(("fields".to_owned(), format!("{} of {}", config.fields, length_text(&config.length))));
        let values = match (config.integrity, self.values) {
            (true, _) => "derived from key and field (dataintegrity)",
            (false, Values::Ycsb) => "ycsb",
            (false, Values::Incompressible) => "incompressible",
        };
        lines.push(("values".to_owned(), values.to_owned()));
        if config.weights.iter().any(|&(_, kind)| kind == OperationKind::Scan) {
            let (shortest, longest) = config.scan;
            let kind = if config.scan_zipfian { "zipfian" } else { "uniform" };
            lines.push(("scan length".to_owned(), format!("{shortest} to {longest}, {kind}")));
        }
        let differs = [
            (!config.read_all, "readallfields", "false"),
            (config.write_all, "writeallfields", "true"),
            (config.keys.ordered, "insertorder", "ordered"),
        ];
        let differing = differs.iter().filter(|(differs, ..)| *differs);
        lines.extend(differing.map(|(_, name, value)| ((*name).to_owned(), (*value).to_owned())));
        lines.extend(self.asked.iter().map(|asked| {
            (asked.property.to_owned(), format!("{}, where the experiment has no `{}`", asked.value, asked.of.key()))
        }));
        lines.extend(self.ignored.iter().map(|(name, why)| (name.clone(), format!("ignored: {why}"))));
        lines
    }

    fn ignored(&self) -> Vec<(String, &'static str)> {
        self.ignored.clone()
    }
}

impl Clients for Ycsb {
    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(Records::new(self.space.records))
    }

    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault> {
        let session = key_value(session)?;
        let mut record = Record::new(&self.shared);
        let bound = |part: u64| (i128::from(self.space.records) * i128::from(part) / i128::from(of)) as i64;
        let (mut next, end) = (bound(partition), bound(partition + 1));
        while next < end {
            let group = next..end.min(next + BULK);
            next = group.end;
            session.begin_bulk()?;
            for number in group {
                record.set(&self.shared, number);
                record.fill(&self.shared, Fields::All, 0);
                record
                    .with(&self.shared, |key, values| session.call(&Request::Insert { key, values }, &mut Discard))?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            session.end_bulk()?;
        }
        Ok(())
    }

    /// # Panics
    /// If `state` is another workload's.
    fn client(&self, state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        let state: Arc<dyn Any + Send + Sync> = Arc::<dyn ArmState>::clone(state);
        let records = state.downcast().expect("the state of an arm comes from its own workload");
        Box::new(YcsbClient::new(Arc::clone(&self.shared), records))
    }
}

/// A share in percent, without needless digits.
fn percent(share: f64) -> f64 {
    (share * 1e4).round() / 100.0
}

fn distribution_text(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Uniform => "uniform".to_owned(),
        Distribution::Zipfian => "zipfian".to_owned(),
        Distribution::Latest => "latest".to_owned(),
        Distribution::Sequential => "sequential".to_owned(),
        Distribution::Hotspot(data, operations) => {
            format!("hotspot, {} % of operations on {} % of records", percent(*operations), percent(*data))
        }
        Distribution::Exponential(percentile, fraction) => {
            format!("exponential, {percentile} % of operations on the newest {} % of records", percent(*fraction))
        }
    }
}

fn length_text(length: &Length) -> String {
    match length {
        Length::Constant(length) => format!("{length} bytes"),
        Length::Uniform(shortest, longest) => format!("{shortest} to {longest} bytes, uniform"),
        Length::Zipfian(shortest, longest) => format!("{shortest} to {longest} bytes, zipfian"),
        Length::Histogram(path) => format!("lengths by the histogram {path}"),
    }
}

#[cfg(test)]
mod tests;
