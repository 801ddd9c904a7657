//! The protections of MariaDB: one file and one line in [`ALL`] each.

mod encryption;
mod general_log;
mod password;
mod server_audit;
mod tls;

use tithe_harness::{
    columns::{COLUMNS, ORDINARY_STATEMENTS},
    protection::Protection,
};

/// In the order of `tithe ls`.
pub const ALL: &[&dyn Protection] = &[
    &encryption::Encryption,
    &tls::TLS,
    &server_audit::ServerAudit,
    &general_log::GeneralLog,
    &password::Password,
    &COLUMNS,
    &ORDINARY_STATEMENTS,
];

#[cfg(test)]
mod tests;
