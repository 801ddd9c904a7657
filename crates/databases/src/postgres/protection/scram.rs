//! Passwords by SCRAM-SHA-256, against a server that lets everyone on the machine in.

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::recorders::Recorders,
    evidence::Check,
    protection::Protection,
    recording::Sent,
    setup::{Authentication, Setup},
};

use crate::{
    evidence::password_asked::PasswordAsked,
    postgres::{evidence::PROBES, startup::BOUND},
};

/// `scram-sha-256` in `pg_hba.conf`. It costs at connecting, not afterwards.
pub struct Scram;

impl Protection for Scram {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "scram",
            title: "password authentication (SCRAM-SHA-256)",
            protects_against: "clients that do not know the password, and servers that do not.",
            options: &[OptionEntry {
                name: "channel_binding",
                kind: OptionKind::Choice(&["disable", "require"]),
                default: Some(DefaultValue::Text("disable")),
                help: "Tie the login to the TLS connection that it goes over (SCRAM-SHA-256-PLUS); needs `tls` as well.",
            }],
            leaves_open: "everything after the login: what is sent is neither hidden nor protected from change.",
            attachable: true,
            login: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let mechanism = if chosen.text("channel_binding") == "require" { BOUND } else { "scram-sha-256" };
        setup.authentication = Authentication::Password { mechanism: mechanism.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PasswordAsked(&PROBES)), Box::new(Recorders(Sent::Passwords))]
    }
}
