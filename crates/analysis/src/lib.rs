//! Records in, estimates and reports out. Pure: no clock, no process, no printing, no files.
//!
//! [`assess::assess`] turns the contents of a run folder into an [`Analysis`]; every report is a function of that. The
//! same records give the same bytes.

#![forbid(unsafe_code)]

pub mod assess;
pub mod atlas;
pub mod compare;
mod counted;
pub mod deciding;
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

/// Confidence of every interval, simultaneous over the arms of a cell, and of a whole run's headlines.
pub const CONFIDENCE: f64 = 0.95;

/// The result of a run.
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
    /// Seed of every random order.
    pub seed: u64,
    /// Records of the data set that the experiment asks for.
    pub records: u64,
    /// When the first frame began, s since 1970; `None` without a frame, and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_s: Option<u64>,
    /// Confidence of every interval, 0–1, simultaneous over the arms of a cell.
    pub confidence: f64,
    /// The largest cost that counts as none, natural-log ratio.
    pub margin: f64,
    /// The half-width that the experiment asks for, natural-log ratio; `None` in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// The machine.
    pub machine: Machine,
    /// The cells, in the plan's order.
    pub cells: Vec<CellAnalysis>,
    /// Results over cells with different numbers of clients.
    pub sweeps: Vec<Sweep>,
    /// Warnings for the reader, whole sentences.
    pub warnings: Vec<String>,
}

/// Cells that differ only in the number of clients.
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
    /// The common name of its cells: `a`, `a, small`.
    pub(crate) fn name(&self) -> String {
        if self.resources.is_empty() { self.workload.clone() } else { format!("{}, {}", self.workload, self.resources) }
    }
}

/// The throughput of one arm with more and more clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepArm {
    /// Name.
    pub name: String,
    /// The smallest number of clients whose next larger number gains less than 5 %; `None` if every step gained more.
    #[serde(deserialize_with = "Option::deserialize")]
    pub saturated_at: Option<u32>,
    /// Operations per second at saturation, or with the most clients.
    #[serde(with = "null::or_unknown")]
    pub most: f64,
    /// Throughput with each measured number of clients, the fewest first.
    pub steps: Vec<SweepStep>,
    /// Identifiers of the cells with the fewest clients, at saturation, and at a rate below it, as far as they were
    /// measured, each with the arm's deciding cost there as a text.
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
    /// Number of frames.
    pub frames: usize,
}

/// The result of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellAnalysis {
    /// The cell's short name.
    pub id: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the resources, with the version; empty when unnamed.
    pub resources: String,
    /// What of that name is the version, where the experiment names some: `version 18`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Clients.
    pub clients: u32,
    /// A description of the load: `closed loop`, `2,000/s, Poisson arrivals`.
    pub arrivals: String,
    /// Lines about the workload.
    pub notes: Vec<(String, String)>,
    /// How arms were paired.
    pub mode: String,
    /// Slot length, ms.
    pub slot_ms: f64,
    /// Number of frames that count.
    pub frames: usize,
    /// Number of starts of the servers on which they were measured.
    pub starts: usize,
    /// Pairs of sides of a server that its provider switches; 0 for any other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pairs: usize,
    /// Frames that were invalid, with the reason.
    pub invalid: Vec<(u32, String)>,
    /// Number of epochs.
    pub epochs: u32,
    /// Why the cell ended; `None` if it has not.
    #[serde(with = "ending::or_empty")]
    pub ending: Option<CellEnding>,
    /// Mean of the machine's state over the frames.
    pub host: Host,
    /// Share of the clients' wall time spent waiting for a processor, 0–1; NaN if several servers of one client thread
    /// wait for each other and background load is unknown.
    #[serde(with = "null::or_unknown")]
    pub wait_share: f64,
    /// A description of the load after each start before the first frame, and of its result; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warm_up: String,
    /// The log per operation from the first frame of a start to the last, if it changes enough to be reported; else
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_over_start: Vec<LogAt>,
    /// The user's statements that clients sent; none if the workload has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
    /// The machines that offered the load, in the order of their lanes; empty if Tithe's own process did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentAnalysis>,
    /// The arms, the baseline first.
    pub arms: Vec<ArmAnalysis>,
    /// The components of the costs; `None` if nothing was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<CellProfile>,
}

/// Load and clock of one load machine in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAnalysis {
    /// Its name.
    pub name: String,
    /// Its lanes.
    pub lanes: u32,
    /// Number of operations.
    pub operations: u64,
    /// Share of its wall time spent waiting for a processor, 0–1.
    pub wait_share: f64,
    /// How far its clock was ahead of the coordinator's before the last frame, ns.
    pub clock_offset_ns: i64,
    /// The largest uncertainty of its clock over all frames, ns.
    pub clock_bound_ns: u64,
}

/// True if a field is left out because it is zero.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Usage of one of the user's statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementUse {
    /// The operation under which it is recorded: its place in the file, `app.sql:3`.
    pub operation: String,
    /// Its text, shortened and without values.
    pub text: String,
    /// Number of calls in all arms together.
    pub calls: u64,
    /// Its share of the time of all statements in the baseline, 0–1.
    pub time_share: f64,
}

/// The log per operation at one place of a start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogAt {
    /// The place: `first frame`, `half way`, `last frame`.
    pub place: String,
    /// Bytes of log per operation of each arm there, over all starts together; `None` if unknown.
    pub arms: Vec<Option<f64>>,
}

/// The result of one arm of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmAnalysis {
    /// Name.
    pub name: String,
    /// True for the A/A arm, Tithe's own second instance of the baseline, whose true cost is zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aa: bool,
    /// Identifiers of its protections; empty for the baseline.
    pub protections: Vec<String>,
    /// Version, ciphers, configuration.
    pub facts: ArmFacts,
    /// Lines of the configuration that the baseline does not have, and those that only the baseline has (with `+`/`-`).
    pub difference: Vec<String>,
    /// Was the protection proven to be on?
    pub proof: Proof,
    /// The results of the checks.
    pub findings: Vec<Finding>,
    /// Absolute levels of this arm, for orientation: they are valid only for this machine and this time.
    pub levels: Vec<Level>,
    /// The costs against the baseline, the primary first; empty for the baseline and in a cell without frames.
    pub estimates: Vec<Estimate>,
    /// Costs that others published about this arm under these conditions, in the experiment's order.
    pub published: Vec<PublishedCost>,
    /// The deciding cost frame by frame, in the order of time; empty for the baseline and if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<StartCourse>,
    /// Usage of its server without clients; `None` if it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleUse>,
    /// Time to open its clients' connections, by part; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connecting: Option<ConnectUse>,
}

impl ArmAnalysis {
    /// The estimate that was declared to decide before the run; `None` if the arm is not compared.
    pub fn primary(&self) -> Option<&Estimate> {
        self.estimates.iter().find(|estimate| estimate.primary)
    }
}

/// Time to open a connection of one arm. The client is Tithe's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectUse {
    /// Number of connections opened in the frames that count.
    pub connections: u64,
    /// Its parts, in their order in time.
    pub parts: Vec<ConnectPartUse>,
}

/// One part of opening a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectPartUse {
    /// `TCP`, `TLS` or `login`.
    pub part: String,
    /// Duration, µs.
    pub us: Interval,
    /// The difference from the baseline over frames and starts, simultaneous over the arms; `None` for the baseline.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_us: Option<Interval>,
    /// Processor time of the client for it, µs.
    pub client_us: Interval,
}

/// Usage of the server of one arm without clients. Amounts are per minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleUse {
    /// Number of windows of equal length behind the intervals.
    pub windows: usize,
    /// Total length, s.
    pub seconds: f64,
    /// Processor time, µs.
    pub cpu_us: Interval,
    /// Its difference from the baseline, window by window, widened by the known spread of starts; `None` for the
    /// baseline and if unknown.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_cpu_us: Option<Interval>,
    /// Bytes written to storage; `None` if unknown.
    #[serde(deserialize_with = "Option::deserialize")]
    pub written_bytes: Option<Interval>,
    /// Their difference from the baseline.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_written_bytes: Option<Interval>,
    /// Private resident memory at the end.
    #[serde(deserialize_with = "Option::deserialize")]
    pub memory_bytes: Option<u64>,
    /// The additional processor time divided by the operations at the rate of this cell, µs; only if it is certain and
    /// more than a tenth of the deciding figure.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_us_per_op: Option<f64>,
}

/// The deciding cost of one arm over one start of the servers, or over several if there are very many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartCourse {
    /// Number of the start within the cell; of the first if there are several.
    pub start: u32,
    /// The cost in each of its frames, in the order of time, natural-log ratio; if there are very many frames,
    /// consecutive ones are averaged.
    pub effects: Vec<f64>,
}

/// A cost that others published, with the estimate to compare it with. It has no influence on answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedCost {
    /// Author, place and date.
    pub source: String,
    /// The estimate to compare it with: `time`.
    pub estimate: Figure,
    /// The figures as printed: `time 32.4 → 40.9 µs`, `throughput −5 % to −20 %`.
    pub printed: String,
    /// The smallest published cost, natural-log ratio; positive is a cost.
    pub low: f64,
    /// The largest; the same if one figure was published.
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
    /// The same, and a protection of the arm rests on the user's own claims.
    ByClaim,
    /// The arm differs by a setting, for which there are no claims.
    Setting,
    /// Some claim could not be decided, or was not checked; the reasons.
    Unproven(Vec<String>),
    /// Nothing failed, but a proof is not possible; the provider of the server reports that the protection was on. The
    /// open claims.
    #[serde(rename = "told")]
    ToldByProvider(Vec<String>),
    /// Some claim failed; the failed claims.
    Disproven(Vec<String>),
}

impl Proof {
    /// True if nothing is left to prove: the figures of the arm are those of its protection, of a setting, or of the
    /// baseline.
    pub fn stands(&self) -> bool {
        matches!(self, Self::Baseline | Self::Proven | Self::ByClaim | Self::Setting)
    }
}

/// An absolute figure of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Its name: `throughput`, `latency_p99_READ`, `cpu_per_op`.
    pub name: Figure,
    /// Unit, as printed: `op/s`, `µs`, `bytes/op`, `MB`.
    pub unit: Cow<'static, str>,
    /// Median over frames (over groups of frames for percentiles).
    #[serde(with = "null::or_unknown")]
    pub value: f64,
    /// Lower end of the interval of the median over frames; −∞, which JSON shows as null, if there are too few.
    #[serde(with = "null::or_minus_infinity")]
    pub low: f64,
    /// Upper end; ∞ if there are too few.
    #[serde(with = "null::or_infinity")]
    pub high: f64,
    /// Number of frames or operations.
    pub count: u64,
}

/// A cost against the baseline, with all facts that belong to the number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Its name: `net`, `time`, `cpu`, `latency_p99_READ`, `wal_bytes`.
    pub name: Figure,
    /// Its title in a table: `net time per op`.
    pub title: String,
    /// Declared before the run as the deciding figure.
    pub primary: bool,
    /// Natural-log ratio protected/plain; positive is a cost. For throughput it is that of the time per operation, so
    /// positive is a cost there, too; [`Self::change`] is that of the level.
    pub effect: Interval,
    /// The same including every stall (ratio of sums, jackknife), if that is different.
    #[serde(deserialize_with = "Option::deserialize")]
    pub total: Option<Interval>,
    /// Protected less plain in `unit`, from the same frames by the same inference; positive is a cost. `None` for a
    /// figure that is not an amount per operation.
    #[serde(deserialize_with = "Option::deserialize")]
    pub difference: Option<Interval>,
    /// The difference including every stall, as in `total`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub total_difference: Option<Interval>,
    /// Number of frames, or groups of frames.
    pub count: usize,
    /// Number of frames averaged together because consecutive ones were correlated; 1 means no averaging.
    pub batch: usize,
    /// Number of starts of the servers.
    pub starts: usize,
    /// Standard deviation of the true effect from one start to the next, natural-log ratio; `None` if each frame has a
    /// start of its own, if there are fewer than four starts, and for a figure that is not a series of frames.
    #[serde(deserialize_with = "Option::deserialize")]
    pub spread: Option<Interval>,
    /// There are too few starts to estimate their own spread, so the interval is widened by the known spread of the
    /// product.
    pub widened: bool,
    /// Degrees of freedom of the known spread; `None` if the interval is not widened, and in documents of earlier
    /// versions.
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
    /// Its limits.
    pub flags: Vec<Flag>,
    /// Seconds of measured load still needed for the requested precision; `None` if reached or unknown.
    #[serde(deserialize_with = "Option::deserialize")]
    pub more_s: Option<f64>,
    /// p of no effect (signed-rank test, Student's over starts), adjusted over the arms by Holm's procedure; `None` if
    /// the figure is not a series of frames.
    #[serde(deserialize_with = "Option::deserialize")]
    pub p: Option<f64>,
    /// The basis of headlines and statuses: for a primary estimate with an interval, in a run of several cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_run: Option<OverRun>,
}

impl Estimate {
    /// The text to add to every sentence about it if there are too few starts to estimate their own spread: ` on this
    /// start`, ` on these 3 starts`; else empty.
    pub fn on_starts(&self) -> String {
        match (self.widened, self.starts) {
            (false, _) => String::new(),
            (true, 0 | 1) => " on this start".to_owned(),
            (true, starts) => format!(" on these {starts} starts"),
        }
    }

    /// The effect on the level of the figure, as figures and levels are printed side by side: throughput falls if an
    /// operation takes longer.
    pub fn change(&self) -> Interval {
        self.on_level(self.effect)
    }

    /// The same including every stall.
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

    /// The cost added to an operation, in its `unit`: the difference, or else the effect on the plain level.
    pub fn amount(&self) -> Option<f64> {
        let by_effect = || self.levels.map(|(plain, _)| plain * self.effect.estimate.exp_m1());
        self.difference.map(|difference| difference.estimate).or_else(by_effect).filter(|amount| amount.is_finite())
    }

    /// False if the plain arm of the same cell differs from itself, so that the cost is no answer.
    pub fn is_symmetric(&self) -> bool {
        !self.flags.contains(&Flag::Asymmetric)
    }

    /// Why the interval does not hold the cost, although it is narrow, so that it cannot be compared; `None` if it
    /// does.
    pub fn not_held(&self) -> Option<&'static str> {
        let flagged = |flag: Flag| self.flags.contains(&flag);
        let steady = flagged(Flag::NotSteady).then_some("its servers still changed when measuring began");
        let waiting = flagged(Flag::WaitingAlone).then_some("only waiting fell, on few loads of the data");
        let moved = "its cost moved by more than half of itself while it was measured";
        steady.or(waiting).or(flagged(Flag::Moved).then_some(moved))
    }

    /// True if it is known, and is the cost of a protection with this `proof`.
    pub fn counts(&self, proof: &Proof) -> bool {
        let Interval { low, high, .. } = self.effect;
        let known = low.is_finite() && high.is_finite();
        known && self.is_symmetric() && proof.stands() && self.not_held().is_none()
    }

    /// Number of values behind the interval: frames, or groups of consecutive frames that were averaged.
    pub fn values(&self) -> usize {
        self.count / self.batch.max(1)
    }

    /// The estimate for headlines and statuses.
    pub fn headline(&self) -> OverRun {
        let Self { effect, difference, verdict, .. } = *self;
        self.over_run.unwrap_or(OverRun { effect, difference, verdict })
    }
}

/// A deciding estimate, judged so that all of a run's are right simultaneously with [`CONFIDENCE`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverRun {
    /// The effect with its interval, simultaneous over the arms of all cells; natural-log ratio.
    pub effect: Interval,
    /// The same for the difference, in the estimate's `unit`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub difference: Option<Interval>,
    /// The answer in one word.
    pub verdict: Outcome,
}

/// A limit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Flag {
    /// Typical and stall-inclusive effect disagree: the cost is in rare stalls.
    TailDriven,
    /// More than 20 % of wall time was waiting for a processor: tails are diluted by other programs.
    NeighboursInTail,
    /// The effect changed over the frames.
    Drift,
    /// Fewer than the needed samples for this percentile.
    NotEnoughData,
    /// The cell has fewer frames than an interval needs.
    NotEnoughFrames,
    /// The open loop did not sustain its rate.
    NotAtRate,
    /// The client was busy most of the time: the figure may describe the client.
    ClientSaturated,
    /// The server's processes could not be seen: only client processor time is included.
    ServerUnseen,
    /// Operations soon after a change of arms cost more than later ones, which moves the figure by more than 0.5 %.
    CarryOver,
    /// The cost is more than 5 % higher or lower at the end of a frame than at its beginning.
    ChangesInFrame,
    /// A second instance of the baseline differs from it: the set-up is not symmetric.
    Asymmetric,
    /// A control group throttled Tithe for more than 1 % of the time.
    Throttled,
    /// Steal time was more than 2 % of the processor time.
    Stolen,
    /// The kernel encrypted without the processor's cipher instructions.
    SlowCipher,
    /// The A/A arm differs from the baseline by as much.
    WithinControl,
    /// Starts count although their servers were certainly still changing when the first frame began, and the answer is
    /// within the change of the cost on them.
    NotSteady,
    /// The arm saves time by waiting less than its processor time explains, on fewer than four loads of the data.
    WaitingAlone,
    /// The cost moved by more than half of itself while it was measured, so its mean is no answer.
    Moved,
}
