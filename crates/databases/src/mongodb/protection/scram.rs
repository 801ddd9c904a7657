//! Passwords and rights, compared with a server that accepts every user of the machine.

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    setup::{Authentication, Setup},
};

use crate::{evidence::password_asked::PasswordAsked, mongodb::evidence::PROBES};

/// SCRAM (RFC 5802) with accounts that have rights: the clients' account may only read and write Tithe's database. The
/// proof costs time at each connection; the rights are checked with each command.
pub struct Scram;

impl Protection for Scram {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "scram",
            title: "password and rights (SCRAM)",
            protects_against: "clients that do not know the password, and accounts that reach for other databases.",
            leaves_open: "everything after the login, which travels in the clear without TLS; who did what is not \
                          recorded.",
            options: &[OptionEntry {
                name: "mechanism",
                kind: OptionKind::Choice(&["SCRAM-SHA-256", "SCRAM-SHA-1"]),
                default: Some(DefaultValue::Text("SCRAM-SHA-256")),
                help: "How the client proves that it knows the password (setParameter.authenticationMechanisms).",
            }],
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: chosen.text("mechanism").to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES))]
    }
}
