//! The protections of MongoDB: one file and one line in [`ALL`] each.

mod audit;
mod encryption;
mod scram;
mod tls;

use tithe_machine::launch::{Install, Missing};
use tithe_plugin::{protection::Protection, protections::COLUMNS};

use super::install::ENTERPRISE;

/// In the order of `tithe ls`.
pub const ALL: &[&dyn Protection] = &[&tls::TLS, &scram::Scram, &audit::Audit, &encryption::Encryption, &COLUMNS];

/// What MongoDB Community lacks.
fn needs_enterprise(install: &Install, what: &str) -> Result<(), Missing> {
    if install.facts.get(ENTERPRISE).is_some_and(|enterprise| enterprise == "yes") {
        return Ok(());
    }
    Err(Missing {
        what: format!("{what}, which MongoDB Community does not have"),
        looked_in: vec![format!("{} ({})", install.programs.display(), install.version)],
        how_to_install: vec![
            "MongoDB Enterprise: the package mongodb-enterprise-server of repo.mongodb.com".to_owned(),
            "Percona Server for MongoDB: the package percona-server-mongodb-server of repo.percona.com".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests;
