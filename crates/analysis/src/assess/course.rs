//! The deciding cost frame by frame, to show whether it changed during the measurement.
//!
//! For display only: the interval and its flags come from [`super::slots`].

use tithe_model::experiment::Metric;
use tithe_statistics::{mean, starts::StartEffect};

use super::{measured::Measured, slots};
use crate::StartCourse;

/// Up to this number of frames each has its own value; with more, consecutive ones are averaged to at most twice as
/// many.
const VALUES: usize = 240;

/// The course of the cost of arm `arm` by `metric`; empty if no frame has it.
pub(super) fn course(measured: &Measured<'_>, arm: usize, metric: Metric) -> Vec<StartCourse> {
    // A frame of this design holds one arm only, so it has no cost.
    if arm == 0 || measured.cell.design.has_one_arm_a_frame() {
        return Vec::new();
    }
    of_effects(&slots::effects(measured, arm, metric))
}

/// The course of the `effects` of frames, in the order of time.
pub(crate) fn of_effects(effects: &[StartEffect]) -> Vec<StartCourse> {
    averaged(&effects.iter().copied().filter(|it| it.effect.is_finite()).collect::<Vec<_>>())
}

/// `effects`, in the order of time, start by start; if there are very many, consecutive ones are averaged.
fn averaged(effects: &[StartEffect]) -> Vec<StartCourse> {
    let together = effects.len().div_ceil(VALUES).max(1);
    let of_start = |effects: &[StartEffect]| StartCourse {
        start: effects[0].start,
        effects: effects.chunks(together).map(of_neighbours).collect(),
    };
    let starts = effects.chunk_by(|one, other| one.start == other.start);
    if starts.clone().count() <= VALUES {
        return starts.map(of_start).collect();
    }
    effects.chunks(together).map(of_start).collect()
}

/// The mean of at least one effect, to six decimals: enough for every chart.
fn of_neighbours(effects: &[StartEffect]) -> f64 {
    let mean = mean(&effects.iter().map(|it| it.effect).collect::<Vec<_>>());
    (mean * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(frames: usize, each: usize) -> Vec<StartCourse> {
        let on_start = |frame: usize| StartEffect { start: (frame / each) as u32, effect: 0.1 + frame as f64 * 1e-6 };
        averaged(&(0..frames).map(on_start).collect::<Vec<_>>())
    }

    #[test]
    fn every_frame_is_there_by_its_start() {
        let told = course(5, 2);
        assert_eq!(told.iter().map(|it| it.start).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(told[1].effects, [0.100_002, 0.100_003]);
        assert!(course(0, 1).is_empty());
    }

    #[test]
    fn of_very_many_frames_neighbours_are_averaged_and_none_is_lost() {
        for (frames, each) in [(5_000, 5_000), (5_000, 50), (5_000, 1), (241, 1)] {
            let told = course(frames, each);
            let effects: Vec<f64> = told.iter().flat_map(|it| &it.effects).copied().collect();
            assert!(effects.len() <= 2 * VALUES && effects.len() > VALUES / 3, "{frames}, {each}: {}", effects.len());
            assert!(effects.is_sorted(), "{frames}, {each}");
            assert!((mean(&effects) - mean(&[0.1, 0.1 + frames as f64 * 1e-6])).abs() < 1e-4, "{frames}, {each}");
        }
    }
}
