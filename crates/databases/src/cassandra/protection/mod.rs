//! The protections of Cassandra: one file and one line in [`ALL`] each.

mod audit;
mod commitlog_encryption;
mod internode_tls;
mod password;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS};

/// In the order of `tithe ls`.
pub const ALL: &[&dyn Protection] = &[
    &tls::TLS,
    &internode_tls::InternodeTls,
    &password::Password,
    &audit::FILE,
    &audit::BINARY,
    &commitlog_encryption::CommitlogEncryption,
    &COLUMNS,
];

#[cfg(test)]
mod tests;
