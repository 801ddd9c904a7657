//! Into how many starts the load of a cell is best divided: what another start buys against another frame.
//!
//! The interval over starts has the variance (τ² + σ²/r) / n, of n starts with r frames each, where the true effect
//! varies by τ² from start to start and a frame shows it with the variance σ². n starts take n (a + r b), where
//! starting takes a and a frame b. Of all divisions that take equally long the one with
//!
//! r = √(a/b · σ²/τ²)
//!
//! has the narrowest interval (Kalibera and Jones 2013, "Rigorous benchmarking in reasonable time", section 7; the
//! optimum of two-stage sampling, Cochran 1977, "Sampling techniques", section 10.6). It leaves out that few starts
//! have a larger quantile of Student's t; that is why there are never fewer of them than the plan promises.

/// What is seen of one comparison, and what a start and a frame cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceComponents {
    /// Variance of a frame's effect within a start, σ².
    pub within: f64,
    /// Variance of the true effect from start to start, τ².
    pub between: f64,
    /// How long starting takes, s.
    pub start_s: f64,
    /// How long a frame takes, s.
    pub frame_s: f64,
}

impl VarianceComponents {
    /// Frames of each start for the narrowest interval in a given time; infinite where starts do not differ.
    pub fn frames_per_start(&self) -> f64 {
        (self.start_s / self.frame_s * self.within / self.between).sqrt()
    }

    /// Starts for `frames` frames, `least` to `most`; `None` where nothing is known of either variance.
    pub fn starts(&self, frames: u32, least: u32, most: u32) -> Option<u32> {
        let each = self.frames_per_start();
        (!each.is_nan()).then(|| ((f64::from(frames) / each.max(1.0)).round() as u32).clamp(least, most.max(least)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn starts_are_many_where_they_differ_and_few_where_they_are_dear() {
        let seen = VarianceComponents { within: 4.0, between: 1.0, start_s: 9.0, frame_s: 1.0 };
        assert_eq!(seen.frames_per_start(), 6.0);
        assert_eq!(seen.starts(60, 4, 24), Some(10));
        // Nothing between starts: as few as may be. Everything: as many.
        assert_eq!(VarianceComponents { between: 0.0, ..seen }.starts(60, 4, 24), Some(4));
        assert_eq!(VarianceComponents { within: 0.0, ..seen }.starts(60, 4, 24), Some(24));
        assert_eq!(VarianceComponents { within: 0.0, between: 0.0, ..seen }.starts(60, 4, 24), None);
        // What is promised is kept, whatever it costs.
        assert_eq!(seen.starts(60, 12, 8), Some(12));
    }

    proptest! {
        #[test]
        fn no_other_division_of_the_same_time_is_better(
            within in 0.1_f64..10.0, between in 0.1_f64..10.0, start_s in 0.1_f64..30.0, frame_s in 0.1_f64..5.0,
            other in 0.1_f64..100.0,
        ) {
            let seen = VarianceComponents { within, between, start_s, frame_s };
            // Variance for one second.
            let variance = |frames: f64| (between + within / frames) * (start_s + frames * frame_s);
            prop_assert!(variance(seen.frames_per_start()) <= variance(other) * (1.0 + 1e-9));
        }
    }
}
