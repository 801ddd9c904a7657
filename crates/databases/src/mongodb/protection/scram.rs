//! Passwords and rights, against a server that lets everyone on the machine in.

use tithe_harness::{
    evidence::Evidence,
    protection::Protection,
    setup::{Authentication, Setup},
};
use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment,
};

use crate::{evidence::password_asked::PasswordAsked, mongodb::evidence::DOORS};

/// SCRAM (RFC 5802) with accounts that have rights: the clients' may read and write Tithe's database only. The proof
/// costs at connecting, the rights are checked with each command.
pub struct Scram;

impl Protection for Scram {
    fn id(&self) -> &'static str {
        "scram"
    }

    fn title(&self) -> &'static str {
        "password and rights (SCRAM)"
    }

    fn guards_against(&self) -> &'static str {
        "clients that do not know the password, and accounts that reach for other databases."
    }

    fn leaves_open(&self) -> &'static str {
        "everything after the login, which travels in the clear without TLS; who did what is not recorded."
    }

    fn options(&self) -> &'static [OptionEntry] {
        &[OptionEntry {
            name: "mechanism",
            kind: OptionKind::Choice(&["SCRAM-SHA-256", "SCRAM-SHA-1"]),
            default: Some(Default::Text("SCRAM-SHA-256")),
            help: "How the client proves that it knows the password (setParameter.authenticationMechanisms).",
        }]
    }

    fn attachable(&self) -> bool {
        true
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: chosen.text("mechanism").to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(PasswordAsked(&DOORS))]
    }
}
