//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::wire::foreign::Parser;

use super::protocol::{Part, error, part};

/// All of them.
pub const PARSERS: &[Parser] = &[("memcached-answers", |mut bytes| {
    while let Ok(Some((found, length))) = part(bytes) {
        if let Part::Line(line) = found {
            let _ = error(line);
        }
        bytes = &bytes[length..];
    }
})];
