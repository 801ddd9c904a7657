//! One password for everyone.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{
    evidence::password_asked::PasswordAsked,
    redis::{evidence::PROBES, target::REQUIREPASS},
};

/// `requirepass`. It costs at connecting, not afterwards.
pub struct RequirePass;

impl Protection for RequirePass {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: REQUIREPASS,
            title: "password (requirepass)",
            protects_against: "clients that do not know the password.",
            leaves_open: "the password itself, which travels in the clear without TLS; everyone who knows it may \
                          do everything.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: REQUIREPASS.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES))]
    }
}
