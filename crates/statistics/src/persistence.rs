//! Does the difference between identical arms persist over the starts of a cell?
//!
//! An interval over starts holds if everything that makes a start different is drawn again for each start. Something
//! that is drawn once per cell, such as the place of an arm's files on a disk, shifts all starts alike, and more starts
//! do not average it out. Between identical arms it shows as a mean over the starts that is large against their
//! standard error: Student's *t*.

use crate::{distribution::t_two_sided, mean, variance};

/// Minimum number of starts for a test.
pub const STARTS_MIN: usize = 4;

/// Result of the test for one difference over starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Persistence {
    /// Its mean over the starts, in the unit of the differences.
    pub mean: f64,
    /// The mean over its standard error.
    pub t: f64,
    /// Number of starts.
    pub starts: usize,
    /// Two-sided probability of a *t* at least as large, if arms are exchangeable from start to start.
    pub p: f64,
}

impl Persistence {
    /// Tests the `differences` between two arms, one per start; `None` for fewer than [`STARTS_MIN`] or if all are
    /// equal.
    pub fn of(differences: &[f64]) -> Option<Self> {
        let starts = differences.len();
        let error = (variance(differences) / starts as f64).sqrt();
        if starts < STARTS_MIN || !(error.is_finite() && error > 0.0) {
            return None;
        }
        let mean = mean(differences);
        let t = mean / error;
        Some(Self { mean, t, starts, p: t_two_sided(t, starts as f64 - 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_t_test_of_one_sample() {
        // scipy.stats.ttest_1samp([0.21, 0.25, 0.19, 0.31, 0.22], 0)
        let found = Persistence::of(&[0.21, 0.25, 0.19, 0.31, 0.22]).expect("five starts");
        assert!((found.t - 11.302_350).abs() < 1e-6, "{found:?}");
        assert!((found.p - 3.492_565e-4).abs() < 1e-9, "{found:?}");
        assert!((found.mean - 0.236).abs() < 1e-12 && found.starts == 5);
    }

    #[test]
    fn few_starts_and_starts_without_any_scatter_say_nothing() {
        assert_eq!(Persistence::of(&[0.2, 0.3, 0.1]), None);
        assert_eq!(Persistence::of(&[2.0; 8]), None);
        assert_eq!(Persistence::of(&[]), None);
    }
}
