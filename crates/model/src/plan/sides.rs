//! Sides of a server that its provider switches: their length and number, and requests that they rule out.
//!
//! The arms are one server, and one side of it lasts minutes, because a switch does. Two adjacent sides are a pair, and
//! a pair is one value: more frames per side do not narrow an interval as more pairs do.

use super::{Cell, PlanProblem};
use crate::{
    experiment::{Design, Experiment},
    quantity,
    schedule::first_of_pair,
};

/// Fewest pairs of sides for an interval: for two, Student's quantile is 12.7 times the standard error, for three 4.3.
pub const PAIRS_MIN_SWITCHED: u32 = 3;

/// Fewest frames of a side: each has fresh connections, and the variation of one frame must not be the side's.
const FRAMES_A_SIDE: u64 = 3;

/// Fewest frames of a side if the experiment does not set its slots.
const FRAMES_USUAL: u64 = 5;

/// Share of a side with load before its first frame, so that caches adapt to the new arm.
const WARM_UP_SHARE: f64 = 0.1;

/// Length of a side of the switched server of `experiment`, ns; 0 if there is none.
fn side_ns(experiment: &Experiment) -> u64 {
    experiment.switch().map_or(0, |switch| (switch.side_s * 1e9) as u64)
}

/// The longest slot that is chosen for it, ns.
pub(super) fn longest_slot_ns(experiment: &Experiment) -> u64 {
    side_ns(experiment) / FRAMES_USUAL / experiment.arms.len().max(1) as u64
}

/// The design with as many frames of `frame_ns` as a side holds.
pub(super) fn design(experiment: &Experiment, frame_ns: u64) -> Design {
    Design::Switched { frames_a_side: (side_ns(experiment) / frame_ns.max(1)).clamp(1, u64::from(u32::MAX)) as u32 }
}

/// Load before the first frame of each side, s; `None` if nothing is switched.
pub(super) fn warm_up_s(experiment: &Experiment) -> Option<f64> {
    experiment.switch().map(|switch| switch.side_s * WARM_UP_SHARE)
}

/// The number of frames of a cell is a multiple of this: the frames of a pair of sides, or one per epoch.
pub(super) fn whole_frames(cell: &Cell) -> u32 {
    match cell.design {
        Design::Switched { frames_a_side } => 2 * frames_a_side,
        _ => cell.epochs,
    }
}

/// Requests that are impossible for a server that its provider switches.
pub(super) fn objection(experiment: &Experiment, cells: &[Cell]) -> Option<PlanProblem> {
    let switch = experiment.switch()?;
    let measure = &experiment.measure;
    let refused = |key, problem: String, help: &str| Some(PlanProblem { key, problem, help: help.to_owned() });
    if experiment.arms.len() != 2 {
        let problem = "a server that its provider switches is two arms in turn, and there is no place for an A/A arm";
        return refused("aa_arm", problem.to_owned(), "leave `aa_arm` out");
    }
    if measure.design != Design::Interleaved {
        let problem = "the provider switches the server, so its sides follow each other in pairs".to_owned();
        return refused("design", problem, "leave `design` out with `switch`");
    }
    if measure.epochs.is_some() {
        let problem =
            "a server that its provider switches is set up once, and every pair of its sides has evidence of its own";
        return refused("epochs", problem.to_owned(), "leave `epochs` out with `switch`");
    }
    let long = cells.iter().map(|cell| cell.frame_ns(2)).find(|frame| frame * FRAMES_A_SIDE > side_ns(experiment))?;
    let problem = format!(
        "a side of {} does not hold {FRAMES_A_SIDE} frames of {}",
        quantity::precise_duration(switch.side_s),
        quantity::precise_duration(long as f64 / 1e9)
    );
    refused("slot", problem, "write a longer `side` in `switch`, or a shorter `slot`")
}

/// Number of switches of a cell whose server is off before and after: for setting up the plain arm and the other one,
/// then for the sides of each pair.
pub(super) fn switches(cell: &Cell) -> u32 {
    let set_up = [0, 1];
    let sides = (0..cell.pairs()).flat_map(|pair| {
        let first = first_of_pair(cell.seed, pair);
        [first, 1 - first]
    });
    let states: Vec<usize> = set_up.into_iter().chain(sides).chain([0]).collect();
    states.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32
}

/// `1 pair of sides`, `3 pairs of sides`
pub(super) fn pairs_in_words(pairs: u32) -> String {
    format!("{} pair{} of sides", quantity::count(pairs.into()), if pairs == 1 { "" } else { "s" })
}
