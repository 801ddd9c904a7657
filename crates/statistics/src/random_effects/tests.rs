use proptest::prelude::*;

use super::*;
use crate::{inference::t_interval, mean};

fn units(of: &[(f64, f64)]) -> Vec<Unit> {
    of.iter().map(|(effect, variance)| Unit { effect: *effect, variance: *variance }).collect()
}

fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{actual} is not {expected}");
}

/// Expected values by statsmodels 0.14 (`combine_effects`, `method_re="iterated"`, `scale_hksj_re`) and scipy's
/// `brentq` for the ends of the spread.
#[test]
fn golden_vectors() {
    let six = units(&[(0.010, 4e-6), (0.014, 9e-6), (0.002, 1e-6), (0.021, 1.6e-5), (0.009, 4e-6), (0.030, 2.5e-5)]);
    for errors in [Errors::Shared, Errors::Own] {
        let Pooled { effect, spread } = pooled(&six, errors, 0.05);
        near(effect.estimate, 0.013_584_309_05);
        near(spread.estimate, 0.009_151_967_436_524_324);
        near(spread.low, 0.004_999_632_304_408_65);
        near(spread.high, 0.023_960_420_987_933_62);
    }
    let alike = units(&[(0.010, 4e-6), (0.0102, 4e-6), (0.0099, 9e-6), (0.0101, 4e-6)]);
    for (errors, half) in [(Errors::Shared, 0.000_186_490_348_704_938_25), (Errors::Own, 0.003_429_505_379_066_846_3)] {
        let Pooled { effect, spread } = pooled(&alike, errors, 0.05);
        near(effect.estimate, 0.010_074_193_548_387_097);
        near(effect.half_width(), half);
        assert_eq!((spread.estimate, spread.low, spread.high), (0.0, 0.0, 0.0));
    }
    let three = units(&[(-0.01, 1e-4), (0.05, 1e-4), (0.02, 1e-4)]);
    let Pooled { effect, spread } = pooled(&three, Errors::Shared, 0.1);
    near(effect.half_width(), 0.050_575_633_825_411_484);
    near(spread.estimate, 0.0008f64.sqrt());
    near(spread.low, 0.014_157_237_747_025_394);
    near(spread.high, 0.132_083_886_873_461_26);
}

/// Without any error of their own, and with starts of one frame each, only the effects are left.
#[test]
fn units_without_errors_have_students_interval() {
    let effects = [0.1, 0.3, 0.25];
    let starts: Vec<Vec<f64>> = effects.iter().map(|effect| vec![*effect]).collect();
    let units = of_starts(&starts);
    assert!(units.iter().zip(effects).all(|(unit, effect)| (unit.effect, unit.variance) == (effect, 0.0)), "{units:?}");
    for errors in [Errors::Shared, Errors::Own] {
        let (found, student) = (pooled(&units, errors, 0.05), t_interval(&effects, 0.05));
        near(found.effect.estimate, student.estimate);
        near(found.effect.half_width(), student.half_width());
        // The standard deviation, and its interval by R's qchisq(c(0.975, 0.025), 2).
        let squares = 2.0 * variance(&effects);
        near(found.spread.estimate, variance(&effects).sqrt());
        near(found.spread.low, (squares / 7.377_758_908_227_87).sqrt());
        near(found.spread.high, (squares / 0.050_635_615_968_579_8).sqrt());
        let equal = pooled(&[units[0]; 3], errors, 0.05);
        assert!(equal.effect.half_width() < 1e-12, "{equal:?}");
        assert_eq!((equal.spread.estimate, equal.spread.high), (0.0, 0.0));
    }
}

/// By hand: squares of 2 and 14 around the means of the first and the last start, with 1 and 2 degrees of freedom.
#[test]
fn the_variance_within_starts_is_of_those_with_several_frames() {
    assert_eq!(variance_within(&[vec![1.0, 3.0], vec![5.0], vec![1.0, 2.0, 6.0]]), (2.0 + 14.0) / 3.0);
    assert_eq!(variance_within(&[vec![1.0, 3.0]]), 2.0);
    assert_eq!([variance_within(&[vec![5.0], vec![7.0]]), variance_within(&[])], [0.0; 2]);
}

#[test]
fn one_start_says_nothing_of_the_next() {
    let start = vec![0.01, 0.02, 0.03];
    let Pooled { effect, spread } = pooled(&of_starts(&[start]), Errors::Shared, 0.05);
    assert_eq!((effect.estimate, effect.low, effect.high), (0.02, f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!((spread.low, spread.high), (0.0, f64::INFINITY));
}

proptest! {
    /// Starts with equally many frames: the result is Student's interval of the starts' effects, which is exact.
    #[test]
    fn starts_of_one_length_give_the_t_interval(
        starts in prop::collection::vec(prop::collection::vec(-0.1f64..0.1, 4), 2..12),
        alpha in 0.01f64..0.2,
    ) {
        let units = of_starts(&starts);
        let effects: Vec<f64> = units.iter().map(|unit| unit.effect).collect();
        let (effect, plain) = (pooled(&units, Errors::Shared, alpha).effect, t_interval(&effects, alpha));
        prop_assert!((effect.estimate - mean(&effects)).abs() < 1e-9);
        prop_assert!((effect.half_width() - plain.half_width()).abs() < 1e-6 * plain.half_width().max(1e-6));
    }

    /// Adding a constant to every effect adds it to the result; scaling every effect scales the result.
    #[test]
    fn shifts_and_scales_pass_through(
        of in prop::collection::vec((-0.1f64..0.1, 1e-8f64..1e-4), 2..10),
        shift in -1.0f64..1.0,
        scale in 0.1f64..10.0,
    ) {
        let moved: Vec<(f64, f64)> =
            of.iter().map(|(effect, variance)| (effect * scale + shift, variance * scale * scale)).collect();
        let (before, after) = (pooled(&units(&of), Errors::Own, 0.05), pooled(&units(&moved), Errors::Own, 0.05));
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b.abs().max(1e-3);
        prop_assert!(close(after.effect.low, before.effect.low * scale + shift));
        prop_assert!(close(after.effect.high, before.effect.high * scale + shift));
        prop_assert!(close(after.spread.high, before.spread.high * scale));
    }

    /// The order of the starts does not matter.
    #[test]
    fn the_order_of_starts_does_not_matter(starts in prop::collection::vec(prop::collection::vec(-0.1f64..0.1, 1..6), 2..8)) {
        let backward: Vec<Vec<f64>> = starts.iter().rev().cloned().collect();
        let [a, b] = [&starts, &backward].map(|starts| pooled(&of_starts(starts), Errors::Shared, 0.05));
        prop_assert!((a.effect.low - b.effect.low).abs() < 1e-9 && (a.effect.high - b.effect.high).abs() < 1e-9);
    }
}
