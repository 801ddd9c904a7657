//! The records of a run: the contract between run and report.
//!
//! One [`Slot`] per row of `slots.csv`, one [`Frame`] per line of `frames.jsonl`, one [`Finding`] per line of
//! `evidence.jsonl`, one [`Event`] per line of `events.jsonl`. Everything is in base units: ns, bytes, counts. A frame
//! counts only once its line is in `frames.jsonl`; slots of a frame without a line are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    connecting::Connecting,
    ending::CellEnding,
    histogram::Histogram,
    invalid::Invalid,
    steady::{self, Steadiness},
};

/// The time that one client spent on one arm before the next. One row of `slots.csv`, columns in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slot {
    /// Index of the cell in the plan.
    pub cell: u32,
    /// Frame within the cell, counted over all epochs.
    pub frame: u32,
    /// Block within the frame.
    pub block: u32,
    /// The client thread with all its connections.
    pub lane: u32,
    /// Index of the arm in the experiment.
    pub arm: u32,
    /// Operations that started in this slot and succeeded.
    pub operations: u64,
    /// Of those, the ones that started after the settling time.
    pub counted: u64,
    /// From the slot's first operation to the end of its last, ns.
    pub wall_ns: u64,
    /// Sum of the latencies of the operations, and of opening connections, that started after the settling time, ns. In
    /// an open loop latencies count from the intended start, which includes opening.
    pub latency_sum_ns: u64,
    /// Processor time of the client thread, ns.
    pub client_cpu_ns: u64,
    /// Processor time of the server processes or threads of this lane's connections, ns; 0 if they are not visible.
    pub server_cpu_ns: u64,
    /// Time that client and server of this lane were ready but had no processor, each counted by itself, ns; 0 if it is
    /// not visible.
    pub wait_ns: u64,
    /// Time in which neither client nor server of this lane ran although one of them could have, because other programs
    /// had their processor, ns; `None` if that is unknown.
    pub stalled_ns: Option<u64>,
}

/// The source of the time for which other programs kept a lane from its processor ([`Slot::stalled_ns`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stalls {
    /// The kernel's pressure (PSI) of a control group with the lane's client and servers.
    Pressure,
    /// The waits of client and server for a processor; this is too large by the time in which both were awake.
    Waits,
    /// It is unknown, for this reason.
    Unseen(String),
}

impl Default for Stalls {
    fn default() -> Self {
        Self::Unseen(
            "an older version of Tithe measured this run and did not record what kept clients waiting".to_owned(),
        )
    }
}

/// One to two seconds of load over fresh connections: the unit of inference.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Frame {
    /// Index of the cell in the plan.
    pub cell: u32,
    /// Number within the cell, over all epochs.
    pub frame: u32,
    /// Epoch within the cell.
    pub epoch: u32,
    /// Number of the start of the servers, or of the embedded database's processes, on which it was measured, counted
    /// over the cell's epochs.
    pub start: u32,
    /// When it began, ns since 1970.
    pub start_unix_ns: u64,
    /// How long it took with connecting and warm-up, ns.
    pub duration_ns: u64,
    /// Why this frame must not be used; it keeps its record.
    pub invalid: Option<Invalid>,
    /// True if nothing was pinned to a processor: such frames are shown separately and decide nothing.
    #[serde(default)]
    pub free: bool,
    /// Length of its slots, ns; the plan's, or longer because of carry-over.
    #[serde(default)]
    pub slot_ns: u64,
    /// Its settling time, ns; the plan's, or longer.
    #[serde(default)]
    pub settling_ns: u64,
    /// The source of the time that other programs took of its slots.
    #[serde(default)]
    pub stalls: Stalls,
    /// The arms, in the experiment's order.
    pub arms: Vec<ArmFrame>,
    /// The machines that offered its load, in the order of their lanes; none if it came from Tithe's own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFrame>,
    /// The machine during the frame.
    pub host: Host,
}

impl Frame {
    /// True if it counts for the figures of its cell; unpinned frames are shown separately.
    pub fn is_used(&self) -> bool {
        self.invalid.is_none() && !self.free
    }
}

/// What one load machine did during a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentFrame {
    /// The name of its agent.
    pub name: String,
    /// Its lanes in this cell.
    pub lanes: u32,
    /// By how much its clock was ahead of the coordinator's before the frame, ns.
    pub clock_offset_ns: i64,
    /// Largest error of that offset, before or after the frame, and its change between them, ns.
    pub clock_bound_ns: u64,
    /// How long its clients waited, without the servers, whose waits the slots have as well; `None` for an observer and
    /// in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientTimes>,
}

/// Times of the clients of one load machine, over all slots of its lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientTimes {
    /// Time that they were ready but had no processor, ns.
    pub wait_ns: u64,
    /// Time of the slots, ns.
    pub wall_ns: u64,
}

/// What one arm did during a frame.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArmFrame {
    /// Operations that succeeded in slots that count, settling time included.
    pub operations: u64,
    /// Operations that succeeded in lead-in slots, which do not count; their bytes are in the
    /// counters.
    #[serde(default)]
    pub operations_lead_in: u64,
    /// Operations that failed; never part of the throughput.
    pub failed: u64,
    /// Operations that an open loop intended but did not start or finish in its slot.
    pub unfinished: u64,
    /// Latency from the actual start, after the settling time, ns, by operation (`READ`, `UPDATE`, …).
    pub latency: BTreeMap<String, Histogram>,
    /// Latency from the intended start, ns, by operation; empty in a closed loop.
    pub intended: BTreeMap<String, Histogram>,
    /// Mean time to open one connection, authentication and handshake included, ns.
    pub connect_ns: u64,
    /// The time to connect, by part; empty if the connections are not Tithe's own.
    #[serde(default, skip_serializing_if = "Connecting::is_empty")]
    pub connecting: Connecting,
    /// Growth over the measured part of the frame.
    pub counters: Counters,
    /// Operations of this epoch before the frame, warm-up included: how long ago the last checkpoint was.
    #[serde(default)]
    pub operations_before: u64,
    /// Carry-over: operations and ln(median latency in ns) by the time from the slot's start to the operation's, in the
    /// phases of [`PHASES_NS`].
    #[serde(default)]
    pub phases: Vec<(u64, f64)>,
}

impl ArmFrame {
    /// All operations of the measured part of the frame, those in lead-in slots included, as in the counters.
    pub fn all_operations(&self) -> u64 {
        self.operations + self.operations_lead_in
    }

    /// True if its counts are possible: their sums over all frames of a run are exact whole numbers.
    pub fn is_possible(&self) -> bool {
        const OPERATIONS_MAX: u64 = 1 << 48;
        let counts = [self.operations, self.operations_lead_in, self.failed, self.unfinished, self.operations_before];
        let latencies = self.latency.values().chain(self.intended.values()).map(Histogram::total);
        let phases = self.phases.iter().map(|(operations, _)| *operations);
        counts.into_iter().chain(latencies).chain(phases).all(|count| count <= OPERATIONS_MAX)
    }
}

/// Ends of the phases of a slot, by which operations are grouped by their start, ns; the last phase has no end.
pub const PHASES_NS: [u64; 8] = [200_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000];

/// Counters of one arm over one frame. `None`: not visible here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Processor time of the whole server process tree, background work included, ns.
    pub server_cpu_ns: Option<u64>,
    /// Of that, in user mode, ns; in ticks of the kernel, usually 10 ms, so that many frames are needed.
    #[serde(default)]
    pub server_user_ns: Option<u64>,
    /// Of that, in the kernel, ns; in ticks.
    #[serde(default)]
    pub server_system_ns: Option<u64>,
    /// Processor time of the client threads in user mode, ns.
    #[serde(default)]
    pub client_user_ns: Option<u64>,
    /// Processor time of the client threads in the kernel, ns.
    #[serde(default)]
    pub client_system_ns: Option<u64>,
    /// Bytes of write-ahead log, redo log or journal.
    pub wal_bytes: Option<u64>,
    /// Bytes appended to the server's log and audit files.
    pub log_bytes: Option<u64>,
    /// Bytes that the server read from storage.
    pub read_bytes: Option<u64>,
    /// Bytes that the server wrote to storage.
    pub written_bytes: Option<u64>,
    /// Bytes that the clients sent.
    pub sent_bytes: Option<u64>,
    /// Bytes that the clients received.
    pub received_bytes: Option<u64>,
    /// Statements that the clients sent; `None` for workloads on records by key, which send one an operation.
    #[serde(default)]
    pub statements: Option<u64>,
    /// Context switches of the server's processes, voluntary and involuntary.
    pub switches: Option<u64>,
    /// Resident memory of the server's processes at the end of the frame, private part, bytes (a level, not growth).
    pub memory_bytes: Option<u64>,
    /// Size of the data set on disk at the end of the frame, bytes (a level, not growth).
    pub disk_bytes: Option<u64>,
}

/// The machine during a frame.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Host {
    /// One-minute load average at the end.
    pub load: f64,
    /// Share of the frame in which some task waited for a processor (PSI), 0–1.
    pub cpu_pressure: Option<f64>,
    /// Share of the frame in which some task waited for storage (PSI), 0–1.
    pub io_pressure: Option<f64>,
    /// Share of processor time that the hypervisor took (steal time), 0–1.
    pub steal: Option<f64>,
    /// Share of the frame in which the processor quota throttled Tithe's control group, 0–1.
    #[serde(default)]
    pub throttled: Option<f64>,
}

/// The result of an evidence check, on both arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Index of the cell in the plan.
    pub cell: u32,
    /// Epoch within the cell.
    pub epoch: u32,
    /// Index of the arm that was checked.
    pub arm: u32,
    /// When it was checked.
    pub phase: Phase,
    /// Identifier of the protection with this claim, or of another checked thing: the kind of a workload, a switch.
    pub protection: String,
    /// Identifier of the check.
    pub check: String,
    /// What must be true, one sentence.
    pub claim: String,
    /// A claim must hold for the arm to be proven, or strengthens the proof; a disclosure is reported and proves
    /// nothing.
    pub role: Role,
    /// The outcome.
    pub verdict: Verdict,
    /// The observation on this arm.
    pub protected: String,
    /// The observation on the plain arm, or for the check's own control.
    pub control: String,
}

/// The check of a claim of the user's own, by a statement or a count. A protection may have several.
pub const YOUR_CLAIM: &str = "your-claim";

/// The disclosure about a setting of the user's own: the arm has another value of it than the plain arm.
pub const SETTING_DIFFERS: &str = "setting-differs";

/// How the control of [`SETTING_DIFFERS`] ends if both servers report the same value.
pub const AS_PROTECTED: &str = ", as on the protected arm";

impl Finding {
    /// What its claim is known by among those of its protection: the check and, of [`YOUR_CLAIM`], the text. The text
    /// of other checks may differ from one look to the next.
    pub fn about(&self) -> (&str, &str) {
        let claim = if self.check == YOUR_CLAIM { self.claim.as_str() } else { "" };
        (self.check.as_str(), claim)
    }
}

/// The disclosure that fails if a kernel encrypted without the processor's instructions for it. The figures of the arm
/// are then flagged.
pub const CIPHER_DRIVER: &str = "cipher-driver";

/// The check of a server that its provider switches: the provider's command succeeded, and the server reports the
/// requested state. It strengthens a proof, but is not one by itself.
pub const TOLD_BY_PROVIDER: &str = "told-by-provider";

/// When evidence was gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the first measured frame of an epoch.
    Before,
    /// After the last.
    After,
}

impl Phase {
    /// `before` or `after`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// The purpose of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Must hold, or the arm is unproven.
    Claim,
    /// Strengthens a proof but is not required: an arm can be proven without it if its server's place prevents the
    /// check. If it fails, it disproves like any other claim.
    Strengthens,
    /// A property that the reader should know; it does not affect the arm's proof.
    Disclosure,
}

impl Role {
    /// True for a role that proves something if it holds, and disproves if it fails.
    pub fn is_claim(self) -> bool {
        self != Self::Disclosure
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Holds on the protected arm, and does not hold on the plain arm.
    Holds,
    /// Does not hold on the protected arm.
    Fails,
    /// The check proves nothing here: its positive control failed, or it could not run.
    CannotTell,
    /// The check could not run because of where an attached server is: it needs files of another machine, or traffic
    /// below the TLS of the server's URL.
    OutOfReach,
}

/// The end of a warm-up that was to last until the servers of all arms were steady.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmedUp {
    /// Number of the start, counted over the cell's epochs.
    pub start: u32,
    /// How long it took, all arms together, connecting included, ns.
    pub duration_ns: u64,
    /// Times that each arm was checked.
    pub windows: u32,
    /// Whether the servers were steady at its end.
    pub ended: Steadiness,
    /// The quantity that was furthest from steady, or became steady last.
    pub quantity: Steadied,
    /// The arm with that quantity, by its index in the experiment.
    pub arm: u32,
    /// The change of that quantity from the third quarter of the warm-up to the last, natural-log ratio; 0 if it was
    /// too short.
    pub change: f64,
    /// It lasted as long as earlier warm-ups together had shown to be enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_before: bool,
}

impl WarmedUp {
    /// True if the servers were certainly still changing at its end, by more than the allowed limit.
    pub fn is_unsteady(&self) -> bool {
        self.ended == Steadiness::Changing && self.change.abs() >= steady::BOUND
    }
}

/// A quantity that a warm-up brings to a steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Steadied {
    /// Operations per second of processor time of client and server.
    Operations,
    /// Bytes of log per operation.
    Log,
}

/// What happened, in order: read by the progress display, the log and `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run began or was resumed.
    RunStarted {
        /// Version of the program.
        tithe: String,
        /// True when an earlier run is continued.
        resumed: bool,
    },
    /// A cell began.
    CellStarted {
        /// Index of the cell.
        cell: u32,
    },
    /// All arms of the cell share one server and only read, so that start-to-start variation is the same for all of
    /// them.
    StartsShared {
        /// Index of the cell.
        cell: u32,
    },
    /// An arm's server was started or attached to.
    ArmStarted {
        /// Index of the cell.
        cell: u32,
        /// Epoch within the cell.
        epoch: u32,
        /// Index of the arm.
        arm: u32,
        /// Product and exact version as the server reports it.
        version: String,
    },
    /// Part of an arm's data is loaded; sent to the listener, and not stored.
    Loading {
        /// Index of the cell.
        cell: u32,
        /// Index of the arm.
        arm: u32,
        /// Records loaded so far.
        done: u64,
        /// Records to load.
        of: u64,
    },
    /// A start is warmed up until it is steady; sent to the listener, and not stored.
    WarmingUp {
        /// Index of the cell.
        cell: u32,
        /// How long it has taken, s.
        done_s: f64,
        /// How long it may take, s.
        at_most_s: f64,
    },
    /// A start was warmed up; sent to the listener, and stored with the cell.
    WarmedUp(WarmedUp),
    /// The servers are watched while they are idle; sent to the listener, and not stored.
    Idle {
        /// Index of the cell.
        cell: u32,
        /// How long it will take, s.
        length_s: f64,
    },
    /// A check begins, which may have to wait for the server's writes; sent to the listener, and not stored.
    Looking {
        /// Index of the cell.
        cell: u32,
        /// Index of the arm.
        arm: u32,
        /// Before or after measuring.
        phase: Phase,
        /// The claim it checks.
        claim: String,
    },
    /// The servers of all arms were restarted on their data and warmed up.
    StartedAnew {
        /// Index of the cell.
        cell: u32,
        /// Number of the start within the cell.
        start: u32,
        /// How long all of it took, s.
        took_s: f64,
        /// Of that, stopping the servers, s.
        #[serde(default)]
        stop_s: f64,
        /// Of that, restoring their data and writing them to the disk, s.
        #[serde(default)]
        put_back_s: f64,
        /// Of that, starting them until all answered and their caches were filled, s.
        #[serde(default)]
        start_s: f64,
        /// Of that, warming them up, s.
        #[serde(default)]
        warm_up_s: f64,
    },
    /// The provider is switching the server to an arm; sent to the listener, and not stored.
    Switching {
        /// Index of the cell.
        cell: u32,
        /// The arm that it is switched to.
        arm: u32,
        /// How long it has taken, s.
        done_s: f64,
        /// How long it may take, s.
        at_most_s: f64,
    },
    /// The provider has switched the server to an arm, and the server confirms it.
    Switched {
        /// Index of the cell.
        cell: u32,
        /// The arm that it was switched to.
        arm: u32,
        /// How long it took, the wait for the server's answer included, s.
        took_s: f64,
    },
    /// Evidence was checked.
    Evidence(Finding),
    /// A frame ended.
    FrameDone {
        /// Index of the cell.
        cell: u32,
        /// The frame's number.
        frame: u32,
        /// Why it must not be used.
        invalid: Option<Invalid>,
    },
    /// A cell ended.
    CellDone {
        /// Index of the cell.
        cell: u32,
        /// Why it ended.
        reason: CellEnding,
    },
    /// Something that the reader should know.
    Warning {
        /// One sentence, with what to do.
        message: String,
    },
    /// The run ended.
    RunDone {
        /// True when the user stopped it.
        interrupted: bool,
    },
}

/// Facts of one arm's server: version, settings, changes of its protections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArmFacts {
    /// Product and exact version as the server reports it.
    pub version: String,
    /// Facts that affect the figure: cipher, TLS library, kernel driver. Those with names of Tithe's own are
    /// [`Fact`](crate::fact::Fact)s.
    pub facts: BTreeMap<String, String>,
    /// Settings, files and arguments that Tithe gave it, one `name = value` per line, secrets replaced.
    pub configuration: Vec<String>,
}

/// The machine that measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model.
    pub processor: String,
    /// Logical processors that Tithe may use.
    pub processors: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// Processor flags that affect cryptography (`aes`, `vaes`, `sha_ni`, `avx2`…).
    pub crypto_flags: Vec<String>,
    /// Kernel drivers for `xts(aes)`, `gcm(aes)`, … as `/proc/crypto` names them.
    pub kernel_crypto: Vec<String>,
    /// Clock source.
    pub clock: String,
    /// File system of the data folders.
    pub file_system: String,
    /// The disk below it: its model or driver, its size, whether it rotates. Empty if there is none, or it was not
    /// checked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub storage: String,
    /// The machine's swap and whether it is encrypted, in words, before Tithe sets up any; empty if it was not checked.
    #[serde(default)]
    pub swap: String,
    /// True if the processor reports a hypervisor.
    pub virtualised: bool,
    /// Fingerprint of the kernel's boot: the same for everything on one kernel until a restart, and unique to it. Empty
    /// in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
}

impl Machine {
    /// The file system and disk of the data folders, in words.
    pub fn data_folders(&self) -> String {
        match self.storage.as_str() {
            "" => self.file_system.clone(),
            disk => format!("{} on {disk}", self.file_system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames in which each count in turn is `count`.
    fn frames_with(count: u64) -> Vec<ArmFrame> {
        let mut latency = Histogram::default();
        latency.add(3, count);
        let latency: BTreeMap<String, Histogram> = [("READ".to_owned(), latency)].into();
        let none = ArmFrame::default();
        vec![
            ArmFrame { operations: count, ..none.clone() },
            ArmFrame { operations_lead_in: count, ..none.clone() },
            ArmFrame { failed: count, ..none.clone() },
            ArmFrame { unfinished: count, ..none.clone() },
            ArmFrame { operations_before: count, ..none.clone() },
            ArmFrame { latency: latency.clone(), ..none.clone() },
            ArmFrame { intended: latency, ..none.clone() },
            ArmFrame { phases: vec![(1, 0.0), (count, 0.0)], ..none },
        ]
    }

    #[test]
    fn more_operations_than_there_can_be_are_not_possible_wherever_they_stand() {
        assert!(frames_with(1 << 48).iter().all(ArmFrame::is_possible));
        assert!(!frames_with((1 << 48) + 1).iter().any(ArmFrame::is_possible));
        let frame = ArmFrame { operations: 3, operations_lead_in: 40, failed: 500, ..ArmFrame::default() };
        assert_eq!(frame.all_operations(), 43);
    }

    #[test]
    fn a_warm_up_is_unsteady_where_it_still_changes_by_more_than_the_bound() {
        let warmed = |ended, change| {
            let warmed = WarmedUp {
                start: 0,
                duration_ns: 1,
                windows: 8,
                ended,
                quantity: Steadied::Operations,
                arm: 0,
                change,
                as_before: false,
            };
            warmed.is_unsteady()
        };
        for change in [steady::BOUND, -steady::BOUND, 1.0] {
            assert!(warmed(Steadiness::Changing, change), "{change}");
            assert!(!warmed(Steadiness::Steady, change), "{change}");
        }
        assert!(!warmed(Steadiness::Changing, steady::BOUND * 0.99) && !warmed(Steadiness::Unclear, 1.0));
    }
}
