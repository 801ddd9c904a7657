//! The parsers of this crate for bytes that others wrote, for `fuzz/targets`.

use std::str::FromStr;

use tithe_plugin::wire::foreign::Parser;

use crate::{
    BrokerUrl,
    fragments::{Limits, Reassembler},
    pending, times,
};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("broker-fragments", |mut bytes| {
        let mut reassembler = Reassembler::new(Limits::USUAL);
        // Each part has its length before it.
        while let Some((length, rest)) = bytes.split_first_chunk() {
            let (part, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
            let _ = reassembler.take(part, 0);
            bytes = rest;
        }
    }),
    ("broker-words", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = (times::read(bytes), pending::missing_right(&text), BrokerUrl::from_str(&text));
    }),
];
