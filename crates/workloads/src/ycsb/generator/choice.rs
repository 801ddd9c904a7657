//! A weighted choice, by which a client draws its next kind of operation as YCSB does.

use super::ThreadLocalRandom;

/// One of several values by weight: `site.ycsb.generator.DiscreteGenerator`.
#[derive(Debug, Clone)]
pub struct Choice<T> {
    /// Values with their share of all weights.
    shares: Vec<(f64, T)>,
}

impl<T: Copy> Choice<T> {
    /// Weights need not add up to 1; there must be one at least, and each must be positive.
    pub fn new(weights: &[(f64, T)]) -> Self {
        let sum: f64 = weights.iter().fold(0.0, |sum, (weight, _)| sum + weight);
        Self { shares: weights.iter().map(|&(weight, value)| (weight / sum, value)).collect() }
    }

    /// The next value.
    ///
    /// Rounding can put a draw after the last share, where Java fails; here it is the last value.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> T {
        let mut left = random.next_double();
        for &(share, value) in &self.shares {
            if left < share {
                return value;
            }
            left -= share;
        }
        self.shares[self.shares.len() - 1].1
    }
}
