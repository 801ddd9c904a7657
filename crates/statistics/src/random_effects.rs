//! Levels of repetition: from the effects of several starts of a server (or of several hosts) to one cost that also
//! holds for the next of them.
//!
//! Each unit has its own true effect, which varies around the mean effect with the variance τ², and the unit shows it
//! with an error of its own: the model of a random-effects meta-analysis. τ² is estimated by Paule and Mandel (1982,
//! "Consensus values and weighting factors"), its interval by Viechtbauer's Q-profile (2007, "Confidence intervals for
//! the amount of heterogeneity in meta-analysis"), the interval of the mean by Hartung and Knapp (2001, "On tests of
//! the overall treatment effect in meta-analysis with normally distributed responses"): Student's t with one degree of
//! freedom less than there are units. If all errors are equal, this is the t interval of the units' effects, and exact.
//! On why every level that varies must be repeated: Kalibera and Jones (2013), "Rigorous benchmarking in reasonable
//! time".

use crate::{
    distribution::{chi_squared_upper, falling_root, t_upper},
    interval::Interval,
    order::hodges_lehmann_estimate,
    variance,
};

/// Result of one start or one host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Its effect.
    pub effect: f64,
    /// The square of the effect's standard error.
    pub variance: f64,
}

/// Result of all units together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// The mean effect of such units; its ends are infinite for fewer than two units.
    pub effect: Interval,
    /// The standard deviation τ of the units' true effects; an end that is not known is infinite.
    pub spread: Interval,
}

/// How far the interval of the mean trusts the errors of the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errors {
    /// The errors differ only by the amount measured, as those of starts that share one variance: the plain interval.
    Shared,
    /// Each error is an estimate of its own, as those of hosts. The interval is then never narrower than the errors
    /// imply, because the plain one fails if units are few and agree by chance (Röver, Knapp and Friede 2015,
    /// "Hartung-Knapp-Sidik-Jonkman approach and its modification for random-effects meta-analysis with few studies").
    Own,
}

/// The mean effect of `units` and their spread, each with an interval of confidence 1 − `alpha`.
pub fn pooled(units: &[Unit], errors: Errors, alpha: f64) -> Pooled {
    let degrees = units.len() as f64 - 1.0;
    let between = solve(units, degrees);
    let (mean, weight) = weighted(units, between);
    let everywhere = Interval { estimate: mean, low: f64::NEG_INFINITY, high: f64::INFINITY };
    let unknown = Interval { estimate: 0.0, low: 0.0, high: f64::INFINITY };
    if units.len() < 2 {
        return Pooled { effect: everywhere, spread: unknown };
    }
    let scale = scatter(units, between) / degrees;
    let scale = if errors == Errors::Own && !are_exact(units) { scale.max(1.0) } else { scale };
    let half = t_upper(alpha / 2.0, degrees) * (scale / weight).sqrt();
    let end = |tail: f64| solve(units, chi_squared_upper(tail, degrees)).sqrt();
    Pooled {
        effect: Interval { estimate: mean, low: mean - half, high: mean + half },
        spread: Interval { estimate: between.sqrt(), low: end(alpha / 2.0), high: end(1.0 - alpha / 2.0) },
    }
}

/// One unit for each start, from the effects of its frames; each start must have at least one.
///
/// A start's effect is the Hodges–Lehmann centre of its frames. The variance of a frame comes from all starts together:
/// an estimate from a few frames is poor, and weights that depend on chance would favour starts by chance. It is 0 if
/// no start has two frames; then all starts weigh the same.
pub fn of_starts(starts: &[Vec<f64>]) -> Vec<Unit> {
    let of_frame = variance_within(starts);
    starts
        .iter()
        .map(|start| Unit { effect: hodges_lehmann_estimate(start), variance: of_frame / start.len() as f64 })
        .collect()
}

/// The variance of a frame's effect within its start, from all `starts` together; 0 if none has two frames.
pub fn variance_within(starts: &[Vec<f64>]) -> f64 {
    let degrees: f64 = starts.iter().map(|start| start.len() as f64 - 1.0).sum();
    let squares: f64 = starts.iter().map(|start| deviations(start)).sum();
    if degrees > 0.0 { squares / degrees } else { 0.0 }
}

/// Sum of the squares of the deviations from the mean.
fn deviations(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { variance(values) * (values.len() as f64 - 1.0) }
}

/// The mean of `units` and the sum of their weights, if their true effects have the variance `between`.
fn weighted(units: &[Unit], between: f64) -> (f64, f64) {
    let sum: f64 = weights(units, between).map(|(_, weight)| weight).sum();
    (weights(units, between).map(|(unit, weight)| weight * unit.effect).sum::<f64>() / sum, sum)
}

/// Each unit with its weight: one over the variance of its effect, or 1 if no unit has a variance.
fn weights(units: &[Unit], between: f64) -> impl Iterator<Item = (&Unit, f64)> {
    let known = between > 0.0 || units.iter().any(|unit| unit.variance > 0.0);
    units.iter().map(move |unit| (unit, if known { 1.0 / (unit.variance + between) } else { 1.0 }))
}

/// Cochran's Q: how far effects lie from their mean, each square divided by its expected variance.
fn scatter(units: &[Unit], between: f64) -> f64 {
    let (mean, _) = weighted(units, between);
    weights(units, between).map(|(unit, weight)| weight * (unit.effect - mean).powi(2)).sum()
}

/// The variance between units at which Q has the value `expected`; 0 if Q is below that without any. Of units without
/// errors it is so only if all are equal.
fn solve(units: &[Unit], expected: f64) -> f64 {
    let are_alike = match are_exact(units) {
        true => units.windows(2).all(|pair| pair[0].effect == pair[1].effect),
        false => scatter(units, 0.0) <= expected,
    };
    if units.len() < 2 || are_alike {
        return 0.0;
    }
    falling_root(expected, |between| scatter(units, between))
}

/// True if no unit has an error, so that all of their scatter is between them.
fn are_exact(units: &[Unit]) -> bool {
    units.iter().all(|unit| unit.variance == 0.0)
}

#[cfg(test)]
mod tests;
