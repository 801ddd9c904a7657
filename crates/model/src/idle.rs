//! The record of what servers use without clients.

use serde::{Deserialize, Serialize};

use crate::record::Counters;

/// Windows of an idle stretch; its interval is computed from this many values.
pub const WINDOWS: u32 = 12;

/// All servers over one part of an idle stretch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleWindow {
    /// How long it was, ns.
    pub duration_ns: u64,
    /// What each arm's server used, in the experiment's order. Bytes of the journal are never known, because only the
    /// server could report them.
    pub arms: Vec<Counters>,
}
