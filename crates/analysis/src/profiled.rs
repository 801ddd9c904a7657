//! Where a cost comes from: what profiled frames say of each arm.

use serde::{Deserialize, Serialize};
use tithe_model::profile::Side;
use tithe_statistics::null;

use crate::Interval;

/// Fewer starts tell too little of how starts differ: intervals are over frames then.
pub(crate) const STARTS_MIN: usize = 8;

/// What the profiled frames of one cell say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellProfile {
    /// Profiled frames that count.
    pub frames: usize,
    /// Starts of the servers behind them.
    pub starts: usize,
    /// Those that do not, with the reason.
    pub invalid: Vec<(u32, String)>,
    /// Samples of the arms.
    pub samples: u64,
    /// Samples that the kernel could not keep.
    pub lost: u64,
    /// Samples of other programs, which are left out.
    pub elsewhere: u64,
    /// Samples a second and processor.
    pub rate: f64,
    /// Processor time that an operation took more in sampled frames than in those beside them that were not sampled, as
    /// a share of it: what sampling costs. `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Interval>,
    /// The protected arms, in the experiment's order.
    pub arms: Vec<ArmProfile>,
}

/// Where the cost of one arm comes from. Differences are protected less plain, µs per operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmProfile {
    /// Name of the arm.
    pub name: String,
    /// The cost in processor time by the measured frames; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Interval>,
    /// The sum of all parts of the sides that this cost is about.
    pub sum: Interval,
    /// True where sum and cost differ by no more than their intervals allow; `None` where the cost is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adds_up: Option<bool>,
    /// Half the width of the widest interval of a component, as a share of the sum: what the profile resolves.
    #[serde(with = "null::or_unknown")]
    pub resolves: f64,
    /// The difference by side.
    pub sides: Vec<Part>,
    /// By side and component: those that differ significantly from zero, the largest first.
    pub components: Vec<Part>,
    /// The sum of all other components.
    pub elsewhere: Interval,
    /// By side, component and function: those that differ significantly from zero, the largest first.
    pub functions: Vec<Part>,
    /// Every stack, the function that ran first at the end: what pictures are drawn from.
    pub stacks: Vec<StackPart>,
}

/// A part of a cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Whose time it is.
    pub side: Side,
    /// The component; empty for a whole side.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// The function with its object: `tcp_sendmsg ([kernel])`; of a component the one in which most of its difference
    /// is. Empty for a whole side.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// What it takes on the plain arm, µs per operation.
    pub plain: f64,
    /// How much more on this arm, µs per operation.
    pub difference: Interval,
    /// p of no difference (signed-rank test, Student's over starts).
    pub p: f64,
    /// The protection by which less of it can be tried: `pgaudit:log=read`; empty where none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lever: String,
}

/// A stack on both arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackPart {
    /// Whose time it is, then the functions, each called by the one before it.
    pub frames: Vec<String>,
    /// What it takes on the plain arm, µs per operation.
    pub plain: f64,
    /// What it takes on this arm, µs per operation.
    pub protected: f64,
}
