//! The protections of memcached: one file and one line in [`ALL`] each.

mod auth_file;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS_IN_MEMORY};

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] = &[&tls::TLS, &auth_file::AuthFile, &COLUMNS_IN_MEMORY];

#[cfg(test)]
mod tests;
