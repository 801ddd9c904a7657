//! The protections of OpenSearch: one file and one line in [`ALL`] each.

mod audit;
mod documents;
mod internode_tls;
mod password;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS};

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] =
    &[&tls::TLS, &internode_tls::InternodeTls, &password::Password, &documents::Documents, &audit::Audit, &COLUMNS];

#[cfg(test)]
mod tests;
