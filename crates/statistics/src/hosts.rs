//! From the results of several hosts to the next host of their kind, and from the repeats on one host to its next hour.
//!
//! See [`random_effects`](super::random_effects) for the model and its sources. Hosts are units whose errors are
//! estimates of their own. So the interval of the mean is the modified one of Knapp and Hartung (2003, "Improved tests
//! for a random effects meta-regression with a single covariate"), as Röver, Knapp and Friede (2015) advise for few
//! units, and the interval of the spread is Viechtbauer's. The interval for another host is that of Higgins, Thompson
//! and Spiegelhalter (2009, "A re-evaluation of random-effects meta-analysis") with the standard error of that mean, as
//! in Partlett and Riley (2017): the variance of a host's true effect and the error of the mean add, and Student's t
//! has two degrees of freedom less than there are hosts. With one less it would be exact for hosts that are measured
//! without error. If errors are as large as the spread, the spread is too often estimated as zero, and the second
//! degree compensates for a part of that (docs/method/hosts.md).
//!
//! If hosts have very different precision, weights by estimated precision let one host decide the mean, and the
//! interval misses too often. An unweighted mean does not: Student's interval for normal values of unequal variances
//! holds at 95 % whatever the variances are (Bakirov and Székely 2005, "Student's t-test for Gaussian scale mixtures";
//! Ibragimov and Müller 2010, "t-statistic based correlation and heterogeneity robust inference").
//!
//! One host shows nothing about the next. Two show so little (t with one degree of freedom is 12.7) that an interval
//! would be misleading: below [`POOLED_FROM`] nothing is pooled. The caller decides what counts as one host and which
//! figures belong together.

use crate::{
    distribution::{normal_upper, t_upper},
    interval::Interval,
    mean,
    random_effects::{Errors, Unit, pooled},
    variance,
};

/// Minimum number of units for pooling.
pub const POOLED_FROM: usize = 3;

/// Minimum number of units for a prediction of the next one. With four, t has two degrees of freedom, and the interval
/// is far wider than anything that was seen.
pub const NEXT_FROM: usize = 5;

/// Result of one unit, a host or a repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitEffect {
    /// Its effect, natural-log ratio.
    pub effect: f64,
    /// The square of the effect's standard error.
    pub variance: f64,
    /// Degrees of freedom of the standard error; infinite if it is known.
    pub degrees: f64,
}

impl UnitEffect {
    /// As a unit whose error is known.
    fn unit(&self) -> Unit {
        Unit { effect: self.effect, variance: self.variance }
    }

    /// As a unit with a larger error: the normal quantile times it is Student's quantile times the original error.
    fn unsure(&self) -> Unit {
        /// Tail of the quantiles whose ratio is used; intervals end there.
        const TAIL: f64 = 0.025;
        let student = if self.degrees.is_finite() { t_upper(TAIL, self.degrees) } else { normal_upper(TAIL) };
        Unit { effect: self.effect, variance: self.variance * (student / normal_upper(TAIL)).powi(2) }
    }
}

/// Result of several units, hosts or repeats, together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledEffect {
    /// The mean effect of units of this kind.
    pub effect: Interval,
    /// The standard deviation of their true effects. Its lower end holds even if every unit underestimates its own
    /// error, as happens with few starts.
    pub spread: Interval,
    /// Interval for the true effect of another unit, with the mean as its estimate; `None` for fewer than
    /// [`NEXT_FROM`].
    pub next: Option<Interval>,
}

/// The result of `units` together, each interval of confidence 1 − `alpha`; `None` for fewer than [`POOLED_FROM`].
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

/// Largest ratio between the errors of two units, both including the spread, at which units are weighted by their
/// error.
const ALIKE: f64 = 3.0;

/// True if every unit contributes about as much to the mean as the others.
fn alike(units: &[UnitEffect], spread: &Interval) -> bool {
    let errors = units.iter().map(|unit| unit.variance.sqrt().hypot(spread.estimate));
    let (least, most) =
        errors.fold((f64::INFINITY, 0.0_f64), |(least, most), error| (least.min(error), most.max(error)));
    most <= ALIKE * least
}

/// The unweighted mean of `units`, with Student's interval.
fn unweighted(units: &[UnitEffect], alpha: f64) -> Interval {
    let effects: Vec<f64> = units.iter().map(|unit| unit.effect).collect();
    let (mean, count) = (mean(&effects), effects.len() as f64);
    let half = t_upper(alpha / 2.0, count - 1.0) * (variance(&effects) / count).sqrt();
    Interval { estimate: mean, low: mean - half, high: mean + half }
}

/// Interval for the true effect of another unit.
fn next(count: usize, effect: &Interval, spread: &Interval, alpha: f64) -> Interval {
    let half = t_upper(alpha / 2.0, count as f64 - 2.0) * spread.estimate.hypot(error_of(count, effect, alpha));
    Interval { low: effect.estimate - half, high: effect.estimate + half, ..*effect }
}

/// The standard error of the mean of `count` units, from its interval.
fn error_of(count: usize, effect: &Interval, alpha: f64) -> f64 {
    effect.half_width() / t_upper(alpha / 2.0, count as f64 - 1.0)
}

/// The repeats on one host as one unit, so a host counts once however often it was measured; `None` without repeats.
///
/// Its variance is that of the mean of its repeats, including their variation.
pub fn combined(repeats: &[UnitEffect]) -> Option<UnitEffect> {
    /// Error of the interval from which the standard error is computed; any value gives the same result.
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
