//! Invented noise and invented runs.

use tithe_model::schedule::SplitMix64;

/// Random numbers of the shapes that measured noise has.
pub struct Noise(SplitMix64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.0.next_f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.0.next_f64()).cos()
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.0.next_f64()).ln()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.next_f64() < probability
    }
}
