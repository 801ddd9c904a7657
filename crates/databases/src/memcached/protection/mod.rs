//! The protections of memcached: for each one file, here or in `protections`, and one line in [`ALL`].

mod auth_file;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS_IN_MEMORY};

use super::evidence::CLAIMS;

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] =
    &[&tls::TLS, &auth_file::AuthFile, described!("memcached", "no-watching", &CLAIMS), &COLUMNS_IN_MEMORY];

#[cfg(test)]
mod tests;
