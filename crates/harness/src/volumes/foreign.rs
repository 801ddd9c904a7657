//! The parsers of this module for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::wire::foreign::Parser;

use super::luks_header::Header;

/// All of them.
pub const PARSERS: &[Parser] = &[("luks-header", |bytes| {
    // The JSON area begins after the binary header, which is mostly zeros.
    let (head, json) = bytes.split_at(bytes.len().min(512));
    let _ = (Header::parse(bytes), Header::parse(&[head, &vec![0; 4096 - head.len()], json].concat()));
})];
