//! The answer in words. One vocabulary for every figure.

use tithe_model::quantity::{fixed, percentage};

use crate::interval::{Interval, Outcome};

/// The percentage that a natural-log ratio stands for: 0.01 is 1.005 %.
pub fn percent(effect: f64) -> f64 {
    100.0 * effect.exp_m1()
}

/// A percentage with the useful number of digits: none from 20 on, one from 0.95 on, else two.
pub fn digits(percentage: f64) -> String {
    let decimals = match percentage.abs() {
        size if size >= 20.0 => 0,
        size if size >= 0.95 => 1,
        _ => 2,
    };
    fixed(percentage, decimals)
}

/// A percentage of an answer that excludes zero, as [`digits`], but with up to two more decimals if it would be printed
/// as zero.
pub fn apart_from_zero(percentage: f64) -> String {
    let shown = |decimals: &usize| percentage.abs() >= 0.5 / 10f64.powi(*decimals as i32);
    match (2..=4).find(shown) {
        Some(decimals @ 3..) => fixed(percentage, decimals),
        _ => digits(percentage),
    }
}

/// The percentage by which something fell, as [`apart_from_zero`], but with up to four decimals if it would be printed
/// as all of it.
pub fn apart_from_all(percentage: f64) -> String {
    let shown = |decimals: &usize| 100.0 - percentage > 0.5 / 10f64.powi(*decimals as i32);
    match (0..=4).find(shown) {
        Some(decimals @ 1..) => fixed(percentage, decimals),
        _ => apart_from_zero(percentage),
    }
}

/// The one-word answer of an interval; a cost up to `margin` (natural-log ratio) counts as none.
pub fn outcome(interval: Interval, margin: f64) -> Outcome {
    if !(interval.low.is_finite() && interval.high.is_finite()) {
        Outcome::TooNoisy
    } else if interval.low > 0.0 {
        Outcome::Costs
    } else if interval.high < 0.0 {
        Outcome::Gains
    } else if interval.high <= margin {
        Outcome::NoneFound
    } else {
        Outcome::TooNoisy
    }
}

/// The answer in one word and as a text: `costs 3.1 % [2.6, 3.7]`. `what` names what was not found: `cost`.
pub fn verdict(interval: Interval, margin: f64, what: &str) -> (Outcome, String) {
    let Interval { estimate, low, high } = interval;
    let of = |effect: f64| digits(percent(effect));
    let gain = |effect: f64| apart_from_all(-percent(effect));
    let outcome = outcome(interval, margin);
    let text = match outcome {
        Outcome::Costs => {
            let small = if high <= margin { " (below your margin)" } else { "" };
            let of = |effect: f64| apart_from_zero(percent(effect));
            format!("costs {} [{}, {}]{small}", percentage(&of(estimate)), of(low), of(high))
        }
        Outcome::Gains => format!("saves {} [{}, {}]", percentage(&gain(estimate)), gain(high), gain(low)),
        Outcome::NoneFound => format!("no {what} found, at most {}", percentage(&digits(percent(high).max(0.0)))),
        Outcome::TooNoisy if low.is_finite() && high.is_finite() => {
            format!("too noisy to tell: between {} and {}", percentage(&of(low)), percentage(&of(high)))
        }
        Outcome::TooNoisy => "too noisy to tell (not enough frames)".to_owned(),
    };
    (outcome, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_excludes_zero_does_not_end_there() {
        let said = |low: f64, high: f64| {
            let ln = |percentage: f64| (percentage / 100.0).ln_1p();
            let effect = Interval { estimate: ln((low + high) / 2.0), low: ln(low), high: ln(high) };
            verdict(effect, 0.0, "cost").1
        };
        assert_eq!(said(0.002, 0.022), "costs 0.01 % [0.002, 0.02]");
        assert_eq!(said(0.0002, 0.0004), "costs 0.0003 % [0.0002, 0.0004]");
        assert_eq!(said(-0.022, -0.002), "saves 0.01 % [0.002, 0.02]");
        assert_eq!(said(-0.002, 0.022), "too noisy to tell: between 0.00 % and 0.02 %");
        assert_eq!(said(0.5, 1.5), "costs 1.0 % [0.50, 1.5]");
        // What is left of it is not nothing.
        assert_eq!(said(-99.8, -99.6), "saves 99.7 % [99.6, 99.8]");
        assert_eq!(said(-99.98, -99.2), "saves 99.6 % [99, 99.98]");
    }

    #[test]
    fn only_all_of_it_is_all() {
        let said = [12.34, 99.4, 99.5, 99.97, 99.9999, 100.0].map(apart_from_all);
        assert_eq!(said, ["12.3", "99", "99.5", "99.97", "99.9999", "100"]);
    }
}
