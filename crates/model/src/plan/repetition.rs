//! How often the servers of a cell are started, and the warm-up after each start.
//!
//! As the experiment sets it, else as many starts as the load allows. The run divides the load among them by what it
//! measures.

use super::{Cell, FRAMES_MIN, MS, Starts, WarmUp, shape, sides};
use crate::{
    catalogue::{Catalogue, DatabaseEntry, OfferedDatabase, WorkloadShape},
    experiment::{Design, Experiment, Limits, Measure},
};

/// Data fit into memory up to this share of it: the rest is for indexes, free space in pages and the server itself.
const FITS: f64 = 0.5;

/// Windows and maximum of a warm-up that ends when a server's compiler is done, each for one arm. Twelve windows are
/// the fewest that give a result, and no compiler finishes sooner.
const WINDOW_COMPILES_NS: u64 = 1_000 * MS;
const WARM_UP_COMPILES_NS: u64 = 60_000 * MS;

/// Windows and maximum, of all arms together, of a warm-up that ends when a server writes as in the long run. Effects
/// of a start are gone within seconds, or last longer than a budget allows. Arms share the maximum, so that a start of
/// many arms takes no longer than one of two.
const WINDOW_WRITES_NS: u64 = 400 * MS;
const WARM_UP_WRITES_NS: u64 = 12 * WINDOW_WRITES_NS;

/// Maximum on servers that Tithe does not start, and as a share of the budget. Arms with tables of their own may share
/// the server's cache, in which the tables that were made first and last are not equally present.
const WARM_UP_ATTACHED_NS: u64 = 75 * WINDOW_WRITES_NS;
const WARM_UP_ATTACHED_SHARE: f64 = 0.25;

/// Starts of a cell if the budget allows them. Fewer say little about the next start: for eight, Student's quantile is
/// 2.36 times the standard error, for four 3.18, for two 12.7.
pub const STARTS_USUAL: u32 = 8;

/// Fewest starts whose own variation is used; with fewer, one start and the known variation of the product are more
/// precise.
pub const STARTS_MIN: u32 = 4;

/// Most planned starts if data are restored for each: more would cost more in lost frames than they narrow the
/// interval.
const STARTS_MAX: u32 = 24;

/// Minimum starts of a cell: how many, from which share of the budget on, s, and whether for servers that compile.
const STARTS_PROMISED: [(u32, f64, bool); 2] = [(STARTS_USUAL, 300.0, false), (6, 900.0, true)];

// Orders of magnitude, for a guess that is shown as rough.
const LOADED_PER_S: f64 = 10_000.0;
pub(super) const EVIDENCE_S: f64 = 5.0;

/// Most time for restarts, as a share of the measured load, if servers are warmed up after each start: then a cell
/// takes less than one and a half times as long as its load, including the set-up of its servers.
const STARTING_SHARE_WARMED_UP: f64 = 0.25;

/// The same for other servers, where starts are cheap and each frame may have one: 40 % of a cell's time.
const STARTING_SHARE: f64 = 2.0 / 3.0;

impl WarmUp {
    /// Most time for restarts, as a share of the measured load, with this warm-up.
    pub fn starting_share(self) -> f64 {
        match self {
            Self::None => STARTING_SHARE,
            Self::Fixed { .. } | Self::UntilSteady { .. } => STARTING_SHARE_WARMED_UP,
        }
    }

    /// Most starts that `load_s` seconds of load allow, if each takes `start_s` with this warm-up.
    pub fn starts_borne(self, load_s: f64, start_s: f64) -> u32 {
        self.starts_still_borne(load_s, start_s, 0.0)
    }

    /// As [`starts_borne`](Self::starts_borne), but how many more after restarts have already taken `spent_s`.
    pub fn starts_still_borne(self, load_s: f64, start_s: f64, spent_s: f64) -> u32 {
        ((self.starting_share() * load_s - spent_s) / start_s) as u32
    }
}

/// A rough guess of the time to start, load and check all arms once, s.
pub(super) fn epoch_s(experiment: &Experiment, database: &OfferedDatabase) -> f64 {
    let load_s = experiment.data.records as f64 / LOADED_PER_S;
    experiment.arms.len() as f64 * (database.entry.start_s + load_s + EVIDENCE_S)
}

/// Warm-up after each start of servers that Tithe starts (`ours`), or before the first frame on others, under a
/// workload that `writes` or that another `program` offers.
pub(super) fn after_start(
    experiment: &Experiment,
    ours: Option<&DatabaseEntry>,
    design: Design,
    (writes, program): (bool, bool),
) -> WarmUp {
    let arms = (experiment.arms.len() as u64).max(1);
    match (experiment.measure.warmup_s.or(sides::warm_up_s(experiment)), ours) {
        (Some(length_s), _) => WarmUp::Fixed { ns: (length_s * 1e9) as u64 },
        // A frame of a sequential design has one arm, and no arm may be warmed up in another one's time.
        (None, _) if design == Design::Sequential => WarmUp::None,
        (None, Some(entry)) if entry.compiles => {
            WarmUp::UntilSteady { window_ns: WINDOW_COMPILES_NS, at_most_ns: WARM_UP_COMPILES_NS.saturating_mul(arms) }
        }
        (None, ours) if writes && !program && ours.is_none_or(|entry| !entry.embedded) => {
            let share_ns = (WARM_UP_ATTACHED_SHARE * experiment.measure.budget_s * 1e9) as u64;
            let attached_ns = WARM_UP_ATTACHED_NS.min(share_ns);
            let at_most_ns = ours.map_or(attached_ns, |_| WARM_UP_WRITES_NS);
            WarmUp::UntilSteady { window_ns: WINDOW_WRITES_NS / arms, at_most_ns }
        }
        (None, _) => WarmUp::None,
    }
}

/// True if the data are larger than the share [`FITS`] of the servers' memory.
pub(super) fn spills(experiment: &Experiment, limits: Limits, shape: Option<WorkloadShape>) -> bool {
    let data_bytes = experiment.data_bytes(shape.map_or(0, |shape| shape.record_bytes));
    limits.memory.is_some_and(|memory| data_bytes as f64 > FITS * memory.bytes(data_bytes) as f64)
}

/// Epochs of a cell with `share_s` seconds of load, and the starts within them: as the experiment sets it, else as many
/// as [`starting_share`](WarmUp::starting_share) of the load allows. If servers lose their data when they stop, every
/// start is an epoch. If data are loaded again for each of several epochs, every epoch is one start, because its result
/// depends on one load.
pub(super) fn repetitions(experiment: &Experiment, catalogue: &Catalogue, cell: &Cell, share_s: f64) -> (u32, Starts) {
    let Measure { epochs, starts, .. } = experiment.measure;
    let asked_epochs = epochs.unwrap_or(1).max(1);
    let database = catalogue.database(&experiment.database).filter(|_| starts_are_ours(experiment, cell));
    match (database, starts) {
        // A key is rotated over many frames, and a restarted server would never finish that.
        (Some(database), _) if database.rotates_in(experiment) => (asked_epochs, Starts::Once),
        (Some(database), None) if epochs.is_none() => {
            let shape = shape(&experiment.workloads[cell.workload], catalogue);
            let limits = experiment.resources[cell.resources].limits;
            // A server whose memory does not hold the data gets a new set-up: filling its caches takes longer than a
            // start may.
            let stays = database.entry.keeps_data && !spills(experiment, limits, shape);
            usual_repetitions(experiment, database, cell, (share_s, stays))
        }
        (Some(_), Some(1)) => (asked_epochs, Starts::Once),
        (Some(database), _) if database.loads_anew() && asked_epochs > 1 => {
            (asked_epochs.max(starts.unwrap_or(1)), Starts::Once)
        }
        (Some(database), Some(starts)) if database.entry.keeps_data => (asked_epochs, Starts::Several(starts)),
        (Some(database), Some(starts)) if !database.entry.embedded => (asked_epochs.max(starts), Starts::Once),
        _ => (asked_epochs, cell.starts),
    }
}

/// True if Tithe starts the servers, and may do so between two frames.
pub(super) fn starts_are_ours(experiment: &Experiment, cell: &Cell) -> bool {
    !experiment.is_attached() && !cell.program && cell.design != Design::Sequential
}

/// With `share_s` seconds of load. `stays`: a server may be restarted within an epoch.
fn usual_repetitions(
    experiment: &Experiment,
    database: &OfferedDatabase,
    cell: &Cell,
    (share_s, stays): (f64, bool),
) -> (u32, Starts) {
    let promised = STARTS_PROMISED
        .iter()
        .find(|(_, budget_s, compiles)| share_s >= *budget_s && *compiles == database.entry.compiles);
    let least = promised.map_or(0, |(starts, ..)| *starts);
    let borne = |start_s: f64| {
        let borne = cell.after_start.starts_borne(share_s, start_s).min(STARTS_MAX).max(least);
        (borne >= STARTS_MIN).then_some(borne)
    };
    let arms = experiment.arms.len();
    let warm_up_s = cell.after_start.guess_s(arms as f64);
    let start_s = arms as f64 * database.entry.start_s + warm_up_s;
    let frames = share_s * 1e9 / cell.frame_ns(arms) as f64;
    let cold = experiment.resources[cell.resources].limits.cold;
    let epoch_s = epoch_s(experiment, database) + warm_up_s;
    let loads = cell.after_start.starts_borne(share_s, epoch_s).min(STARTS_USUAL);
    if database.entry.simulated || frames < f64::from(FRAMES_MIN) {
        (1, cell.starts)
    } else if cell.starts == Starts::EveryFrame {
        let borne = cell.after_start.starts_borne(share_s, start_s);
        // A frame from cold caches needs its own start, and the process of an embedded database starts at once.
        let all = cold || database.entry.embedded || f64::from(borne) >= frames.floor();
        (1, if all { Starts::EveryFrame } else { Starts::Several(borne.max(STARTS_USUAL)) })
    } else if database.entry.embedded && database.loads_anew() && loads >= STARTS_MIN {
        (loads, Starts::Once)
    } else if stays {
        (1, borne(start_s).map_or(Starts::Once, Starts::Several))
    } else if database.entry.embedded {
        (1, Starts::Once)
    } else {
        (borne(epoch_s).map_or(1, |starts| starts.min(STARTS_USUAL)), Starts::Once)
    }
}
