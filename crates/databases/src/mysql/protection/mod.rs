//! The protections of MySQL: for each one file, here or in `protections`, and one line in [`ALL`].

mod encryption;
mod password;

use tithe_plugin::{
    protection::Protection,
    protections::{COLUMNS, ORDINARY_STATEMENTS},
};

use super::evidence::{CLAIMS, LOG, PROBES};
use crate::{mysql_family::protection::general_log::GeneralLog, tls::Tls};

/// TLS by MySQL's own `ssl_cert`; the server (`require_secure_transport`) and the account refuse plaintext.
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
