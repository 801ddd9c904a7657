//! The estimator: slots in, an interval of the cost out. Pure functions on numbers, no records of whole runs.
//!
//! The chain is short. The costs of two slots of the same block and lane are compared as a natural-log ratio
//! ([`pairing`]), a frame's ratios are averaged robustly ([`order`]), and the frames' values carry the inference
//! ([`inference`]), by start of the servers where several frames share one ([`starts`], by [`random_effects`]).
//! Where a provider switches one server, pairs of sides do ([`sides`]).
//! Over hosts the same model carries what each of them has shown ([`hosts`]). Percentiles take the same way as costs,
//! over groups of frames ([`percentile`]). When to stop is in [`precision`], what the answer is called in [`verdict`].
//! Where the costs of many runs change their level is in [`change_points`], whether identical arms differ in all starts
//! alike in [`persistence`].
//!
//! Left out on purpose: models of the noise, outlier removal, bootstrap. A frame's label swap is a symmetry
//! of the randomised design, so the signed-rank interval needs no model.

#![forbid(unsafe_code)]

pub mod allocation;
pub mod change_points;
pub mod distribution;
pub mod hosts;
pub mod inference;
pub mod interval;
pub mod null;
pub mod order;
pub mod pairing;
pub mod percentile;
pub mod persistence;
pub mod precision;
pub mod random_effects;
pub mod saturation;
pub mod sides;
pub mod starts;
pub mod verdict;

/// Arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Variance with `n − 1` in the denominator; NaN for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}
