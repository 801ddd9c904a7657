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
    }
}
