//! The protections of etcd: one file and one line in [`ALL`] each.

mod password;
mod peer_tls;
mod tls;

use tithe_plugin::{protection::Protection, protections::COLUMNS};

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] = &[&tls::TLS, &peer_tls::PeerTls, &password::Password, &COLUMNS];

#[cfg(test)]
mod tests;
