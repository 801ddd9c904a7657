//! Users with passwords and roles, of the security plugin's own database.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{
    evidence::password_asked::PasswordAsked,
    opensearch::{
        evidence::{PROBES, RightsEnforced},
        install::needs_plugin,
        target::PASSWORD,
    },
};

/// The whole plugin, with HTTP Basic and the internal database: each request carries a password, which is hashed once
/// and then remembered for an hour, and is checked for the rights of the account's roles.
pub struct Password;

impl Protection for Password {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "password",
            title: "users, passwords and roles (internal users)",
            protects_against: "clients without an account, and accounts that reach for other indices or manage the server.",
            leaves_open: "the password, which travels in the clear with every request without TLS; a password that was changed \
                          elsewhere is remembered for up to an hour; who did what is not recorded.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_plugin(install)
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: PASSWORD.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(RightsEnforced)]
    }
}
