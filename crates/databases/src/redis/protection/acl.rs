//! Accounts with rights of their own.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{
    evidence::password_asked::PasswordAsked,
    redis::{
        evidence::{PROBES, rights_enforced::RightsEnforced},
        target::ACL,
    },
};

/// An ACL file: no client is accepted without an account, and the clients' account may only read and write Tithe's
/// keys. Each command is checked against it.
pub struct Acl;

impl Protection for Acl {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: ACL,
            title: "accounts and rights (ACL)",
            protects_against: "clients without an account, and accounts that reach for other keys or manage the server.",
            leaves_open: "the password itself, which travels in the clear without TLS; who did what is not recorded, \
                          only what was denied.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: ACL.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(RightsEnforced)]
    }
}
