//! An estimate with its interval, and the answer that it gives.

use serde::{Deserialize, Serialize};

use crate::null;

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Estimate. NaN if nothing was measured, which JSON shows as null; ∞ if only the protected arm has any; −∞ if only
    /// the plain one has.
    #[serde(with = "null::or_unknown")]
    pub estimate: f64,
    /// Lower end; may be −∞, which JSON shows as null.
    #[serde(with = "null::or_minus_infinity")]
    pub low: f64,
    /// Upper end; may be ∞, which JSON shows as null.
    #[serde(with = "null::or_infinity")]
    pub high: f64,
}

impl Interval {
    /// True if `effect` lies in it. An interval that is open on both sides contains everything.
    pub fn holds(&self, effect: f64) -> bool {
        self.low <= effect && effect <= self.high
    }

    /// True if every effect in it is farther from zero than `limit`.
    pub fn exceeds(&self, limit: f64) -> bool {
        self.low > limit || self.high < -limit
    }

    /// The interval multiplied by `times`, to convert its unit.
    pub fn in_unit(&self, times: f64) -> Self {
        Self { estimate: self.estimate / times, low: self.low / times, high: self.high / times }
    }

    /// Half of its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The interval of an estimate with a further, independent error of `more`: squares add.
    pub fn widened(&self, more: f64) -> Self {
        let further = |end: f64| (end - self.estimate).hypot(more);
        Self { low: self.estimate - further(self.low), high: self.estimate + further(self.high), ..*self }
    }

    /// The interval with each end `factor` times as far from the estimate.
    pub fn scaled(&self, factor: f64) -> Self {
        let further = |end: f64| self.estimate + factor * (end - self.estimate);
        Self { low: further(self.low), high: further(self.high), ..*self }
    }
}

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    /// The interval lies above zero.
    Costs,
    /// The interval lies below zero: check the set-up.
    Gains,
    /// The interval contains zero and ends below the margin.
    NoneFound,
    /// The interval is too wide for an answer.
    TooNoisy,
}
