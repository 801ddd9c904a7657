//! From the effects of frames to an interval that also holds for the next start of the servers.
//!
//! If every frame has a start of its own, the interval comes from the frames ([`infer`]). If several frames share a
//! start, it comes from the starts: see [`random_effects`] for the model and its sources. Fewer than four starts are
//! too few to estimate their spread. Then the interval is that of the frames, widened by the product's known spread and
//! by that of a cost of this size. A widened interval holds if starts differ as they did in the runs that the spread is
//! known from, which the records cannot show.

use std::collections::BTreeMap;

use tithe_model::{
    experiment::Metric,
    plan::STARTS_MIN,
    start_spread::{self, CostSpread, StartSpread},
};

use crate::{
    distribution::{t_two_sided, t_upper},
    inference::{Inference, infer, lag1, trend_p},
    interval::Interval,
    mean,
    order::{hodges_lehmann_estimate, signed_rank_p},
    precision::confidence_sequence,
    random_effects::{Errors, of_starts, pooled, variance_within},
};

/// The effect of a frame, or of a group of frames, and the start that it was measured on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StartEffect {
    /// Number of the start within the cell.
    pub start: u32,
    /// The effect.
    pub effect: f64,
}

/// The spread between starts that is known from other runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownSpread {
    /// Standard deviation of the effect from start to start, in the effect's unit.
    pub spread: f64,
    /// Degrees of freedom of that spread.
    pub degrees: f64,
    /// The additional start-to-start variation of a protection's cost; `None` if only identical arms are compared.
    pub of_cost: Option<CostShare>,
}

/// How much more the cost of a protection varies from start to start than identical arms do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostShare {
    /// Standard deviation of ln(protected ÷ plain) as a share of its mean.
    pub share: f64,
    /// Degrees of freedom of that share.
    pub degrees: f64,
    /// Level of the protected arm, if the effect is a difference in its unit and not a logarithm.
    pub level: Option<f64>,
}

impl CostShare {
    /// Standard deviation of `effect`, in its unit. A difference d at the protected arm's level p is a ratio of p/(p −
    /// d). If the ratio's logarithm moves by s, the difference moves by p·s.
    fn spread_of(self, effect: f64) -> f64 {
        match self.level {
            Some(level) if level > 0.0 && effect < level => self.share * level * (level / (level - effect)).ln().abs(),
            _ => self.share * effect.abs(),
        }
    }
}

impl KnownSpread {
    /// The spread of `metric` in `spreads`; `None` if its starts do not differ.
    pub fn of_metric(spreads: &[StartSpread], metric: Metric) -> Option<Self> {
        let known = start_spread::of_metric(spreads, metric)?;
        Some(Self { spread: known.spread, degrees: known.degrees, of_cost: None })
    }

    /// Adds the known start-to-start variation of protections.
    #[must_use]
    pub fn with_costs(self, costs: Option<&CostSpread>) -> Self {
        let of_cost = costs.map(|costs| CostShare { share: costs.share, degrees: costs.degrees, level: None });
        Self { of_cost, ..self }
    }

    /// The spread for an arm whose cost is `effect`. Variances add; the degrees are Satterthwaite's ("An approximate
    /// distribution of estimates of variance components", Biometrics Bulletin 2, 1946).
    #[must_use]
    pub fn at_cost(self, effect: f64) -> Self {
        let Some(of_cost) = self.of_cost.filter(|of_cost| of_cost.spread_of(effect) > 0.0) else { return self };
        let (own, cost) = (self.spread.powi(2), of_cost.spread_of(effect).powi(2));
        let degrees = (own + cost).powi(2) / (own.powi(2) / self.degrees + cost.powi(2) / of_cost.degrees);
        Self { spread: (own + cost).sqrt(), degrees, of_cost: None }
    }

    /// How far it widens either side of an interval of error `alpha` over `starts` starts, in the effect's unit.
    pub fn widening(&self, starts: usize, alpha: f64) -> f64 {
        self.widening_by(1.0 / starts.max(1) as f64, alpha)
    }

    /// The same if each start has the given number of `frames` and weighs accordingly in the estimate.
    pub fn widening_over(&self, frames: &[usize], alpha: f64) -> f64 {
        let all = frames.iter().sum::<usize>() as f64;
        self.widening_by(frames.iter().map(|of_start| (*of_start as f64 / all).powi(2)).sum(), alpha)
    }

    /// The same if the squares of the starts' shares in the estimate add up to `squares`.
    fn widening_by(&self, squares: f64, alpha: f64) -> f64 {
        t_upper(alpha / 2.0, self.degrees) * self.spread * squares.sqrt()
    }
}

/// Options of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalOptions {
    /// Error: 1 − confidence.
    pub alpha: f64,
    /// The answers were checked repeatedly, so only an interval that holds at all checks at once is valid.
    pub by_decision: bool,
    /// For fewer than four starts; `None` if they do not differ.
    pub known: Option<KnownSpread>,
}

impl IntervalOptions {
    /// The options for a difference in an amount whose level with the protection is `level`: a start that makes an arm
    /// 1 % more expensive adds 1 % of its level.
    #[must_use]
    pub fn at_level(self, level: f64) -> Self {
        let at = |known: KnownSpread| KnownSpread {
            spread: known.spread * level.max(0.0),
            of_cost: known.of_cost.map(|of_cost| CostShare { level: Some(level), ..of_cost }),
            ..known
        };
        Self { known: self.known.map(at), ..self }
    }
}

/// An interval over starts and how it was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct OverStarts {
    /// Its values are frames if each has a start of its own or if starts are few, else the starts' effects.
    pub inference: Inference,
    /// Number of frames, or groups of frames.
    pub count: usize,
    /// Number of starts of the servers.
    pub starts: usize,
    /// Standard deviation of the true effect from start to start; `None` if frames cannot separate it from their own.
    pub spread: Option<Interval>,
    /// Variance of a frame's effect within its start; `None` if `spread` is `None`.
    pub within: Option<f64>,
    /// The interval was widened by a spread known from other runs.
    pub widened: bool,
    /// Degrees of freedom of that spread.
    pub known_degrees: Option<f64>,
    /// Two-sided p of no effect; NaN without values.
    pub p: f64,
    /// Two-sided p of an effect that did not change over time.
    pub trend_p: f64,
}

/// The interval over starts from `effects`, in the order of time. Values that are not finite are left out.
pub fn infer_over_starts(effects: &[StartEffect], asked: IntervalOptions) -> OverStarts {
    let finite: Vec<StartEffect> = effects.iter().copied().filter(|it| it.effect.is_finite()).collect();
    let mut starts: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    finite.iter().for_each(|it| starts.entry(it.start).or_default().push(it.effect));
    let starts: Vec<Vec<f64>> = starts.into_values().collect();
    match starts.len() {
        count if count == finite.len() && count > 1 => by_frames(&finite, asked),
        count if count < STARTS_MIN as usize => widened(&starts, asked),
        _ => by_starts(&starts, asked),
    }
}

/// For frames with a start of their own each.
fn by_frames(effects: &[StartEffect], asked: IntervalOptions) -> OverStarts {
    let effects: Vec<f64> = effects.iter().map(|it| it.effect).collect();
    let inference = inferred(&effects, asked);
    OverStarts {
        count: inference.merged.len() * inference.batch,
        starts: effects.len(),
        spread: None,
        within: None,
        widened: false,
        known_degrees: None,
        p: signed_rank_p(&inference.merged),
        trend_p: trend_p(&inference.merged),
        inference,
    }
}

/// The inference on values that are independent of one another.
fn inferred(values: &[f64], asked: IntervalOptions) -> Inference {
    let mut inference = infer(values, asked.alpha);
    if asked.by_decision {
        inference.interval = confidence_sequence(&inference.merged, asked.alpha);
    }
    inference
}

/// For too few starts to estimate their spread: the frames' interval about the mean of the starts, each weighted by its
/// frames, widened by the known spread of that mean. Both parts are independent, so their squares add.
fn widened(starts: &[Vec<f64>], asked: IntervalOptions) -> OverStarts {
    let centres: Vec<f64> = starts.iter().map(|start| hodges_lehmann_estimate(start)).collect();
    let of_starts: Vec<usize> = starts.iter().map(Vec::len).collect();
    let all = of_starts.iter().sum::<usize>() as f64;
    let centre: f64 = centres.iter().zip(&of_starts).map(|(centre, frames)| centre * (*frames as f64 / all)).sum();
    let shifted = |(start, of_start): (&Vec<f64>, &f64)| {
        start.iter().map(|effect| effect + (centre - of_start)).collect::<Vec<f64>>()
    };
    let frames: Vec<f64> = starts.iter().zip(&centres).flat_map(shifted).collect();
    let mut inference = inferred(&frames, asked);
    let (p_of_frames, trend_p) = (signed_rank_p(&inference.merged), trend_p(&inference.merged));
    let values = inference.merged.len() * inference.batch;
    let of_frames = |inference, p, known_degrees: Option<f64>| OverStarts {
        inference,
        count: values,
        starts: starts.len(),
        spread: None,
        within: None,
        widened: known_degrees.is_some(),
        known_degrees,
        p,
        trend_p,
    };
    let known = asked.known.filter(|known| known.spread > 0.0 && !starts.is_empty());
    let Some(known) = known.map(|known| known.at_cost(inference.interval.estimate)) else {
        return of_frames(inference, p_of_frames, None);
    };
    let quantile = t_upper(asked.alpha / 2.0, known.degrees);
    inference.interval = inference.interval.widened(known.widening_over(&of_starts, asked.alpha));
    let Interval { estimate, low, high } = inference.interval;
    let half = if estimate < 0.0 { high - estimate } else { estimate - low };
    let p = if half.is_finite() { t_two_sided(estimate * quantile / half, known.degrees) } else { 1.0 };
    of_frames(inference, p.max(p_of_frames), Some(known.degrees))
}

/// For starts with several frames: random effects.
fn by_starts(starts: &[Vec<f64>], asked: IntervalOptions) -> OverStarts {
    let units = of_starts(starts);
    let found = pooled(&units, Errors::Shared, asked.alpha);
    let merged: Vec<f64> = units.iter().map(|unit| unit.effect).collect();
    let degrees = merged.len() as f64 - 1.0;
    let error = found.effect.half_width() / t_upper(asked.alpha / 2.0, degrees);
    let interval = if asked.by_decision { confidence_sequence(&merged, asked.alpha) } else { found.effect };
    let p = if error > 0.0 { t_two_sided(found.effect.estimate / error, degrees) } else { signed_rank_p(&merged) };
    let lag1 = lag1(&merged);
    OverStarts {
        inference: Inference { interval, merged, batch: 1, lag1 },
        count: starts.iter().map(Vec::len).sum(),
        starts: starts.len(),
        spread: Some(found.spread),
        within: Some(variance_within(starts)),
        widened: false,
        known_degrees: None,
        p,
        trend_p: trend_within(starts),
    }
}

/// Two-sided p of effects that do not change during a start: the frames of all starts by their place within the start,
/// each less its start's centre, so that start-to-start variation does not count as a trend.
fn trend_within(starts: &[Vec<f64>]) -> f64 {
    let mut placed: Vec<(usize, f64)> = Vec::new();
    for start in starts {
        let centre = mean(start);
        placed.extend(start.iter().enumerate().map(|(place, effect)| (place, effect - centre)));
    }
    placed.sort_by_key(|(place, _)| *place);
    trend_p(&placed.into_iter().map(|(_, effect)| effect).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_protection_does_has_luck_of_its_own() {
        let of_cost = Some(CostShare { share: 0.04, degrees: 8.0, level: None });
        let known = KnownSpread { spread: 0.001, degrees: 10.0, of_cost };
        assert_eq!(known.at_cost(0.0), known);
        assert_eq!(known.at_cost(f64::NAN), known);
        let dear = known.at_cost(-0.5);
        assert!((dear.spread - (1e-6_f64 + 0.02_f64.powi(2)).sqrt()).abs() < 1e-12);
        assert!(dear.degrees > 8.0 && dear.degrees < 18.0);
        let widenings = [0.0, 0.1, 0.4, 1.0].map(|effect| known.at_cost(effect).widening(1, 0.05));
        assert!(widenings.is_sorted(), "{widenings:?}");
    }

    #[test]
    fn a_widened_interval_says_on_how_much_the_spread_stands() {
        let known = Some(KnownSpread { spread: 0.001, degrees: 6.0, of_cost: None });
        let asked = IntervalOptions { alpha: 0.05, by_decision: false, known };
        let degrees = [1, 3, 4, 20].map(|starts: u32| {
            let frame = |frame: u32| StartEffect { start: frame % starts, effect: 0.01 * f64::from(frame % 7) };
            let found = infer_over_starts(&(0..20).map(frame).collect::<Vec<_>>(), asked);
            (found.widened, found.known_degrees)
        });
        assert_eq!(degrees, [(true, Some(6.0)), (true, Some(6.0)), (false, None), (false, None)]);
    }

    #[test]
    fn percent_and_difference_of_one_cost_are_widened_alike() {
        let of_cost = Some(CostShare { share: 0.04, degrees: 8.0, level: None });
        let known = Some(KnownSpread { spread: 0.001, degrees: 10.0, of_cost });
        let asked = IntervalOptions { alpha: 0.05, by_decision: false, known };
        // 20 µs with the protection, 12.5 without.
        let in_us = asked.at_level(20.0).known.expect("it is known").at_cost(7.5);
        let in_percent = asked.known.expect("it is known").at_cost((20.0_f64 / 12.5).ln());
        assert!((in_us.spread - 20.0 * in_percent.spread).abs() < 1e-12, "{in_us:?} {in_percent:?}");
        assert!((in_us.degrees - in_percent.degrees).abs() < 1e-9, "{in_us:?} {in_percent:?}");
    }
}
