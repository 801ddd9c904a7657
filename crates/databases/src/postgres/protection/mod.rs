//! The protections of PostgreSQL: for each one file, here or in `protections`, and one line in [`ALL`].

mod checksums;
mod log_statement;
mod pgaudit;
mod row_security;
mod scram;
mod tls;

use tithe_plugin::{
    protection::Protection,
    protections::{COLUMNS, ORDINARY_STATEMENTS},
};

use super::evidence::CLAIMS;

/// In the order of `tithe ls`.
pub static ALL: &[&dyn Protection] = &[
    &tls::TLS,
    &pgaudit::PgAudit,
    &log_statement::LogStatement,
    &row_security::RowSecurity,
    &scram::Scram,
    &checksums::Checksums,
    described!("postgres", "column-rights", &CLAIMS),
    described!("postgres", "view-rights", &CLAIMS),
    described!("postgres", "audit-trigger", &CLAIMS),
    described!("postgres", "pgcrypto", &CLAIMS),
    described!("postgres", "statement-timeout", &CLAIMS),
    &COLUMNS,
    &ORDINARY_STATEMENTS,
];

#[cfg(test)]
mod tests;
