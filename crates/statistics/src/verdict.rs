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
    let gain = |effect: f64| digits(-percent(effect));
    let outcome = outcome(interval, margin);
    let text = match outcome {
        Outcome::Costs => {
            let small = if high <= margin { " (below your margin)" } else { "" };
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
