use proptest::prelude::*;

use super::*;

/// Tuberculosis with and without the BCG vaccine in 13 trials: ill and well, of the vaccinated and of the others
/// (Colditz et al. 1994; van Houwelingen, Arends and Stijnen 2002, Table I).
const TRIALS: [[f64; 4]; 13] = [
    [4.0, 119.0, 11.0, 128.0],
    [6.0, 300.0, 29.0, 274.0],
    [3.0, 228.0, 11.0, 209.0],
    [62.0, 13536.0, 248.0, 12619.0],
    [33.0, 5036.0, 47.0, 5761.0],
    [180.0, 1361.0, 372.0, 1079.0],
    [8.0, 2537.0, 10.0, 619.0],
    [505.0, 87886.0, 499.0, 87892.0],
    [29.0, 7470.0, 45.0, 7232.0],
    [17.0, 1699.0, 65.0, 1600.0],
    [186.0, 50448.0, 141.0, 27197.0],
    [5.0, 2493.0, 3.0, 2338.0],
    [27.0, 16886.0, 29.0, 17825.0],
];

/// Log odds ratios with their variances.
fn trials() -> Vec<UnitEffect> {
    let unit = |[a, b, c, d]: [f64; 4]| UnitEffect {
        effect: (a * d / (b * c)).ln(),
        variance: 1.0 / a + 1.0 / b + 1.0 / c + 1.0 / d,
        degrees: f64::INFINITY,
    };
    TRIALS.map(unit).to_vec()
}

/// The interval of the spread is the one that metafor prints for these trials (`confint`, τ² from 0.1302 to 1.1812, on
/// its page "van Houwelingen et al. (2002)"). Spread, mean and the half-width of the mean are from statsmodels 0.14
/// (the function `combine_effects` with `method_re="iterated"`, the standard error of Hartung and Knapp times scipy's
/// quantile of t). The next unit is from a separate Python program, written from the formula.
#[test]
fn golden_vectors() {
    let near = |actual: f64, expected: f64, by: f64| assert!((actual - expected).abs() < by, "{actual}, {expected}");
    let PooledEffect { effect, spread, next } = together(&trials(), 0.05).expect("thirteen units");
    near(spread.low.powi(2), 0.1302, 0.000_1);
    near(spread.high.powi(2), 1.1812, 0.000_1);
    near(spread.estimate.powi(2), 0.341_205_102_177_868, 1e-9);
    near(effect.estimate, -0.745_460_390_531_622_3, 1e-9);
    near(effect.half_width(), 0.406_981_181_560_764, 1e-9);
    near(next.expect("of thirteen").half_width(), 1.349_790_343_570_231, 1e-9);
}

/// Units of very unequal precision count alike: mean and half-width are scipy's for 0.1, 0.2 and 0.4.
#[test]
fn one_sure_unit_does_not_speak_for_all() {
    let unit = |(effect, error): (f64, f64)| UnitEffect { effect, variance: error * error, degrees: 7.0 };
    let PooledEffect { effect, .. } = together(&[(0.1, 0.01), (0.2, 0.2), (0.4, 0.5)].map(unit), 0.05).expect("pooled");
    assert!((effect.estimate - 0.233_333_333_333_333).abs() < 1e-12, "{effect:?}");
    assert!((effect.half_width() - 0.379_458_303_359_676).abs() < 1e-9, "{effect:?}");
}

#[test]
fn few_units_are_not_pooled_and_fewer_than_five_do_not_tell_the_next() {
    let trials = trials();
    let told = |count: usize| together(&trials[..count], 0.05).map(|it| it.next.is_some());
    assert_eq!([0, 1, 2, 3, 4, 5].map(told), [None, None, None, Some(false), Some(false), Some(true)]);
}

#[test]
fn repeats_of_one_host_are_one_unit() {
    assert_eq!(combined(&[]), None);
    let one = UnitEffect { effect: 0.1, variance: 1e-4, degrees: 7.0 };
    assert_eq!(combined(&[one]), Some(one));
    // Repeats that agree are exactly as precise as their errors imply: variance 1e-4 / 4.
    let four = combined(&[one; 4]).expect("a unit");
    assert!((four.effect - 0.1).abs() < 1e-12 && (four.variance - 0.25e-4).abs() < 1e-12, "{four:?}");
    // If repeats differ, the variance includes the difference.
    let apart = combined(&[UnitEffect { effect: 0.0, ..one }, UnitEffect { effect: 0.2, ..one }]).expect("a unit");
    assert!((apart.effect - 0.1).abs() < 1e-12 && (apart.variance - 0.01).abs() < 1e-9, "{apart:?}");
    assert_eq!([four.degrees, apart.degrees], [3.0, 1.0]);
}

#[test]
fn errors_that_rest_on_few_starts_lower_the_end_of_the_spread_alone() {
    let unsure: Vec<UnitEffect> = trials().iter().map(|unit| UnitEffect { degrees: 7.0, ..*unit }).collect();
    let (known, unsure) = (together(&trials(), 0.05).expect("pooled"), together(&unsure, 0.05).expect("pooled"));
    assert!(unsure.spread.low < known.spread.low, "{unsure:?}");
    assert_eq!(PooledEffect { spread: Interval { low: known.spread.low, ..unsure.spread }, ..unsure }, known);
    // The end is that of errors which are larger by R's qt(0.975, 7) / qnorm(0.975).
    let larger = (2.364_624_251_592_784_f64 / 1.959_963_984_540_054).powi(2);
    let larger = |unit: &UnitEffect| UnitEffect { variance: larger * unit.variance, ..*unit };
    let larger = together(&trials().iter().map(larger).collect::<Vec<_>>(), 0.05).expect("pooled");
    assert!((unsure.spread.low - larger.spread.low).abs() < 1e-9, "{unsure:?} {larger:?}");
}

proptest! {
    /// The next unit's interval is never narrower than that of the mean.
    #[test]
    fn the_next_is_wider_than_the_mean(
        of in prop::collection::vec((-0.1f64..0.1, 1e-8f64..1e-4), 5..20),
        alpha in 0.01f64..0.2,
    ) {
        let unit = |(effect, variance): &(f64, f64)| UnitEffect { effect: *effect, variance: *variance, degrees: 7.0 };
        let units: Vec<UnitEffect> = of.iter().map(unit).collect();
        let PooledEffect { effect, next, .. } = together(&units, alpha).expect("five units");
        let next = next.expect("five units");
        prop_assert!(next.low <= effect.low && next.high >= effect.high);
        prop_assert_eq!(next.estimate, effect.estimate);
    }
}
