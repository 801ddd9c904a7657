//! The protections of PostgreSQL: one file and one line in [`ALL`] each.

use tithe_harness::protection::Protection;

/// In the order of `tithe ls`.
pub const ALL: &[&dyn Protection] = &[];
