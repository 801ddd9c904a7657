//! Users with passwords, in a file.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{
    evidence::password_asked::PasswordAsked,
    memcached::{evidence::PROBES, target::AUTH_FILE},
};

/// `--auth-file`. It costs at connecting, not afterwards.
pub struct AuthFile;

impl Protection for AuthFile {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: AUTH_FILE,
            title: "users and passwords (auth-file)",
            protects_against: "clients that know no user's password.",
            leaves_open: "the password itself, which travels in the clear without TLS and lies in the file in the clear; \
                          every user may read, change and flush everything.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: AUTH_FILE.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES))]
    }
}
