//! Is the interval valid for the order of slots in use, and does the order cancel carry-over?
//!
//! Identical arms on an invented machine that drifts, where a slot costs less after one of the same arm.

use tithe_model::{
    experiment::Metric,
    record::Slot,
    schedule::{Place, SplitMix64, block_order, frame_order},
};
use tithe_statistics::{inference::infer, pairing::frame_effect};

const FRAMES: u32 = 15;
const BLOCKS: u32 = 24;

/// How much less a slot costs after one of the same arm.
const OWN: f64 = 0.08;
/// How much more a slot costs than the previous one.
const DRIFT: f64 = 0.0005;
const NOISE: f64 = 0.02;

/// The effects of arm `arm` against arm 0 in the frames of one experiment whose slots are in `order`.
fn effects(seed: u64, arms: usize, arm: u32, order: impl Fn(u32) -> Vec<Place>) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    (0..FRAMES)
        .filter_map(|frame| frame_effect(&slots(&order(frame), arms, &mut random), 0, arm, Metric::Cpu, 8))
        .collect()
}

fn slots(places: &[Place], arms: usize, random: &mut SplitMix64) -> Vec<Slot> {
    let mut before = arms;
    let mut slots = Vec::new();
    for (number, place) in (0..).zip(places) {
        // A sum of four uniform numbers has variance 4/12.
        let normal = ((0..4).map(|_| random.next_f64()).sum::<f64>() - 2.0) * 3f64.sqrt();
        let own = if before == place.arm { -OWN } else { 0.0 };
        let cost = 1e4 * (own + DRIFT * f64::from(number) + NOISE * normal).exp();
        before = place.arm;
        if let Some(block) = place.block {
            let client_cpu_ns = (cost * 1000.0) as u64;
            slots.push(Slot {
                block,
                arm: place.arm as u32,
                operations: 1000,
                counted: 950,
                client_cpu_ns,
                ..Slot::default()
            });
        }
    }
    slots
}

/// Orders drawn separately for each block, as in an earlier version.
fn drawn(seed: u64, frame: u32, arms: usize) -> Vec<Place> {
    let of_block = |block| block_order(seed, frame.into(), block, arms).into_iter();
    let place = |block: u64| of_block(block).map(move |arm| Place { block: Some(block as u32), arm });
    (0..u64::from(BLOCKS)).flat_map(place).collect()
}

fn spread(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[test]
fn identical_arms_differ_as_often_as_they_may() {
    const DRAWN: u32 = 1000;
    for arms in [2, 3, 4, 5] {
        let arm = arms as u32 - 1;
        let wrong = (0..DRAWN).filter(|experiment| {
            let seed = u64::from(*experiment);
            let interval =
                infer(&effects(seed, arms, arm, |frame| frame_order(seed, frame, BLOCKS, arms)), 0.05).interval;
            interval.low > 0.0 || interval.high < 0.0
        });
        let wrong = wrong.count();
        // 5 % of 1,000 within three and a half standard errors.
        assert!((26..=74).contains(&wrong), "{arms} arms: {wrong} of {DRAWN}");
    }
}

#[test]
fn what_came_before_no_longer_widens_the_interval() {
    // The more arms there are, the less often a random order puts two slots of one arm together.
    for (arms, share) in [(2, 0.8), (3, 0.9), (4, 0.95)] {
        let all = |order: &dyn Fn(u64, u32) -> Vec<Place>| -> f64 {
            let effects: Vec<f64> =
                (0..40).flat_map(|seed| effects(seed, arms, 1, |frame| order(seed, frame))).collect();
            spread(&effects)
        };
        let (balanced, by_block) =
            (all(&|seed, frame| frame_order(seed, frame, BLOCKS, arms)), all(&|seed, frame| drawn(seed, frame, arms)));
        assert!(balanced < share * by_block, "{arms} arms: {balanced} against {by_block}");
    }
}
