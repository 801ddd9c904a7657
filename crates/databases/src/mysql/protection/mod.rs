//! The protections of MySQL: one file, here or in `protections`, and one line in [`ALL`] each.

mod encryption;
mod password;

use tithe_plugin::{
    protection::Protection,
    protections::{COLUMNS, ORDINARY_STATEMENTS},
};

use super::evidence::{CLAIMS, LOG, PROBES};
use crate::{mysql_family::protection::general_log::GeneralLog, tls::Tls};

/// TLS by MySQL's own `ssl_cert`, with plaintext refused by the server (`require_secure_transport`) and by the account.
static TLS: Tls = Tls::of(&PROBES);

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] = &[
    &encryption::Encryption,
    &TLS,
    &GeneralLog(&LOG),
    &password::Password,
    described!("mysql-family", "audit-trigger", &CLAIMS),
    &COLUMNS,
    &ORDINARY_STATEMENTS,
];

#[cfg(test)]
mod tests;
