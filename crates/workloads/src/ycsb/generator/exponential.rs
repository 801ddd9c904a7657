//! Exponentially distributed distances from the newest record, as YCSB draws them.

use super::ThreadLocalRandom;

/// A distance from the newest item: `site.ycsb.generator.ExponentialGenerator`.
#[derive(Debug, Clone)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// `percentile` percent of the draws lie within `range` items; both must be positive, and `percentile`
    /// below 100.
    pub fn new(percentile: f64, range: f64) -> Self {
        Self { gamma: -(1.0 - percentile / 100.0).ln() / range }
    }

    /// The next distance, not rounded.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> f64 {
        -random.next_double().ln() / self.gamma
    }
}
