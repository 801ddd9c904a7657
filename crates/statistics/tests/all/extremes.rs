//! For all numbers: every function ends, and unknown values never make an interval narrow.

use tithe_statistics::{
    change_points::{change_points, values_min},
    distribution::{binomial_quantile, chi_squared_upper, normal_tail, normal_upper, t_two_sided, t_upper},
    hosts::{UnitEffect, combined, together},
    inference::{discoveries, holm, holm_adjusted, infer, lag1, t_interval, trend_p},
    interval::Interval,
    order::{
        hodges_lehmann, median_interval, midmean, order_statistic_ranks, quantile7, signed_rank_cut, signed_rank_p,
    },
    percentile::{Samples, group_frames},
    persistence::Persistence,
    precision::{confidence_sequence, predict_more, stop_by_precision},
    random_effects::{Errors, Unit, pooled},
    saturation::saturation,
    starts::{IntervalOptions, KnownSpread, StartEffect, infer_over_starts},
    verdict::verdict,
};

const STRANGE: [f64; 14] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    0.0,
    -0.0,
    -1.0,
    1.0,
    1e17,
    -1e300,
    0.05,
];

/// Lists of four values: two usual ones and every pair of strange ones.
fn lists() -> impl Iterator<Item = Vec<f64>> {
    STRANGE.iter().flat_map(|one| STRANGE.iter().map(|other| vec![0.1, *one, 0.3, *other]))
}

/// The estimate lies between the ends, as far as they are known.
fn ordered(Interval { estimate, low, high }: Interval) -> bool {
    [(low, high), (low, estimate), (estimate, high)].iter().all(|(one, other)| one <= other || (one - other).is_nan())
}

/// A probability, or unknown.
fn chance(p: f64) -> bool {
    p.is_nan() || (0.0..=1.0).contains(&p)
}

#[test]
fn distributions_end() {
    for one in STRANGE {
        assert!(chance(normal_tail(one)), "{one}");
        assert!(normal_upper(one) >= 0.0, "{one}");
        for other in STRANGE {
            let share = t_two_sided(one, other);
            assert!(chance(share), "{one} {other}: {share}");
            let _ = (t_upper(one, other), chi_squared_upper(one, other));
            for trials in [0, 1, 1000, u64::MAX >> 12] {
                assert!(binomial_quantile(one, trials, other) <= trials);
                assert!(order_statistic_ranks(trials, one, other).is_none_or(|(_, high)| high <= trials));
            }
        }
        // The quantile of an unknown or impossible tail is infinite.
        assert_eq!(t_upper(f64::NAN, 5.0), f64::INFINITY);
        assert_eq!([normal_upper(-1.0), chi_squared_upper(-1.0, 3.0), t_upper(-0.1, 3.0)], [f64::INFINITY; 3]);
    }
    for none in [0.0, -0.0, -1.0, -1e300, f64::NEG_INFINITY] {
        assert!(t_two_sided(2.0, none).is_nan() && t_upper(0.025, none) == f64::INFINITY, "{none} degrees");
    }
}

#[test]
fn a_tail_that_nothing_is_below_is_far() {
    assert!(t_upper(0.0, 3.0) > 1e100);
    assert!(normal_upper(0.0) > 38.0);
    assert!(chi_squared_upper(0.0, 2.0) > 1400.0);
}

#[test]
fn intervals_hold_their_estimates_whatever_the_values_are() {
    let known = KnownSpread { spread: 0.1, degrees: 3.0, of_cost: None };
    for values in lists() {
        let few = [t_interval(&values, 0.05), hodges_lehmann(&values, 0.2), median_interval(&values, 0.9)];
        let sequence = confidence_sequence(&values, 0.05);
        let unit = |(effect, variance): (&f64, &f64)| Unit { effect: *effect, variance: *variance };
        let backward = values.iter().rev();
        let units: Vec<Unit> = values.iter().zip(backward).map(unit).collect();
        let both = [Errors::Own, Errors::Shared].map(|errors| pooled(&units, errors, 0.05).effect);
        let host = |unit: &Unit| UnitEffect { effect: unit.effect, variance: unit.variance, degrees: 3.0 };
        let hosts: Vec<UnitEffect> = units.iter().map(host).collect();
        let (hosts, _) = (together(&hosts, 0.05).map(|it| it.effect), combined(&hosts));
        for interval in few.into_iter().chain([sequence]).chain(both).chain(hosts) {
            assert!(ordered(interval), "{values:?}: {interval:?}");
        }
        for starts in [1, 2, 4] {
            for by_decision in [false, true] {
                let effect = |(place, effect): (u32, &f64)| StartEffect { start: place % starts, effect: *effect };
                let effects: Vec<StartEffect> = (0..).zip(&values).map(effect).collect();
                let asked = IntervalOptions { alpha: 0.05, by_decision, known: Some(known) };
                let found = infer_over_starts(&effects, asked);
                assert!(ordered(found.inference.interval), "{values:?}: {found:?}");
                assert!(chance(found.p), "{values:?}: {found:?}");
            }
        }
    }
}

#[test]
fn what_is_asked_of_strange_values_ends() {
    for values in lists() {
        let p = [signed_rank_p(&values), trend_p(&values.repeat(5))];
        assert!(p.into_iter().all(chance), "{values:?}: {p:?}");
        let _ = (lag1(&values), midmean(&values), Persistence::of(&values), saturation(&[(1, values.clone())]));
        let _ = (holm(&values, 0.05), holm_adjusted(&values), discoveries(&values, 0.05));
        let _ = (infer(&values.repeat(9), 0.05), stop_by_precision(&values.repeat(9), 0.1, 0.05));
        for strange in STRANGE {
            let _ = (quantile7(&values, strange.clamp(0.0, 1.0)), signed_rank_cut(4, strange));
            // There is no prediction from unknown values.
            let more = predict_more(&values, strange, 1.0, 0.05);
            assert!(
                more.is_none_or(|more| more >= 0.0 && values.iter().all(|it| it.is_finite())),
                "{values:?}: {more:?}"
            );
        }
        let units: Vec<Unit> = values.repeat(3).iter().map(|it| Unit { effect: *it, variance: it.abs() }).collect();
        let _ = change_points(&units, 0.05);
        let _ = verdict(Interval { estimate: values[0], low: values[1], high: values[3] }, 0.01, "cost");
    }
}

#[test]
fn no_level_makes_a_search_for_changes_endless() {
    let units: Vec<Unit> = (0..30).map(|it| Unit { effect: f64::from(it / 15), variance: 0.01 }).collect();
    for level in STRANGE {
        let found = change_points(&units, level);
        assert!(found.iter().all(|it| it.p <= level), "{level}: {found:?}");
        assert!(values_min(level) >= 6, "{level}");
    }
}

#[test]
fn shares_that_leave_nothing_make_no_group() {
    let frames = [Samples { start: 0, count: (u64::MAX >> 2, 5) }, Samples { start: 1, count: (5, u64::MAX >> 2) }];
    for share in [1.0, f64::NAN, 1e300] {
        assert_eq!(group_frames(&frames, share, 1.0), []);
    }
}
