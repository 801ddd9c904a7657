//! The protections of Redis: for each one file, here or in `protections`, and one line in [`ALL`].

mod acl;
mod aof;
mod requirepass;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS};

use super::evidence::CLAIMS;

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] = &[
    &tls::TLS,
    &requirepass::RequirePass,
    &acl::Acl,
    described!("redis", "key-selectors", &CLAIMS),
    described!("redis", "renamed-command", &CLAIMS),
    &aof::Aof,
    &COLUMNS,
];

#[cfg(test)]
mod tests;
