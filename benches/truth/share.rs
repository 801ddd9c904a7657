//! The share of a count, with its exact interval.

use tithe_analysis::CONFIDENCE;
use tithe_statistics::distribution::binomial_quantile;

/// Bisection steps between 0 and 1 until both ends are neighbouring numbers.
const STEPS: u32 = 60;

/// `9 of 129, 7.0 % [3.2, 12.8]`: the exact interval of Clopper and Pearson (1934), at [`CONFIDENCE`].
pub fn share(count: u64, of: u64) -> String {
    let (low, high) = clopper_pearson(count, of);
    format!("{count} of {of}, {:.1} % [{:.1}, {:.1}]", 100.0 * count as f64 / of as f64, 100.0 * low, 100.0 * high)
}

/// The probabilities under which neither `count` or more, nor `count` or fewer, are rarer than half of the error.
fn clopper_pearson(count: u64, of: u64) -> (f64, f64) {
    let half = (1.0 - CONFIDENCE) / 2.0;
    let low = if count == 0 { 0.0 } else { least(|chance| binomial_quantile(1.0 - half, of, chance) >= count) };
    let high = if count == of { 1.0 } else { least(|chance| binomial_quantile(half, of, chance) > count) };
    (low, high)
}

/// The smallest probability from which on `holds` is true.
fn least(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
