//! Percentiles: which frames make a group, and the results of groups.

use tithe_model::histogram::Histogram;
use tithe_statistics::{
    percentile::{
        MIN_GROUPS, Pair, Samples, group_frames, pooled, quantile_difference, quantile_effect, quantile_ratio,
    },
    starts::{IntervalOptions, StartEffect, infer_over_starts},
};

const ASKED: IntervalOptions = IntervalOptions { alpha: 0.05, by_decision: false, known: None };

/// Groups of frames given as start, samples of the plain and of the protected arm; ten samples above the median needed.
fn groups(frames: &[(u32, u64, u64)]) -> Vec<(usize, usize)> {
    let frame = |&(start, plain, protected): &(u32, u64, u64)| Samples { start, count: (plain, protected) };
    group_frames(&frames.iter().map(frame).collect::<Vec<_>>(), 0.5, 10.0)
}

#[test]
fn a_group_has_enough_samples_of_both_arms() {
    assert_eq!(groups(&[]), []);
    assert_eq!(groups(&[(0, 19, 90)]), []);
    assert_eq!(groups(&[(0, 90, 19)]), []);
    assert_eq!(groups(&[(0, 20, 20)]), [(0, 0)]);
    // Samples of one group do not count for the next.
    assert_eq!(groups(&[(0, 15, 30), (0, 5, 30), (0, 20, 20)]), [(0, 1), (2, 2)]);
    assert_eq!(groups(&[(0, 30, 15), (0, 30, 5), (0, 20, 20)]), [(0, 1), (2, 2)]);
}

#[test]
fn a_group_lies_within_a_start_or_is_of_whole_starts() {
    let frame = |start: u32| (start, 10, 10);
    // The rest of a start belongs to the previous group of the same start.
    assert_eq!(groups(&[frame(0), frame(0), frame(0)]), [(0, 2)]);
    assert_eq!(groups(&[frame(0), frame(0), frame(0), frame(1), frame(1)]), [(0, 2), (3, 4)]);
    // Starts that are too short alone form one group together, which ends where a start ends.
    assert_eq!(groups(&[frame(0), frame(1)]), [(0, 1)]);
    assert_eq!(groups(&[frame(0), frame(1), frame(1)]), [(0, 2)]);
    assert_eq!(groups(&[frame(0), frame(1), frame(1), frame(2)]), [(0, 2)]);
    // A group of several starts takes no further start.
    assert_eq!(groups(&[frame(0), frame(1), frame(2), frame(3), frame(4)]), [(0, 1), (2, 3)]);
    // A group of several starts takes no part of a start either: the rest of a later start is dropped.
    assert_eq!(groups(&[frame(0), frame(0), frame(1)]), [(0, 1)]);
    // After a group of this start, the rest is a group if it is long enough.
    assert_eq!(groups(&[(0, 25, 25), frame(0), frame(0), (1, 20, 20)]), [(0, 0), (1, 2), (3, 3)]);
}

/// Frames of two arms: each has a hundred values from `level` µs on; the protected arm's are higher by a share.
fn histograms(count: u32) -> Vec<(u32, Histogram, Histogram)> {
    let of = |level: u64| {
        let mut histogram = Histogram::default();
        (0..100).for_each(|value| histogram.record(1000 * (level + value)));
        histogram
    };
    let frame = |frame: u32| (frame, of(50), of(60 + u64::from(frame % 7)));
    (0..count).map(frame).collect()
}

fn paired(frames: &[(u32, Histogram, Histogram)]) -> Vec<Pair<'_>> {
    frames.iter().map(|(start, plain, protected)| Pair { start: *start, plain, protected }).collect()
}

#[test]
fn each_group_is_one_value_and_too_few_have_no_ends() {
    let histograms = histograms(2 * MIN_GROUPS as u32);
    let frames = paired(&histograms);
    // For the 75 % quantile, 200 samples leave 50 beyond it.
    let of_group = |group: &[Pair<'_>]| {
        let [plain, protected] = [|pair: &Pair<'_>| pair.plain.clone(), |pair: &Pair<'_>| pair.protected.clone()].map(
            |arm: fn(&Pair<'_>) -> Histogram| {
                let all: Vec<Histogram> = group.iter().map(arm).collect();
                pooled(all.iter()).quantile(0.75).expect("samples")
            },
        );
        ((protected / plain).ln(), protected - plain)
    };
    let whole = &frames[..];
    let (ratios, differences): (Vec<f64>, Vec<f64>) = whole.chunks(2).map(of_group).unzip();
    let (ratio, difference) = (quantile_effect(whole, 0.75, ASKED), quantile_difference(whole, 0.75, ASKED));
    for (found, values) in [(&ratio, &ratios), (&difference, &differences)] {
        let values = values.iter().zip(0..).map(|(effect, start)| StartEffect { start, effect: *effect });
        let expected = infer_over_starts(&values.collect::<Vec<_>>(), ASKED);
        assert_eq!((found.inference.clone(), found.count), (expected.inference, MIN_GROUPS));
        assert_eq!((found.p, found.starts), (expected.p, whole.len()));
        assert!(found.inference.interval.half_width().is_finite());
    }
    assert!(ratios.iter().all(|ratio| (0.0..0.2).contains(ratio)), "{ratios:?}");
    assert!(differences.iter().all(|it| (9_000.0..18_000.0).contains(it)), "{differences:?}");
    assert_eq!(quantile_ratio(&whole[..2], 0.75), Some(ratios[0]));

    let fewer = quantile_effect(&whole[..whole.len() - 3], 0.75, ASKED);
    assert_eq!((fewer.inference.interval.low, fewer.inference.interval.high), (f64::NEG_INFINITY, f64::INFINITY));
    let mut sorted = ratios[..6].to_vec();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(fewer.inference.interval.estimate, (sorted[2] + sorted[3]) / 2.0);
    assert_eq!((fewer.count, fewer.starts, fewer.widened, fewer.p.is_nan(), fewer.trend_p), (6, 0, false, true, 1.0));
    assert!(quantile_effect(&[], 0.75, ASKED).inference.interval.estimate.is_nan());
}

#[test]
fn an_arm_without_samples_has_no_ratio() {
    let (some, none) = (&histograms(1)[0].1, &Histogram::default());
    let ratio = |plain, protected| quantile_ratio(&[Pair { start: 0, plain, protected }], 0.5);
    assert_eq!([ratio(some, none), ratio(none, some), ratio(none, none)], [None; 3]);
    assert_eq!(ratio(some, some), Some(0.0));
}
