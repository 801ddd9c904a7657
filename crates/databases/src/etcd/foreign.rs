//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::wire::foreign::Parser;

use super::{hpack, messages::Fields};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("etcd-hpack", |bytes| drop(hpack::fields(bytes))),
    ("etcd-messages", |bytes| {
        let _ = (Fields(bytes).number(1), Fields(bytes).texts(2));
        for inner in Fields(bytes).all(2).unwrap_or_default() {
            let _ = Fields(inner).first(1);
        }
    }),
];
