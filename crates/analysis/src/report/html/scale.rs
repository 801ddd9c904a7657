//! Scales: from a figure to a position in a drawing, and the round figures on an axis.

/// A linear scale; logarithmic ones take logarithms first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The value at the start.
    pub low: f64,
    /// The value at the end.
    pub high: f64,
    /// Position of `low`.
    pub start: f64,
    /// Position of `high`.
    pub end: f64,
}

impl Scale {
    /// The position of `value`; values outside are at the edge.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        // NaN goes to the start, where it shows least.
        self.start + share.clamp(0.0, 1.0).max(0.0) * (self.end - self.start)
    }
}

/// Round percentages and factors for the labels of a scale of costs, most important first.
const COSTS: [f64; 16] = [0.0, 1.0, 0.1, 9.0, 0.5, 0.01, 0.05, -0.5, 0.2, 4.0, 0.02, 99.0, 49.0, -0.1, 0.3, -0.05];

/// Ticks on a scale of costs (natural-log ratios), at least `apart` from each other, each with its label: `+10 %`,
/// `×2`.
pub(super) fn cost_ticks(scale: &Scale, apart: f64) -> Vec<(f64, String)> {
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for share in COSTS {
        let effect = f64::ln_1p(share);
        if effect < scale.low || effect > scale.high {
            continue;
        }
        let place = scale.place(effect);
        if ticks.iter().all(|(other, _)| (scale.place(*other) - place).abs() >= apart) {
            ticks.push((effect, cost_name(share)));
        }
    }
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    ticks
}

fn cost_name(share: f64) -> String {
    match share {
        share if share >= 1.0 => format!("×{:.0}", share + 1.0),
        0.0 => "0".to_owned(),
        share if share < 0.0 => format!("−{:.0} %", -100.0 * share),
        share => format!("+{:.0} %", 100.0 * share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ticks: &[(f64, String)]) -> String {
        ticks.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn costs_are_named_by_round_figures() {
        let scale = |low: f64, high: f64| Scale { low: low.ln_1p(), high: high.ln_1p(), start: 0.0, end: 150.0 };
        assert_eq!(names(&cost_ticks(&scale(-0.01, 0.045), 30.0)), "0 +2 %");
        assert_eq!(names(&cost_ticks(&scale(-0.05, 0.6), 30.0)), "0 +20 % +50 %");
        assert_eq!(names(&cost_ticks(&scale(-0.1, 13.0), 30.0)), "0 ×2 ×5 ×10");
    }

    #[test]
    fn what_lies_outside_stands_at_the_edge() {
        let scale = Scale { low: 0.0, high: 1.0, start: 10.0, end: 20.0 };
        assert_eq!(
            [-5.0, 0.5, 7.0, f64::INFINITY, f64::NAN].map(|value| scale.place(value)),
            [10.0, 15.0, 20.0, 20.0, 10.0]
        );
    }
}
