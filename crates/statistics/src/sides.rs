//! Pairs of sides of one server whose protection the provider switches: one value per pair.
//!
//! Frames of one side share the background load of these minutes and the effect of one switch, so they show how well
//! this side is known and nothing about the next one. The two sides of a pair follow each other in a random order. So
//! exchanging their labels changes the sign of the pair's value, and the inference for effects of frames holds for
//! pairs too.

use std::collections::BTreeMap;

use crate::{order::midmean, starts::StartEffect};

/// Cost of an operation in one frame of a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SideFrame {
    /// Number of the pair.
    pub pair: u32,
    /// Index of the side's arm.
    pub arm: u32,
    /// Cost of an operation, in any unit; more than 0.
    pub cost: f64,
}

/// The effect of each pair with both sides: midmean of ln(cost) of the protected side less that of the plain one.
pub fn pair_effects(frames: impl IntoIterator<Item = SideFrame>) -> Vec<StartEffect> {
    of_pairs(frames, |cost| cost.ln())
}

/// The difference of each such pair, in the costs' unit.
pub fn pair_differences(frames: impl IntoIterator<Item = SideFrame>) -> Vec<StartEffect> {
    of_pairs(frames, |cost| cost)
}

fn of_pairs(frames: impl IntoIterator<Item = SideFrame>, scale: fn(f64) -> f64) -> Vec<StartEffect> {
    let mut pairs: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for SideFrame { pair, arm, cost } in frames {
        if let Some(side) = pairs.entry(pair).or_default().get_mut(arm as usize) {
            side.push(scale(cost));
        }
    }
    let both = pairs.into_iter().filter(|(_, sides)| sides.iter().all(|side| !side.is_empty()));
    both.map(|(start, [plain, protected])| StartEffect { start, effect: midmean(&protected) - midmean(&plain) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(pair: u32, arm: u32, cost: f64) -> SideFrame {
        SideFrame { pair, arm, cost }
    }

    #[test]
    fn a_pair_is_one_value_however_many_frames_it_has() {
        let e = std::f64::consts::E;
        let frames = [
            frame(0, 0, 1.0),
            frame(0, 1, e),
            frame(0, 1, e),
            // A stall in one of four frames does not move a side.
            frame(1, 1, 2.0 * e),
            frame(1, 1, 2.0 * e),
            frame(1, 1, 2.0 * e),
            frame(1, 1, 900.0),
            frame(1, 0, 2.0),
            // Half a pair is ignored.
            frame(2, 0, 7.0),
        ];
        let effects: Vec<(u32, f64)> = pair_effects(frames).iter().map(|it| (it.start, it.effect)).collect();
        assert_eq!(effects.len(), 2);
        assert!(effects.iter().zip(0..).all(|((start, effect), pair)| *start == pair && (effect - 1.0).abs() < 1e-12));
        let differences: Vec<f64> = pair_differences(frames).iter().map(|it| it.effect).collect();
        assert!((differences[0] - (e - 1.0)).abs() < 1e-12 && (differences[1] - 2.0 * (e - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn exchanging_the_sides_turns_the_sign() {
        let frames = [frame(0, 0, 3.0), frame(0, 0, 5.0), frame(0, 1, 4.0), frame(0, 1, 9.0)];
        let turned = frames.map(|it| SideFrame { arm: 1 - it.arm, ..it });
        assert_eq!(pair_effects(frames)[0].effect, -pair_effects(turned)[0].effect);
        assert_eq!(pair_differences(frames)[0].effect, -pair_differences(turned)[0].effect);
    }
}
