//! Figures, and their names in tables, CSV and JSON.
//!
//! A [`Figure`] is printed in one place, its `Display`, and parsed in one, its `FromStr`. All other code matches on it.
//! Matrices name the deciding metric by its title: [`metric_title`] prints it, and [`by_title`] parses it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use tithe_model::experiment::Metric;

/// A cost, or the level of one arm.
///
/// Most costs have the name of the level that they compare; costs per operation do not ([`Figure::level`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Cost of an operation by a metric of slots: `net`, `time`, `client_cpu`.
    Metric(Metric),
    /// The same without binding to processors: `free_time`, `free_cpu`.
    Free(Metric),
    /// The level of a metric: `net_per_op`, `client_cpu_per_op`; that of the time is `latency_mean`.
    MetricLevel(Metric),
    /// Operations per second, or their share of those that an open loop intended: `throughput`.
    Throughput,
    /// Operations per second of an open loop: `operations`.
    Operations,
    /// New-Orders per minute, the usual figure of workloads derived from TPC-C: `new_orders`.
    NewOrders,
    /// Time to open a connection: `connect`.
    Connect,
    /// A percentile of latency: `latency_p99_READ`.
    Percentile(Percentile),
    /// A counter per operation, as a cost: `wal_bytes`.
    Counter(Counter),
    /// The level of a counter: `wal_bytes_per_op`.
    CounterLevel(Counter),
    /// A cost of an arm, not of an operation: `memory_bytes`.
    Size(Size),
}

/// A percentile of the latencies of one operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile {
    /// The start of the latency.
    pub start: Start,
    /// Which percentile.
    pub rank: Rank,
    /// The operation: `READ`.
    pub operation: String,
}

/// The moment from which a latency counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// When the operation started.
    Actual,
    /// When it should have started, so that waiting behind a stall counts.
    Intended,
}

/// The percentiles in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The median.
    P50,
    /// 90 %.
    P90,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
}

/// Counters over a frame, reported per operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Processor time of all server processes.
    ServerTreeCpu,
    /// Processor time of the clients in user mode.
    ClientUserCpu,
    /// Processor time of the clients in the kernel.
    ClientSystemCpu,
    /// Processor time of the server in user mode.
    ServerUserCpu,
    /// Processor time of the server in the kernel.
    ServerSystemCpu,
    /// Write-ahead log, redo log or journal.
    WalBytes,
    /// The server's log and audit files.
    LogBytes,
    /// Read from storage.
    ReadBytes,
    /// Written to storage.
    WrittenBytes,
    /// Sent by the clients.
    SentBytes,
    /// Received by the clients.
    ReceivedBytes,
    /// Statements sent by the clients.
    Statements,
    /// Context switches of the server.
    Switches,
}

/// Sizes of an arm as a whole, at the end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// Memory of the server.
    Memory,
    /// The data set on disk.
    Disk,
}

impl Figure {
    /// The level that this cost compares; for a level, the level itself.
    pub fn level(&self) -> Self {
        match self {
            Self::Metric(metric) => Self::MetricLevel(*metric),
            Self::Counter(counter) => Self::CounterLevel(*counter),
            other => other.clone(),
        }
    }

    /// The percentile, if this is one.
    pub fn percentile(&self) -> Option<&Percentile> {
        match self {
            Self::Percentile(percentile) => Some(percentile),
            _ => None,
        }
    }

    /// Every figure but the percentiles, of which there are as many as workloads have operations.
    fn all_but_percentiles() -> impl Iterator<Item = Self> {
        let metrics = METRICS
            .into_iter()
            .flat_map(|metric| [Self::Metric(metric), Self::Free(metric), Self::MetricLevel(metric)]);
        let counters =
            Counter::ALL.into_iter().flat_map(|counter| [Self::Counter(counter), Self::CounterLevel(counter)]);
        [Self::Throughput, Self::Operations, Self::NewOrders, Self::Connect]
            .into_iter()
            .chain(metrics)
            .chain(counters)
            .chain([Size::Memory, Size::Disk].map(Self::Size))
    }
}

/// The metrics of slots, in the order of the report.
pub(crate) const METRICS: [Metric; 5] = [Metric::Net, Metric::Time, Metric::Cpu, Metric::ClientCpu, Metric::ServerCpu];

fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Time => "time",
        Metric::Net => "net",
        Metric::Cpu => "cpu",
        Metric::ClientCpu => "client_cpu",
        Metric::ServerCpu => "server_cpu",
    }
}

/// The title of a cost in `metric` in tables and in files of matrices: `net time per op`.
pub fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::Time => "time per op",
        Metric::Net => "net time per op",
        Metric::Cpu => "CPU per op",
        Metric::ClientCpu => "client CPU per op",
        Metric::ServerCpu => "server CPU per op",
    }
}

/// For fields that store a metric by its title.
pub mod by_title {
    use super::{Deserialize, Deserializer, Error, METRICS, Metric, Serializer, UnknownFigure, metric_title};

    /// Writes the title.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(metric_title(*metric))
    }

    /// Reads the title.
    ///
    /// # Errors
    /// If it is not the title of a metric.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
        let title = String::deserialize(deserializer)?;
        let metric = METRICS.into_iter().find(|metric| metric_title(*metric) == title);
        metric.ok_or_else(|| D::Error::custom(UnknownFigure(title)))
    }
}

impl Percentile {
    /// `None` if `name` is not a percentile.
    fn parse(name: &str) -> Option<Self> {
        let (start, rest) = name.split_once('_')?;
        let (rank, operation) = rest.split_once('_')?;
        Some(Self {
            start: [Start::Actual, Start::Intended].into_iter().find(|it| it.name() == start)?,
            rank: Rank::ALL.into_iter().find(|it| it.name() == rank)?,
            operation: operation.to_owned(),
        })
    }
}

impl Start {
    fn name(self) -> &'static str {
        match self {
            Self::Actual => "latency",
            Self::Intended => "intended",
        }
    }
}

impl Rank {
    /// All of them, the lowest first.
    pub const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P999];

    /// `p99`
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// The share of operations that are as fast or faster, 0–1.
    pub fn share(self) -> f64 {
        match self {
            Self::P50 => 0.5,
            Self::P90 => 0.9,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P999 => 0.999,
        }
    }
}

impl Counter {
    const ALL: [Self; 13] = [
        Self::ServerTreeCpu,
        Self::ClientUserCpu,
        Self::ClientSystemCpu,
        Self::ServerUserCpu,
        Self::ServerSystemCpu,
        Self::WalBytes,
        Self::LogBytes,
        Self::ReadBytes,
        Self::WrittenBytes,
        Self::SentBytes,
        Self::ReceivedBytes,
        Self::Statements,
        Self::Switches,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ServerTreeCpu => "server_tree_cpu",
            Self::ClientUserCpu => "client_user_cpu",
            Self::ClientSystemCpu => "client_system_cpu",
            Self::ServerUserCpu => "server_user_cpu",
            Self::ServerSystemCpu => "server_system_cpu",
            Self::WalBytes => "wal_bytes",
            Self::LogBytes => "log_bytes",
            Self::ReadBytes => "read_bytes",
            Self::WrittenBytes => "written_bytes",
            Self::SentBytes => "sent_bytes",
            Self::ReceivedBytes => "received_bytes",
            Self::Statements => "statements",
            Self::Switches => "switches",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(metric) => f.write_str(metric_name(*metric)),
            Self::Free(metric) => write!(f, "free_{}", metric_name(*metric)),
            Self::MetricLevel(Metric::Time) => f.write_str("latency_mean"),
            Self::MetricLevel(metric) => write!(f, "{}_per_op", metric_name(*metric)),
            Self::Throughput => f.write_str("throughput"),
            Self::Operations => f.write_str("operations"),
            Self::NewOrders => f.write_str("new_orders"),
            Self::Connect => f.write_str("connect"),
            Self::Percentile(Percentile { start, rank, operation }) => {
                write!(f, "{}_{}_{operation}", start.name(), rank.name())
            }
            Self::Counter(counter) => f.write_str(counter.name()),
            Self::CounterLevel(counter) => write!(f, "{}_per_op", counter.name()),
            Self::Size(Size::Memory) => f.write_str("memory_bytes"),
            Self::Size(Size::Disk) => f.write_str("disk_bytes"),
        }
    }
}

/// A text that names no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFigure(String);

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` names no figure that this version of Tithe knows", self.0)
    }
}

impl std::error::Error for UnknownFigure {}

impl FromStr for Figure {
    type Err = UnknownFigure;

    fn from_str(name: &str) -> Result<Self, UnknownFigure> {
        Percentile::parse(name)
            .map(Self::Percentile)
            .or_else(|| Self::all_but_percentiles().find(|figure| figure.to_string() == name))
            .ok_or_else(|| UnknownFigure(name.to_owned()))
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn figures() -> impl Strategy<Value = Figure> {
        let fixed: Vec<Figure> = Figure::all_but_percentiles().collect();
        let start = prop_oneof![Just(Start::Actual), Just(Start::Intended)];
        // Names of other figures and names within names could be confused most easily.
        let operation = prop_oneof![".*", "[A-Za-z_0-9.]{0,12}", "(latency_|intended_|p99_|mean|_per_op){0,3}"];
        let percentile = (start, proptest::sample::select(Rank::ALL.to_vec()), operation)
            .prop_map(|(start, rank, operation)| Figure::Percentile(Percentile { start, rank, operation }));
        prop_oneof![proptest::sample::select(fixed), percentile]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(figure in figures()) {
            let name = figure.to_string();
            prop_assert_eq!(name.parse(), Ok(figure.clone()));
            let json = serde_json::to_string(&figure).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&name).unwrap());
            prop_assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), figure);
        }

        #[test]
        fn what_is_read_is_printed_as_it_was(name in "((latency|intended|free|cpu|wal|p99|p|bytes|mean|per|op)_?){1,4}") {
            if let Ok(figure) = name.parse::<Figure>() {
                prop_assert_eq!(figure.to_string(), name);
            }
        }
    }

    #[test]
    fn every_figure_has_a_name_of_its_own() {
        let names: Vec<String> = Figure::all_but_percentiles().map(|figure| figure.to_string()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let ranks: Vec<&str> = Rank::ALL.into_iter().map(Rank::name).collect();
        assert_eq!(ranks, ["p50", "p90", "p95", "p99", "p99.9"]);
    }

    #[test]
    fn percentile_names_come_apart() {
        let parts = |name: &str| {
            let Percentile { start, rank, operation } = name.parse::<Figure>().ok()?.percentile()?.clone();
            Some((start, rank, operation))
        };
        assert_eq!(parts("latency_p99_READ"), Some((Start::Actual, Rank::P99, "READ".to_owned())));
        let long = Some((Start::Intended, Rank::P999, "READ_MODIFY_WRITE".to_owned()));
        assert_eq!(parts("intended_p99.9_READ_MODIFY_WRITE"), long);
        assert_eq!(parts("cpu_per_op"), None);
        assert_eq!("latency_mean".parse(), Ok(Figure::MetricLevel(Metric::Time)));
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Titled(#[serde(with = "by_title")] Metric);

    #[test]
    fn a_metric_is_read_by_its_title_and_by_nothing_else() {
        for metric in METRICS {
            let json = serde_json::to_string(&Titled(metric)).unwrap();
            assert_eq!(json, format!("\"{}\"", metric_title(metric)));
            assert_eq!(serde_json::from_str::<Titled>(&json).unwrap(), Titled(metric));
        }
        let refused = serde_json::from_str::<Titled>("\"net\"").expect_err("a name").to_string();
        assert!(refused.starts_with("`net` names no figure that this version of Tithe knows"), "{refused}");
    }

    #[test]
    fn other_texts_are_no_figures() {
        for name in ["", "wal_pages", "latency_p98_READ", "latency_p99", "time_per_op", "NET", "net "] {
            let refused = name.parse::<Figure>().expect_err(name).to_string();
            assert_eq!(refused, format!("`{name}` names no figure that this version of Tithe knows"));
        }
    }
}
