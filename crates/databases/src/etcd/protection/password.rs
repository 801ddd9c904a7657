//! Users with passwords and roles.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{
    etcd::{
        evidence::{PROBES, RightsEnforced},
        target::PASSWORD,
    },
    evidence::password_asked::PasswordAsked,
};

/// `auth enable`: no client is accepted without an account, and the clients' account may only read and write Tithe's
/// keys. A login costs a hash (bcrypt) and returns a token, which is checked with every request.
pub struct Password;

impl Protection for Password {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: PASSWORD,
            title: "users, passwords and roles",
            protects_against: "clients without an account, and accounts that reach for other keys or manage the server.",
            leaves_open: "the password and the token, which travel in the clear without TLS; who did what is not recorded.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: PASSWORD.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(RightsEnforced)]
    }
}
