//! The parser of this product for bytes that others wrote, for `fuzz/targets`. The driver reads everything else.

use super::probe;

/// A name, and what is done with the bytes.
type Parser = (&'static str, fn(&[u8]));

/// All of them.
pub const PARSERS: &[Parser] = &[("mongodb-hello", |bytes| drop(probe::is_answered(bytes)))];
