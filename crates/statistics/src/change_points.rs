//! Where a series changes its level, with a given false-alarm rate.
//!
//! Binary segmentation (Vostrikova 1981, "Detecting 'disorder' in multidimensional random processes"): the series is
//! split where the likelihood-ratio statistic of a change in mean is largest (Worsley 1979, "On the likelihood ratio
//! test for a shift in location of normal populations"). Each part is split again, until a permutation test finds no
//! change (Antoch and Hušková 2001, "Permutation tests in change point analysis"; Matteson and James 2014 end
//! E-divisive in the same way). The test is exact for any noise: it only requires that without a change every order of
//! the values is equally likely. Its p is that of Monte Carlo tests, (1 + exceeded) ÷ (1 + drawn).
//!
//! Values are weighted by the inverse of their variance: the square of their standard error plus the variance of the
//! true values, τ² of [`random_effects`](super::random_effects). The weight is permuted with its value.
//!
//! Not detected: slow drifts, which appear as a few steps; periods; changes of the spread alone. Two opposite changes
//! that nearly cancel can hide each other from the first split, a known weakness of binary segmentation.

use tithe_model::schedule::{SplitMix64, shuffle};

use crate::random_effects::{Errors, Unit, pooled};

/// Minimum number of values on either side of a change: fewer cannot be distinguished from outliers.
pub const SIDE_MIN: usize = 3;

/// Number of orders drawn for each test, times the level of the test.
const DRAWN: f64 = 100.0;

/// The smallest level of a test: a smaller one would need too many orders.
pub const LEVEL_MIN: f64 = 1e-6;

/// Every test starts from the same seed, so the same series always has the same answer.
const SEED: u64 = 0x7469_7468_6563_7074;

/// Statistics that differ by no more than this part of themselves differ only in rounding, and count as equal.
const ROUNDING: f64 = 1e-9;

/// The smallest variance of a value: a standard error of a millionth is smaller than any difference that is reported.
const VARIANCE_MIN: f64 = 1e-12;

/// A place where the level changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub place: usize,
    /// p of no change in the part of the series that is split here.
    pub p: f64,
}

/// A value and its weight.
#[derive(Debug, Clone, Copy)]
struct Weighted {
    value: f64,
    weight: f64,
}

/// The smallest number of values with which a change can be found at `level`: eight for 0.05. Even for the clearest
/// step, two of all orders show it as clearly: with the smaller half in front or behind. No number is enough for a
/// level below [`LEVEL_MIN`].
pub fn values_min(level: f64) -> usize {
    let splits = |values: usize| {
        let half = values / 2;
        (1..=half).map(|it| (values - half + it) as f64 / it as f64).product::<f64>()
    };
    // At the smallest level it is 24.
    let enough = (2 * SIDE_MIN..=24).find(|values| 2.0 / splits(*values) <= level);
    enough.filter(|_| level >= LEVEL_MIN).unwrap_or(usize::MAX)
}

/// The changes of level in `series`, in its order. At most a share `level` of all series without a change gets one.
/// None is found at a level below [`LEVEL_MIN`] or if a value is not finite.
pub fn change_points(series: &[Unit], level: f64) -> Vec<ChangePoint> {
    let between = pooled(series, Errors::Own, 0.5).spread.estimate.powi(2);
    let weight = |unit: &Unit| 1.0 / (unit.variance + between).max(VARIANCE_MIN);
    let weighted = series.iter().map(|unit| Weighted { value: unit.effect, weight: weight(unit) });
    let weighted: Vec<Weighted> = weighted.collect();
    let (mut found, mut stretches) = (Vec::new(), vec![(0, weighted.len())]);
    while let Some((start, end)) = stretches.pop() {
        let values = &weighted[start..end];
        if values.len() < values_min(level) {
            continue;
        }
        let Some((at, statistic)) = largest(values) else { continue };
        let Some(p) = significant(values, statistic, level) else { continue };
        let place = start + at;
        found.push(ChangePoint { place, p });
        stretches.extend([(start, place), (place, end)]);
    }
    found.sort_by_key(|change| change.place);
    found
}

/// The first split of `values` with the largest statistic, as the index of the first value behind it; `None` if there
/// are too few.
fn largest(values: &[Weighted]) -> Option<(usize, f64)> {
    let last = values.len().checked_sub(SIDE_MIN).filter(|last| *last >= SIDE_MIN)?;
    let all = values.iter().map(|it| it.weight).sum::<f64>();
    let mean = values.iter().map(|it| it.weight * it.value).sum::<f64>() / all;
    let (mut weight, mut sum, mut best) = (0.0, 0.0, (SIDE_MIN, 0.0));
    for (index, it) in values.iter().enumerate().take(last) {
        weight += it.weight;
        sum += it.weight * (it.value - mean);
        // The square of the difference of both means over its variance, written in terms of the left sum alone.
        let statistic = sum * sum * all / (weight * (all - weight));
        if index + 1 >= SIDE_MIN && statistic > best.1 * (1.0 + ROUNDING) {
            best = (index + 1, statistic);
        }
    }
    Some(best)
}

/// p of a split of `values` with `statistic`, if it is at most `level`.
fn significant(values: &[Weighted], statistic: f64, level: f64) -> Option<f64> {
    let drawn = (DRAWN / level).ceil();
    let exceeded_most = (level * (drawn + 1.0)).floor() - 1.0;
    let (mut random, mut order, mut exceeded) = (SplitMix64::new(SEED), values.to_vec(), 0.0);
    let as_large = statistic * (1.0 - ROUNDING);
    for _ in 0..drawn as u64 {
        shuffle(&mut order, &mut random);
        if largest(&order).is_some_and(|(_, other)| other >= as_large) {
            exceeded += 1.0;
        }
        // The remaining draws cannot change the answer (Besag and Clifford 1991).
        if exceeded > exceeded_most {
            return None;
        }
    }
    Some((1.0 + exceeded) / (1.0 + drawn))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVEL: f64 = 0.05;

    fn places(values: &[f64]) -> Vec<usize> {
        let series: Vec<Unit> = values.iter().map(|value| Unit { effect: *value, variance: 0.0 }).collect();
        change_points(&series, LEVEL).iter().map(|change| change.place).collect()
    }

    /// A random number with heavy tails (Student's t with three degrees of freedom).
    fn heavy(random: &mut SplitMix64) -> f64 {
        let mut normal = || {
            let [one, other] = [random.next_f64(), random.next_f64()];
            (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
        };
        let squares: f64 = (0..3).map(|_| normal().powi(2)).sum();
        normal() / (squares / 3.0).sqrt()
    }

    /// The annual flow of the Nile at Aswan, 1871 to 1970, 10^8 m³ (Cobb 1978, "The problem of the Nile"): it fell in
    /// 1899, when the first dam was built.
    #[test]
    fn the_nile_changed_its_level_in_1899() {
        let flow = [
            1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958,
            1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020,
            1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796,
            1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848,
            890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
        ];
        assert_eq!(flow.len(), 100);
        assert_eq!(places(&flow.map(f64::from)), [1899 - 1871]);
    }

    #[test]
    fn of_series_without_a_change_at_most_the_level_has_one() {
        let mut random = SplitMix64::new(7);
        let alarms = |length: u64, random: &mut SplitMix64| {
            // Values with random precision: without a change all orders are equally likely.
            let unit = |random: &mut SplitMix64| {
                let error = 0.2 + 2.0 * random.next_f64();
                Unit { effect: heavy(random) * error, variance: error * error }
            };
            let series = || (0..length).map(|_| unit(random)).collect::<Vec<Unit>>();
            std::iter::repeat_with(series).take(200).filter(|series| !change_points(series, LEVEL).is_empty()).count()
        };
        let alarms: Vec<usize> = [8, 12, 30].map(|length| alarms(length, &mut random)).to_vec();
        // At most 30 of 600 series are expected; 46 is three standard deviations more.
        assert!(alarms.iter().sum::<usize>() <= 46, "{alarms:?}");
        assert!(alarms.iter().sum::<usize>() >= 5, "it never alarms: {alarms:?}");
    }

    #[test]
    fn a_constant_series_has_no_change_and_a_short_one_cannot_have() {
        assert!(places(&[3.0; 40]).is_empty());
        assert!(places(&[]).is_empty());
        // Of the 35 splits of seven values into three and four, two show the step at its clearest.
        assert!(places(&[0.0, 0.1, 0.2, 9.0, 9.1, 9.2, 9.3]).is_empty());
        assert_eq!(places(&[0.0, 0.1, 0.2, 9.0, 9.1, 9.2, 9.3, 9.4]), [3]);
        assert_eq!([0.05, 0.01, 0.001].map(values_min), [8, 10, 14]);
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut values: Vec<f64> = (0..20).map(|number| f64::from(number % 5)).collect();
        values[19] = 60.0;
        assert!(places(&values).is_empty());
        values[10] = 60.0;
        assert!(places(&values).is_empty());
    }

    /// A symmetric series has two equally good splits, whose statistics differ in rounding.
    #[test]
    fn of_equally_good_splits_the_first_is_found_whatever_unit_and_zero_are() {
        let values = [0, 1, 0, 1, 0, 40, 41, 40, 41, 40, 41, 40, 0, 1, 0, 1, 0].map(f64::from);
        for zero in (0..100).map(|number| f64::from(number) * 0.37) {
            let series: Vec<Weighted> =
                values.iter().map(|value| Weighted { value: 0.3 * value + zero, weight: 1.0 / 3.0 }).collect();
            assert_eq!(largest(&series).map(|(at, _)| at), Some(5), "{zero}");
        }
    }

    #[test]
    fn imprecise_values_weigh_less() {
        let step = |variance: f64| {
            let unit = |number: usize| match number {
                0..8 => Unit { effect: 0.001 * (number % 2) as f64, variance: 1e-6 },
                _ => Unit { effect: 1.0 + 0.001 * (number % 2) as f64, variance },
            };
            change_points(&(0..11).map(unit).collect::<Vec<_>>(), LEVEL).len()
        };
        assert_eq!(step(1e-6), 1);
        // Three values that could belong to the level before are not a new one.
        assert_eq!(step(4.0), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_step_is_found_where_it_is(
            before in proptest::collection::vec(-1.0..1.0f64, 5..30),
            after in proptest::collection::vec(-1.0..1.0f64, 5..30),
            height in prop_oneof![-60.0..-20.0f64, 20.0..60.0f64],
        ) {
            let values: Vec<f64> = before.iter().copied().chain(after.iter().map(|value| value + height)).collect();
            prop_assert!(places(&values).contains(&before.len()), "{:?}", places(&values));
        }

        #[test]
        fn neither_unit_nor_zero_matters(
            values in proptest::collection::vec(-1.0..1.0f64, 8..24),
            step in -3.0..3.0f64,
            shift in -64..64_i32,
        ) {
            let half = values.len() / 2;
            let stepped = |(index, value): (usize, &f64)| if index < half { *value } else { value + step };
            let values = values.iter().enumerate().map(stepped).map(|value| (value * 1024.0).round());
            let values: Vec<f64> = values.collect();
            let other: Vec<f64> = values.iter().map(|value| 4.0 * value + f64::from(shift)).collect();
            prop_assert_eq!(places(&values), places(&other));
        }
    }
}
