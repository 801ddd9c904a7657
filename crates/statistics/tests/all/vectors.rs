//! Numbers that an independent implementation also computed: `values.txt`, made by `make.py`.

use tithe_statistics::{
    distribution::{binomial_quantile, chi_squared_upper, normal_tail, normal_upper, t_two_sided, t_upper},
    inference::{discoveries, holm, holm_adjusted, infer, lag1, sidak, t_interval, trend_p},
    interval::Interval,
    order::{
        hodges_lehmann, median_interval, midmean, order_statistic_ranks, quantile7, signed_rank_cut, signed_rank_p,
    },
    pairing::{Spent, ratio_effect, total_difference},
    persistence::Persistence,
    precision::{confidence_sequence, predict_more},
    random_effects::{Errors, Pooled, Unit, pooled},
    saturation::saturation,
    starts::{IntervalOptions, KnownSpread, StartEffect, infer_over_starts},
};

fn ends(Interval { estimate, low, high }: Interval) -> Vec<f64> {
    vec![estimate, low, high]
}

fn truths(rejected: &[bool]) -> Vec<f64> {
    rejected.iter().map(|rejected| f64::from(u8::from(*rejected))).collect()
}

fn of_starts(starts: &[f64], effects: &[f64]) -> Vec<StartEffect> {
    starts.iter().zip(effects).map(|(start, effect)| StartEffect { start: *start as u32, effect: *effect }).collect()
}

/// Frames of both arms, from costs and operations of each.
fn frames(lists: &[Vec<f64>]) -> Vec<(Spent, Spent)> {
    let of = |index: usize| lists[index].iter().zip(&lists[index + 1]);
    let spent = |(cost, operations): (&f64, &f64)| Spent { cost: *cost, operations: *operations };
    of(0).map(spent).zip(of(2).map(spent)).collect()
}

/// The result of `name` for `lists`.
fn computed(name: &str, lists: &[Vec<f64>]) -> Vec<f64> {
    // Some arguments are single numbers, written as lists of one.
    let number = |index: usize| lists[index][0];
    let first = &lists[0];
    match name {
        "normal_tail" => vec![normal_tail(number(0))],
        "normal_upper" => vec![normal_upper(number(0))],
        "t_two_sided" => vec![t_two_sided(number(0), number(1))],
        "t_upper" => vec![t_upper(number(0), number(1))],
        "chi_squared_upper" => vec![chi_squared_upper(number(0), number(1))],
        "binomial_quantile" => vec![binomial_quantile(number(0), number(1) as u64, number(2)) as f64],
        "midmean" => vec![midmean(first)],
        "quantile7" => vec![quantile7(first, number(1))],
        "order_statistic_ranks" => {
            let (low, high) = order_statistic_ranks(number(0) as u64, number(1), number(2)).unwrap_or_default();
            vec![low as f64, high as f64]
        }
        "median_interval" => ends(median_interval(first, number(1))),
        "signed_rank_cut" => vec![signed_rank_cut(number(0) as usize, number(1)) as f64],
        "signed_rank_p" => vec![signed_rank_p(first)],
        "hodges_lehmann" => ends(hodges_lehmann(first, number(1))),
        "t_interval" => ends(t_interval(first, number(1))),
        "lag1" => vec![lag1(first)],
        "merged" => {
            let found = infer(first, 0.05);
            [vec![found.batch as f64], found.merged].concat()
        }
        "trend_p" => vec![trend_p(first)],
        "sidak" => vec![sidak(number(0), number(1) as usize)],
        "holm_adjusted" => holm_adjusted(first),
        "holm" => truths(&holm(first, number(1))),
        "discoveries" => truths(&discoveries(first, number(1))),
        "confidence_sequence" => ends(confidence_sequence(first, number(1))),
        "predict_more" => vec![predict_more(first, number(1), number(2), number(3)).expect("a number")],
        "ratio_effect" => ends(ratio_effect(&frames(lists), number(4))),
        "total_difference" => ends(total_difference(&frames(lists), number(4))),
        "persistence" => {
            let found = Persistence::of(first).expect("enough starts");
            vec![found.mean, found.t, found.starts as f64, found.p]
        }
        "saturation" => {
            let steps: Vec<(u32, Vec<f64>)> = (1..).zip(lists.iter().cloned()).collect();
            vec![saturation(&steps).map_or(0.0, f64::from)]
        }
        "pooled" => {
            let units = first.iter().zip(&lists[1]).map(|(effect, of)| Unit { effect: *effect, variance: *of });
            let errors = if number(2) > 0.0 { Errors::Own } else { Errors::Shared };
            let Pooled { effect, spread } = pooled(&units.collect::<Vec<_>>(), errors, number(3));
            [ends(effect), ends(spread)].concat()
        }
        "infer_over_starts" => {
            let asked = IntervalOptions { alpha: number(2), by_decision: false, known: None };
            let found = infer_over_starts(&of_starts(first, &lists[1]), asked);
            let rest = vec![found.p, found.trend_p, found.count as f64, found.within.expect("an interval")];
            [ends(found.inference.interval), rest].concat()
        }
        "widened" => {
            let known = Some(KnownSpread { spread: number(3), degrees: number(4), of_cost: None });
            let asked = IntervalOptions { alpha: number(2), by_decision: false, known };
            let found = infer_over_starts(&of_starts(first, &lists[1]), asked);
            assert_eq!((found.widened, found.spread, found.within), (number(3) > 0.0, None, None));
            [ends(found.inference.interval), vec![found.p]].concat()
        }
        other => panic!("nothing computes {other}"),
    }
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn an_independent_implementation_says_the_same() {
    let mut wrong = Vec::new();
    let lines = include_str!("values.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines.clone() {
        let [name, lists, expected] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("three parts: {line}") };
        let lists: Vec<Vec<f64>> = lists.split(';').map(numbers).collect();
        let (found, expected) = (computed(name, &lists), numbers(expected));
        // Eleven digits are enough for `trend_p` and for roots of roots; 0 must be exact.
        let near = |(one, other): (&f64, &f64)| one == other || (one - other).abs() <= 1e-10 * other.abs();
        if found.len() != expected.len() || !found.iter().zip(&expected).all(near) {
            wrong.push(format!("{line}\n  found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines.count() > 600);
}
