//! The number of clients at which a server stops getting faster.

use crate::{distribution::normal_upper, mean, variance};

/// A step that gains less has reached saturation.
const GAIN: f64 = 0.05;

/// The smallest number of clients whose next step gains less than 5 % throughput, by the upper end of the one-sided 95
/// % interval of the gain. `None` if every step gains more or may gain more.
///
/// `steps` are (clients, ln throughput by frame), by rising clients. The frames of two steps are not paired, because
/// steps are measured one after the other. So this finds a number of clients, not a cost.
pub fn saturation(steps: &[(u32, Vec<f64>)]) -> Option<u32> {
    let error = |values: &[f64]| variance(values) / values.len() as f64;
    steps.windows(2).find_map(|pair| {
        let ((clients, here), (_, next)) = (&pair[0], &pair[1]);
        let gain = mean(next) - mean(here);
        let highest = gain + normal_upper(0.05) * (error(here) + error(next)).sqrt();
        (highest < GAIN.ln_1p()).then_some(*clients)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_that_gains_nothing_ends_the_search() {
        let step = |clients: u32, level: f64| (clients, vec![level - 0.01, level, level + 0.01, level]);
        assert_eq!(saturation(&[step(1, 0.0), step(2, 0.6), step(4, 0.9), step(8, 0.91)]), Some(4));
        assert_eq!(saturation(&[step(1, 0.0), step(2, 0.6), step(4, 0.9)]), None);
        assert_eq!(saturation(&[step(1, 0.0), step(2, -0.2)]), Some(1));
        assert_eq!(saturation(&[(1, vec![0.0]), (2, vec![0.0])]), None, "one frame each has no scatter to judge by");
        let exactly = |gain: f64| saturation(&[(1, vec![0.0; 2]), (2, vec![gain; 2])]);
        assert_eq!([exactly(GAIN.ln_1p()), exactly(0.999 * GAIN.ln_1p())], [None, Some(1)], "five percent are a gain");
    }

    /// The variance of these four values is 2d²/3, that of their mean d²/6.
    #[test]
    fn a_step_that_may_still_gain_five_percent_is_no_saturation() {
        let of = |level: f64, scatter: f64| vec![level - scatter, level, level + scatter, level];
        let steps = |here: f64, next: f64| saturation(&[(1, of(0.0, here)), (2, of(0.01, next))]);
        // ln 1.05 = 0.0488 is reached by 0.01 + 1.645 · √(d²/6 + d²/6) from d = 0.0408 on.
        assert_eq!([steps(0.040, 0.040), steps(0.042, 0.042)], [Some(1), None]);
        // If only one of the steps scatters, by 0.01 + 1.645 · √(d²/6) from d = 0.0578 on.
        assert_eq!([steps(0.057, 0.0), steps(0.059, 0.0)], [Some(1), None]);
        assert_eq!([steps(0.0, 0.057), steps(0.0, 0.059)], [Some(1), None]);
    }
}
