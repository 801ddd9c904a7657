//! The protections of MariaDB: for each one file, here or in `protections`, and one line in [`ALL`].

mod encryption;
mod password;
mod server_audit;
mod tls;

use tithe_plugin::{
    protection::Protection,
    protections::{COLUMNS, ORDINARY_STATEMENTS},
};

use super::evidence::{CLAIMS, LOG};
use crate::mysql_family::protection::general_log::GeneralLog;

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] = &[
    &encryption::Encryption,
    &tls::TLS,
    &server_audit::ServerAudit,
    &GeneralLog(&LOG),
    &password::Password,
    described!("mariadb", "audit-accounts", &CLAIMS),
    described!("mysql-family", "audit-trigger", &CLAIMS),
    described!("mariadb", "row-history", &CLAIMS),
    described!("mariadb", "statement-timeout", &CLAIMS),
    &COLUMNS,
    &ORDINARY_STATEMENTS,
];

#[cfg(test)]
mod tests;
