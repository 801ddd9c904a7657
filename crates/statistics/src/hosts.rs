//! From what several hosts have shown to what the next host of their kind will, and from the repeats on one host to its
//! next hour.
//!
//! The model and its sources are in [`random_effects`](super::random_effects): hosts are units whose errors are
//! estimates of their own, so that the interval of the mean is the modified one of Knapp and Hartung (2003, "Improved
//! tests for a random effects meta-regression with a single covariate"), as Röver, Knapp and Friede (2015) advise for
//! few units, and the spread has Viechtbauer's. What another host will see is the interval of Higgins, Thompson and
//! Spiegelhalter (2009, "A re-evaluation of random-effects meta-analysis") with the standard error of that mean, as
//! Partlett and Riley (2017) have it: the variance of a host's true effect and the error of the mean add, and Student's
//! t has two degrees of freedom less than there are hosts. With one less it would be exact for hosts that are measured
//! without error; where errors are as large as the spread, the spread is found to be none too often, and the second
//! degree makes up for a part of that (docs/method/hosts.md).
//!
//! Where hosts are of very different precision, weights by estimated precisions let one host speak for all, and that
//! interval misses too often. A mean that weighs all alike does not: Student's interval for values that are normal and
//! of unequal variances holds at 95 % whatever the variances are (Bakirov and Székely 2005, "Student's t-test for
//! Gaussian scale mixtures"; Ibragimov and Müller 2010, "t-statistic based correlation and heterogeneity robust
//! inference").
//!
//! One host says nothing of the next, and two say so little (t with one degree of freedom is 12.7) that an interval
//! would read as an answer: below [`POOLED_FROM`] nothing is pooled. Who a host is, and which figures belong together,
//! is not decided here.

use crate::{
    distribution::{normal_upper, t_upper},
    interval::Interval,
    mean,
    random_effects::{Errors, Unit, pooled},
    variance,
};

/// Fewest units that are pooled.
pub const POOLED_FROM: usize = 3;

/// Fewest units from which the next one is told: of four, t has two degrees of freedom, and the interval is wider than
/// anything that was seen by far.
pub const NEXT_FROM: usize = 5;

/// What one unit, a host or a repeat, has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitEffect {
    /// Its effect, natural-log ratio.
    pub effect: f64,
    /// The square of the effect's standard error.
    pub variance: f64,
    /// Degrees of freedom that the standard error rests on; infinite where it is known.
    pub degrees: f64,
}

impl UnitEffect {
    /// As a unit that knows its own error.
    fn unit(&self) -> Unit {
        Unit { effect: self.effect, variance: self.variance }
    }

    /// As a unit whose error is so large that the normal distribution's quantile says what Student's would say of its
    /// own.
    fn unsure(&self) -> Unit {
        /// The quantile's tail; the ratio of the two is compared where intervals end.
        const TAIL: f64 = 0.025;
        let student = if self.degrees.is_finite() { t_upper(TAIL, self.degrees) } else { normal_upper(TAIL) };
        Unit { effect: self.effect, variance: self.variance * (student / normal_upper(TAIL)).powi(2) }
    }
}

/// What several units, hosts or repeats, show together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledEffect {
    /// The mean effect over units of their kind.
    pub effect: Interval,
    /// The standard deviation of their true effects. Its lower end holds even if every unit takes its own error for
    /// smaller than it is, as a few starts make it do.
    pub spread: Interval,
    /// Where the true effect of another unit lies; `None` for fewer than [`NEXT_FROM`]. Its estimate is the mean.
    pub next: Option<Interval>,
}

/// What `units` show together, each interval of confidence 1 − `alpha`; `None` for fewer than [`POOLED_FROM`].
pub fn together(units: &[UnitEffect], alpha: f64) -> Option<PooledEffect> {
    if units.len() < POOLED_FROM {
        return None;
    }
    let pooled =
        |unit: fn(&UnitEffect) -> Unit| pooled(&units.iter().map(unit).collect::<Vec<_>>(), Errors::Own, alpha);
    let found = pooled(UnitEffect::unit);
    let spread = Interval { low: pooled(UnitEffect::unsure).spread.low, ..found.spread };
    let effect = if alike(units, &spread) { found.effect } else { unweighted(units, alpha) };
    let next = (units.len() >= NEXT_FROM).then(|| next(units.len(), &effect, &spread, alpha));
    Some(PooledEffect { effect, spread, next })
}

/// How many times as large the error of one unit may be as that of another, the spread in both, for them to be weighed
/// by it.
const ALIKE: f64 = 3.0;

/// True where every unit says about as much of the mean as the others.
fn alike(units: &[UnitEffect], spread: &Interval) -> bool {
    let errors = units.iter().map(|unit| unit.variance.sqrt().hypot(spread.estimate));
    let (least, most) =
        errors.fold((f64::INFINITY, 0.0_f64), |(least, most), error| (least.min(error), most.max(error)));
    most <= ALIKE * least
}

/// The mean of `units`, all weighed alike, with Student's interval.
fn unweighted(units: &[UnitEffect], alpha: f64) -> Interval {
    let effects: Vec<f64> = units.iter().map(|unit| unit.effect).collect();
    let (mean, count) = (mean(&effects), effects.len() as f64);
    let half = t_upper(alpha / 2.0, count - 1.0) * (variance(&effects) / count).sqrt();
    Interval { estimate: mean, low: mean - half, high: mean + half }
}

/// Where the true effect of another unit lies.
fn next(count: usize, effect: &Interval, spread: &Interval, alpha: f64) -> Interval {
    let half = t_upper(alpha / 2.0, count as f64 - 2.0) * spread.estimate.hypot(error_of(count, effect, alpha));
    Interval { low: effect.estimate - half, high: effect.estimate + half, ..*effect }
}

/// The standard error of the mean of so many units, by its interval.
fn error_of(count: usize, effect: &Interval, alpha: f64) -> f64 {
    effect.half_width() / t_upper(alpha / 2.0, count as f64 - 1.0)
}

/// The repeats on one host as one unit, so that a host counts once however often it was measured; `None` of nothing.
///
/// Its variance is that of the mean of its repeats, with what differs from one repeat to the next in it.
pub fn combined(repeats: &[UnitEffect]) -> Option<UnitEffect> {
    /// Of the interval from which the error is taken back, whatever it is.
    const ALPHA: f64 = 0.05;
    match repeats {
        [] => None,
        [only] => Some(*only),
        several => {
            let units: Vec<Unit> = several.iter().map(UnitEffect::unit).collect();
            let effect = pooled(&units, Errors::Own, ALPHA).effect;
            let (error, degrees) = (error_of(several.len(), &effect, ALPHA), several.len() as f64 - 1.0);
            Some(UnitEffect { effect: effect.estimate, variance: error * error, degrees })
        }
    }
}

#[cfg(test)]
mod tests;
