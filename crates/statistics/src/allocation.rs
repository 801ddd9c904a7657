//! The best number of starts for a given load time: the benefit of another start against that of another frame.
//!
//! The interval over n starts with r frames each has the variance (τ² + σ²/r) / n. The true effect varies by τ² from
//! start to start, and a frame shows it with the variance σ². n starts take n (a + r b), where a start takes a and a
//! frame b. Of all divisions that take equally long, the one with
//!
//! r = √(a/b · σ²/τ²)
//!
//! has the narrowest interval (Kalibera and Jones 2013, "Rigorous benchmarking in reasonable time", section 7; the
//! optimum of two-stage sampling, Cochran 1977, "Sampling techniques", section 10.6). This ignores that Student's t has
//! a larger quantile for few starts; therefore there are never fewer starts than the plan requires.

/// Variances of one comparison, and the time that a start and a frame take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceComponents {
    /// Variance of a frame's effect within a start, σ².
    pub within: f64,
    /// Variance of the true effect from start to start, τ².
    pub between: f64,
    /// Duration of a start, s.
    pub start_s: f64,
    /// Duration of a frame, s.
    pub frame_s: f64,
}

impl VarianceComponents {
    /// Frames per start for the narrowest interval in a given time; infinite if starts do not differ.
    pub fn frames_per_start(&self) -> f64 {
        (self.start_s / self.frame_s * self.within / self.between).sqrt()
    }

    /// Number of starts for `frames` frames, from `least` to `most`; `None` if neither variance is known.
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
        // Without variation between starts as few as possible; with no other variation as many as possible.
        assert_eq!(VarianceComponents { between: 0.0, ..seen }.starts(60, 4, 24), Some(4));
        assert_eq!(VarianceComponents { within: 0.0, ..seen }.starts(60, 4, 24), Some(24));
        assert_eq!(VarianceComponents { within: 0.0, between: 0.0, ..seen }.starts(60, 4, 24), None);
        // The minimum is kept even above the maximum.
        assert_eq!(seen.starts(60, 12, 8), Some(12));
    }

    proptest! {
        #[test]
        fn no_other_division_of_the_same_time_is_better(
            within in 0.1_f64..10.0, between in 0.1_f64..10.0, start_s in 0.1_f64..30.0, frame_s in 0.1_f64..5.0,
            other in 0.1_f64..100.0,
        ) {
            let seen = VarianceComponents { within, between, start_s, frame_s };
            // Variance, times the total duration.
            let variance = |frames: f64| (between + within / frames) * (start_s + frames * frame_s);
            prop_assert!(variance(seen.frames_per_start()) <= variance(other) * (1.0 + 1e-9));
        }
    }
}
