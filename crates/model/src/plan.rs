//! What will be done about an experiment: cells, slots, frames, seeds.
//!
//! A pure function of the experiment and the catalogue: the same file gives the same plan on every machine. Decisions
//! that need the machine (how many lanes its processors allow, how arms are paired) are left to the run.

mod check;
mod idling;
mod outline;
mod repetition;
mod sides;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use idling::idle_s;
pub use outline::{disk_bytes, head, outline, starting_share};
pub use repetition::{STARTS_MIN, STARTS_USUAL};
use repetition::{after_start, repetitions, spills, starts_are_ours};
pub use sides::PAIRS_MIN_SWITCHED;

use crate::{
    catalogue::{Catalogue, WorkloadShape},
    diagnostic::Diagnostic,
    experiment::{Arrivals, Design, Experiment, Workload},
    quantity,
    record::{Frame, Slot},
    schedule::SplitMix64,
    start_spread::{self, CostSpread, StartSpread},
};

/// Version of the run folder's format; a reader refuses other versions.
pub const FORMAT: u32 = 4;

/// Fewest frames of a cell: with fewer, an interval at 95 % is too wide, and stopping at a width undercovers.
pub const FRAMES_MIN: u32 = 15;

const MS: u64 = 1_000_000;

/// A slot of reads: long compared with the carry-over from the arm before (gone after 1 ms), short compared with the
/// seconds over which the machine drifts.
const SLOT_READS_NS: u64 = 20 * MS;

/// A slot of durable writes: commits take milliseconds and come in groups. Longer slots resolve less in the same time.
/// Shorter ones contain too few commits, and one arm's flushes fall into the other's slots (docs/method/writes.md).
const SLOT_WRITES_NS: u64 = 100 * MS;

/// A slot of writes to an embedded database. SQLite checkpoints its journal every 1,000 pages, on two processors every
/// 10 to 20 ms. A checkpoint takes as long as a thousand updates, so a slot with none or one is cheap or expensive by
/// chance.
const SLOT_WRITES_EMBEDDED_NS: u64 = 50 * MS;

/// A slot of an open loop, which drains before the next.
const SLOT_LONG_NS: u64 = 250 * MS;

/// Fewest operations of an open loop per lane and slot: a slot with fewer than 20 is not used, and a Poisson count with
/// this mean falls below 20 once in 5,000 slots.
const OPERATIONS_PER_SLOT: f64 = 40.0;

/// Of requests, each of which may stand for many operations: their time is long compared with the overhead of a slot.
const REQUESTS_PER_SLOT: f64 = 4.0;

/// A slice: long enough that the arm before has no effect, short compared with the drift of the machine.
const SLOT_SLICE_NS: u64 = 1000 * MS;

/// A slice of another program: long compared with its start and connecting in each slice.
const SLOT_PROGRAM_NS: u64 = 3000 * MS;

/// Programs take their run time in whole seconds.
const SECOND_NS: u64 = 1000 * MS;

/// Carry-over from the arm before ends after 0.5 to 1 ms, whatever the length of the slot.
const SETTLING_NS: u64 = MS;

/// Slots of one arm and one lane in a frame, in total: one second of load per two arms.
const FRAME_PER_ARM_NS: u64 = 500 * MS;
/// Slots of one arm and one lane in a frame where servers are restarted for each: the load must be worth the restart.
const FRAME_PER_RESTART_NS: u64 = 1_000 * MS;
/// The same if servers are warmed up after each start, each length with the least number of frames for it. Each frame
/// connects and warms up its connections again, which takes a fifth of a frame of half a second. A cell has the first
/// length for which its budget suffices. It never has the longest if an answer can end the load, or if Tithe does not
/// start the servers: a long frame delays the end.
const FRAMES_PER_WARM_UP: [(u64, u64); 2] = [(2_000 * MS, 40), (1_000 * MS, 20)];
/// Longest frame of an embedded database, ns: it starts no servers, so short frames waste little.
const FRAME_EMBEDDED_NS: u64 = 2_000 * MS;

/// Fewest (block, lane) pairs of a frame: the frame's value is a trimmed mean over them.
const PAIRS_MIN: u32 = 8;

/// Warm-up of an arm's fresh connections, and of all arms of a frame together.
const WARMUP_NS: u64 = 100 * MS;
const WARMUP_TOTAL_NS: u64 = 1000 * MS;

/// Frames at the end in which nothing is pinned to a processor, if there are at least [`FREE_FROM`].
const FREE_FRAMES: u32 = 5;
const FREE_FROM: u32 = 60;

/// Everything that `run`, and a repetition of it, needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`FORMAT`] of the program that made it.
    pub format: u32,
    /// The resolved experiment.
    pub experiment: Experiment,
    /// The cells, in the order they run.
    pub cells: Vec<Cell>,
    /// The known start-to-start variation, for cells with fewer than [`STARTS_MIN`] starts; empty if starts do not
    /// differ.
    pub start_spread: Vec<StartSpread>,
    /// The same for arms that share a server and only read; `None` if no arm is attached, or if it is not known
    /// separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_server_spread: Option<Vec<StartSpread>>,
    /// What the start-to-start variation of protections adds to either; `None` if starts do not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_spread: Option<CostSpread>,
}

impl Plan {
    /// Connections of all arms at a time, in the cell with most clients.
    pub fn connections(&self) -> u64 {
        let busiest = self.cells.iter().map(|cell| cell.clients).max().unwrap_or(0);
        u64::from(busiest) * self.experiment.arms.len() as u64
    }

    /// The known start-to-start variation of arms that share a server, or have separate ones.
    pub fn spread_between_starts(&self, shared: bool) -> &[StartSpread] {
        self.one_server_spread.as_deref().filter(|_| shared).unwrap_or(&self.start_spread)
    }

    /// True if the cells do the same work on servers with the same set-up and limits, and differ only in clients and
    /// arrivals.
    pub fn differ_by_load_alone(&self, one: &Cell, other: &Cell) -> bool {
        let set_up = |cell: &Cell| {
            let resources = &self.experiment.resources[cell.resources];
            (cell.workload, &resources.version, &resources.settings, resources.limits, cell.reconnect_every)
        };
        set_up(one) == set_up(other)
    }
}

/// One database × workload × load shape × resources. Arms are compared within a cell only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Short name, unique in the plan and valid in a file name: `c`, or `c.in-memory` if resources have names.
    pub id: String,
    /// Index into the experiment's workloads.
    pub workload: usize,
    /// Index into the experiment's resources.
    pub resources: usize,
    /// Connections that are busy at the same time, per arm.
    pub clients: u32,
    /// When operations start.
    pub arrivals: Arrivals,
    /// Operations after which a client closes its connection and opens a new one, within the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u32>,
    /// Seed of this cell's orders and key streams.
    pub seed: u64,
    /// Length of a slot, ns.
    pub slot_ns: u64,
    /// Start of the slot whose operations do not count for latency, because of carry-over from the arm before, ns.
    pub settling_ns: u64,
    /// Load before the first slot of a frame, so that fresh connections are warm, ns per arm.
    pub warmup_ns: u64,
    /// Blocks in a frame.
    pub blocks: u32,
    /// Frames of the planned length that the budget allows; the cell stops there if the precision is not reached. If
    /// slots are made longer during measurement, fewer frames use up the same load.
    pub frames_max: u32,
    /// Fresh starts of all servers.
    pub epochs: u32,
    /// How the arms share the machine over time.
    #[serde(default)]
    pub design: Design,
    /// When servers are restarted within an epoch.
    pub starts: Starts,
    /// Load after each start that does not count, so that the servers are in their long-run state when measured.
    #[serde(default)]
    pub after_start: WarmUp,
    /// Client threads and their server processes are pinned to processors.
    #[serde(default = "bound")]
    pub pinned: bool,
    /// Frames after the last one in which nothing is pinned to a processor; shown separately.
    #[serde(default)]
    pub free_frames: u32,
    /// Another program offers the load.
    #[serde(default)]
    pub program: bool,
    /// Between two operations clients have something else to do than wait for an answer, so throughput does not follow
    /// from latencies. False in plans of earlier versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gaps: bool,
}

/// When the servers of all arms, or the processes of an embedded database, are restarted on their data. Some
/// differences between starts (memory layout, how code fits the caches) are random and last as long as the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starts {
    /// With each epoch only: Tithe did not start them, or they lose their data, or the budget is too small.
    #[default]
    Once,
    /// Before every frame.
    EveryFrame,
    /// This many times in the cell; its load is divided among them.
    Several(u32),
}

/// Load between a start and the first frame that counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUp {
    /// None besides that of every frame.
    #[default]
    None,
    /// As long as the experiment sets it, for each arm.
    Fixed {
        /// Its length, ns.
        ns: u64,
    },
    /// Until the servers of all arms are steady by the test in [`steady`](crate::steady).
    UntilSteady {
        /// Load on each arm between two checks, ns.
        window_ns: u64,
        /// Longest time of all arms together, connecting included, ns.
        at_most_ns: u64,
    },
}

impl WarmUp {
    /// A guess of its length with this many arms, s, on average over several starts: a third of the maximum. The first
    /// two starts show when it has ended, and the later ones use that length.
    pub(crate) fn guess_s(self, arms: f64) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Fixed { ns } => ns as f64 / 1e9 * arms,
            Self::UntilSteady { at_most_ns, .. } => at_most_ns as f64 / 3e9,
        }
    }
}

/// The default of plans without the field.
fn bound() -> bool {
    true
}

impl Cell {
    /// Planned length of one frame's slots, ns.
    pub fn frame_ns(&self, arms: usize) -> u64 {
        self.slot_ns.saturating_mul(u64::from(self.blocks)).saturating_mul(arms as u64)
    }

    /// Length of the slots of `frame` as measured with these `slots`, ns. Slots may have been made longer than planned,
    /// and operations may have lasted far longer than their slots.
    pub fn load_ns(&self, frame: &Frame, slots: &[Slot], arms: usize) -> u64 {
        let blocks = slots.iter().map(|slot| slot.block + 1).max().unwrap_or(self.blocks);
        // Records of earlier versions do not have the length of the slots.
        let meant_ns = frame.slot_ns.max(self.slot_ns).saturating_mul(u64::from(blocks)).saturating_mul(arms as u64);
        let mut lanes_ns = BTreeMap::<u32, u64>::new();
        slots.iter().for_each(|slot| *lanes_ns.entry(slot.lane).or_default() += slot.wall_ns);
        let took_ns = lanes_ns.into_values().max().unwrap_or(0);
        // A program reports its own time, so the end of an operation is no overrun.
        let overran = !self.program && took_ns > meant_ns.saturating_add(meant_ns / 10);
        if overran { took_ns } else { meant_ns }
    }

    /// Fewest starts of the servers in each epoch.
    pub fn starts_per_epoch(&self) -> u32 {
        match self.starts {
            Starts::Several(starts) => starts.div_ceil(self.epochs.max(1)),
            Starts::Once | Starts::EveryFrame => 1,
        }
    }

    /// Fewest planned starts of the servers, over all epochs; `None` if every frame has one.
    pub fn planned_starts(&self) -> Option<u32> {
        (self.starts != Starts::EveryFrame).then(|| self.epochs.saturating_mul(self.starts_per_epoch()))
    }

    /// Frames of each side of a server that its provider switches; 0 for any other.
    pub fn frames_a_side(&self) -> u32 {
        match self.design {
            Design::Switched { frames_a_side } => frames_a_side.max(1),
            _ => 0,
        }
    }

    /// Pairs of such sides; 0 for any other server.
    pub fn pairs(&self) -> u32 {
        self.frames_max.checked_div(self.frames_a_side().saturating_mul(2)).unwrap_or(0)
    }

    /// Those of its pairs of sides whose frames are all in `frames`, the cell's own: a pair counts as a whole or not at
    /// all. None for any other server.
    pub fn whole_pairs(&self, frames: &[Frame]) -> BTreeSet<u32> {
        let mut recorded = BTreeMap::<u32, u32>::new();
        frames.iter().for_each(|frame| *recorded.entry(frame.start).or_default() += 1);
        let whole = self.frames_a_side().saturating_mul(2);
        recorded.into_iter().filter(|(_, count)| *count == whole).map(|(pair, _)| pair).collect()
    }

    /// Load budget of the cell, ns: its planned frames at their planned length.
    pub fn budget_ns(&self, arms: usize) -> u64 {
        self.frame_ns(arms).saturating_mul(u64::from(self.frames_max))
    }
}

/// Plans an experiment.
///
/// # Errors
/// A budget that allows too few frames, or a slot that is too short for its load. An experiment from
/// [`parse`](crate::parse::parse) has neither.
pub fn plan(experiment: Experiment, catalogue: &Catalogue) -> Result<Plan, Vec<Diagnostic>> {
    let cells = cells(&experiment, catalogue);
    let diagnostics: Vec<Diagnostic> = plan_problems(&experiment, &cells)
        .into_iter()
        .map(|plan_problem| Diagnostic::general(plan_problem.problem, plan_problem.help))
        .collect();
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let simulated = catalogue.entry(&experiment.database).is_some_and(|entry| entry.simulated);
    let start_spread = if simulated { Vec::new() } else { start_spread::built_in(&experiment.database) };
    let attached = !simulated && experiment.is_attached();
    let one_server_spread = attached.then(|| start_spread::on_one_server(&experiment.database));
    let cost_spread = if simulated { None } else { start_spread::of_costs(&experiment.database) };
    Ok(Plan { format: FORMAT, experiment, cells, start_spread, one_server_spread, cost_spread })
}

/// Why no plan can be made for an experiment.
pub(crate) struct PlanProblem {
    /// The key of `[measure]` that it is about.
    pub key: &'static str,
    pub problem: String,
    pub help: String,
}

/// The cells: every workload under every set of resources, workload by workload.
pub(crate) fn cells(experiment: &Experiment, catalogue: &Catalogue) -> Vec<Cell> {
    let mut seeds = SplitMix64::new(experiment.measure.seed);
    let mut taken = BTreeSet::new();
    let count = experiment.workloads.len() * experiment.resources.len();
    let share_ns = experiment.measure.budget_s * 1e9 / count.max(1) as f64;
    let mut cells = Vec::with_capacity(count);
    for workload in 0..experiment.workloads.len() {
        for resources in 0..experiment.resources.len() {
            let id = unique(&id(experiment, workload, resources), &mut taken);
            let mut cell = cell(experiment, catalogue, (workload, resources), (id, seeds.next_u64()), share_ns);
            let frames = (share_ns / cell.frame_ns(experiment.arms.len()).max(1) as f64) as u32;
            (cell.epochs, cell.starts) = repetitions(experiment, catalogue, &cell, share_ns / 1e9);
            cell.frames_max = frames - frames % sides::whole_frames(&cell);
            let bound = cell.pinned && cell.design == Design::Interleaved && cell.arrivals == Arrivals::Closed;
            let embedded = catalogue.entry(&experiment.database).is_some_and(|entry| entry.embedded);
            cell.free_frames = if bound && !embedded && cell.frames_max >= FREE_FROM { FREE_FRAMES } else { 0 };
            cells.push(cell);
        }
    }
    cells
}

fn cell(
    experiment: &Experiment,
    catalogue: &Catalogue,
    (workload, resources): (usize, usize),
    (id, seed): (String, u64),
    share_ns: f64,
) -> Cell {
    let arms = experiment.arms.len().max(1) as u64;
    let clients = experiment.resources[resources].clients.unwrap_or(experiment.load.clients);
    let arrivals = experiment.resources[resources].arrivals.unwrap_or(experiment.load.arrivals);
    let measure = &experiment.measure;
    let chosen = experiment.measure.slot_ms.map(|ms| (ms * MS as f64).round() as u64);
    let embedded = catalogue.entry(&experiment.database).is_some_and(|entry| entry.embedded);
    let shape = shape(&experiment.workloads[workload], catalogue);
    let writes = shape.is_none_or(|shape| shape.writes);
    let program = shape.is_some_and(|shape| shape.program);
    let design = match measure.design {
        _ if experiment.switch().is_some() => Design::Switched { frames_a_side: 1 },
        Design::Interleaved if program => Design::Slices,
        asked => asked,
    };
    let usual = match design {
        _ if program => SLOT_PROGRAM_NS,
        Design::Switched { .. } => SLOT_SLICE_NS.min(sides::longest_slot_ns(experiment)),
        Design::Slices | Design::Sequential => SLOT_SLICE_NS,
        Design::Interleaved | Design::Duet if writes && embedded => SLOT_WRITES_EMBEDDED_NS,
        Design::Interleaved | Design::Duet if writes => SLOT_WRITES_NS,
        Design::Interleaved | Design::Duet => SLOT_READS_NS,
    };
    let usual = usual.max(shape.and_then(|shape| shape.slot_ns).unwrap_or(0));
    let batch = shape.map_or(1, |shape| shape.batch.unwrap_or(experiment.data.records)).max(1);
    let slot_ns = chosen.unwrap_or_else(|| usual.max(slot_min_ns(arrivals, clients, batch))).max(1);
    let attached = experiment.is_attached();
    // After a restart, a server does not write as in the long run: every page is logged in full again.
    let entry = catalogue.entry(&experiment.database).filter(|_| !attached);
    let limits = experiment.resources[resources].limits;
    let restarts = match program {
        // One slice of every arm is a frame; a further slice would find data that the first has read into the cache.
        true => limits.cold && entry.is_some_and(|entry| entry.keeps_data),
        // If caches do not hold the data, filling them means reading all data, which takes longer than a frame.
        false => {
            // The process of an embedded database starts within milliseconds.
            let soon = entry.is_some_and(|entry| entry.restarts || (entry.embedded && entry.keeps_data));
            let in_turn = design != Design::Sequential;
            !writes && (limits.cold || (in_turn && !spills(experiment, limits, shape))) && soon
        }
    };
    let after_start = after_start(experiment, entry, design, (writes, program));
    let is_borne = |(length_ns, frames): &&(u64, u64)| share_ns >= (length_ns * frames * arms) as f64;
    let ends_soon = entry.is_none() || measure.until_decided;
    let mut lengths = FRAMES_PER_WARM_UP.iter().skip(usize::from(ends_soon));
    let long = lengths.find(is_borne).filter(|_| after_start != WarmUp::None);
    let per_arm_ns = match (embedded, restarts) {
        (true, _) => FRAME_PER_ARM_NS.min(FRAME_EMBEDDED_NS / arms),
        (false, true) => FRAME_PER_RESTART_NS,
        (false, false) => long.map_or(FRAME_PER_ARM_NS, |(length_ns, _)| *length_ns),
    };
    let blocks = match design {
        Design::Interleaved | Design::Duet => {
            (per_arm_ns.div_ceil(slot_ns) as u32).max(PAIRS_MIN.div_ceil(lanes(clients)))
        }
        // A pair of slices is one value; a frame of the other designs is one arm's second.
        Design::Slices | Design::Sequential | Design::Switched { .. } => 1,
    };
    let design = match design {
        // Its frames have one block.
        Design::Switched { .. } => sides::design(experiment, slot_ns * arms),
        other => other,
    };
    Cell {
        id,
        workload,
        resources,
        clients,
        arrivals,
        reconnect_every: experiment.resources[resources].reconnect_every.or(experiment.load.reconnect_every),
        seed,
        slot_ns,
        settling_ns: if program { 0 } else { SETTLING_NS.min(slot_ns / 4) },
        warmup_ns: if program { 0 } else { WARMUP_NS.min(WARMUP_TOTAL_NS / arms) },
        blocks,
        frames_max: 0,
        epochs: 1,
        design,
        starts: if restarts { Starts::EveryFrame } else { Starts::Once },
        after_start,
        pinned: measure.pin && !program,
        free_frames: 0,
        program,
        gaps: shape.is_some_and(|shape| shape.gaps),
    }
}

/// The plan's facts about a workload; `None` for a kind that this build does not have.
pub(crate) fn shape(workload: &Workload, catalogue: &Catalogue) -> Option<WorkloadShape> {
    let kind = catalogue.workloads.iter().find(|kind| kind.id == workload.kind)?;
    Some((kind.shape)(&workload.properties))
}

/// Lanes that the plan assumes. A machine with more processors drives more of them, one with a single processor one.
fn lanes(clients: u32) -> u32 {
    clients.clamp(1, 2)
}

/// Shortest slot of an open loop whose requests each stand for `batch` operations, ns; 0 for a closed loop.
fn slot_min_ns(arrivals: Arrivals, clients: u32, batch: u64) -> u64 {
    match arrivals {
        Arrivals::Closed => 0,
        // The rate is not known yet; saturation is far above what a slot needs.
        Arrivals::OfSaturation(_) => SLOT_LONG_NS,
        Arrivals::Even(rate) | Arrivals::Poisson(rate) => {
            let operations = OPERATIONS_PER_SLOT.max(REQUESTS_PER_SLOT * batch as f64);
            let filled_ns = operations * f64::from(lanes(clients)) / rate * 1e9;
            SLOT_LONG_NS.max((filled_ns / MS as f64).ceil() as u64 * MS)
        }
    }
}

/// Reasons against running `cells`.
pub(crate) fn plan_problems(experiment: &Experiment, cells: &[Cell]) -> Vec<PlanProblem> {
    let plan_problems = [
        slot_objection(cells),
        program_objection(cells),
        sides::objection(experiment, cells),
        starts_objection(experiment, cells),
        budget_objection(experiment, cells),
    ];
    plan_problems.into_iter().flatten().collect()
}

/// Requests that another program cannot fulfil.
fn program_objection(cells: &[Cell]) -> Option<PlanProblem> {
    let cell = cells.iter().find(|cell| cell.program)?;
    if cell.design == Design::Duet {
        return Some(PlanProblem {
            key: "design",
            problem: format!("the load of cell `{}` comes from another program, which cannot change arms", cell.id),
            help: "leave `design` out: other programs' load is measured in slices".to_owned(),
        });
    }
    (!cell.slot_ns.is_multiple_of(SECOND_NS)).then(|| PlanProblem {
        key: "slot",
        problem: format!(
            "the load of cell `{}` comes from another program, which cannot run for {}",
            cell.id,
            quantity::precise_duration(cell.slot_ns as f64 / 1e9)
        ),
        help: "write whole seconds, for example `slot = \"3 s\"`, or leave `slot` out".to_owned(),
    })
}

/// A number of starts for servers that Tithe did not start.
fn starts_objection(experiment: &Experiment, cells: &[Cell]) -> Option<PlanProblem> {
    let starts = experiment.measure.starts.filter(|starts| *starts > 1)?;
    let cell = cells.iter().find(|cell| !starts_are_ours(experiment, cell))?;
    Some(PlanProblem {
        key: "starts",
        problem: format!("the servers of cell `{}` cannot be started {starts} times", cell.id),
        help: "leave `starts` out: Tithe starts the servers that it launches itself, and not between the slices of \
               another program or the stretches of a sequential design"
            .to_owned(),
    })
}

fn slot_objection(cells: &[Cell]) -> Option<PlanProblem> {
    let minimum = |cell: &Cell| slot_min_ns(cell.arrivals, cell.clients, 1);
    let short = cells.iter().filter(|cell| cell.slot_ns < minimum(cell)).max_by_key(|cell| minimum(cell))?;
    let minimum = minimum(short);
    Some(PlanProblem {
        key: "slot",
        problem: format!(
            "a slot of {} is too short for this rate",
            quantity::precise_duration(short.slot_ns as f64 / 1e9)
        ),
        help: format!(
            "leave `slot` out or write at least `slot = \"{} ms\"`: an open loop drains after each slot, and a slot \
             needs {OPERATIONS_PER_SLOT} operations for each client thread",
            minimum / MS
        ),
    })
}

fn budget_objection(experiment: &Experiment, cells: &[Cell]) -> Option<PlanProblem> {
    let short = cells
        .iter()
        .filter(|cell| cell.frames_max < least_frames(cell))
        .max_by_key(|cell| needed_ns(experiment, cell))?;
    let needed_s = needed_ns(experiment, short) as f64 / 1e9 * cells.len() as f64;
    let needed =
        if needed_s <= 120.0 { format!("{} s", needed_s.ceil()) } else { format!("{} min", (needed_s / 60.0).ceil()) };
    let without =
        if experiment.arms.iter().any(|arm| arm.aa) { ", or leave the A/A arm out (`aa_arm = false`)" } else { "" };
    let cells_text = if cells.len() == 1 { String::new() } else { format!(" shared by {} cells", cells.len()) };
    Some(PlanProblem {
        key: "budget",
        problem: format!(
            "a budget of {}{cells_text} buys {} of cell `{}`, and an interval needs {}",
            quantity::precise_duration(experiment.measure.budget_s),
            match short.design {
                Design::Switched { .. } => sides::pairs_in_words(short.pairs()),
                _ => format!("{} frames", short.frames_max),
            },
            short.id,
            if short.design.is_switched() { PAIRS_MIN_SWITCHED } else { FRAMES_MIN }
        ),
        help: match short.design.is_switched() {
            true => format!(
                "write at least `budget = \"{needed}\"` in `[measure]`, or a shorter `side` in `switch`, or measure fewer \
                 workloads or resources"
            ),
            false => format!(
                "write at least `budget = \"{needed}\"` in `[measure]`, or measure fewer arms, workloads or resources{without}"
            ),
        },
    })
}

/// Load that gives a result for every one of this many `cells` of this many `arms`, s, with the default slots and
/// starts.
pub(crate) fn enough_s(arms: usize, cells: usize) -> f64 {
    FRAME_PER_RESTART_NS as f64 / 1e9 * f64::from(FRAMES_MIN) * (arms * cells) as f64
}

/// The least load that gives a result for every cell of `experiment`, s.
pub fn least_budget_s(experiment: &Experiment, catalogue: &Catalogue) -> f64 {
    let cells = cells(experiment, catalogue);
    let needed = cells.iter().map(|cell| needed_ns(experiment, cell)).max().unwrap_or(0);
    needed as f64 / 1e9 * cells.len() as f64
}

/// Raises the budget of `experiment` to the least it needs.
pub fn afford(experiment: &mut Experiment, catalogue: &Catalogue) {
    // A larger budget may allow more epochs, which need a larger budget: try at most this often.
    const LOOKS: usize = 3;
    // Margin, so that rounding to whole frames does not lose one.
    const ROUNDING: f64 = 1e-9;
    for _ in 0..LOOKS {
        let least_s = least_budget_s(experiment, catalogue) * (1.0 + ROUNDING);
        experiment.measure.budget_s = experiment.measure.budget_s.max(least_s);
    }
}

/// The smallest share of the budget that gives a result for `cell`, ns.
fn needed_ns(experiment: &Experiment, cell: &Cell) -> u64 {
    cell.frame_ns(experiment.arms.len()).saturating_mul(u64::from(least_frames(cell)))
}

/// The fewest frames that give a result for `cell`.
fn least_frames(cell: &Cell) -> u32 {
    match cell.design {
        Design::Switched { .. } => PAIRS_MIN_SWITCHED * sides::whole_frames(cell),
        _ => FRAMES_MIN.next_multiple_of(cell.epochs),
    }
}

fn id(experiment: &Experiment, workload: usize, resources: usize) -> String {
    let workload = slug(&experiment.workloads[workload].name);
    let resources = &experiment.resources[resources].name;
    if resources.is_empty() { workload } else { format!("{workload}.{}", slug(resources)) }
}

/// Small letters, digits and single hyphens; never empty, never long.
fn slug(name: &str) -> String {
    const MAX: usize = 40;
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(MAX);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "cell".to_owned() } else { slug.to_owned() }
}

/// `id`, with a number appended if it is taken.
fn unique(id: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{id}-{number}"));
    let free = std::iter::once(id.to_owned()).chain(numbered).find(|id| !taken.contains(id));
    let free = free.unwrap_or_default();
    taken.insert(free.clone());
    free
}
