//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::wire::foreign::Parser;

use super::{
    inspect::rules::Account,
    protocol::{Reader, complete, error},
};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("redis-replies", replies),
    ("redis-acl", |bytes| {
        if let Some(account) = Account::read(&String::from_utf8_lossy(bytes)) {
            let _ = (account.is_open(), account.has_everything(), account.is_for_replicas());
        }
    }),
];

fn replies(mut bytes: &[u8]) {
    while let Ok(Some(length)) = complete(bytes) {
        let mut reader = Reader(&bytes[..length]);
        while !reader.0.is_empty() && reader.next().is_ok() {}
        let _ = error(&bytes[..length]);
        bytes = &bytes[length..];
    }
}
