//! Passwords by SCRAM-SHA-256, against a server that lets everyone on the machine in.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{evidence::password_asked::PasswordAsked, postgres::evidence::PROBES};

/// `scram-sha-256` in `pg_hba.conf`. It costs at connecting, not afterwards.
pub struct Scram;

impl Protection for Scram {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "scram",
            title: "password authentication (SCRAM-SHA-256)",
            protects_against: "clients that do not know the password, and servers that do not.",
            leaves_open: "everything after the login: what is sent is neither hidden nor protected from change.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: "scram-sha-256".to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES))]
    }
}
