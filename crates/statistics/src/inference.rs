//! From the effects of the frames to an interval, and the corrections for many intervals at once.

use crate::{
    distribution::{t_two_sided, t_upper},
    interval::Interval,
    mean,
    order::{hodges_lehmann, sorted},
    variance,
};

/// Averaging consecutive values stops when fewer than this many would be left.
pub const FEWEST_MERGED: usize = 8;

/// From this many values on the signed-rank interval is used, below it the t interval.
const RANKS_FROM: usize = 10;

/// One-sided 5 % point of the normal distribution: the lag-1 correlation of n independent values stays below this/√n.
const CORRELATED: f64 = 1.645;

/// An interval and how it was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// Estimate and interval.
    pub interval: Interval,
    /// Values that the interval is computed from, after averaging consecutive ones.
    pub merged: Vec<f64>,
    /// Number of values averaged into one; 1 means no averaging.
    pub batch: usize,
    /// Remaining correlation of consecutive values.
    pub lag1: f64,
}

/// The interval of confidence 1 − `alpha` of the centre of `effects`, in the order of time.
///
/// Consecutive values are averaged in pairs while they are correlated, so that slow noise does not look like precision.
/// Then Hodges–Lehmann with the interval of ranks, or the t interval for fewer than 10 values. Values that are not
/// finite are left out. Two or more values have a finite interval for every `alpha`.
pub fn infer(effects: &[f64], alpha: f64) -> Inference {
    let mut merged: Vec<f64> = effects.iter().copied().filter(|effect| effect.is_finite()).collect();
    let mut batch = 1;
    while merged.len() >= 2 * FEWEST_MERGED && lag1(&merged) > CORRELATED / (merged.len() as f64).sqrt() {
        merged = merged.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        batch *= 2;
    }
    let interval = if merged.len() >= RANKS_FROM { rank_interval(&merged, alpha) } else { t_interval(&merged, alpha) };
    let lag1 = lag1(&merged);
    Inference { interval, merged, batch, lag1 }
}

/// Hodges–Lehmann with the interval of ranks, combined with Student's if `alpha` is too small for ranks.
fn rank_interval(values: &[f64], alpha: f64) -> Interval {
    let ranks = hodges_lehmann(values, alpha);
    if ranks.half_width().is_finite() {
        return ranks;
    }
    // All n values lie on one side of the truth by chance once in 2ⁿ⁻¹ times, so ranks allow no smaller error. An error
    // that is divided over many comparisons may be smaller. Student's interval has no such limit. The result reaches at
    // least from the smallest to the largest value, as ranks do at their smallest error: more confidence never makes an
    // interval narrower.
    let (student, sorted) = (t_interval(values, alpha), sorted(values));
    Interval { low: student.low.min(sorted[0]), high: student.high.max(sorted[sorted.len() - 1]), ..ranks }
}

/// The mean with Student's interval of confidence 1 − `alpha`; infinite ends for fewer than two values.
pub fn t_interval(values: &[f64], alpha: f64) -> Interval {
    let n = values.len() as f64;
    let half =
        if values.len() < 2 { f64::INFINITY } else { t_upper(alpha / 2.0, n - 1.0) * (variance(values) / n).sqrt() };
    let estimate = mean(values);
    if half.is_finite() {
        Interval { estimate, low: estimate - half, high: estimate + half }
    } else {
        Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY }
    }
}

/// Correlation of each value with the one before; 0 for fewer than three values or if all are equal.
pub fn lag1(values: &[f64]) -> f64 {
    let mean = mean(values);
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if values.len() < 3 || square <= 0.0 {
        return 0.0;
    }
    values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / square
}

/// Two-sided p of Spearman's rank correlation between the values and their order, by Student's
/// approximation t = r·√((n − 2)/(1 − r²)) with n − 2 degrees of freedom. For fewer than 10 values that of Kendall's
/// rank correlation, which is exact (Kendall, "A new measure of rank correlation", Biometrika 30, 1938; Mann,
/// "Nonparametric tests against trend", Econometrica 13, 1945).
///
/// Shows whether an effect changed while it was measured. Pass merged values: correlation of consecutive values counts
/// as a trend.
pub fn trend_p(values: &[f64]) -> f64 {
    let n = values.len();
    if n < RANKS_FROM {
        return kendall_p(values);
    }
    let ranks = mean_ranks(values);
    let middle = (n as f64 - 1.0) / 2.0;
    let (mut product, mut square_rank, mut square_order) = (0.0, 0.0, 0.0);
    for (order, rank) in ranks.iter().enumerate() {
        let (rank, order) = (rank - middle, order as f64 - middle);
        product += rank * order;
        square_rank += rank * rank;
        square_order += order * order;
    }
    if square_rank <= 0.0 {
        return 1.0;
    }
    let degrees = n as f64 - 2.0;
    let unexplained = 1.0 - product * product / (square_rank * square_order);
    if unexplained <= 0.0 {
        return 0.0;
    }
    t_two_sided(((1.0 - unexplained) * degrees / unexplained).sqrt(), degrees)
}

/// Exact two-sided p of Kendall's rank correlation between a few values and their order. Of n! orders of different
/// values, equally many have k and n(n − 1)/2 − k pairs out of order. Ties count as neither, which makes p larger.
fn kendall_p(values: &[f64]) -> f64 {
    let n = values.len();
    let pairs = n * n.saturating_sub(1) / 2;
    let mut concordance = 0_i64;
    for (number, later) in values.iter().enumerate() {
        concordance += values[..number].iter().map(|earlier| sign(later - earlier)).sum::<i64>();
    }
    // Number of orders of the first values with k pairs out of order.
    let mut orders = vec![1_u64];
    for place in 1..n {
        let longer = (0..orders.len() + place).map(|k| {
            let from = k.saturating_sub(place);
            orders[from.min(orders.len())..(k + 1).min(orders.len())].iter().sum()
        });
        orders = longer.collect();
    }
    let as_far = |k: &usize| (pairs as i64 - 2 * *k as i64).abs() >= concordance.abs();
    let far: u64 = (0..=pairs).filter(as_far).filter_map(|k| orders.get(k)).sum();
    far as f64 / orders.iter().sum::<u64>() as f64
}

/// −1, 0 or 1.
fn sign(value: f64) -> i64 {
    i64::from(value > 0.0) - i64::from(value < 0.0)
}

/// Ranks from 0, ties at their mean rank.
fn mean_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0.0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        for index in tied {
            ranks[*index] = below + (tied.len() as f64 - 1.0) / 2.0;
        }
        below += tied.len() as f64;
    }
    ranks
}

/// The error of each of `comparisons` intervals that makes all of them right with probability 1 − `alpha` (Šidák 1967).
///
/// At least as wide as Dunnett's intervals against a common baseline, without needing a table.
pub fn sidak(alpha: f64, comparisons: usize) -> f64 {
    1.0 - (1.0 - alpha).powf(1.0 / comparisons.max(1) as f64)
}

/// Which of the hypotheses with these p values are rejected when `alpha` bounds the chance of any wrong
/// rejection (Holm 1979).
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut rejected = vec![false; p_values.len()];
    for (done, index) in order.into_iter().enumerate() {
        if p_values[index] > alpha / (p_values.len() - done) as f64 {
            break;
        }
        rejected[index] = true;
    }
    rejected
}

/// The p values that Holm's procedure compares with the error: each is the smallest error at which its hypothesis is
/// rejected.
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut highest: f64 = 0.0;
    for (done, index) in order.into_iter().enumerate() {
        highest = highest.max((p_values[index] * (p_values.len() - done) as f64).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

/// Which of the hypotheses with these p values are rejected when at most the share `rate` of the rejected ones is
/// expected to be true (Benjamini and Hochberg 1995).
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let n = p_values.len() as f64;
    let mut ordered = p_values.to_vec();
    ordered.sort_unstable_by(f64::total_cmp);
    let cut = (1..).zip(&ordered).filter(|(rank, p)| **p <= rate * f64::from(*rank) / n).last().map(|(_, p)| *p);
    p_values.iter().map(|p| cut.is_some_and(|cut| *p <= cut)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_p_agree_with_the_procedure() {
        let p = [0.01, 0.04, 0.03, 0.005];
        let milli: Vec<f64> = holm_adjusted(&p).iter().map(|p| (p * 1000.0).round()).collect();
        assert_eq!(milli, [30.0, 60.0, 60.0, 20.0]);
        for alpha in [0.019, 0.021, 0.031, 0.059, 0.061] {
            let rejected: Vec<bool> = holm_adjusted(&p).iter().map(|p| *p <= alpha).collect();
            assert_eq!(rejected, holm(&p, alpha), "{alpha}");
        }
    }

    #[test]
    fn discoveries_are_those_of_the_published_example() {
        // The fifteen p values of Benjamini and Hochberg (1995), section 2.2: the four smallest are rejected at 0.05.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        assert_eq!(discoveries(&p, 0.05).iter().filter(|found| **found).count(), 4);
        assert_eq!(discoveries(&[0.06], 0.05), [false]);
        assert_eq!(discoveries(&[], 0.05), [false; 0]);
    }

    #[test]
    fn a_smaller_error_than_ranks_promise_has_students_interval() {
        let values = [0.3, -0.1, 0.25, 0.4, 0.05, 0.2, -0.3, 0.15, 0.35, 0.1, 0.45];
        let at = |alpha: f64| infer(&values, alpha).interval;
        // For 11 values, ranks give no error below 2/2¹¹ = 0.00098; there they reach from the smallest to the largest.
        assert_eq!((at(0.00098).low, at(0.00098).high), (-0.3, 0.45));
        // 0.04 over six cells with seven protected arms: Student's interval is wider on one side only.
        let (divided, student) = (at(0.04 / 42.0), t_interval(&values, 0.04 / 42.0));
        assert_eq!((divided.low, divided.high), (-0.3, student.high));
        assert_eq!(divided.estimate, at(0.05).estimate);
        let student = t_interval(&values, 1e-6);
        assert_eq!((at(1e-6).low, at(1e-6).high), (student.low, student.high));
        let widths = [0.05, 0.01, 0.00098, 0.00095, 1e-4, 1e-6].map(|alpha| at(alpha).half_width());
        assert!(widths.is_sorted() && widths.iter().all(|width| width.is_finite()), "{widths:?}");
    }

    #[test]
    fn a_trend_is_seen_and_its_absence_too() {
        // scipy 1.17.1: `spearmanr(range(12), values).pvalue`.
        let values = [0.3, -0.1, 0.25, 0.4, 0.05, 0.2, -0.3, 0.15, 0.35, 0.1, 0.45, 0.1];
        assert!((trend_p(&values) - 0.8797094411808867).abs() < 1e-9, "{}", trend_p(&values));
        let rising: Vec<f64> = values.iter().enumerate().map(|(i, value)| value + i as f64).collect();
        assert!(trend_p(&rising) < 1e-4);
        assert_eq!(trend_p(&[1.0; 12]), 1.0);
        // Two of 9! orders are monotone. Merged values are mostly this few.
        let falling: Vec<f64> = (0..9).map(|order| 1.0 / f64::from(order + 1)).collect();
        assert!((trend_p(&falling) - 2.0 / 362_880.0).abs() < 1e-18);
        // scipy.stats.kendalltau([0..5], […], method="exact")
        assert!((trend_p(&[2.0, 1.0, 3.0, 5.0, 4.0, 6.0]) - 0.055_555_555_555_555_55).abs() < 1e-15);
        assert!((trend_p(&[3.0, 1.0, 2.0, 5.0]) - 0.75).abs() < 1e-15);
        assert_eq!([trend_p(&[]), trend_p(&[1.0]), trend_p(&[2.0; 5])], [1.0; 3]);
    }
}
