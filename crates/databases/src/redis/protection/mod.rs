//! The protections of Redis: one file and one line in [`ALL`] each.

mod acl;
mod aof;
mod requirepass;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS};

/// In the order of `tithe ls`.
pub const ALL: &[&dyn Protection] = &[&tls::TLS, &requirepass::RequirePass, &acl::Acl, &aof::Aof, &COLUMNS];

#[cfg(test)]
mod tests;
