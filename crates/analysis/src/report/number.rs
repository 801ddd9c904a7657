//! Formats of numbers, for all media.
//!
//! [`tithe_model::quantity`] formats quantities that are one number. A figure has two parts, the estimate and its
//! interval, because a table aligns them separately.

use tithe_model::quantity::{MINUS, decimals, fixed, percentage, readable, with_unit};
pub use tithe_model::quantity::{amount, count, duration, memory};
pub use tithe_statistics::verdict::{digits, percent};

use crate::{Interval, Outcome};

/// From here on a cost is written as a factor (`×6.4`) instead of a percentage: twice the plain level.
const FACTOR_FROM: f64 = std::f64::consts::LN_2;

/// The text if there are too few frames, or groups of them, for an interval.
const TOO_FEW: &str = "not enough data";

/// A number and the text around it, ready for a table: `+3.1 %` and `[2.6, 3.7]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The estimate with its unit, or `~` if the interval is too wide to give one.
    pub lead: String,
    /// The interval in the unit of the estimate, or the range in words.
    pub rest: String,
}

impl std::fmt::Display for Figure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.lead, self.rest)
    }
}

/// A percentage of a share: `0.082` is `8.2 %`.
pub fn share(share: f64) -> String {
    percentage(&digits(100.0 * share))
}

/// A standard deviation of natural-log ratios with its interval as `0.7 % [0.4, 1.6]`.
pub fn spread(spread: &Interval) -> String {
    let [estimate, low, high] = [spread.estimate, spread.low, spread.high].map(|end| digits(100.0 * end));
    format!("{} [{low}, {high}]", percentage(&estimate))
}

/// A cost (natural-log ratio protected/plain) as `+3.1 % [2.6, 3.7]`; from twice as much on, as `×6.4 [6.2, 6.6]`; if
/// it is too noisy to tell, as `~ −3.0 % to +5.1 %`.
///
/// The estimate and both ends have the same number of decimals, which depends on the width of the interval
/// ([`shared`]). Ends have signs if the interval contains zero.
pub fn cost(effect: &Interval, outcome: Outcome) -> Figure {
    let Interval { estimate, low, high } = *effect;
    if !(low.is_finite() && high.is_finite()) {
        return Figure { lead: "~".to_owned(), rest: TOO_FEW.to_owned() };
    }
    if outcome == Outcome::TooNoisy {
        return Figure { lead: "~".to_owned(), rest: range(low, high) };
    }
    let factor = estimate >= FACTOR_FROM;
    let as_read = if factor { f64::exp } else { percent };
    let (estimate, low, high) = (as_read(estimate), as_read(low), as_read(high));
    // Of a factor, 1 is no cost.
    let none = if factor { 1.0 } else { 0.0 };
    let decimals = apart_from_zero(low - none, high - none, shared(low, high));
    let decimals = if factor { decimals } else { apart_from_all(low, decimals) };
    let end = |value: f64| if low < 0.0 && high > 0.0 { signed(value, decimals) } else { fixed(value, decimals) };
    let lead =
        if factor { format!("×{}", fixed(estimate, decimals)) } else { percentage(&signed(estimate, decimals)) };
    Figure { lead, rest: format!("[{}, {}]", end(low), end(high)) }
}

/// A difference per operation as `+0.62 µs [0.58, 0.66]`, in the most readable unit; if it is too noisy to tell, as `~
/// −0.10 to +0.21 µs`. The title of the figure says "per operation", so this is left out.
///
/// The estimate and both ends have the same number of decimals, which depends on the width of the interval
/// ([`resolving`]). Ends have signs if the interval contains zero.
pub fn difference(difference: &Interval, unit: &str, outcome: Outcome) -> Figure {
    let Interval { estimate, low, high } = *difference;
    if !(low.is_finite() && high.is_finite()) {
        return Figure { lead: "~".to_owned(), rest: TOO_FEW.to_owned() };
    }
    // In the unit for the printed numbers: if it is too noisy, only the ends are printed.
    let printed = if outcome == Outcome::TooNoisy { low.abs().max(high.abs()) } else { estimate.abs() };
    let (divisor, unit) = readable(printed, unit.split('/').next().unwrap_or(unit));
    let (estimate, low, high) = (estimate / divisor, low / divisor, high / divisor);
    let decimals = apart_from_zero(low, high, resolving(low, high));
    if outcome == Outcome::TooNoisy {
        let rest = with_unit(format!("{} to {}", signed(low, decimals), signed(high, decimals)), &unit);
        return Figure { lead: "~".to_owned(), rest };
    }
    let end = |value: f64| if low < 0.0 && high > 0.0 { signed(value, decimals) } else { fixed(value, decimals) };
    Figure { lead: with_unit(signed(estimate, decimals), &unit), rest: format!("[{}, {}]", end(low), end(high)) }
}

/// A cost and its difference per operation. Only the difference if the plain level is zero and there is no percentage;
/// only the cost without an interval or a difference.
pub fn both(
    effect: &Interval,
    difference: Option<&Interval>,
    unit: &str,
    outcome: Outcome,
) -> (Figure, Option<Figure>) {
    let told = difference.filter(|it| it.half_width().is_finite());
    let difference = told.map(|it| self::difference(it, unit, outcome));
    match difference {
        Some(difference) if effect.estimate.is_infinite() => (difference, None),
        difference => (cost(effect, outcome), difference),
    }
}

/// A cost with its difference in one line: `+9.0 % [8.4, 9.8], +0.62 µs [0.58, 0.66]`.
pub fn in_line(effect: &Interval, difference: Option<&Interval>, unit: &str, outcome: Outcome) -> String {
    let (cost, difference) = both(effect, difference, unit, outcome);
    difference.map_or(cost.to_string(), |difference| format!("{cost}, {difference}"))
}

/// Number of decimals with which the half-width of an interval is 2 to 20 units of the last one, limited to three
/// significant digits of the larger end.
fn resolving(low: f64, high: f64) -> usize {
    let half_width = (high - low) / 2.0;
    let by_width = if half_width > 0.0 { (-(half_width / 2.0).log10().floor()).clamp(0.0, 6.0) as usize } else { 6 };
    by_width.min(decimals(low.abs().max(high.abs())))
}

/// A difference of two costs, a share, in percentage points: `+22.0 points [20.0, 24.1]`.
pub fn points(difference: &Interval) -> String {
    let [estimate, low, high] = [difference.estimate, difference.low, difference.high].map(|share| 100.0 * share);
    let decimals = apart_from_zero(low, high, shared(low, high));
    let end = |value: f64| if low < 0.0 && high > 0.0 { signed(value, decimals) } else { fixed(value, decimals) };
    format!("{} points [{}, {}]", signed(estimate, decimals), end(low), end(high))
}

/// A natural-log ratio as a factor, however small: `×1.19 [1.17, 1.20]`.
pub fn factor(ratio: &Interval) -> String {
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(f64::exp);
    let decimals = shared(100.0 * low, 100.0 * high) + 2;
    let decimals = if estimate >= 10.0 { 1 } else { decimals.min(3) };
    let decimals = apart_from_zero(low - 1.0, high - 1.0, decimals);
    format!("×{} [{}, {}]", fixed(estimate, decimals), fixed(low, decimals), fixed(high, decimals))
}

/// The upper end of a difference per operation, as precise as its interval: `0.31 µs`; 0 if it is negative.
pub fn at_most(difference: &Interval, unit: &str) -> String {
    let Interval { low, high, .. } = *difference;
    let (divisor, unit) = readable(high.abs(), unit.split('/').next().unwrap_or(unit));
    let most = high.max(0.0) / divisor;
    with_unit(fixed(most, apart_from_zero(most, most, resolving(low / divisor, high / divisor))), &unit)
}

/// Both ends of an amount per operation in the most readable unit: `14.9 to 16.3 µs`. An interval that excludes zero
/// does not begin with it.
pub fn between(low: f64, high: f64, unit: &str) -> String {
    two(low, high, unit, |low, high| apart_from_zero(low, high, resolving(low, high)))
}

/// The smallest and the largest of several amounts per operation in the most readable unit: `0.00 to 0.12 µs`. They are
/// no ends of an interval, so zero excludes nothing.
pub fn span(least: f64, most: f64, unit: &str) -> String {
    two(least, most, unit, resolving)
}

/// Two amounts in one unit, which suits the second one, with the number of `decimals` that they have in that unit.
fn two(first: f64, second: f64, unit: &str, decimals: impl Fn(f64, f64) -> usize) -> String {
    let (divisor, unit) = readable(second.abs(), unit.split('/').next().unwrap_or(unit));
    let (first, second) = (first / divisor, second / divisor);
    let decimals = decimals(first, second);
    with_unit(format!("{} to {}", fixed(first, decimals), fixed(second, decimals)), &unit)
}

/// Both ends of a cost as `−3.0 % to +5.1 %`; from twice as much on, as `−10 % to ×3.3`.
pub fn range(low: f64, high: f64) -> String {
    let decimals = shared(percent(low), percent(high.min(FACTOR_FROM)));
    let decimals = apart_from_zero(percent(low), percent(high), decimals);
    let decimals = |percent: f64| apart_from_all(percent, decimals.min(to_third(percent)));
    let end = |effect: f64| match effect >= FACTOR_FROM {
        true => format!("×{}", digits(effect.exp())),
        false => percentage(&signed(percent(effect), decimals(percent(effect)))),
    };
    format!("{} to {}", end(low), end(high))
}

/// A published cost, or the range of it: `+26.2 %`, `+5.3 % to +25 %`.
pub fn published(low: f64, high: f64) -> String {
    let one = |effect: f64| match effect >= FACTOR_FROM {
        true => format!("×{}", digits(effect.exp())),
        false => {
            let percent = percent(effect);
            percentage(&signed(percent, usize::from(percent.fract().abs() > 0.05 && percent.abs() < 99.5)))
        }
    };
    if low == high { one(low) } else { format!("{} to {}", one(low), one(high)) }
}

/// One cost without its interval, for a sentence that names the end: `2.2 %`, `×6.4`. Only no cost at all is `0 %`.
pub fn bound(effect: f64, of: &Interval) -> String {
    if effect >= FACTOR_FROM {
        return format!("×{}", fixed(effect.exp(), shared(of.low.exp(), of.high.exp())));
    }
    let end = percent(effect);
    let decimals = apart_from_zero(end, end, shared(percent(of.low), percent(of.high)));
    percentage(&fixed(end, apart_from_all(end, decimals)))
}

/// The number of decimals for both ends of an interval and its estimate, in percent or as factors.
///
/// With a half-width from 10 on there are no decimals, from 0.1 on one, else two. Figures from 10 on have at most one,
/// and from 100 on none.
fn shared(low: f64, high: f64) -> usize {
    let half_width = (high - low) / 2.0;
    let by_width = if half_width >= 9.95 { 0 } else { usize::from(half_width < 0.095) + 1 };
    let size = low.abs().max(high.abs());
    by_width.min(if size >= 99.5 { 0 } else { usize::from(size < 9.95) + 1 })
}

/// `decimals`, or up to two more if an interval that excludes zero would be printed as ending at zero.
fn apart_from_zero(low: f64, high: f64, decimals: usize) -> usize {
    let nearest = if low > 0.0 { low } else { -high };
    let shown = |decimals: &usize| nearest >= 0.5 / 10f64.powi(*decimals as i32);
    if nearest > 0.0 { (decimals..=decimals + 2).find(shown).unwrap_or(decimals) } else { decimals }
}

/// `decimals`, or up to four more if a level that fell by `percent`, which is below zero, would be printed as nothing.
fn apart_from_all(percent: f64, decimals: usize) -> usize {
    let left = 100.0 + percent;
    let shown = |decimals: &usize| left > 0.5 / 10f64.powi(*decimals as i32);
    if percent < 0.0 && left > 0.0 { (decimals..=decimals + 4).find(shown).unwrap_or(decimals) } else { decimals }
}

/// The most decimals of `percent`: those of three significant digits from 1 on, below as many as an end at zero needs.
fn to_third(percent: f64) -> usize {
    match percent.abs() {
        size if size >= 99.5 => 0,
        size if size >= 9.95 => 1,
        size if size >= 0.995 => 2,
        _ => usize::MAX,
    }
}

/// `value` with `decimals` decimals and its sign; zero has no sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    let sign = if text.starts_with(MINUS) || text.bytes().all(|byte| matches!(byte, b'0' | b'.')) { "" } else { "+" };
    format!("{sign}{text}")
}

/// An absolute level with its interval, in the most readable unit: `41.2 µs` and `[40.8, 41.9]`, or `[not enough data]`
/// if an end is not finite. The level has three significant digits, and its ends are as precise.
pub fn level(value: f64, low: f64, high: f64, unit: &str) -> Figure {
    let (divisor, unit) = readable(value.abs(), unit);
    let level = value / divisor;
    let text = |value: f64| fixed(to_third_digit(value / divisor, level), decimals(level));
    let told = low.is_finite() && high.is_finite();
    let rest = if told { format!("[{}, {}]", text(low), text(high)) } else { format!("[{TOO_FEW}]") };
    Figure { lead: with_unit(text(value), &unit), rest }
}

/// `value` rounded to the third significant digit of `level`, which may be a digit before the point: 24,310 to 24,300.
fn to_third_digit(value: f64, level: f64) -> f64 {
    if level.abs() < 1000.0 || !level.is_finite() {
        return value;
    }
    let step = 10f64.powf(level.abs().log10().floor() - 2.0);
    (value / step).round() * step
}

/// The change of a level, both ends in one unit: `41.2 → 43.0 µs`.
pub fn change(plain: f64, protected: f64, unit: &str) -> String {
    let (divisor, unit) = readable(plain.abs().max(protected.abs()), unit);
    let text = |value: f64| fixed(to_third_digit(value / divisor, value / divisor), decimals(value / divisor));
    with_unit(format!("{} → {}", text(plain), text(protected)), &unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cost_of(estimate: f64, low: f64, high: f64, outcome: Outcome) -> String {
        cost(&Interval { estimate, low, high }, outcome).to_string()
    }

    #[test]
    fn costs_read_as_percent_and_from_twice_as_factors() {
        assert_eq!(cost_of(0.031, 0.026, 0.036, Outcome::Costs), "+3.1 % [2.6, 3.7]");
        assert_eq!(cost_of(0.002, 0.0015, 0.0025, Outcome::Costs), "+0.20 % [0.15, 0.25]");
        assert_eq!(cost_of(-0.05, -0.07, -0.03, Outcome::Gains), "−4.9 % [−6.8, −3.0]");
        assert_eq!(cost_of(0.0, -0.002, 0.008, Outcome::NoneFound), "0.0 % [−0.2, +0.8]");
        assert_eq!(cost_of(0.0019, -0.013, 0.022, Outcome::NoneFound), "+0.2 % [−1.3, +2.2]");
        assert_eq!(cost_of(0.69, 0.68, 0.70, Outcome::Costs), "+99 % [97, 101]");
        assert_eq!(cost_of(6.4_f64.ln(), 6.2_f64.ln(), 6.6_f64.ln(), Outcome::Costs), "×6.4 [6.2, 6.6]");
    }

    #[test]
    fn a_cost_is_not_printed_as_if_it_could_be_none() {
        assert_eq!(cost_of(0.006, 0.0004, 0.012, Outcome::Costs), "+0.60 % [0.04, 1.21]");
        assert_eq!(cost_of(-0.006, -0.012, -0.0004, Outcome::Gains), "−0.60 % [−1.19, −0.04]");
        let told = |low: f64| difference(&Interval { estimate: 1.0, low, high: 2.0 }, "µs", Outcome::Costs).to_string();
        assert_eq!([told(0.01), told(-0.01)], ["+1.00 µs [0.01, 2.00]", "+1.0 µs [0.0, +2.0]"]);
        assert_eq!(points(&Interval { estimate: 0.006, low: 0.0004, high: 0.012 }), "+0.60 points [0.04, 1.20]");
        // Of a factor, 1 is no cost.
        assert_eq!(cost_of(0.9, 0.02, 1.8, Outcome::Costs), "×2.46 [1.02, 6.05]");
        assert_eq!(cost_of(0.9, 0.5, 1.3, Outcome::Costs), "×2.5 [1.6, 3.7]");
        assert_eq!(factor(&Interval { estimate: 0.01, low: 0.0004, high: 0.02 }), "×1.0101 [1.0004, 1.0202]");
        assert_eq!(range(0.0004, 0.03), "+0.04 % to +3.05 %");
        assert_eq!(range(-0.03, -0.0004), "−2.96 % to −0.04 %");
        assert_eq!(range(-0.0004, 0.03), "0.0 % to +3.0 %");
        assert_eq!(range(0.0003, 0.6), "+0.03 % to +82.2 %");
        assert_eq!(between(0.01, 2.0, "µs/op"), "0.01 to 2.00 µs");
        assert_eq!(span(0.01, 2.0, "µs/op"), "0.0 to 2.0 µs");
    }

    #[test]
    fn an_end_is_nothing_only_if_it_is() {
        let counted = Interval { estimate: 3e-5, low: 2e-5, high: 4e-5 };
        assert_eq!(bound(counted.estimate, &counted), "0.003 %");
        assert_eq!(bound(-3e-5, &Interval { estimate: -3e-5, low: -4e-5, high: -2e-5 }), "−0.003 %");
        assert_eq!(bound(0.0, &Interval { estimate: -0.01, low: -0.02, high: 0.0 }), "0.0 %");
        assert_eq!(at_most(&Interval { estimate: -1.5, low: -3.0, high: 0.04 }, "µs/op"), "0.04 µs");
    }

    #[test]
    fn what_fell_to_a_thousandth_is_not_printed_as_nothing() {
        let ln = |left: f64| left.ln();
        let thousandth = Interval { estimate: ln(0.001), low: ln(0.0008), high: ln(0.0012) };
        assert_eq!(cost(&thousandth, Outcome::Gains).to_string(), "−99.9 % [−99.9, −99.9]");
        assert_eq!(bound(thousandth.estimate, &thousandth), "−99.9 %");
        assert_eq!(range(ln(0.0008), ln(0.5)), "−99.9 % to −50 %");
        assert_eq!(cost_of(ln(0.01), ln(0.009), ln(0.011), Outcome::Gains), "−99.0 % [−99.1, −98.9]");
        assert_eq!(cost_of(100_f64.ln(), 95_f64.ln(), 105_f64.ln(), Outcome::Costs), "×100 [95, 105]");
    }

    #[test]
    fn noise_is_a_range_and_never_a_number() {
        assert_eq!(cost_of(0.01, -0.03, 0.05, Outcome::TooNoisy), "~ −3.0 % to +5.1 %");
        assert_eq!(cost_of(0.3, -0.1, 1.2, Outcome::TooNoisy), "~ −10 % to ×3.3");
        assert_eq!(cost_of(0.0, f64::NEG_INFINITY, f64::INFINITY, Outcome::TooNoisy), "~ not enough data");
        assert_eq!(cost_of(0.1, 0.05, f64::INFINITY, Outcome::Costs), "~ not enough data");
    }

    #[test]
    fn differences_are_as_fine_as_their_interval() {
        let told = |estimate: f64, low: f64, high: f64, unit: &str| {
            difference(&Interval { estimate, low, high }, unit, Outcome::Costs).to_string()
        };
        assert_eq!(told(0.6213, 0.5831, 0.6618, "µs/op"), "+0.62 µs [0.58, 0.66]");
        assert_eq!(told(0.0213, 0.0201, 0.0223, "µs/op"), "+0.0213 µs [0.0201, 0.0223]");
        assert_eq!(told(0.001, -0.2, 0.21, "µs/op"), "0.0 µs [−0.2, +0.2]");
        assert_eq!(told(-3.25, -4.1, -2.4, "µs"), "−3.2 µs [−4.1, −2.4]");
        assert_eq!(told(1534.0, 990.0, 1600.0, "µs/op"), "+1.5 ms [1.0, 1.6]");
        assert_eq!(told(156.0, 156.0, 156.0, "bytes/op"), "+156 bytes [156, 156]");
        assert_eq!(told(20_000.0, 19_950.0, 20_050.0, "bytes/op"), "+20.0 kB [19.9, 20.1]");
        assert_eq!(told(0.5, f64::NEG_INFINITY, f64::INFINITY, "µs/op"), "~ not enough data");
        let noisy = Interval { estimate: 0.1, low: -0.1, high: 0.212 };
        assert_eq!(difference(&noisy, "µs/op", Outcome::TooNoisy).to_string(), "~ −0.10 to +0.21 µs");
    }

    #[test]
    fn a_range_of_amounts_is_as_fine_as_it_is_wide() {
        assert_eq!(between(14.86, 16.31, "µs/op"), "14.9 to 16.3 µs");
        assert_eq!(between(0.5712, 0.9543, "µs/op"), "0.57 to 0.95 µs");
        assert_eq!(between(990.0, 1_600.0, "µs"), "1.0 to 1.6 ms");
        assert_eq!(at_most(&Interval { estimate: 0.15, low: -0.08, high: 0.307 }, "µs/op"), "0.31 µs");
        assert_eq!(at_most(&Interval { estimate: -0.15, low: -0.3, high: -0.1 }, "µs/op"), "0.00 µs");
    }

    #[test]
    fn levels_choose_their_unit() {
        assert_eq!(level(41.23, 40.8, 41.94, "µs").to_string(), "41.2 µs [40.8, 41.9]");
        assert_eq!(level(24310.4, 24100.0, 24512.0, "op/s").to_string(), "24,300 op/s [24,100, 24,500]");
        assert_eq!(level(1534.0, 990.0, 1600.0, "µs/op").to_string(), "1.53 ms/op [0.99, 1.60]");
        assert_eq!(level(1534.0, f64::NEG_INFINITY, f64::INFINITY, "µs").to_string(), "1.53 ms [not enough data]");
        assert_eq!(change(310.0, 12_400.0, "bytes/op"), "0.310 → 12.4 kB/op");
    }

    proptest! {
        #[test]
        fn rounding_keeps_order(a in -500.0..500.0f64, b in -500.0..500.0f64) {
            let back = |value: f64| digits(value).replace(MINUS, "-").parse::<f64>().unwrap();
            prop_assert!(back(a.min(b)) <= back(a.max(b)));
        }

        #[test]
        fn an_interval_shares_its_decimals(low in -0.9..2.0f64, width in 0.0..2.0f64, place in 0.0..1.0f64) {
            let effect = Interval { estimate: low + place * width, low, high: low + width };
            let outcomes = if low < 0.0 { &[Outcome::Costs, Outcome::TooNoisy][..] } else { &[Outcome::Costs] };
            for &outcome in outcomes {
                let text = cost(&effect, outcome).to_string();
                let numbers = text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).map(|it| it.trim_end_matches(','));
                let decimals: Vec<usize> = numbers
                    .filter(|number| number.bytes().any(|byte| byte.is_ascii_digit()))
                    .map(|number| number.split_once('.').map_or(0, |(_, fraction)| fraction.len()))
                    .collect();
                let mixed = text.contains('%') && text.contains('×');
                prop_assert!(mixed || decimals.windows(2).all(|pair| pair[0] == pair[1]), "{}", text);
            }
        }
    }
}
