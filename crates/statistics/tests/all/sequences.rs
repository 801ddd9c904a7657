//! When to check and to stop, how an answer is named, where a level changes, how starts are divided.

use tithe_model::schedule::SplitMix64;
use tithe_statistics::{
    allocation::VarianceComponents,
    change_points::{ChangePoint, SIDE_MIN, change_points, values_min},
    hosts::{UnitEffect, together},
    inference::{discoveries, holm, infer, sidak},
    interval::{Interval, Outcome},
    precision::{MIN_FRAMES, STOPPING_FACTOR, looks, may_stop_at, predict_more, stop_by_precision},
    random_effects::Unit,
    sides::{SideFrame, pair_effects},
    verdict::{digits, percent, verdict},
};

fn interval(estimate: f64, low: f64, high: f64) -> Interval {
    Interval { estimate, low, high }
}

#[test]
fn looks_are_about_a_fifth_apart_and_stops_are_among_them() {
    let first: Vec<usize> = looks().take(30).collect();
    assert!(first.windows(2).all(|pair| (1.15..1.26).contains(&(pair[1] as f64 / pair[0] as f64))), "{first:?}");
    let stops: Vec<usize> = (0..1000).filter(|frames| may_stop_at(*frames)).collect();
    assert_eq!(stops, looks().filter(|look| *look >= MIN_FRAMES).take_while(|look| *look < 1000).collect::<Vec<_>>());
    // They continue to the largest number.
    assert!(looks().last().is_some_and(|last| last > usize::MAX / 2));
    assert!(!may_stop_at(usize::MAX));
}

#[test]
fn a_measurement_stops_where_it_is_narrow_enough_and_not_before() {
    let effects: Vec<f64> = (0..60).map(|it| f64::from(it * 7 % 11)).collect();
    let at = |frames: usize| infer(&effects[..frames], STOPPING_FACTOR * 0.05).interval;
    let width = at(22).half_width();
    assert_eq!(stop_by_precision(&effects, width, 0.05), Some((22, at(22))));
    assert_eq!(stop_by_precision(&effects[..22], width, 0.05), Some((22, at(22))));
    assert_eq!(stop_by_precision(&effects[..21], width, 0.05), None);
    assert_eq!(stop_by_precision(&effects, 1e9, 0.05), Some((15, at(15))));
    assert_eq!(stop_by_precision(&effects[..14], 1e9, 0.05), None);
    assert_eq!(stop_by_precision(&effects, f64::NAN, 0.05), None);
}

#[test]
fn what_would_take_too_long_has_no_number() {
    assert_eq!(predict_more(&[1.0], 1.0, 1.0, 0.05), None);
    assert_eq!(predict_more(&[1.0, 1.0], 0.0, 7.0, 0.05), Some(0.0));
    // A half-width falls with the square root: a thousandth of the scatter takes more than a million values.
    let effects: Vec<f64> = (0..30).map(|it| f64::from(it % 3)).collect();
    let more = predict_more(&effects, 0.002, 1.0, 0.05).expect("below a million");
    assert!((5e5..1e6).contains(&more), "{more}");
    assert_eq!(predict_more(&effects, 0.001, 1.0, 0.05), None);
    assert_eq!(predict_more(&effects, f64::NAN, 1.0, 0.05), None);
    assert_eq!(predict_more(&[1.0, f64::NAN, 2.0], 1.0, 1.0, 0.05), None);
}

#[test]
fn intervals_move_by_their_ends() {
    let it = interval(2.0, -1.0, 6.0);
    assert_eq!(it.in_unit(4.0), interval(0.5, -0.25, 1.5));
    assert_eq!(it.half_width(), 3.5);
    assert_eq!(it.widened(4.0), interval(2.0, -3.0, 2.0 + 32.0_f64.sqrt()));
    assert_eq!(it.widened(0.0), it);
    assert_eq!(it.scaled(2.0), interval(2.0, -4.0, 10.0));
    assert_eq!([-1.0, 6.0, 0.0, -1.1, 6.1, f64::NAN].map(|at| it.holds(at)), [true, true, true, false, false, false]);
}

#[test]
fn an_interval_exceeds_what_none_of_its_effects_reaches_in_either_direction() {
    let exceeds = |low: f64, high: f64| [0.0, 1.0].map(|limit| interval(0.0, low, high).exceeds(limit));
    for (low, high, expected) in [
        (1.1, 2.0, [true, true]),
        (1.0, 2.0, [true, false]),
        (0.1, 2.0, [true, false]),
        (0.0, 2.0, [false, false]),
        (-0.1, 0.1, [false, false]),
        (f64::NEG_INFINITY, f64::INFINITY, [false, false]),
        (f64::NAN, f64::NAN, [false, false]),
    ] {
        assert_eq!(exceeds(low, high), expected, "{low} {high}");
        assert_eq!(exceeds(-high, -low), expected, "{low} {high}, exchanged");
    }
}

/// A p that is as small as the procedure asks is rejected: 0.05 / 2, 0.05 / 1.
#[test]
fn a_hypothesis_is_rejected_at_its_own_error() {
    assert_eq!(holm(&[0.05, 0.025], 0.05), [true; 2]);
    assert_eq!(holm(&[0.051, 0.025], 0.05), [false, true]);
    assert_eq!(holm(&[0.05, 0.026], 0.05), [false; 2]);
    assert_eq!(discoveries(&[0.05, 0.025], 0.05), [true; 2]);
    assert_eq!(discoveries(&[0.051, 0.025], 0.05), [false, true]);
}

#[test]
fn an_answer_is_called_by_where_its_interval_lies() {
    let say = |(estimate, low, high)| verdict(interval(estimate, low, high), 0.01, "cost");
    let ln = |percent: f64| (percent / 100.0).ln_1p();
    let of = |estimate, low, high| say((ln(estimate), ln(low), ln(high)));
    let (infinite, none) = (f64::INFINITY, f64::NAN);
    for (found, outcome, text) in [
        (of(3.12, 2.6, 37.0), Outcome::Costs, "costs 3.1 % [2.6, 37]"),
        (of(0.5, 0.2, 0.9), Outcome::Costs, "costs 0.50 % [0.20, 0.90] (below your margin)"),
        (of(-3.12, -37.0, -2.6), Outcome::Gains, "saves 3.1 % [2.6, 37]"),
        (of(0.1, -0.3, 0.9), Outcome::NoneFound, "no cost found, at most 0.90 %"),
        (of(-0.2, -0.3, 0.0), Outcome::NoneFound, "no cost found, at most 0.00 %"),
        (of(0.1, 0.0, 0.9), Outcome::NoneFound, "no cost found, at most 0.90 %"),
        (of(0.1, -0.3, 1.9), Outcome::TooNoisy, "too noisy to tell: between -0.30 % and 1.9 %"),
        (say((0.2, 0.1, infinite)), Outcome::TooNoisy, "too noisy to tell (not enough frames)"),
        (say((0.2, -infinite, -0.1)), Outcome::TooNoisy, "too noisy to tell (not enough frames)"),
        (say((none, none, none)), Outcome::TooNoisy, "too noisy to tell (not enough frames)"),
    ] {
        assert_eq!((found.0, found.1.replace('−', "-")), (outcome, text.to_owned()));
    }
    // The margin itself counts as no cost.
    assert_eq!(say((0.005, -0.01, 0.01)).0, Outcome::NoneFound);
    assert!(say((0.005, 0.001, 0.01)).1.ends_with("(below your margin)"));
    assert!((percent(0.01) - 1.005_016_708_416_805_6).abs() < 1e-12);
    assert_eq!([20.0, 19.99, 0.95, 0.949, 0.0].map(digits), ["20", "20.0", "0.9", "0.95", "0.00"].map(str::to_owned));
}

fn steps(values: &[f64]) -> Vec<ChangePoint> {
    let series: Vec<Unit> = values.iter().map(|value| Unit { effect: *value, variance: 0.0 }).collect();
    change_points(&series, 0.05)
}

#[test]
fn every_change_of_a_series_is_found_in_its_order() {
    let value = |place: usize| [0.0, 50.0, 20.0][place / 12] + (place * 5 % 7) as f64 / 7.0;
    let values: Vec<f64> = (0..36).map(value).collect();
    let found = steps(&values);
    assert_eq!(found.iter().map(|it| it.place).collect::<Vec<_>>(), [12, 24]);
    // The smallest p that is possible with 2,000 orders.
    assert!(found.iter().all(|it| it.p == 1.0 / 2001.0), "{found:?}");
    let backward: Vec<f64> = values.iter().rev().copied().collect();
    assert_eq!(steps(&backward).iter().map(|it| it.place).collect::<Vec<_>>(), [12, 24]);
}

#[test]
fn the_shortest_side_has_three_values() {
    let step = |before: usize, after: usize| {
        let value = |place: usize| if place < before { 0.0 } else { 100.0 } + (place * 3 % 5) as f64;
        steps(&(0..before + after).map(value).collect::<Vec<_>>()).iter().map(|it| it.place).collect::<Vec<_>>()
    };
    assert_eq!(step(SIDE_MIN, 9), [SIDE_MIN]);
    assert_eq!(step(9, SIDE_MIN), [9]);
    assert!(!step(2, 10).contains(&2) && !step(10, 2).contains(&10));
}

/// By counting all orders: eight values in two halves have 70, of which two show the step as clearly.
#[test]
fn p_of_a_step_is_the_share_of_orders_that_are_as_clear() {
    let found = steps(&[1.0, 2.0, 3.0, 4.0, 90.0, 91.0, 92.0, 93.0]);
    assert_eq!(found.len(), 1);
    // 2,000 orders with probability 2/70: 57, and four standard deviations of 7.5.
    assert!((found[0].p - 2.0 / 70.0).abs() < 0.015, "{found:?}");
    assert_eq!(
        [2.0 / 20.0, 2.0 / 21.0, 0.05, 2.0 / 252.0, 1e-6, 0.9e-6].map(values_min),
        [6, 7, 8, 10, 24, usize::MAX]
    );
}

/// Every order of equal values is as clear as theirs. Of equally clear splits the first one counts.
#[test]
fn equal_values_have_a_p_of_one() {
    let series = [Unit { effect: 0.0, variance: 1.0 }; 8];
    assert_eq!(change_points(&series, 1.0), [ChangePoint { place: SIDE_MIN, p: 1.0 }]);
    assert_eq!(change_points(&series, 0.99), []);
}

#[test]
fn weights_are_of_the_inverse_variance() {
    // Nine values at 0 and nine at 1. If the late ones are very imprecise, no change is found.
    let series = |variance: f64| -> Vec<Unit> {
        let value = |place: usize| f64::from(u8::from(place >= 9)) + 0.1 * ((place * 5 % 7) as f64 - 3.0);
        (0..18).map(|place| Unit { effect: value(place), variance: if place < 9 { 0.01 } else { variance } }).collect()
    };
    assert_eq!(change_points(&series(0.01), 0.05).iter().map(|it| it.place).collect::<Vec<_>>(), [9]);
    assert_eq!(change_points(&series(9.0), 0.05), []);
}

/// Another unit of the values gives the same places and the same p.
#[test]
fn the_unit_of_values_and_errors_does_not_matter() {
    let mut random = SplitMix64::new(5);
    let mut found = 0;
    for _ in 0..20 {
        let unit = |place: u32| {
            let error = 0.1 + 2.0 * random.next_f64().powi(3);
            let effect = f64::from(place / 7) + error * (random.next_f64() - 0.5);
            Unit { effect, variance: error * error }
        };
        let series: Vec<Unit> = (0..14).map(unit).collect();
        let scaled = |unit: &Unit| Unit { effect: 16.0 * unit.effect, variance: 256.0 * unit.variance };
        let other = change_points(&series.iter().map(scaled).collect::<Vec<_>>(), 0.05);
        let of = |changes: &[ChangePoint]| changes.iter().map(|it| (it.place, it.p)).collect::<Vec<_>>();
        assert_eq!(of(&other), of(&change_points(&series, 0.05)));
        found += other.len();
    }
    assert!(found > 5, "{found}");
}

#[test]
fn starts_are_as_many_as_frames_have_room_for() {
    let seen = VarianceComponents { within: 9.0, between: 1.0, start_s: 4.0, frame_s: 1.0 };
    assert_eq!(seen.frames_per_start(), 6.0);
    assert_eq!([0, 3, 20, 21, 600].map(|frames| seen.starts(frames, 2, 50)), [2, 2, 3, 4, 50].map(Some));
    // A start has at least one frame.
    let dear = VarianceComponents { start_s: 1e-9, ..seen };
    assert_eq!(dear.starts(30, 2, 50), Some(30));
}

/// Intervals have their nominal coverage: for normal effects with an error of 5 %, and with 5 % over three of them at
/// once.
#[test]
fn intervals_hold_as_often_as_they_say() {
    let mut random = SplitMix64::new(11);
    let mut normal = move || {
        let [one, other] = [random.next_f64(), random.next_f64()];
        (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    };
    for (frames, comparisons) in [(6, 1), (24, 1), (24, 3)] {
        let alpha = sidak(0.05, comparisons);
        let mut holds = || infer(&(0..frames).map(|_| 0.3 + normal()).collect::<Vec<_>>(), alpha).interval.holds(0.3);
        let missed = (0..2000).filter(|_| !(0..comparisons).all(|_| holds())).count();
        // 100 of 2,000 are expected; four standard deviations are 39.
        assert!((61..=139).contains(&missed), "{frames} {comparisons}: {missed}");
    }
    let mut holds = || {
        let next = 0.1 + normal() * 0.2;
        let unit =
            |_| UnitEffect { effect: 0.1 + normal() * 0.2 + normal() * 0.1, variance: 0.01, degrees: f64::INFINITY };
        let units: Vec<UnitEffect> = (0..8).map(unit).collect();
        let found = together(&units, 0.05).expect("eight hosts");
        (found.effect.holds(0.1), found.next.expect("of eight").holds(next), found.spread.holds(0.2))
    };
    let trials: Vec<(bool, bool, bool)> = (0..1000).map(|_| holds()).collect();
    for missed in [
        trials.iter().filter(|it| !it.0).count(),
        trials.iter().filter(|it| !it.1).count(),
        trials.iter().filter(|it| !it.2).count(),
    ] {
        assert!((15..=85).contains(&missed), "{missed} of 1000");
    }
}

#[test]
fn sides_of_other_arms_are_no_part_of_a_pair() {
    let frame = |pair: u32, arm: u32, cost: f64| SideFrame { pair, arm, cost };
    let effects =
        pair_effects([frame(4, 1, 6.0), frame(4, 2, 900.0), frame(4, 0, 3.0), frame(5, 1, 2.0), frame(5, 2, 1.0)]);
    assert_eq!(effects.iter().map(|it| (it.start, it.effect)).collect::<Vec<_>>(), [(4, 6.0_f64.ln() - 3.0_f64.ln())]);
}
