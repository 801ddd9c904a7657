//! The components of a cost: the results of profiled frames for each arm.

use serde::{Deserialize, Serialize};
use tithe_model::profile::Side;
use tithe_statistics::null;

use crate::Interval;

/// With fewer starts their differences are poorly known: intervals are then over frames.
pub(crate) const STARTS_MIN: usize = 8;

/// The result of the profiled frames of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellProfile {
    /// Number of profiled frames that count.
    pub frames: usize,
    /// Number of starts of the servers.
    pub starts: usize,
    /// Frames that do not count, with the reason.
    pub invalid: Vec<(u32, String)>,
    /// Samples of the arms.
    pub samples: u64,
    /// Samples that the kernel had to drop.
    pub lost: u64,
    /// Samples of other programs, which are left out.
    pub elsewhere: u64,
    /// Samples per second and processor.
    pub rate: f64,
    /// The cost of sampling: how much more processor time an operation took in sampled frames than in the adjacent ones
    /// without sampling, as a share of it. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Interval>,
    /// The protected arms, in the experiment's order.
    pub arms: Vec<ArmProfile>,
}

/// The components of the cost of one arm. Differences are protected less plain, µs per operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmProfile {
    /// Name of the arm.
    pub name: String,
    /// The cost in processor time, from the measured frames; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Interval>,
    /// The sum of all parts on the sides that this cost includes.
    pub sum: Interval,
    /// True if sum and cost differ by no more than their intervals allow; `None` if the cost is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adds_up: Option<bool>,
    /// The resolution of the profile: half the width of the widest interval of a component, as a share of the sum.
    /// NaN if the sum's interval contains zero.
    #[serde(with = "null::or_unknown")]
    pub resolves: f64,
    /// The difference by side.
    pub sides: Vec<Part>,
    /// By side and component: parts that differ significantly from zero, the largest first.
    pub components: Vec<Part>,
    /// The sum of all other components.
    pub elsewhere: Interval,
    /// By side, component and function: parts that differ significantly from zero, the largest first.
    pub functions: Vec<Part>,
    /// Every stack, innermost function last: the source of flame graphs.
    pub stacks: Vec<StackPart>,
}

impl ArmProfile {
    /// The components that the sum includes, or with `is_counted` false those of other processes and of threads of the
    /// kernel, which it does not include; the largest first.
    pub fn parts(&self, is_counted: bool) -> Vec<&Part> {
        self.components.iter().filter(|part| part.side.is_counted() == is_counted).collect()
    }
}

/// A part of a cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The side whose time it is.
    pub side: Side,
    /// The component; empty for a whole side.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// The function with its object: `tcp_sendmsg ([kernel])`; for a component the one with most of its difference.
    /// Empty for a whole side.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Its time on the plain arm, µs per operation.
    pub plain: f64,
    /// The additional time on this arm, µs per operation.
    pub difference: Interval,
    /// p of no difference (signed-rank test, Student's over starts).
    pub p: f64,
    /// The protection option that can reduce it: `pgaudit:log=read`; empty if none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lever: String,
}

/// A stack on both arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackPart {
    /// The side, then the functions, each called by the one before it.
    pub frames: Vec<String>,
    /// Its time on the plain arm, µs per operation.
    pub plain: f64,
    /// Its time on this arm, µs per operation.
    pub protected: f64,
}
