//! Protections that both products have: one file each.

pub mod general_log;
