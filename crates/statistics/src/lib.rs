//! The estimator: slots in, an interval of the cost out. Pure functions on numbers that know nothing of runs.
//!
//! The steps: [`pairing`] compares the costs of two slots of the same block and lane as a natural-log ratio. [`order`]
//! averages a frame's ratios robustly. [`inference`] makes an interval from the frames' values; if several frames share
//! a start of the servers, [`starts`] does so from the starts, by [`random_effects`]. If a provider switches one
//! server, pairs of sides take the place of frames ([`sides`]). The same model combines hosts ([`hosts`]). Percentiles
//! are treated like costs, over groups of frames ([`percentile`]). [`precision`] decides when to stop, [`verdict`]
//! names the answer. [`change_points`] finds where the costs of many runs change their level, [`persistence`] whether
//! identical arms differ in all starts alike.
//!
//! Left out on purpose: models of the noise, outlier removal, bootstrap. Exchanging the labels of a frame is a symmetry
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

/// Arithmetic mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Variance with `n − 1` in the denominator; NaN for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}
