//! An experiment: what the user asked for, resolved.
//!
//! [`parse`](crate::parse) makes it from a TOML file.

mod custom;
pub(crate) mod mask;
mod published;
pub(crate) mod url;

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr},
    ops::RangeInclusive,
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

pub use custom::{Claim, Custom, FilePlace, NamedCheck, Says, matches};
pub use mask::{gives_password, mask_passwords};
pub use published::{Published, PublishedFigure, PublishedValue};
pub use url::Url;

use crate::quantity;

/// A resolved experiment: every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// One line that the reports start with.
    pub title: String,
    /// Identifier of the database in the catalogue.
    pub database: String,
    /// Server settings common to all arms, in the database's own names.
    pub settings: BTreeMap<String, String>,
    /// Encrypted swap that is set up for the run, bytes; `None` leaves the machine as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_swap_bytes: Option<u64>,
    /// The data set.
    pub data: Data,
    /// How operations are offered.
    pub load: Load,
    /// Sets of conditions under which every workload is measured; at least one.
    pub resources: Vec<Resources>,
    /// What the clients do; at least one.
    pub workloads: Vec<Workload>,
    /// The arms; the first is the baseline.
    pub arms: Vec<Arm>,
    /// How long and how precisely to measure.
    pub measure: Measure,
    /// Figures that others published, to show next to the measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

impl Experiment {
    /// Bytes of a data set of records of `record_bytes` as the clients send them: without indexes, page headers and
    /// other overhead of the database.
    pub fn data_bytes(&self, record_bytes: u64) -> u64 {
        self.data.records.saturating_mul(record_bytes)
    }

    /// How to switch the server that both arms share; `None` if both arms exist at the same time.
    pub fn switch(&self) -> Option<&ProviderSwitch> {
        self.arms.iter().find_map(|arm| arm.switch.as_ref())
    }

    /// True if some arm is a running server, which Tithe did not start.
    pub fn is_attached(&self) -> bool {
        is_attached(&self.arms)
    }
}

/// True if one of `arms` is a running server.
pub fn is_attached(arms: &[Arm]) -> bool {
    arms.iter().any(|arm| arm.url.is_some())
}

/// The data set that every arm holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Records loaded before measuring.
    pub records: u64,
    /// What the values look like.
    pub values: Values,
}

/// The content of values; printed in the report because it changes the cost of compression and encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// YCSB's printable bytes: about six random bits in eight, so they compress by about a quarter.
    Ycsb,
    /// Uniformly random bytes.
    Incompressible,
}

/// How operations are offered to the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Connections that are busy at the same time, per arm.
    pub clients: u32,
    /// When the next operation starts.
    pub arrivals: Arrivals,
    /// Operations after which a client closes its connection and opens a new one; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u32>,
    /// Load machines that offer it; `None`: Tithe's own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    /// Address of this machine that the servers listen on; `None`: 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<IpAddr>,
}

impl Load {
    /// The address that Tithe's own servers listen on.
    pub fn address(&self) -> IpAddr {
        self.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// True when other machines can reach them. All arms then ask for a password.
    pub fn is_open(&self) -> bool {
        !self.address().is_loopback()
    }
}

/// Allowed rates of an open loop, operations per second over all clients: the operations of a slot are in memory, each
/// with its time.
pub const RATES_PER_S: RangeInclusive<f64> = 0.001..=1e9;

/// When operations start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Closed loop: each client starts its next operation when the last one ended.
    Closed,
    /// Open loop, even spacing; operations per second over all clients.
    Even(f64),
    /// Open loop, exponential spacing; mean operations per second over all clients.
    Poisson(f64),
    /// Open loop, exponential spacing, at this share of the slowest arm's highest rate in the earlier cells with the
    /// same workload and resources.
    OfSaturation(f64),
}

/// The words after the percentage of [`Arrivals::OfSaturation`].
const OF_SATURATION: &str = " % of saturation, Poisson arrivals";

impl Arrivals {
    /// True if the arrivals printed as `words` are a share of saturation. The run itself finds their rate.
    pub fn are_of_saturation(words: &str) -> bool {
        words.ends_with(OF_SATURATION)
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed loop"),
            Self::Even(rate) => write!(f, "{}/s, even arrivals", quantity::rate(*rate)),
            Self::Poisson(rate) => write!(f, "{}/s, Poisson arrivals", quantity::rate(*rate)),
            Self::OfSaturation(share) => write!(f, "{:.0}{OF_SATURATION}", 100.0 * share),
        }
    }
}

/// Conditions of a cell besides the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Name in the report, with the version; empty when there is only one unnamed set.
    pub name: String,
    /// First numbers of the version of the server that is started (`18`); `None`: the first one found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Server settings that differ from the common ones.
    pub settings: BTreeMap<String, String>,
    /// Clients, if they differ from `[load]`.
    pub clients: Option<u32>,
    /// When operations start, if it differs from `[load]`.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    /// Operations per connection, if it differs from `[load]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u32>,
    /// What the server of each arm may use.
    #[serde(default)]
    pub limits: Limits,
}

impl Resources {
    /// The part of the name with the version: `version 18`; empty if the experiment names none.
    pub fn version_words(&self) -> String {
        self.version.as_ref().map_or(String::new(), |version| format!("version {version}"))
    }
}

/// Limits of an arm's server, without its clients.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Processors: 0.5 is half of one. `None`: all.
    pub cpus: Option<f64>,
    /// Memory, page cache included. `None`: all.
    pub memory: Option<Memory>,
    /// Page cache and buffer pools are emptied before a server is measured.
    #[serde(default)]
    pub cold: bool,
}

/// A limit of memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// This many bytes.
    Bytes(u64),
    /// So little that the data are this many times as large: above 1 they do not fit.
    DataPer(f64),
}

impl Memory {
    /// The limit with data of `data_bytes`, bytes.
    pub fn bytes(self, data_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::DataPer(ratio) => (data_bytes as f64 / ratio) as u64,
        }
    }
}

impl Limits {
    /// True if a server needs a control group for them.
    pub fn confine(&self) -> bool {
        self.cpus.is_some() || self.memory.is_some()
    }
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name in the report.
    pub name: String,
    /// Identifier of its kind in the catalogue (`ycsb`).
    pub kind: String,
    /// Its properties in the kind's own names: those of the preset or the property file, overridden by the experiment's
    /// own `properties`.
    pub properties: BTreeMap<String, String>,
    /// The user's own data, which launched servers use in place of data that clients load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<PathBuf>,
}

/// One database with a set of protections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Name in the report.
    pub name: String,
    /// Protections, in the order they are applied. Empty for the baseline.
    pub protections: Vec<Protection>,
    /// A running server to attach to instead of launching one. A password in it is written as `***` everywhere; it is
    /// read from the environment if the URL has none.
    pub url: Option<Url>,
    /// Statements that switch the protection on before a slot of this arm, if all arms share a server.
    pub on: Vec<String>,
    /// Statements that switch it off again after the slot.
    pub off: Vec<String>,
    /// The second instance of the baseline that Tithe adds as the negative control: its true cost is zero, so any cost
    /// it shows comes from the set-up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aa: bool,
    /// Folder of the programs that its server is started from; `None` for the installed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<PathBuf>,
    /// How the server's provider switches it to this arm and back, if no connection can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<ProviderSwitch>,
    /// What an observer checks on the other machine of its running server; `None` if there is no observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<Observed>,
}

/// What an observer reads on the machine of a running server. All paths are absolute, and on that machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The name by which the observer was started.
    pub name: String,
    /// Tables and indexes.
    pub data: Vec<PathBuf>,
    /// Write-ahead log, redo log, journal.
    pub journal: Vec<PathBuf>,
    /// Server and audit logs.
    pub logs: Vec<PathBuf>,
    /// Files of settings; their fingerprints are recorded.
    pub settings: Vec<PathBuf>,
}

/// How the provider of a server that both arms share switches a protection of it, and the length of each side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderSwitch {
    /// Program and arguments that switch it on. They run as written: no shell reads them.
    pub on: Vec<String>,
    /// Program and arguments that switch it off.
    pub off: Vec<String>,
    /// A query in the server's language that returns true if the protection is on; empty if `ready_command` is used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ready: String,
    /// Program and arguments that print the same in their last line; empty if `ready` is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready_command: Vec<String>,
    /// Load on one side before the switch to the other side, s.
    pub side_s: f64,
    /// Time limit of a switch, s, for the command and for the wait for `ready` each.
    pub timeout_s: f64,
}

impl ProviderSwitch {
    /// How the state of the protection is queried: the query, or the command.
    pub fn question(&self) -> String {
        if self.ready_command.is_empty() { self.ready.clone() } else { self.ready_command.join(" ") }
    }
}

impl Arm {
    /// The arm `name` with these protections, on a server that Tithe starts from the installed programs.
    pub fn new(name: &str, protections: Vec<Protection>) -> Self {
        Self {
            name: name.to_owned(),
            protections,
            url: None,
            on: Vec::new(),
            off: Vec::new(),
            aa: false,
            programs: None,
            switch: None,
            observer: None,
        }
    }

    /// True if it differs from the baseline only by statements or settings without a claim.
    pub fn is_setting(&self) -> bool {
        let differs = !self.protections.is_empty() || !self.on.is_empty();
        differs && self.switch.is_none() && self.protections.iter().all(Protection::is_setting)
    }

    /// True if something of the user's own makes it differ from the baseline, and claims of the user's own prove it.
    /// Claims beside nothing of that kind only ask more of the arm's other protections.
    pub fn rests_on_claims(&self) -> bool {
        let own = || self.protections.iter().filter_map(|protection| protection.custom.as_deref());
        own().any(|custom| !custom.claims.is_empty()) && own().any(Custom::changes)
    }

    /// True if this arm protects no more than `baseline`, and is reached and switched in the same way.
    pub fn is_second(&self, baseline: &Self) -> bool {
        self.protections.is_empty()
            && (&self.url, &self.on, &self.off) == (&baseline.url, &baseline.on, &baseline.off)
            && self.switch == baseline.switch
    }
}

/// A protection with its options, every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protection {
    /// Identifier in the catalogue.
    pub id: String,
    /// Options by name.
    pub options: BTreeMap<String, OptionValue>,
    /// Its description, if it is user-defined and not in the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<Box<Custom>>,
}

impl Protection {
    /// A protection of the catalogue with these options.
    pub fn listed(id: &str, options: BTreeMap<String, OptionValue>) -> Self {
        Self { id: id.to_owned(), options, custom: None }
    }

    /// True if it claims nothing, so its cost is the cost of a setting.
    pub fn is_setting(&self) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.claims.is_empty())
    }

    /// The number of option `name`.
    ///
    /// # Panics
    /// When the option is not a number: the parser has checked it against the catalogue.
    pub fn number(&self, name: &str) -> f64 {
        match self.options.get(name) {
            Some(OptionValue::Number(number)) => *number,
            other => panic!("option {name} of {} is {other:?}, not a number", self.id),
        }
    }

    /// The text of option `name`.
    ///
    /// # Panics
    /// When the option is not a text: the parser has checked it against the catalogue.
    pub fn text(&self, name: &str) -> &str {
        match self.options.get(name) {
            Some(OptionValue::Text(text)) => text,
            other => panic!("option {name} of {} is {other:?}, not a text", self.id),
        }
    }

    /// The switch of option `name`.
    ///
    /// # Panics
    /// When the option is not a switch: the parser has checked it against the catalogue.
    pub fn flag(&self, name: &str) -> bool {
        match self.options.get(name) {
            Some(OptionValue::Flag(flag)) => *flag,
            other => panic!("option {name} of {} is {other:?}, not a switch", self.id),
        }
    }
}

/// The value of a protection's option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptionValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A switch.
    Flag(bool),
}

impl std::fmt::Display for OptionValue {
    /// Without quotes, as statements and tables use it.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
            Self::Flag(flag) => flag.fmt(formatter),
        }
    }
}

/// The quantity that decides when a cell is measured precisely enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Mean latency of an operation, wall clock.
    Time,
    /// The same without the time spent waiting for a processor: the cost of the operation on an idle machine.
    Net,
    /// Processor time per operation, client and server together.
    Cpu,
    /// Processor time per operation of the client alone.
    ClientCpu,
    /// Processor time per operation of the server processes that served it.
    ServerCpu,
}

/// How the arms of a cell share the machine over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Short slots in random order, all client threads on the same arm at the same time.
    #[default]
    Interleaved,
    /// The arms run at the same time, each on processors of its own, and swap them after every slot.
    Duet,
    /// As interleaved, in slots of one second: longer than the effects of caches and stalls.
    Slices,
    /// One arm after the other, as is common practice. For comparison only: it measures the drift of the machine too.
    Sequential,
    /// Both arms are one server that its provider switches: a side of one arm, then one of the other, in pairs of
    /// random order. Set if and only if [`Arm::switch`] is.
    Switched {
        /// Frames of each side.
        frames_a_side: u32,
    },
}

impl Design {
    /// True if the provider switches the server between its arms.
    pub fn is_switched(self) -> bool {
        matches!(self, Self::Switched { .. })
    }

    /// True if a frame contains one arm only, so it gives no cost by itself.
    pub fn has_one_arm_a_frame(self) -> bool {
        self == Self::Sequential || self.is_switched()
    }
}

/// How long and how precisely to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Half-width of the interval at which a cell is done, as a natural-log ratio (0.01 is one percent).
    pub precision: f64,
    /// Seconds of measured load for the whole experiment; cells share it evenly.
    pub budget_s: f64,
    /// Seed of every order and key stream.
    pub seed: u64,
    /// The largest cost that the user regards as none, as a natural-log ratio.
    pub margin: f64,
    /// What is estimated first.
    pub primary: Metric,
    /// Fresh set-ups of all arms per cell, each with its own evidence; `None` lets the plan choose.
    pub epochs: Option<u32>,
    /// Starts of all servers per cell; `None` lets the plan choose by the time a start takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<u32>,
    /// Slot length in ms; `None` lets the plan choose by the workload.
    pub slot_ms: Option<f64>,
    /// Seconds of load, per arm, before the first frame after each start; `None` leaves it to the frame's own warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// Seconds that the servers are watched while they are idle; `None` leaves it to [`idle_s`](crate::plan::idle_s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
    /// How the arms share the machine over time.
    #[serde(default)]
    pub design: Design,
    /// Binds each client thread and the server processes that serve it to one processor.
    #[serde(default = "yes")]
    pub pin: bool,
    /// Ends a cell when every arm's answer is certain, however wide its interval is.
    #[serde(default)]
    pub until_decided: bool,
    /// Profiles each cell after its measured frames.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
}

/// The default of flags that are usually on.
fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_in_words() {
        let told = |arrivals: Arrivals| {
            let words = arrivals.to_string();
            let of_saturation = Arrivals::are_of_saturation(&words);
            (words, of_saturation)
        };
        let words = |words: &str, of_saturation| (words.to_owned(), of_saturation);
        assert_eq!(told(Arrivals::Closed), words("closed loop", false));
        assert_eq!(told(Arrivals::Even(0.5)), words("0.5/s, even arrivals", false));
        assert_eq!(told(Arrivals::Poisson(1_234_567.0)), words("1,234,567/s, Poisson arrivals", false));
        assert_eq!(told(Arrivals::OfSaturation(0.7)), words("70 % of saturation, Poisson arrivals", true));
    }
}
