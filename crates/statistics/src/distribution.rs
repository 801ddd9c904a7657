//! Tails and quantiles of the normal, t, χ² and binomial distributions.
//!
//! Written here and not taken from a crate: two incomplete functions and a bisection are enough, and a quantile that is
//! solved from the tail is as accurate as the tail (about 1e-13). Quantiles are named by their *upper* tail: intervals
//! start from it, and it loses no digits when it is small.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    f64::consts::{PI, SQRT_2},
};

/// Degrees of freedom from which the expansion of the t quantile is exact to 1e-12.
const MANY_DEGREES: f64 = 1000.0;

/// From this many degrees of freedom on, the incomplete beta function has fewer digits than an approximation.
const DEGREES_MAX: f64 = 1e7;

/// For each power 1, 2, … of 1/degrees: the factors of z, z³, z⁵, … and the divisor.
const EXPANSION: [(&[f64], f64); 4] = [
    (&[1.0, 1.0], 4.0),
    (&[3.0, 16.0, 5.0], 96.0),
    (&[-15.0, 17.0, 19.0, 3.0], 384.0),
    (&[-945.0, -1920.0, 1482.0, 776.0, 79.0], 92_160.0),
];

/// A series or a continued fraction that has not converged after this many steps has no value.
const STEPS_MAX: u32 = 100_000;

/// P(Z > x) of the standard normal distribution.
pub fn normal_tail(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - normal_tail(-x);
    }
    let scaled = x / SQRT_2;
    0.5 * gamma_tail(0.5, scaled * scaled)
}

/// The x with P(Z > x) = `tail`, for `tail` in (0, 0.5].
pub fn normal_upper(tail: f64) -> f64 {
    remembered(Family::T, tail, f64::INFINITY, || falling_root(tail, normal_tail))
}

/// P(|T| > |t|) of Student's t distribution with `degrees` degrees of freedom; NaN if these are none.
///
/// From ten million degrees on, the normal distribution is used (Abramowitz and Stegun, 26.7.8): the incomplete beta
/// function loses one digit for each further factor of ten, and all of them at 10¹⁶.
pub fn t_two_sided(t: f64, degrees: f64) -> f64 {
    if degrees <= 0.0 {
        return f64::NAN;
    }
    let square = t * t;
    if degrees >= DEGREES_MAX {
        return 2.0 * normal_tail((1.0 - 0.25 / degrees) / (1.0 / square + 0.5 / degrees).sqrt());
    }
    beta_share(degrees / 2.0, 0.5, degrees / (degrees + square), square / (degrees + square))
}

/// The t with P(T > t) = `tail`, for `tail` in (0, 0.5].
///
/// From 1,000 degrees on, the expansion in 1/degrees of Abramowitz and Stegun, 26.7.5, is used: planning needs up to a
/// million degrees, where the incomplete beta function is slow and loses digits.
pub fn t_upper(tail: f64, degrees: f64) -> f64 {
    if degrees < MANY_DEGREES {
        return remembered(Family::T, tail, degrees, || falling_root(tail, |t| 0.5 * t_two_sided(t, degrees)));
    }
    expanded(normal_upper(tail), degrees)
}

/// The quantile of t at the tail of the normal quantile `z`, by the expansion in 1/degrees.
fn expanded(z: f64, degrees: f64) -> f64 {
    let term = |(of_squares, divisor): &(&[f64], f64)| {
        z * of_squares.iter().rev().fold(0.0, |sum, factor| sum * z * z + factor) / divisor
    };
    EXPANSION.iter().rev().fold(0.0, |sum, of_power| (sum + term(of_power)) / degrees) + z
}

/// The x with P(X > x) = `tail` of the χ² distribution with `degrees` degrees of freedom.
pub fn chi_squared_upper(tail: f64, degrees: f64) -> f64 {
    remembered(Family::ChiSquared, tail, degrees, || falling_root(tail, |x| gamma_tail(degrees / 2.0, x / 2.0)))
}

/// The smallest k with P(X ≤ k) ≥ `probability`, where X counts the successes in `trials` trials of probability
/// `chance`.
pub fn binomial_quantile(probability: f64, trials: u64, chance: f64) -> u64 {
    let at_most = |k: u64| beta_share((trials - k) as f64, k as f64 + 1.0, 1.0 - chance, chance);
    let (mut low, mut high) = (0, trials);
    while low < high {
        let middle = low + (high - low) / 2;
        if at_most(middle) >= probability {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The exact interval of the chance of success after `successes` in `trials` trials. The true chance is below it with a
/// probability of at most `tail`, and above it with the same (Clopper and Pearson 1934).
pub fn chance_interval(successes: u64, trials: u64, tail: f64) -> (f64, f64) {
    let (successes, failures) = (successes as f64, (trials - successes) as f64);
    // P(X ≥ successes) for the chance 1 − q, and P(X ≤ successes) for the chance p.
    let at_least = |q: f64| beta_share(successes, failures + 1.0, 1.0 - q, q);
    let at_most = |p: f64| beta_share(failures, successes + 1.0, 1.0 - p, p);
    let low = if successes == 0.0 { 0.0 } else { 1.0 - falling_root(tail, at_least) };
    let high = if failures == 0.0 { 1.0 } else { falling_root(tail, at_most) };
    (low, high)
}

thread_local! {
    /// Quantiles already solved, by distribution, tail and degrees: a report needs the same ones hundreds of times.
    static QUANTILES: RefCell<BTreeMap<(Family, u64, u64), f64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Distributions with degrees of freedom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    /// Student's t; the normal distribution has infinitely many degrees.
    T,
    /// χ².
    ChiSquared,
}

/// The quantile for these degrees; `solve` computes it once.
fn remembered(family: Family, tail: f64, degrees: f64, solve: impl FnOnce() -> f64) -> f64 {
    let key = (family, tail.to_bits(), degrees.to_bits());
    QUANTILES.with_borrow_mut(|known| *known.entry(key).or_insert_with(solve))
}

/// The x ≥ 0 at which the falling function `tail` has the value `target`, to the last bit that `tail` can resolve; ∞ if
/// `tail` never falls to it.
///
/// By bisection over all floating-point numbers: always 63 steps. NaN counts as too large, so it makes an interval
/// infinite and never narrow.
pub(super) fn falling_root(target: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0_f64.to_bits(), f64::INFINITY.to_bits());
    while low < high {
        let middle = low + (high - low) / 2;
        if tail(f64::from_bits(middle)) <= target {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(low)
}

/// ln Γ(x) for x > 0: recurrence up to 10, then Stirling's series (Abramowitz and Stegun, 6.1.40).
fn ln_gamma(x: f64) -> f64 {
    let below_ten = || (0..10).map(|step| x + f64::from(step)).take_while(|x| *x < 10.0);
    let (shift, x): (f64, f64) = (below_ten().map(f64::ln).sum(), x + below_ten().count() as f64);
    const TERMS: [f64; 5] = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];
    let series = TERMS.iter().rev().fold(0.0, |sum, term| sum / (x * x) + term) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - shift
}

/// Q(a, x) = Γ(a, x)/Γ(a): by series below a + 1, by continued fraction above (Abramowitz and Stegun, 6.5.29, 6.5.31).
fn gamma_tail(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if settles_as_series(a, x) {
        return 1.0 - front * series(1.0 / a, |k| x / (a + k));
    }
    front / continued_fraction(x + 1.0 - a, |k| (-k * (k - a), x + 1.0 - a + 2.0 * k))
}

/// True if the series of the incomplete gamma function takes fewer steps than its continued fraction.
fn settles_as_series(a: f64, x: f64) -> bool {
    x < a + 1.0
}

/// I_x(a, b), with `y` = 1 − x passed separately so that neither loses digits (Abramowitz and Stegun, 26.5.8).
fn beta_share(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if settles_mirrored(a, b, x) {
        return 1.0 - beta_share(b, a, y, x);
    }
    let front = (a * x.ln() + b * y.ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp() / a;
    let fraction = continued_fraction(1.0, |k| {
        let m = (k / 2.0).floor();
        let numerator = if k % 2.0 == 0.0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        (numerator, 1.0)
    });
    front / fraction
}

/// True if the continued fraction of I_y(b, a) takes fewer steps than that of I_x(a, b).
fn settles_mirrored(a: f64, b: f64, x: f64) -> bool {
    x > (a + 1.0) / (a + b + 2.0)
}

/// first · (1 + f₁ + f₁f₂ + …) with `factor(k)` = fₖ, each 0 or more.
fn series(first: f64, factor: impl Fn(f64) -> f64) -> f64 {
    let (mut term, mut sum) = (first, first);
    for k in 1..STEPS_MAX {
        term *= factor(f64::from(k));
        sum += term;
        if term <= sum * f64::EPSILON || sum.is_nan() {
            return sum;
        }
    }
    f64::NAN
}

/// b₀ + a₁/(b₁ + a₂/(b₂ + …)) with `term(k)` = (aₖ, bₖ), by Lentz' method as modified by Thompson and Barnett 1986.
fn continued_fraction(first: f64, term: impl Fn(f64) -> (f64, f64)) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut value = away_from_zero(first);
    let (mut c, mut d) = (value, 0.0);
    for k in 1..STEPS_MAX {
        let (numerator, denominator) = term(f64::from(k));
        d = 1.0 / away_from_zero(denominator + numerator * d);
        c = away_from_zero(denominator + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON || value.is_nan() {
            return value;
        }
    }
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actual: f64, expected: f64) {
        assert!((actual / expected - 1.0).abs() < 1e-11, "{actual} is not {expected}");
    }

    #[test]
    fn tails_and_quantiles_of_students_distribution_are_inverse() {
        for degrees in [1.0, 4.0, 999.0, 1000.0, 1e5, 9.9e6, 1e7, 1e9, 1e17, f64::INFINITY] {
            for tail in [0.49, 0.2, 0.025, 1e-4] {
                let again = 0.5 * t_two_sided(t_upper(tail, degrees), degrees);
                assert!((again / tail - 1.0).abs() < 5e-8, "{degrees} {tail} {again}");
            }
            assert_eq!([0.0, f64::INFINITY].map(|t| t_two_sided(t, degrees)), [1.0, 0.0], "{degrees}");
        }
    }

    #[test]
    fn a_search_takes_63_steps_whatever_it_is_told() {
        let root = |target: f64, tail: fn(f64) -> f64| {
            let steps = std::cell::Cell::new(0);
            let found = falling_root(target, |x| {
                steps.set(steps.get() + 1);
                tail(x)
            });
            assert!(steps.get() <= 63, "{}", steps.get());
            found
        };
        assert_eq!(root(-1.5, |x| -x), 1.5);
        assert_eq!([root(0.0, |_| f64::NAN), root(0.0, |_| 1.0)], [f64::INFINITY; 2]);
        assert_eq!(root(0.0, |_| -1.0), 0.0);
        for at in [1e300, 5e-324] {
            assert_eq!(falling_root(0.0, |x| if x < at { 1.0 } else { 0.0 }), at);
        }
        assert_eq!(falling_root(f64::NAN, |x| -x), f64::INFINITY);
    }

    /// By the finite sum for an even number of degrees (Abramowitz and Stegun, 26.7.4). The first term that is left out
    /// is 7e-11 there, and the smallest factor of the others moves the value by 3e-10.
    #[test]
    fn every_term_of_the_expansion_has_its_factors() {
        let quantile = 1.983_971_518_523_546;
        assert!((expanded(normal_upper(0.025), 100.0) - quantile).abs() < 1e-10);
        check(t_upper(0.025, 100.0), quantile);
    }

    #[test]
    fn the_gamma_function_is_that_of_factorials_and_of_one_half() {
        let mut factorial = 1.0_f64;
        for n in 1..=20 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12, "{n}");
            factorial *= f64::from(n);
        }
        // Γ(1/2) = √π, and Γ(x + 1) = x Γ(x).
        let mut half = PI.sqrt();
        for n in 0..20 {
            let x = f64::from(n) + 0.5;
            assert!((ln_gamma(x) - half.ln()).abs() < 1e-12, "{x}");
            half *= x;
        }
    }

    #[test]
    fn what_does_not_settle_has_no_value() {
        assert!(series(1.0, |_| 1.0).is_nan() && series(1.0, |_| f64::NAN).is_nan());
        assert!((series(2.0, |_| 0.5) - 4.0).abs() < 1e-15);
        assert_eq!(series(3.0, |k| if k < 2.0 { 1.0 } else { 0.0 }), 6.0);
        // 1 + 1/(2 + 1/(2 + …)) is √2; with alternating signs it never converges.
        assert!((continued_fraction(1.0, |_| (1.0, 2.0)) - SQRT_2).abs() < 1e-15);
        assert!(continued_fraction(1.0, |_| (-1.0, 1.0)).is_nan());
        assert!(continued_fraction(1.0, |_| (f64::NAN, 1.0)).is_nan());
        // A zero at the beginning, or below a bar, is none of the fraction's value: √2 − 1 and 2 + √2.
        assert!((continued_fraction(0.0, |_| (1.0, 2.0)) - (SQRT_2 - 1.0)).abs() < 1e-15);
        let zero_first = |k: f64| (1.0, if k < 2.0 { 0.0 } else { 2.0 });
        assert!((continued_fraction(1.0, zero_first) - (2.0 + SQRT_2)).abs() < 1e-14);
    }

    // Expected values: scipy 1.17.1, `norm.isf`, `norm.sf`, `t.isf`, `chi2.isf`, `binom.ppf`.
    #[test]
    fn normal() {
        check(normal_upper(0.25), 0.6744897501960817);
        check(normal_upper(0.025), 1.9599639845400545);
        check(normal_upper(0.005), 2.575829303548901);
        check(normal_upper(0.0001), 3.7190164854556804);
        check(normal_upper(1e-9), 5.9978070150076865);
        check(normal_tail(-1.5), 0.9331927987311419);
        check(normal_tail(0.3), 0.3820885778110474);
        check(normal_tail(2.0), 0.022750131948179195);
        check(normal_tail(6.0), 9.865876450376946e-10);
    }

    #[test]
    fn student() {
        check(t_upper(0.025, 1.0), 12.706204736174705);
        check(t_upper(0.025, 2.0), 4.302652729749464);
        check(t_upper(0.0127, 9.0), 2.6753219030897943);
        check(t_upper(0.025, 14.0), 2.144786687917804);
        check(t_upper(0.025, 69.0), 1.9949454151072379);
        check(t_upper(1e-6, 5.0), 24.771029720515948);
        check(t_upper(0.02, 998.0), 2.0564367636122194);
        check(t_upper(0.025, 1000.0), 1.9623390808264085);
        check(t_upper(0.0005, 1000.0), 3.3002826484239134);
        check(t_upper(0.025, 3599.0), 1.9606233498284376);
        check(t_upper(0.025, 1e6), 1.9599663568141072);
        check(t_two_sided(-2.5, 12.0), 0.02791539957132524);
    }

    #[test]
    fn chi_squared() {
        check(chi_squared_upper(0.8, 1.0), 0.06418475466730152);
        check(chi_squared_upper(0.8, 11.0), 6.988673512230544);
        check(chi_squared_upper(0.8, 19.0), 13.715789706290439);
        check(chi_squared_upper(0.8, 300.0), 279.2143077092956);
        check(chi_squared_upper(0.05, 3.0), 7.814727903251178);
    }

    #[test]
    fn the_interval_of_a_chance_is_exact_and_the_same_from_both_sides() {
        for trials in [1_u64, 5, 20, 1000] {
            // With no success, and with one, the tails are powers.
            let root = |tail: f64| tail.powf(1.0 / trials as f64);
            let (low, high) = chance_interval(0, trials, 0.025);
            assert_eq!(low, 0.0);
            check(high, 1.0 - root(0.025));
            check(1.0 - chance_interval(1, trials, 0.025).0, root(0.975));
            for successes in [0, 1, trials / 3, trials] {
                let (low, high) = chance_interval(successes, trials, 0.025);
                let mirrored = chance_interval(trials - successes, trials, 0.025);
                assert!((low + mirrored.1 - 1.0).abs() < 1e-12 && (high + mirrored.0 - 1.0).abs() < 1e-12);
                // At the ends, what was seen or more, and what was seen or less, is as likely as the tail.
                if successes > 0 {
                    let around = [-1e-9, 1e-9].map(|off| binomial_quantile(0.975 + off, trials, low));
                    assert_eq!(around, [successes - 1, successes], "{successes} of {trials}");
                }
                if successes < trials {
                    let around = [-1e-9, 1e-9].map(|off| binomial_quantile(0.025 + off, trials, high));
                    assert_eq!(around, [successes, successes + 1], "{successes} of {trials}");
                }
            }
        }
        assert_eq!(chance_interval(0, 0, 0.025), (0.0, 1.0));
    }

    #[test]
    fn binomial() {
        assert_eq!(binomial_quantile(0.025, 20, 0.5), 6);
        assert_eq!(binomial_quantile(0.975, 20, 0.5), 14);
        assert_eq!(binomial_quantile(0.975, 100, 0.9), 95);
        assert_eq!(binomial_quantile(0.025, 1000, 0.99), 983);
        assert_eq!(binomial_quantile(0.975, 100000, 0.999), 99919);
        assert_eq!(binomial_quantile(0.3, 1, 0.5), 0);
        assert_eq!(binomial_quantile(0.7, 1, 0.5), 1);
        assert_eq!(binomial_quantile(0.0001, 7, 0.01), 0);
        assert_eq!(binomial_quantile(0.9999, 7, 0.99), 7);
    }
}
