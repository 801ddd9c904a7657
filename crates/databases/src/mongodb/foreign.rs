//! The parser of this product for bytes that others wrote, for `fuzz/targets`. The driver reads everything else.

use tithe_plugin::wire::foreign::Parser;

use super::probe;

/// All of them.
pub const PARSERS: &[Parser] = &[("mongodb-hello", |bytes| drop(probe::is_answered(bytes)))];
