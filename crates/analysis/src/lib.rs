//! Records in, estimates and reports out. Pure: no clock, no process, no printing, no files.
//!
//! [`assess::assess`] turns what a run folder holds into an [`Analysis`]; every report is a function of
//! that. The same records give the same bytes.

#![forbid(unsafe_code)]

pub mod assess;
pub mod compare;
pub mod figures;
pub mod history;
pub mod matrix;
pub mod profiled;
pub mod report;
pub mod stopping;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tithe_model::{
    ending::{self, CellEnding},
    record::{ArmFacts, Finding, Host, Machine},
};
use tithe_statistics::null;

pub use figures::Figure;
pub use profiled::{ArmProfile, CellProfile, Part};
pub use tithe_statistics::interval::{Interval, Outcome};

/// Confidence of every interval, simultaneous over the arms of a cell, and of what headlines say of a whole run.
pub const CONFIDENCE: f64 = 0.95;

/// What the records say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// Name of the run folder.
    pub run: String,
    /// Title of the experiment.
    pub title: String,
    /// Title of the database's entry: its identifier.
    pub database: String,
    /// Version of the program that measured.
    pub tithe: String,
    /// Seed of every order.
    pub seed: u64,
    /// Records of the data set that the experiment asks for.
    pub records: u64,
    /// When the first frame began, s since 1970; `None` where there is none, and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_s: Option<u64>,
    /// Confidence of every interval, 0–1, simultaneous over the arms of a cell.
    pub confidence: f64,
    /// The largest cost that counts as none, natural-log ratio.
    pub margin: f64,
    /// The machine.
    pub machine: Machine,
    /// The cells, in the plan's order.
    pub cells: Vec<CellAnalysis>,
    /// What the cells with different numbers of clients say together.
    pub sweeps: Vec<Sweep>,
    /// What the reader should know, whole sentences.
    pub warnings: Vec<String>,
}

/// Cells that differ in the number of clients only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the workload.
    pub workload: String,
    /// Name of the set of resources; empty when unnamed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resources: String,
    /// The arms, in the experiment's order.
    pub arms: Vec<SweepArm>,
}

impl Sweep {
    /// What its cells have in common: `a`, `a, small`.
    pub(crate) fn name(&self) -> String {
        if self.resources.is_empty() { self.workload.clone() } else { format!("{}, {}", self.workload, self.resources) }
    }
}

/// How one arm took more and more clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepArm {
    /// Name.
    pub name: String,
    /// The smallest number of clients from which the next larger gains less than 5 %; `None` when every step gained
    /// more.
    #[serde(deserialize_with = "Option::deserialize")]
    pub saturated_at: Option<u32>,
    /// Operations per second at saturation, or with the most clients.
    #[serde(with = "null::or_unknown")]
    pub most: f64,
    /// Throughput with each number of clients that was measured, the fewest first.
    pub steps: Vec<SweepStep>,
    /// Identifiers of the cells with the fewest clients, at saturation, and at a rate below it, as far as they were
    /// measured, each with the arm's deciding cost there in words.
    pub costs: Vec<(String, String)>,
}

/// The throughput of one arm with one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepStep {
    /// Identifier of the cell.
    pub cell: String,
    /// Clients.
    pub clients: u32,
    /// Median over frames with its interval, op/s.
    pub throughput: Interval,
    /// Frames behind it.
    pub frames: usize,
}

/// What the records say about one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellAnalysis {
    /// The cell's short name.
    pub id: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the resources; empty when unnamed.
    pub resources: String,
    /// Clients.
    pub clients: u32,
    /// How operations were offered, in words: `closed loop`, `2,000/s, Poisson arrivals`.
    pub arrivals: String,
    /// Lines about the workload.
    pub notes: Vec<(String, String)>,
    /// How arms were paired.
    pub mode: String,
    /// Slot length, ms.
    pub slot_ms: f64,
    /// Frames that count.
    pub frames: usize,
    /// Starts of the servers that they were measured on.
    pub starts: usize,
    /// Pairs of sides of a server that its provider switches; 0 of any other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pairs: usize,
    /// Frames that were invalid, with the reason.
    pub invalid: Vec<(u32, String)>,
    /// Epochs seen.
    pub epochs: u32,
    /// Why the cell ended; `None` while it has not.
    #[serde(with = "ending::or_empty")]
    pub ending: Option<CellEnding>,
    /// Mean of the machine's state over the frames.
    pub host: Host,
    /// Share of the clients' wall time spent waiting for a processor, 0–1.
    #[serde(with = "null::or_unknown")]
    pub wait_share: f64,
    /// Load after each start before the first frame, and what it came to, in words; empty where there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warm_up: String,
    /// The log per operation from the first frame of a start to the last, where it changes by more than a tenth; else
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_over_start: Vec<LogAt>,
    /// The statements of the user's own that clients sent; none of a workload that has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
    /// The machines that offered the load, in the order of their lanes; empty where Tithe's own process did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentAnalysis>,
    /// The arms, the baseline first.
    pub arms: Vec<ArmAnalysis>,
    /// Where the costs come from; `None` where nothing was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<CellProfile>,
}

/// What one load machine did in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAnalysis {
    /// Its name.
    pub name: String,
    /// Its lanes.
    pub lanes: u32,
    /// Operations that it did.
    pub operations: u64,
    /// Share of its wall time spent waiting for a processor of its own, 0–1.
    pub wait_share: f64,
    /// By how much its clock was ahead of the coordinator's before the last frame, ns.
    pub clock_offset_ns: i64,
    /// Within what its clock was known in the worst frame, ns.
    pub clock_bound_ns: u64,
}

/// What is left out where there is none of it.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How much a statement of the user's own was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementUse {
    /// The operation under which it is recorded, which is its place: `app.sql:3`.
    pub operation: String,
    /// Its text, shortened and without values.
    pub text: String,
    /// Calls in all arms together.
    pub calls: u64,
    /// Share of the time of all statements that it took in the baseline, 0–1.
    pub time_share: f64,
}

/// The log per operation at one place of a start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogAt {
    /// The place: `first frame`, `half way`, `last frame`.
    pub place: String,
    /// Bytes of log per operation of each arm there, over all starts together; `None` where it cannot be seen.
    pub arms: Vec<Option<f64>>,
}

/// What the records say about one arm of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmAnalysis {
    /// Name.
    pub name: String,
    /// True of the A/A arm, Tithe's own second instance of the baseline, whose true cost is zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aa: bool,
    /// Identifiers of its protections; empty for the baseline.
    pub protections: Vec<String>,
    /// Version, ciphers, configuration.
    pub facts: ArmFacts,
    /// Lines of the configuration that the baseline does not have, and those that only the baseline has (`+`/`-` in
    /// front).
    pub difference: Vec<String>,
    /// Was the protection proven to be on?
    pub proof: Proof,
    /// What the checks saw.
    pub findings: Vec<Finding>,
    /// Absolute levels of this arm: for orientation, they hold for this machine and this time.
    pub levels: Vec<Level>,
    /// The costs against the baseline, the primary first; empty for the baseline and in a cell without frames.
    pub estimates: Vec<Estimate>,
    /// What others published about this arm under these conditions, in the experiment's order.
    pub published: Vec<PublishedCost>,
    /// The deciding cost frame by frame, in the order of time; empty for the baseline and where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<StartCourse>,
    /// What its server used without clients; `None` where it was not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleUse>,
    /// What its clients' connections took to open, by part; `None` where that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connecting: Option<ConnectUse>,
}

impl ArmAnalysis {
    /// The estimate that was declared to decide before the run; `None` of an arm that is compared with nothing.
    pub fn primary(&self) -> Option<&Estimate> {
        self.estimates.iter().find(|estimate| estimate.primary)
    }
}

/// What a connection of one arm takes to open. The client is Tithe's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectUse {
    /// Connections that were opened in the frames that count.
    pub connections: u64,
    /// Its parts, in their order.
    pub parts: Vec<ConnectPartUse>,
}

/// One part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectPartUse {
    /// `TCP`, `TLS` or `login`.
    pub part: String,
    /// How long it takes, µs.
    pub us: Interval,
    /// The same less that of the baseline, frame by frame; `None` of the baseline.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_us: Option<Interval>,
    /// Processor time of the client in it, µs.
    pub client_us: Interval,
}

/// What the server of one arm uses without clients. Amounts are those of a minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleUse {
    /// Windows of equal length that the intervals rest on.
    pub windows: usize,
    /// Length of all of them together, s.
    pub seconds: f64,
    /// Processor time, µs.
    pub cpu_us: Interval,
    /// The same less that of the baseline, compared window by window; `None` of the baseline and where that is not
    /// seen.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_cpu_us: Option<Interval>,
    /// Bytes written to storage; `None` where they are not seen.
    #[serde(deserialize_with = "Option::deserialize")]
    pub written_bytes: Option<Interval>,
    /// The same less those of the baseline.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_written_bytes: Option<Interval>,
    /// Private resident memory at the end.
    #[serde(deserialize_with = "Option::deserialize")]
    pub memory_bytes: Option<u64>,
    /// What the further processor time would be for each operation at the rate of this cell, µs, where it is certain
    /// and more than a tenth of the deciding figure.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_us_per_op: Option<f64>,
}

/// The deciding cost of one arm over one start of the servers, or over several where they are very many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartCourse {
    /// Number of the start within the cell, of the first where they are several.
    pub start: u32,
    /// The cost in each of its frames, in the order of time, natural-log ratio; of very many frames neighbours are
    /// averaged.
    pub effects: Vec<f64>,
}

/// A cost that somebody else published, beside the estimate that it can be compared with. It decides nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCost {
    /// Who said so, where and when.
    pub source: String,
    /// The estimate that it stands beside: `time`.
    pub estimate: Figure,
    /// What was printed: `time 32.4 → 40.9 µs`, `throughput −5 % to −20 %`.
    pub printed: String,
    /// The least cost that was published, natural-log ratio; positive is a cost.
    pub low: f64,
    /// The most; the same where one figure was published.
    pub high: f64,
}

/// Was the protection of an arm proven to be on?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "proof", content = "because", deny_unknown_fields)]
pub enum Proof {
    /// The baseline has nothing to prove.
    Baseline,
    /// Every claim holds, before and after measuring.
    Proven,
    /// The same, and all of them are the reader's own.
    ByClaim,
    /// Nothing is claimed of what the arm differs by: a setting.
    Setting,
    /// Some claim could not be decided, or was not checked: why.
    Unproven(Vec<String>),
    /// Nothing failed, what would prove it cannot be seen, and the provider of the server reports that it was on: what
    /// is open.
    #[serde(rename = "told")]
    ToldByProvider(Vec<String>),
    /// Some claim failed: which.
    Disproven(Vec<String>),
}

impl Proof {
    /// True where nothing is left to be proven: the figures of the arm are those of its protection, of a setting, or of
    /// the baseline.
    pub fn stands(&self) -> bool {
        matches!(self, Self::Baseline | Self::Proven | Self::ByClaim | Self::Setting)
    }
}

/// An absolute figure of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What it is: `throughput`, `latency_p99_READ`, `cpu_per_op`.
    pub name: Figure,
    /// Unit, as printed: `op/s`, `µs`, `bytes/op`, `MB`.
    pub unit: Cow<'static, str>,
    /// Median over frames (over groups of frames for percentiles).
    #[serde(with = "null::or_unknown")]
    pub value: f64,
    /// Lower end of the interval of the median over frames; −∞, which JSON shows as null, when they are too few.
    #[serde(with = "null::or_minus_infinity")]
    pub low: f64,
    /// Upper end; ∞ when they are too few.
    #[serde(with = "null::or_infinity")]
    pub high: f64,
    /// Frames or operations behind it.
    pub count: u64,
}

/// A cost against the baseline, with everything a number must not travel without.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// What it is: `net`, `time`, `cpu`, `latency_p99_READ`, `wal_bytes`.
    pub name: Figure,
    /// How it reads in a table: `net time per op`.
    pub title: String,
    /// Declared before the run as what decides.
    pub primary: bool,
    /// Natural-log ratio protected/plain; positive is a cost. Of throughput it is that of what an operation takes, so
    /// that it is a cost there, too: [`Self::change`] is that of the level.
    pub effect: Interval,
    /// The same with every stall counted (ratio of sums, jackknife), where it differs in meaning.
    #[serde(deserialize_with = "Option::deserialize")]
    pub total: Option<Interval>,
    /// Protected less plain in `unit`, from the same frames by the same inference; positive is a cost. `None` of a
    /// figure that is not an amount per operation.
    #[serde(deserialize_with = "Option::deserialize")]
    pub difference: Option<Interval>,
    /// The difference with every stall counted, beside `total`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub total_difference: Option<Interval>,
    /// Frames, or groups of frames, behind it.
    pub count: usize,
    /// Frames averaged together because neighbours in time were correlated; 1 is none.
    pub batch: usize,
    /// Starts of the servers behind it.
    pub starts: usize,
    /// Standard deviation of the true effect from one start to the next, natural-log ratio; `None` where each frame has
    /// a start of its own, where starts are fewer than four, and of a figure that is no series of frames.
    #[serde(deserialize_with = "Option::deserialize")]
    pub spread: Option<Interval>,
    /// Its starts are too few to tell their own spread: the interval is wider by the spread that is known of the
    /// product.
    pub widened: bool,
    /// Degrees of freedom that the known spread stands on; `None` where the interval is not widened, and in documents
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_degrees: Option<f64>,
    /// Plain and protected levels in `unit`, for orientation.
    #[serde(deserialize_with = "Option::deserialize")]
    pub levels: Option<(f64, f64)>,
    /// Unit of `levels` and `difference`.
    pub unit: Cow<'static, str>,
    /// The answer in one word.
    pub verdict: Outcome,
    /// The answer in words: `costs 3.1 % [2.6, 3.7]`.
    pub text: String,
    /// What limits it.
    pub flags: Vec<Flag>,
    /// Seconds of measured load still needed for the asked precision; `None` when reached or not to be told.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_s: Option<f64>,
    /// p of no effect (signed-rank test, Student's over starts), adjusted over the arms by Holm's procedure; `None`
    /// where the figure is no series of frames.
    #[serde(deserialize_with = "Option::deserialize")]
    pub p: Option<f64>,
    /// What headlines and statuses go by: of a primary estimate in a run of several cells, where it has an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_run: Option<OverRun>,
}

impl Estimate {
    /// What every sentence about it says where its starts are too few to tell their own spread: ` on this start`,
    /// ` on these 3 starts`; nothing elsewhere.
    pub fn on_starts(&self) -> String {
        match (self.widened, self.starts) {
            (false, _) => String::new(),
            (true, 0 | 1) => " on this start".to_owned(),
            (true, starts) => format!(" on these {starts} starts"),
        }
    }

    /// The effect on the level that the figure has, as figures and levels are printed side by side: throughput falls
    /// where an operation takes longer.
    pub fn change(&self) -> Interval {
        self.on_level(self.effect)
    }

    /// The same with every stall counted.
    pub fn total_change(&self) -> Option<Interval> {
        self.total.map(|total| self.on_level(total))
    }

    fn on_level(&self, effect: Interval) -> Interval {
        match self.name {
            // Subtracted and not negated, so that no change is 0 and not −0.
            Figure::Throughput => {
                Interval { estimate: 0.0 - effect.estimate, low: 0.0 - effect.high, high: 0.0 - effect.low }
            }
            _ => effect,
        }
    }

    /// What it adds to an operation, in its `unit`, by the difference or else by the effect on the plain level.
    pub fn amount(&self) -> Option<f64> {
        let by_effect = || self.levels.map(|(plain, _)| plain * self.effect.estimate.exp_m1());
        self.difference.map(|difference| difference.estimate).or_else(by_effect).filter(|amount| amount.is_finite())
    }

    /// False where the plain arm of the same cell differs from itself, so that the cost is no answer.
    pub fn is_symmetric(&self) -> bool {
        !self.flags.contains(&Flag::Asymmetric)
    }

    /// The values behind the interval: frames, or groups of neighbours that were averaged.
    pub fn values(&self) -> usize {
        self.count / self.batch.max(1)
    }

    /// The estimate as headlines and statuses judge it.
    pub fn headline(&self) -> OverRun {
        let Self { effect, difference, verdict, .. } = *self;
        self.over_run.unwrap_or(OverRun { effect, difference, verdict })
    }
}

/// A deciding estimate, judged so that all of a run's are right together with [`CONFIDENCE`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverRun {
    /// The effect with its interval, simultaneous over the arms of all cells; natural-log ratio.
    pub effect: Interval,
    /// The difference likewise, in the estimate's `unit`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub difference: Option<Interval>,
    /// The answer in one word.
    pub verdict: Outcome,
}

/// What limits a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Flag {
    /// Typical and stall-inclusive effect disagree: the cost sits in rare stalls.
    TailDriven,
    /// More than 20 % of wall time was waiting for a processor: tails are diluted by other programs.
    NeighboursInTail,
    /// The effect moved with the frames.
    Drift,
    /// Fewer than the needed samples for this percentile.
    NotEnoughData,
    /// The cell has fewer frames than an interval needs.
    NotEnoughFrames,
    /// The open loop did not sustain its rate.
    NotAtRate,
    /// The client was busy most of the time: the figure may be the client's.
    ClientSaturated,
    /// The server's processes could not be seen: client processor time only.
    ServerUnseen,
    /// Operations soon after a change of arms cost more than 1 % more than those after them.
    CarryOver,
    /// A second instance of the baseline differs from it: the set-up is not symmetric.
    Asymmetric,
    /// A control group kept Tithe from running for more than 1 % of the time.
    Throttled,
    /// The hypervisor took more than 2 % of the processor time.
    Stolen,
    /// The kernel encrypted without instructions that processors have for it.
    SlowCipher,
    /// The A/A arm differs from the baseline by as much.
    WithinControl,
    /// The arm saves time by waiting less, and no processor time, on one load of the data.
    WaitingAlone,
}
