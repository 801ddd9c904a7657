//! Laws that hold for all numbers.

use proptest::{collection::vec, prelude::*};
use tithe_analysis::Interval;
use tithe_model::{
    experiment::Metric,
    histogram::{Histogram, bounds, index},
    record::Slot,
};
use tithe_statistics::{
    inference::{infer, t_interval},
    order::{hodges_lehmann, median_interval, midmean},
    pairing::{Spent, frame_difference, frame_effect, ratio_effect, total_difference},
    percentile::{Pair, pooled, quantile_difference, quantile_effect},
    starts::IntervalOptions,
};

fn effects() -> impl Strategy<Value = Vec<f64>> {
    vec(-1.0..1.0f64, 1..60)
}

/// Costs of pairs of slots: plain, protected.
fn costs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    vec((10_000..90_000u64, 10_000..90_000u64), 1..30)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// Is `b` the result for the swapped arms if `a` is the result for the arms?
fn mirrored(a: Interval, b: Interval) -> bool {
    close(a.estimate, -b.estimate) && close(a.low, -b.high) && close(a.high, -b.low)
}

/// Slots of one frame: two arms, blocks of two lanes, costs as given.
fn frame(costs: &[(u64, u64)]) -> Vec<Slot> {
    let slot = |place: usize, arm: u32, cost: u64| Slot {
        block: place as u32 / 2,
        lane: place as u32 % 2,
        arm,
        operations: 100,
        counted: 95,
        wall_ns: cost * 100,
        latency_sum_ns: cost * 95,
        client_cpu_ns: cost * 30,
        server_cpu_ns: cost * 50,
        wait_ns: cost * 10,
        stalled_ns: Some(cost * 10),
        ..Slot::default()
    };
    costs.iter().enumerate().flat_map(|(i, (plain, protected))| [slot(i, 0, *plain), slot(i, 1, *protected)]).collect()
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

proptest! {
    #[test]
    fn swapping_the_arms_turns_the_sign(effects in effects()) {
        let swapped: Vec<f64> = effects.iter().map(|effect| -effect).collect();
        prop_assert!(mirrored(infer(&effects, 0.05).interval, infer(&swapped, 0.05).interval));
        prop_assert!(close(midmean(&effects), -midmean(&swapped)));
    }

    #[test]
    fn swapping_the_arms_of_slots_turns_the_sign(costs in costs()) {
        let slots = frame(&costs);
        for metric in [Metric::Time, Metric::Net, Metric::Cpu, Metric::ClientCpu, Metric::ServerCpu] {
            let there = frame_effect(&slots, 0, 1, metric, 1).expect("every slot counts");
            let back = frame_effect(&slots, 1, 0, metric, 1).expect("every slot counts");
            prop_assert!(close(there, -back), "{} {}", there, back);
            let there = frame_difference(&slots, 0, 1, metric, 1).expect("every slot counts");
            let back = frame_difference(&slots, 1, 0, metric, 1).expect("every slot counts");
            prop_assert!(close(there, -back), "{} {}", there, back);
        }
        let spent: Vec<_> = costs.iter().map(|(a, b)| (of(*a, 100), of(*b, 100))).collect();
        let swapped: Vec<_> = spent.iter().map(|(a, b)| (*b, *a)).collect();
        prop_assert!(mirrored(ratio_effect(&spent, 0.05), ratio_effect(&swapped, 0.05)));
        prop_assert!(mirrored(total_difference(&spent, 0.05), total_difference(&swapped, 0.05)));
    }

    #[test]
    fn a_machine_that_is_slower_by_a_factor_has_differences_larger_by_it(costs in costs(), slower in 2..9u64) {
        let slowed: Vec<_> = costs.iter().map(|(a, b)| (a * slower, b * slower)).collect();
        for metric in [Metric::Time, Metric::Net, Metric::Cpu] {
            let difference = |costs| frame_difference(&frame(costs), 0, 1, metric, 1).expect("every slot counts");
            prop_assert!(close(difference(&costs) * slower as f64, difference(&slowed)));
        }
        let spent = |costs: &[(u64, u64)]| costs.iter().map(|(a, b)| (of(*a, 100), of(*b, 100))).collect::<Vec<_>>();
        let (once, slowed) = (total_difference(&spent(&costs), 0.05), total_difference(&spent(&slowed), 0.05));
        let factor = slower as f64;
        prop_assert!(close(factor * once.estimate, slowed.estimate) && close(factor * once.low, slowed.low));
    }

    #[test]
    fn a_slower_machine_changes_nothing(costs in costs(), slower in 2..9u64) {
        let slowed: Vec<_> = costs.iter().map(|(a, b)| (a * slower, b * slower)).collect();
        let effect = |costs| frame_effect(&frame(costs), 0, 1, Metric::Net, 1).expect("every slot counts");
        prop_assert!(close(effect(&costs), effect(&slowed)));
    }

    #[test]
    fn intervals_scale_and_shift_with_the_effects(effects in effects(), factor in 0.01..9.0f64, shift in -1.0..1.0f64) {
        let moved: Vec<f64> = effects.iter().map(|effect| factor * effect + shift).collect();
        let (a, b) = (hodges_lehmann(&effects, 0.05), hodges_lehmann(&moved, 0.05));
        prop_assert!(close(factor * a.estimate + shift, b.estimate));
        prop_assert!(close(factor * a.low + shift, b.low) && close(factor * a.high + shift, b.high));
    }

    #[test]
    fn the_interval_holds_its_estimate(effects in effects(), alpha in 0.001..0.5f64) {
        for interval in [
            infer(&effects, alpha).interval,
            hodges_lehmann(&effects, alpha),
            t_interval(&effects, alpha),
            median_interval(&effects, alpha),
        ] {
            prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high, "{:?}", interval);
        }
    }

    #[test]
    fn more_confidence_is_never_narrower(effects in effects(), alpha in 0.001..0.4f64, factor in 0.1..1.0f64) {
        for interval in [hodges_lehmann, t_interval, median_interval] {
            let (wide, narrow) = (interval(&effects, alpha * factor), interval(&effects, alpha));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high, "{:?} {:?}", wide, narrow);
        }
    }

    #[test]
    fn merging_histograms_commutes(a in vec(0..1u64 << 40, 0..50), b in vec(0..1u64 << 40, 0..50)) {
        let (first, second) = (histogram(&a), histogram(&b));
        let (ab, ba) = (pooled([&first, &second].into_iter()), pooled([&second, &first].into_iter()));
        let all: Vec<u64> = a.iter().chain(&b).copied().collect();
        prop_assert!(ab.buckets().eq(ba.buckets()));
        prop_assert!(ab.buckets().eq(histogram(&all).buckets()));
        prop_assert_eq!(ab.total(), all.len() as u64);
    }

    #[test]
    fn a_bucket_holds_its_values_and_is_narrow(value in 0..1u64 << 63, shift in 0..63) {
        // Shifted by a random amount, so that small values are as frequent as large ones.
        let value = value >> shift;
        let (low, high) = bounds(index(value));
        prop_assert!(low <= value && value < high);
        prop_assert!(high - low <= 1 || (high - low) as f64 <= low as f64 / 127.0);
    }

    #[test]
    fn a_quantile_lies_in_the_bucket_of_its_rank(mut values in vec(0..1u64 << 40, 1..200), share in 0.001..1.0f64) {
        let quantile = histogram(&values).quantile(share).expect("not empty");
        values.sort_unstable();
        let rank = (share * values.len() as f64).ceil() as usize;
        let (low, high) = bounds(index(values[rank - 1]));
        prop_assert!(low as f64 <= quantile && quantile <= high as f64, "{} not in {}..{}", quantile, low, high);
    }

    #[test]
    fn swapping_the_arms_turns_the_sign_of_percentiles(seed in 0..1000u64) {
        let latency = |i: u64, salt: u64| 10_000 + (seed * 31 + i * i * 7 + salt) % 9001;
        let sample = |salt: u64| histogram(&(0..200).map(|i| latency(i, salt)).collect::<Vec<_>>());
        let frames: Vec<_> = (0..20).map(|frame| (sample(frame), sample(frame * frame + 5))).collect();
        // Frames on starts of their own, and four on each start.
        for frames_each in [1, 4] {
            let starts = (0..).map(|frame: u32| frame / frames_each);
            let numbered = || starts.clone().zip(&frames);
            let pairs: Vec<_> =
                numbered().map(|(start, (a, b))| Pair { start, plain: a, protected: b }).collect();
            let swapped: Vec<_> =
                numbered().map(|(start, (a, b))| Pair { start, plain: b, protected: a }).collect();
            let asked = IntervalOptions { alpha: 0.05, by_decision: false, known: None };
            let (there, back) = (quantile_effect(&pairs, 0.5, asked), quantile_effect(&swapped, 0.5, asked));
            prop_assert!(mirrored(there.inference.interval, back.inference.interval));
            let there = quantile_difference(&pairs, 0.5, asked);
            let back = quantile_difference(&swapped, 0.5, asked);
            prop_assert!(mirrored(there.inference.interval, back.inference.interval));
        }
    }
}

fn of(cost: u64, operations: u64) -> Spent {
    Spent { cost: cost as f64, operations: operations as f64 }
}
