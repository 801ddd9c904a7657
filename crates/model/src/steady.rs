//! When a warm-up has ended: the test of a steady state.
//!
//! After a start a server is not in its long-run state: its compiler is at work, its caches are empty, each page is
//! logged in full again. Load that does not count is offered in *windows*, each of which gives one value of a quantity,
//! such as operations per second of processor time. The warm-up ends when **its second half is flat**: when the values
//! of its last quarter are shown to differ by less than [`BOUND`] from those of the quarter before.
//!
//! * *Shown*, and not merely not refuted: noise hides a trend from any test for one, and a limit on the spread of the
//!   last windows (the coefficient of variation of Georges, Buytaert and Eeckhout, "Statistically rigorous Java
//!   performance evaluation", OOPSLA 2007) is never met on a busy machine. So it is a test of equivalence: two
//!   one-sided tests at 5 % (Schuirmann 1987), that is, the 90 % interval of the shift must lie within the bound. The
//!   interval is that of Hodges and Lehmann (1963) for two samples, which one window with a garbage collection does not
//!   move.
//! * The *half grows with the warm-up*, so there is no time scale to choose. After a step at some time, the warm-up
//!   continues until about twice that time. Of an exponential approach, less than the bound remains
//!   (`of_an_approach_less_than_the_bound_is_left`).
//! * *A change that has not begun is not predicted*: some programs never become steady, and some do so twice (Barrett
//!   et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017). A drift that is slow compared with the warm-up
//!   is not detected either. That is why warm-ups have a maximum, and why intervals are computed from several starts.
//!
//! It is in this crate because it decides when load begins to count, as the schedule decides the order; no figure of a
//! report is computed with it.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Largest change from the third to the last quarter of a finished warm-up, natural-log ratio: about a tenth.
pub const BOUND: f64 = 0.1;

/// Fewest windows of a quarter: three and three values are the fewest that give an interval at 90 %.
const QUARTER_MIN: usize = 3;

/// The fewest windows of a warm-up that give a result.
pub const WINDOWS_TELL: usize = 4 * QUARTER_MIN;

/// The normal quantile of 95 %, for the ends of a 90 % interval.
const Z: f64 = 1.644_853_626_951_472_7;

/// The normal quantile of 98.75 %: 5 % shared by four tests, which are the two quantities of two arms.
const Z_TREND: f64 = 2.241_402_727_604_945;

/// The state of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Steadiness {
    /// Its second half is flat.
    Steady,
    /// It is too short or too noisy for a result.
    Unclear,
    /// Its second half certainly rises or falls, by its trend and from quarter to quarter, and perhaps by more than the
    /// bound.
    Changing,
}

/// How a quantity changed from the third quarter of a warm-up to the last, natural-log ratio with its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Hodges–Lehmann estimate: the median of all differences between the two quarters.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Kendall's statistic of the trend over both quarters, in standard deviations from none; negative if values fall.
    pub trend: f64,
}

impl Change {
    /// The change of the quantity with these `values`, all above zero and one per window; `None` if there are too few.
    pub fn of(values: &[f64]) -> Option<Self> {
        let quarter = values.len() / 4;
        if quarter < QUARTER_MIN {
            return None;
        }
        let half: Vec<f64> = values[values.len() - 2 * quarter..].iter().map(|value| value.ln()).collect();
        let (third, last) = half.split_at(quarter);
        let mut shifts: Vec<f64> = third.iter().flat_map(|from| last.iter().map(move |to| to - from)).collect();
        shifts.sort_by(f64::total_cmp);
        let outside = outside(quarter);
        Some(Self {
            estimate: (shifts[(shifts.len() - 1) / 2] + shifts[shifts.len() / 2]) / 2.0,
            low: shifts[outside],
            high: shifts[shifts.len() - 1 - outside],
            trend: trend(&half),
        })
    }

    /// The resulting state of the warm-up.
    pub fn steadiness(&self) -> Steadiness {
        match () {
            () if self.low >= -BOUND && self.high <= BOUND => Steadiness::Steady,
            () if self.low > 0.0 && self.trend >= Z_TREND => Steadiness::Changing,
            () if self.high < 0.0 && self.trend <= -Z_TREND => Steadiness::Changing,
            () => Steadiness::Unclear,
        }
    }
}

/// Windows of each warm-up that are compared with its end.
const TOGETHER: usize = 3;

/// The fewest windows after which a quantity is at its final value, according to several warm-ups of servers on the
/// same data, one series of values each; `None` if no number is shown to be enough.
///
/// A single warm-up needs at least [`WINDOWS_TELL`] windows to show that it has ended. Several that follow the same
/// course need fewer. After `w` windows a quantity counts as arrived if two means are each shown to differ from the
/// mean of the second half by less than [`BOUND`]: that of the next three windows, and that of all windows from there
/// to the second half (two one-sided tests at 5 %, as [`Change`]). Each warm-up is compared with its own end, so that
/// servers of different speed do not count as a change; the scatter of windows is estimated from all.
pub fn enough(warm_ups: &[Vec<f64>]) -> Option<usize> {
    let half = warm_ups.iter().map(|values| values.len() / 2).min()?;
    if half < TOGETHER {
        return None;
    }
    let logs: Vec<Vec<f64>> = warm_ups.iter().map(|values| values.iter().map(|value| value.ln()).collect()).collect();
    let is_at_end = |windows: Range<usize>| {
        let groups = || logs.iter().map(|logs| (&logs[windows.clone()], &logs[logs.len() - half..]));
        let count = logs.len() as f64;
        let shift = groups().map(|(early, end)| mean(early) - mean(end)).sum::<f64>() / count;
        let (early, end) = (windows.len() as f64, half as f64);
        let degrees = count * (early + end - 2.0);
        let variance = groups().map(|(early, end)| deviations(early) + deviations(end)).sum::<f64>() / degrees;
        let error = (variance / count * (1.0 / early + 1.0 / end)).sqrt();
        shift.abs() + t_95(degrees) * error < BOUND
    };
    let has_arrived = |window: &usize| is_at_end(*window..*window + TOGETHER) && is_at_end(*window..half);
    (0..=half - TOGETHER).find(has_arrived)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of the squares of the deviations from the mean.
fn deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Student's quantile of 95 % for this many degrees of freedom, by its expansion (Abramowitz and Stegun 26.7.5, two
/// terms): 0.16 too small for two degrees, 0.02 for four.
fn t_95(degrees: f64) -> f64 {
    let (cube, fifth) = (Z.powi(3), Z.powi(5));
    Z + (cube + Z) / (4.0 * degrees) + (5.0 * fifth + 16.0 * cube + 3.0 * Z) / (96.0 * degrees.powi(2))
}

/// Kendall's statistic of `values` over their order, in standard deviations from none, by its normal approximation with
/// correction for continuity (Mann 1945, "Nonparametric tests against trend"). The interval between two quarters of
/// three windows leaves zero out once in ten times by chance, and a warm-up has that chance for each arm and quantity.
fn trend(values: &[f64]) -> f64 {
    let sign = |(from, to): (f64, f64)| f64::from(i8::from(to > from) - i8::from(to < from));
    let later = |(number, from): (usize, &f64)| values[number + 1..].iter().map(|to| sign((*from, *to))).sum::<f64>();
    let statistic: f64 = values.iter().enumerate().map(later).sum();
    let count = values.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    statistic.signum() * (statistic.abs() - 1.0).max(0.0) / deviation
}

/// Differences that lie outside the interval at either end, of two samples of size `each`: one less than the lower
/// critical value of the rank sum at 5 %, by its normal approximation (Hollander and Wolfe, section 4.3), which is
/// exact or one too few for small samples.
fn outside(each: usize) -> usize {
    let each = each as f64;
    let critical = each * each / 2.0 - Z * (each * each * (2.0 * each + 1.0) / 12.0).sqrt();
    (critical as usize).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::SplitMix64;

    /// Approximately normal: a sum of twelve uniform numbers minus its mean.
    fn normal(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0
    }

    /// Window at which a warm-up along `curve` (natural logarithms by window) with this noise ends, at most `cap`.
    fn ends(curve: impl Fn(usize) -> f64, noise: f64, cap: usize, random: &mut SplitMix64) -> Option<usize> {
        let mut values = Vec::new();
        (0..cap).find_map(|window| {
            values.push((curve(window) + noise * normal(random)).exp());
            let change = Change::of(&values)?;
            (change.steadiness() == Steadiness::Steady).then_some(window + 1)
        })
    }

    #[test]
    fn several_warm_ups_say_together_what_is_enough() {
        let mut random = SplitMix64::new(7);
        // An exponential approach from half the speed, with a time constant of one and a half windows.
        let approach = |window: usize| -0.7 * (-(window as f64) / 1.5).exp();
        let mut warm_up = |curve: &dyn Fn(usize) -> f64, noise: f64, level: f64| -> Vec<f64> {
            (0..16).map(|window| (level + curve(window) + noise * normal(&mut random)).exp()).collect()
        };
        let flat = |_: usize| 0.0;
        assert_eq!(enough(&[warm_up(&flat, 0.01, 0.0), warm_up(&flat, 0.01, 0.4)]), Some(0));
        let approached = enough(&[warm_up(&approach, 0.01, 0.0), warm_up(&approach, 0.01, 0.4)]);
        // After this many windows about the bound remains of the approach.
        assert!(approached.is_some_and(|windows| (2..=4).contains(&windows)), "{approached:?}");
        // With a step, no window before it is enough.
        let step = |window: usize| if window < 5 { -0.5 } else { 0.0 };
        assert_eq!(enough(&[warm_up(&step, 0.01, 0.0), warm_up(&step, 0.01, 0.0)]), Some(5));
        // One quiet warm-up is enough by itself.
        assert_eq!(enough(&[warm_up(&flat, 0.01, 0.0)]), Some(0));
        // With noise or too few windows there is no result.
        assert_eq!(enough(&[warm_up(&flat, 0.5, 0.0), warm_up(&flat, 0.5, 0.0)]), None);
        assert_eq!(enough(&[vec![1.0; 5], vec![1.0; 5]]), None);
        assert_eq!(enough(&[]), None);
        // Many noisy ones give a result that few cannot: that it is flat, and that it is not.
        let mut many = |curve: &dyn Fn(usize) -> f64| {
            let warm_ups: Vec<Vec<f64>> = (0..16).map(|_| warm_up(curve, 0.12, 0.0)).collect();
            enough(&warm_ups)
        };
        assert_eq!(many(&flat), Some(0));
        assert_eq!(many(&|window| if window < 5 { -0.4 } else { 0.0 }), Some(5));
    }

    #[test]
    fn what_is_not_enough_is_hardly_ever_called_so() {
        // A quantity that ends one bound above its value in every window of the first half.
        let mut random = SplitMix64::new(3);
        let wrong = (0..1000).filter(|_| {
            let warm_ups: Vec<Vec<f64>> = (0..8)
                .map(|_| {
                    let curve = |window: usize| if window < 6 { -BOUND } else { 0.0 };
                    (0..12).map(|window| (curve(window) + 0.08 * normal(&mut random)).exp()).collect()
                })
                .collect();
            enough(&warm_ups).is_some()
        });
        // Four windows are tried, each at 5 %, and their values overlap.
        let wrong = wrong.count();
        assert!(wrong <= 100, "{wrong} of 1,000");
    }

    /// For 400 warm-ups of at most 100 windows: the share that ended while more than `left` of the curve remained, the
    /// share that did not end, and the median end.
    fn drawn(curve: impl Fn(usize) -> f64 + Copy, noise: f64, left: f64) -> (f64, f64, usize) {
        const DRAWS: usize = 400;
        let mut random = SplitMix64::new(20);
        let ended: Vec<Option<usize>> = (0..DRAWS).map(|_| ends(curve, noise, 100, &mut random)).collect();
        let too_early = |end: &&Option<usize>| end.is_some_and(|end| (curve(10_000) - curve(end)).abs() > left);
        let mut ends: Vec<usize> = ended.iter().map(|end| end.unwrap_or(usize::MAX)).collect();
        ends.sort_unstable();
        let share = |count: usize| count as f64 / DRAWS as f64;
        (
            share(ended.iter().filter(too_early).count()),
            share(ended.iter().filter(|end| end.is_none()).count()),
            ends[DRAWS / 2],
        )
    }

    /// A server that becomes six times as fast, exponentially with this many windows as time constant.
    fn approach(windows: f64) -> impl Fn(usize) -> f64 + Copy {
        move |window| -(6_f64.ln()) * (-(window as f64) / windows).exp()
    }

    #[test]
    fn of_an_approach_less_than_the_bound_is_left() {
        for (windows, noise, median) in
            [(5.0, 0.0, 20..=26), (5.0, 0.05, 22..=30), (10.0, 0.0, 42..=50), (10.0, 0.05, 44..=54)]
        {
            let (too_early, without_end, end) = drawn(approach(windows), noise, BOUND);
            assert!(too_early <= 0.01, "{windows}, {noise}: {too_early} ended too early");
            assert!(without_end <= 0.02 && median.contains(&end), "{windows}, {noise}: {without_end}, median {end}");
        }
    }

    #[test]
    fn what_is_flat_ends_soon_and_the_sooner_the_quieter_it_is() {
        let flat = |_| 0.0;
        for (noise, median) in [(0.0, 12..=12), (0.02, 12..=12), (0.05, 12..=24), (0.08, 24..=48)] {
            let (_, without_end, end) = drawn(flat, noise, BOUND);
            assert!(without_end <= 0.02 && median.contains(&end), "{noise}: {without_end}, median {end}");
        }
    }

    #[test]
    fn a_step_is_waited_for_until_it_is_as_old_as_it_came_late() {
        for step in [4, 8, 11] {
            let curve = |window| if window < step { -0.3 } else { 0.0 };
            let (too_early, _, end) = drawn(curve, 0.05, BOUND);
            assert!(too_early <= 0.01 && end >= 2 * step - 2, "{step}: {too_early}, median {end}");
        }
        // Two steps, as of a compiler that works twice.
        let twice =
            |second| move |window: usize| [-0.5, -0.2, 0.0][usize::from(window >= 5) + usize::from(window >= second)];
        let (too_early, _, end) = drawn(twice(9), 0.02, BOUND);
        assert!(too_early <= 0.01 && end >= 15, "{too_early}, median {end}");
        // A change that has not begun is not predicted.
        let (too_early, _, _) = drawn(twice(20), 0.02, BOUND);
        assert!(too_early >= 0.9, "{too_early}");
    }

    #[test]
    fn a_slow_drift_is_no_reason_to_wait_and_a_fast_one_never_ends() {
        let drift = |each: f64| move |window: usize| each * window as f64;
        let (_, without_end, end) = drawn(drift(0.001), 0.02, f64::INFINITY);
        assert!(without_end == 0.0 && end == 12, "{without_end}, median {end}");
        // At the 12th window, two adjacent quarters already differ by the bound.
        let (too_early, without_end, _) = drawn(drift(BOUND / 3.0), 0.02, 0.0);
        assert!(too_early <= 0.05 && without_end >= 0.95, "{too_early}, {without_end}");
    }

    #[test]
    fn what_rises_is_told_from_what_cannot_be_told() {
        let steadiness = |values: &[f64]| Change::of(values).map(|change| change.steadiness());
        let rising: Vec<f64> = (0..16).map(|window| 1.1_f64.powi(window)).collect();
        let noisy: Vec<f64> = (0..16).map(|window| if window % 2 == 0 { 1.0 } else { 1.5 }).collect();
        assert_eq!(steadiness(&rising), Some(Steadiness::Changing));
        assert_eq!(steadiness(&noisy), Some(Steadiness::Unclear));
        assert_eq!(steadiness(&[3.0; 12]), Some(Steadiness::Steady));
        assert_eq!(steadiness(&[3.0; 11]), None);
        assert!(Steadiness::Changing > Steadiness::Unclear && Steadiness::Unclear > Steadiness::Steady);
    }

    // Expected values: (S - 1) / sqrt(n (n - 1) (2 n + 5) / 18) by hand; Kendall's table has 1/720 and 6/720 for S of
    // at least 15 and 13 of six values, the normal approximation 0.0043 and 0.0121.
    #[test]
    fn a_trend_is_kendalls_statistic() {
        let of = |values: &[f64]| (trend(values) * 1000.0).round();
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2630.0);
        assert_eq!(of(&[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), -2630.0);
        assert_eq!(of(&[2.0, 1.0, 3.0, 4.0, 5.0, 6.0]), 2254.0);
        assert_eq!(of(&[2.0, 1.0, 3.0, 4.0, 6.0, 5.0]), 1879.0);
        assert_eq!(of(&[1.0; 6]), 0.0);
    }

    #[test]
    fn noise_is_hardly_ever_called_a_change_and_a_steep_course_nearly_always() {
        // The second half of twelve windows of four series, as of two arms with two quantities.
        let mut random = SplitMix64::new(11);
        let mut changing = |drift: f64| {
            let mut series = || {
                let value = |it: i32| (drift * f64::from(it) + 0.1 * normal(&mut random)).exp();
                let values: Vec<f64> = (0..12).map(value).collect();
                Change::of(&values).is_some_and(|change| change.steadiness() == Steadiness::Changing)
            };
            (0..1000).filter(|_| (0..4).any(|_| series())).count()
        };
        let by_chance = changing(0.0);
        assert!(by_chance <= 100, "{by_chance} of 1,000");
        let steep = changing(0.15);
        assert!(steep >= 950, "{steep} of 1,000");
    }

    #[test]
    fn intervals_leave_out_what_tables_of_the_rank_sum_say_or_one_less() {
        // Lower critical values at 5 % one-sided (Mann and Whitney 1947): 0, 1, 4, 7, 11, 15, 21, 27.
        let tables = [0, 1, 4, 7, 11, 15, 21, 27];
        let seen: Vec<usize> = (3..=10).map(outside).collect();
        assert!(seen.iter().zip(tables).all(|(seen, table)| *seen == table || seen + 1 == table), "{seen:?}");
    }

    // Expected values: `qt(0.95, c(4, 6, 10, 20, 100))` of R 4.
    #[test]
    fn quantiles_are_those_of_tables_as_far_as_is_said() {
        let tables = [(4.0, 2.13185, 0.02), (6.0, 1.94318, 0.006), (10.0, 1.81246, 0.0012), (20.0, 1.72472, 0.0002)];
        for (degrees, table, error) in tables.into_iter().chain([(100.0, 1.66023, 0.0001)]) {
            let short = table - t_95(degrees);
            assert!((-0.0001..error).contains(&short), "{degrees}: {short}");
        }
    }

    proptest! {
        #[test]
        fn no_unit_and_nothing_before_the_second_half_matters(
            values in proptest::collection::vec(0.1_f64..10.0, 12..60), unit in 0.01_f64..100.0
        ) {
            let change = Change::of(&values).expect("enough");
            let scaled = Change::of(&values.iter().map(|value| value * unit).collect::<Vec<_>>()).expect("enough");
            prop_assert!((change.estimate - scaled.estimate).abs() < 1e-9 && (change.low - scaled.low).abs() < 1e-9);
            let mut others = values.clone();
            others[..values.len() - values.len() / 4 * 2].fill(1.0);
            prop_assert_eq!(Change::of(&others), Some(change));
            prop_assert!(change.low <= change.estimate && change.estimate <= change.high);
        }

        #[test]
        fn a_rise_is_a_fall_upside_down(values in proptest::collection::vec(0.1_f64..10.0, 12..60)) {
            let inverse: Vec<f64> = values.iter().map(|value| 1.0 / value).collect();
            let (up, down) = (Change::of(&values).expect("enough"), Change::of(&inverse).expect("enough"));
            prop_assert!((up.estimate + down.estimate).abs() < 1e-9 && (up.low + down.high).abs() < 1e-9);
            prop_assert_eq!(up.steadiness(), down.steadiness());
        }
    }
}
