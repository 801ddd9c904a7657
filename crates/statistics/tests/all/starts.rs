//! Which starts give an interval, and what is known of their spread from other runs.

use proptest::{collection::vec, prelude::*};
use tithe_model::{
    experiment::Metric,
    start_spread::{CostSpread, StartSpread},
};
use tithe_statistics::{
    distribution::t_upper,
    hosts::{UnitEffect, together},
    inference::infer,
    order::signed_rank_p,
    precision::confidence_sequence,
    starts::{CostShare, IntervalOptions, KnownSpread, OverStarts, StartEffect, infer_over_starts},
};

const KNOWN: KnownSpread = KnownSpread { spread: 0.02, degrees: 6.0, of_cost: None };

fn asked(by_decision: bool) -> IntervalOptions {
    IntervalOptions { alpha: 0.05, by_decision, known: Some(KNOWN) }
}

/// `count` effects, assigned to `starts` starts in turn.
fn effects(count: u32, starts: u32) -> Vec<StartEffect> {
    let effect = |it: u32| StartEffect { start: it % starts, effect: 0.1 + 0.01 * f64::from(it * 5 % 7) };
    (0..count).map(effect).collect()
}

fn values(effects: &[StartEffect]) -> Vec<f64> {
    effects.iter().map(|it| it.effect).collect()
}

#[test]
fn frames_with_a_start_each_carry_the_inference_by_themselves() {
    for count in [2, 3, 4, 15, 40] {
        let effects = effects(count, count);
        let found = infer_over_starts(&effects, asked(false));
        let expected = infer(&values(&effects), 0.05);
        assert_eq!((found.p, found.starts), (signed_rank_p(&expected.merged), count as usize));
        assert_eq!((found.count, found.widened, found.spread, found.within), (count as usize, false, None, None));
        assert_eq!(found.inference, expected);
    }
    let slow: Vec<StartEffect> = (0..40).map(|it| StartEffect { start: it, effect: f64::from(it) }).collect();
    let found = infer_over_starts(&slow, asked(false));
    // Consecutive values are averaged while more than seven pairs would be left; an incomplete pair is dropped.
    assert_eq!((found.inference.batch, found.inference.merged.len(), found.count), (4, 10, 40));
    assert!(found.trend_p < 1e-9);
}

#[test]
fn an_interval_that_was_looked_at_all_the_time_is_a_confidence_sequence() {
    let many = effects(15, 15);
    let found = infer_over_starts(&many, asked(true));
    assert_eq!(found.inference.interval, confidence_sequence(&values(&many), 0.05));
    let by_starts = infer_over_starts(&effects(30, 5), asked(true));
    assert_eq!(by_starts.inference.interval, confidence_sequence(&by_starts.inference.merged, 0.05));
    let one = infer_over_starts(&effects(15, 1), asked(true)).inference.interval;
    let sequence = confidence_sequence(&values(&effects(15, 1)), 0.05);
    let wider = sequence.half_width().hypot(t_upper(0.025, 6.0) * 0.02);
    assert!((one.half_width() / wider - 1.0).abs() < 1e-9, "{one:?}");
}

/// One frame says nothing of another one, and one start nothing of another start.
#[test]
fn one_frame_is_one_of_few_starts() {
    let found = infer_over_starts(&effects(1, 1), asked(false));
    assert_eq!((found.count, found.starts, found.widened, found.known_degrees), (1, 1, true, Some(6.0)));
    assert_eq!((found.inference.interval.estimate, found.p), (0.1, 1.0));
    assert!(found.inference.interval.half_width().is_infinite());
    let none = infer_over_starts(&[], asked(false));
    assert_eq!((none.widened, none.known_degrees), (false, None));
}

/// A slow wave over forty frames of two starts: pairs are averaged until few enough are left, and all of them count.
#[test]
fn frames_that_are_averaged_count_each_on_few_starts() {
    let frame = |it: u32| StartEffect { start: it / 20, effect: f64::from(it % 20) };
    let found = infer_over_starts(&(0..40).map(frame).collect::<Vec<_>>(), asked(false));
    let (batch, merged) = (found.inference.batch, found.inference.merged.len());
    assert!(batch > 1, "nothing was averaged");
    assert_eq!((found.count, batch * merged, found.starts), (40, 40, 2));
}

#[test]
fn what_is_not_finite_is_left_out() {
    let good = effects(24, 4);
    let mut bad = good.clone();
    for (place, effect) in [(0, f64::NAN), (5, f64::INFINITY), (11, f64::NEG_INFINITY)] {
        bad.insert(place, StartEffect { start: 9, effect });
    }
    assert_eq!(infer_over_starts(&bad, asked(false)), infer_over_starts(&good, asked(false)));
    let OverStarts { inference, count, starts, p, .. } = infer_over_starts(&[], asked(false));
    assert_eq!((count, starts, p), (0, 0, 1.0));
    assert_eq!((inference.interval.low, inference.interval.high), (f64::NEG_INFINITY, f64::INFINITY));
}

#[test]
fn starts_without_any_scatter_have_the_p_of_ranks() {
    let alike: Vec<StartEffect> = (0..10).map(|it| StartEffect { start: it % 5, effect: 0.1 }).collect();
    let found = infer_over_starts(&alike, asked(false));
    assert_eq!((found.p, found.count, found.starts), (signed_rank_p(&[0.1; 5]), 10, 5));
}

#[test]
fn a_spread_that_is_known_widens_by_the_starts_shares() {
    let once = t_upper(0.025, 6.0) * 0.02;
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    near(KNOWN.widening(1, 0.05), once);
    near(KNOWN.widening(0, 0.05), once);
    near(KNOWN.widening(4, 0.05), once / 2.0);
    near(KNOWN.widening_over(&[3, 3, 3, 3], 0.05), once / 2.0);
    near(KNOWN.widening_over(&[4, 2, 2], 0.05), once * 0.375_f64.sqrt());
}

#[test]
fn a_cost_adds_its_share_by_variances_and_degrees_by_satterthwaite() {
    let of_cost = CostShare { share: 0.1, degrees: 5.0, level: None };
    let known = KnownSpread { of_cost: Some(of_cost), ..KNOWN };
    // For an effect of 0.3: 0.03, and (0.0004 + 0.0009)² ÷ (0.0004² ÷ 6 + 0.0009² ÷ 5).
    for effect in [0.3, -0.3] {
        let found = known.at_cost(effect);
        assert!((found.spread - 0.0013_f64.sqrt()).abs() < 1e-15, "{found:?}");
        assert!((found.degrees - 0.0013_f64.powi(2) / (1.6e-7 / 6.0 + 8.1e-7 / 5.0)).abs() < 1e-9, "{found:?}");
        assert_eq!(found.of_cost, None);
    }
    // An amount of 4 at a level of 10: ln(10 / 6) of the level.
    let at = |level: f64| KnownSpread { of_cost: Some(CostShare { level: Some(level), ..of_cost }), ..KNOWN };
    let spread = |known: KnownSpread, effect: f64| (known.at_cost(effect).spread.powi(2) - 0.0004).sqrt();
    assert!((spread(at(10.0), 4.0) - (10.0_f64 / 6.0).ln()).abs() < 1e-12);
    assert!((spread(at(10.0), -4.0) - (14.0_f64 / 10.0).ln()).abs() < 1e-12);
    // If that ratio does not exist, the share of the effect is used.
    for (level, effect) in [(10.0, 10.0), (10.0, 11.0), (0.0, -4.0), (-1.0, -4.0)] {
        assert!((spread(at(level), effect) - 0.1 * effect.abs()).abs() < 1e-12, "{level} {effect}");
    }
}

#[test]
fn an_amount_has_the_spread_of_its_level() {
    let of_cost = Some(CostShare { share: 0.1, degrees: 5.0, level: None });
    let options = IntervalOptions { known: Some(KnownSpread { of_cost, ..KNOWN }), ..asked(true) };
    let found = options.at_level(50.0);
    assert_eq!((found.alpha, found.by_decision), (0.05, true));
    let known = found.known.expect("it is known");
    assert_eq!((known.spread, known.degrees), (1.0, 6.0));
    assert_eq!(known.of_cost, Some(CostShare { share: 0.1, degrees: 5.0, level: Some(50.0) }));
    assert_eq!(options.at_level(-3.0).known.map(|it| it.spread), Some(0.0));
    assert_eq!(IntervalOptions { known: None, ..options }.at_level(50.0).known, None);
}

#[test]
fn what_is_known_is_that_of_the_metric() {
    let line = |metric, spread| StartSpread { metric, spread, degrees: 3.0, source: String::new() };
    let lines = [line(Metric::Net, 0.01), line(Metric::Cpu, 0.0)];
    let of = |metric| KnownSpread::of_metric(&lines, metric);
    assert_eq!(of(Metric::Net), Some(KnownSpread { spread: 0.01, degrees: 3.0, of_cost: None }));
    assert_eq!(of(Metric::Cpu), None);
    let costs = CostSpread { share: 0.2, degrees: 9.0, source: String::new() };
    let with = KNOWN.with_costs(Some(&costs));
    assert_eq!(with.of_cost, Some(CostShare { share: 0.2, degrees: 9.0, level: None }));
    assert_eq!((with.spread, with.degrees), (KNOWN.spread, KNOWN.degrees));
    assert_eq!(with.with_costs(None), KNOWN);
}

/// The p of a widened interval and the interval agree about no effect.
#[test]
fn p_is_below_the_error_where_the_interval_excludes_zero() {
    for (centre, known) in [(0.3, 0.02), (0.3, 0.2), (-0.3, 0.02), (-0.3, 0.2), (0.0, 0.1)] {
        let frame = |it: u32| StartEffect { start: it % 2, effect: centre + 0.01 * f64::from(it * 5 % 7) - 0.03 };
        let options = IntervalOptions { known: Some(KnownSpread { spread: known, ..KNOWN }), ..asked(false) };
        let found = infer_over_starts(&(0..14).map(frame).collect::<Vec<_>>(), options);
        let interval = found.inference.interval;
        assert_eq!(found.p <= 0.05, !interval.holds(0.0), "{centre} {known} {found:?}");
        assert_eq!((found.known_degrees, found.starts, found.count), (Some(6.0), 2, 14));
    }
}

proptest! {
    /// Exchanging the arms changes signs and swaps the ends; everything else stays.
    #[test]
    fn exchanging_the_arms_turns_the_sign(
        values in vec(-0.1..0.1f64, 1..40),
        starts in 1..40u32,
        by_decision in any::<bool>(),
    ) {
        let effects = |sign: f64| {
            let place = |(place, value): (u32, &f64)| StartEffect { start: place % starts, effect: sign * value };
            infer_over_starts(&(0..).zip(&values).map(place).collect::<Vec<_>>(), asked(by_decision))
        };
        let (one, other) = (effects(1.0), effects(-1.0));
        let near = |one: f64, other: f64| one == other || (one - other).abs() <= 1e-9 * one.abs().max(1e-3);
        let [a, b] = [&one, &other].map(|it| it.inference.interval);
        prop_assert!(near(a.estimate, -b.estimate) && near(a.low, -b.high) && near(a.high, -b.low), "{:?} {:?}", a, b);
        prop_assert!(near(one.p, other.p) && near(one.trend_p, other.trend_p), "{:?} {:?}", one, other);
        prop_assert_eq!((one.count, one.starts, one.widened), (other.count, other.starts, other.widened));
        prop_assert!(a.low <= a.estimate && a.estimate <= a.high, "{:?}", a);
    }

    /// Equally precise hosts, in any order: Student's interval about their mean, and one for the next host.
    #[test]
    fn equally_sure_hosts_are_in_students_interval(effects in vec(-0.1..0.1f64, 5..12)) {
        let unit = |effect: &f64| UnitEffect { effect: *effect, variance: 1e-12, degrees: f64::INFINITY };
        let found = together(&effects.iter().map(unit).collect::<Vec<_>>(), 0.1).expect("five hosts");
        let n = effects.len() as f64;
        let error = (tithe_statistics::variance(&effects) / n).sqrt();
        let half = t_upper(0.05, n - 1.0) * error;
        prop_assert!((found.effect.half_width() / half - 1.0).abs() < 1e-3, "{:?} {}", found, half);
        let next = t_upper(0.05, n - 2.0) * error * (n + 1.0).sqrt();
        let told = found.next.expect("of five").half_width();
        prop_assert!((told / next - 1.0).abs() < 1e-3, "{} {}", told, next);
    }
}
