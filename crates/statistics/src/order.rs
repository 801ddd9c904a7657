//! Statistics of ranks: midmean, quantile, Walsh averages, the signed-rank distribution.

use std::sync::OnceLock;

use crate::{
    distribution::{binomial_quantile, normal_tail, normal_upper},
    interval::Interval,
};

/// Above this many values the signed-rank distribution is taken from its normal approximation.
const EXACT_UP_TO: usize = 200;

/// The share that the midmean drops at each end.
const TRIM: f64 = 0.25;

/// The midmean: the mean without the lowest and the highest quarter (rounded down) of the values.
///
/// On measured frames it gives narrower intervals than mean, trimmed mean and median, and a stall in one slot cannot
/// move it. NaN for no values.
pub fn midmean(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let cut = (TRIM * sorted.len() as f64).floor() as usize;
    crate::mean(&sorted[cut..sorted.len() - cut])
}

/// The `share` quantile, linear between order statistics at (n − 1)·share: Hyndman and Fan's type 7, numpy's default.
///
/// NaN for no values.
pub fn quantile7(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = last as f64 * share;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// Ranks from 1 whose order statistics enclose the `share` quantile of `n` independent values with confidence
/// 1 − `alpha`; `None` when there are too few.
///
/// For display of one arm only: latencies of consecutive operations are not independent.
pub fn order_statistic_ranks(n: u64, share: f64, alpha: f64) -> Option<(u64, u64)> {
    let low = binomial_quantile(alpha / 2.0, n, share);
    let high = binomial_quantile(1.0 - alpha / 2.0, n, share) + 1;
    (low >= 1 && high <= n).then_some((low, high))
}

/// The median of `values` with the order-statistic interval of confidence 1 − `alpha`.
///
/// The ends are infinite when there are too few values. The median of no values is NaN.
pub fn median_interval(values: &[f64], alpha: f64) -> Interval {
    let estimate = quantile7(values, 0.5);
    let sorted = sorted(values);
    match order_statistic_ranks(sorted.len() as u64, 0.5, alpha) {
        Some((low, high)) => Interval { estimate, low: sorted[low as usize - 1], high: sorted[high as usize - 1] },
        None => Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY },
    }
}

/// The largest k with P(W ≤ k − 1) ≤ `alpha`/2, W being Wilcoxon's signed-rank statistic of `n` untied values.
///
/// The interval of confidence 1 − `alpha` reaches from the k-th smallest to the k-th largest Walsh average;
/// 0 means that no interval of that confidence exists. Exact up to 200 values, normal above.
pub fn signed_rank_cut(n: usize, alpha: f64) -> u64 {
    if n > EXACT_UP_TO {
        let (mean, deviation) = signed_rank_moments(n);
        return (mean - normal_upper(alpha / 2.0) * deviation).floor().max(0.0) as u64;
    }
    let mut cumulated = 0.0;
    let within = signed_rank_distribution(n).iter().take_while(|chance| {
        cumulated += *chance;
        cumulated <= alpha / 2.0
    });
    within.count() as u64
}

/// Two-sided p of Wilcoxon's signed-rank test of symmetry about 0; zeros are dropped, ties share their mean rank.
pub fn signed_rank_p(values: &[f64]) -> f64 {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
    let n = values.len();
    if n == 0 {
        return 1.0;
    }
    values.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (mut positive, mut negative, mut below) = (0.0, 0.0, 0.0);
    for tied in values.chunk_by(|a, b| a.abs() == b.abs()) {
        let rank = below + (tied.len() as f64 + 1.0) / 2.0;
        below += tied.len() as f64;
        let above_zero = tied.iter().filter(|value| **value > 0.0).count() as f64;
        positive += rank * above_zero;
        negative += rank * (tied.len() as f64 - above_zero);
    }
    let smaller = f64::min(positive, negative);
    let tail = if n <= EXACT_UP_TO {
        signed_rank_distribution(n)[..=smaller.floor() as usize].iter().sum()
    } else {
        let (mean, deviation) = signed_rank_moments(n);
        normal_tail((mean - smaller - 0.5) / deviation)
    };
    (2.0 * tail).min(1.0)
}

/// The Hodges–Lehmann estimate (median of the Walsh averages) with the exact signed-rank interval.
///
/// Hodges and Lehmann 1963; the interval is Tukey's. Values that are not finite are left out. No values give NaN; too
/// few values for `alpha` give infinite ends.
///
/// The n(n + 1)/2 averages are never computed: bisection over all floating-point numbers finds the k-th smallest,
/// counting the averages below in one pass over the sorted values. That is at most 64 passes and exact to the bit. It
/// takes a millisecond for the 3,600 frames of an hour.
pub fn hodges_lehmann(values: &[f64], alpha: f64) -> Interval {
    let sorted = sorted_finite(values);
    let estimate = walsh_median(&sorted);
    if sorted.is_empty() {
        return Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let averages = walsh_averages(&sorted);
    let (low, high) = match signed_rank_cut(sorted.len(), alpha) {
        0 => (f64::NEG_INFINITY, f64::INFINITY),
        cut => (walsh_average(&sorted, cut), walsh_average(&sorted, averages + 1 - cut)),
    };
    Interval { estimate, low, high }
}

/// The estimate of [`hodges_lehmann`] alone, without the cost of its interval.
pub fn hodges_lehmann_estimate(values: &[f64]) -> f64 {
    walsh_median(&sorted_finite(values))
}

/// The finite values in ascending order.
fn sorted_finite(values: &[f64]) -> Vec<f64> {
    sorted(&values.iter().copied().filter(|value| value.is_finite()).collect::<Vec<_>>())
}

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// P(W = 0), P(W = 1), … of the signed-rank statistic of `n` values, at most [`EXACT_UP_TO`]: each rank joins the sum
/// with probability one half.
///
/// Computed once for each `n`: it takes n³/6 steps, and every figure of a report needs it.
fn signed_rank_distribution(n: usize) -> &'static [f64] {
    static MADE: [OnceLock<Vec<f64>>; EXACT_UP_TO + 1] = [const { OnceLock::new() }; EXACT_UP_TO + 1];
    MADE[n].get_or_init(|| {
        let mut chances = vec![0.0; n * (n + 1) / 2 + 1];
        chances[0] = 1.0;
        let mut reach = 0;
        for rank in 1..=n {
            reach += rank;
            // Downwards, so that `chances[sum - rank]` is still the one without this rank.
            for sum in (0..=reach).rev() {
                let joined = if sum >= rank { chances[sum - rank] } else { 0.0 };
                chances[sum] = (chances[sum] + joined) / 2.0;
            }
        }
        chances
    })
}

/// Mean and standard deviation of the signed-rank statistic.
fn signed_rank_moments(n: usize) -> (f64, f64) {
    let n = n as f64;
    (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt())
}

/// How many Walsh averages `sorted` has.
fn walsh_averages(sorted: &[f64]) -> u64 {
    sorted.len() as u64 * (sorted.len() as u64 + 1) / 2
}

/// The median of the Walsh averages; NaN for no values.
fn walsh_median(sorted: &[f64]) -> f64 {
    let averages = walsh_averages(sorted);
    if averages == 0 {
        return f64::NAN;
    }
    let lower = walsh_average(sorted, averages.div_ceil(2));
    if averages % 2 == 1 { lower } else { (lower + walsh_average(sorted, averages / 2 + 1)) / 2.0 }
}

/// The `rank`-th smallest (from 1) of all (a + b)/2 over pairs of `sorted`, each value also paired with itself.
fn walsh_average(sorted: &[f64], rank: u64) -> f64 {
    let (mut low, mut high) = (ordinal(sorted[0]), ordinal(sorted[sorted.len() - 1]));
    while low < high {
        let middle = low + (high - low) / 2;
        if averages_up_to(sorted, from_ordinal(middle)) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    from_ordinal(low)
}

/// How many Walsh averages are at most `bound`.
///
/// Rounded addition never decreases when a summand grows, so one pointer from each end is enough.
fn averages_up_to(sorted: &[f64], bound: f64) -> u64 {
    let mut count = 0;
    let mut end = sorted.len();
    for (start, value) in sorted.iter().enumerate() {
        while end > start && (value + sorted[end - 1]) / 2.0 > bound {
            end -= 1;
        }
        if end <= start {
            break;
        }
        count += (end - start) as u64;
    }
    count
}

/// The position of a finite number among all floating-point numbers: keeps order, loses nothing.
fn ordinal(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The number at a position that [`ordinal`] gave, or between two of them.
fn from_ordinal(ordinal: u64) -> f64 {
    f64::from_bits(if ordinal >> 63 == 1 { ordinal & !(1 << 63) } else { !ordinal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn walsh_averages_are_those_of_sorting(values in vec(-1e3..1e3f64, 1..40), tied in any::<bool>()) {
            let tie = |value: &f64| if tied { value.round() / 64.0 } else { *value };
            let sorted_values = sorted(&values.iter().map(tie).collect::<Vec<_>>());
            let mut all = Vec::new();
            for (i, a) in sorted_values.iter().enumerate() {
                all.extend(sorted_values[i..].iter().map(|b| (a + b) / 2.0));
            }
            for (rank, expected) in sorted(&all).into_iter().enumerate() {
                prop_assert_eq!(walsh_average(&sorted_values, rank as u64 + 1), expected);
            }
        }
    }

    #[test]
    fn normal_and_exact_cut_agree_where_they_meet() {
        // The exact cut of 200 values is 8,445; the approximation may differ by a rank or two.
        let (mean, deviation) = signed_rank_moments(200);
        let approximate = (mean - normal_upper(0.025) * deviation).floor();
        assert!((approximate - signed_rank_cut(200, 0.05) as f64).abs() <= 3.0, "{approximate}");
    }

    #[test]
    fn signed_rank_p_of_many_values_is_near_that_of_few() {
        // 201 values leave the exact table; 200 of the same pattern stay in it.
        let values = |n: i32| (1..=n).map(|i| f64::from(i) * if i % 5 < 2 { -1.0 } else { 1.0 }).collect::<Vec<_>>();
        let (few, many) = (signed_rank_p(&values(200)), signed_rank_p(&values(205)));
        assert!(few > many && many > few / 2.0, "{few} {many}");
    }
}
