//! Passwords by SCRAM-SHA-256, against a server that lets everyone on the machine in.

use tithe_harness::{
    evidence::Evidence,
    protection::Protection,
    setup::{Authentication, Setup},
};
use tithe_model::experiment;

use crate::{evidence::password_asked::PasswordAsked, postgres::evidence::DOORS};

/// `scram-sha-256` in `pg_hba.conf`. It costs at connecting, not afterwards.
pub struct Scram;

impl Protection for Scram {
    fn id(&self) -> &'static str {
        "scram"
    }

    fn title(&self) -> &'static str {
        "password authentication (SCRAM-SHA-256)"
    }

    fn guards_against(&self) -> &'static str {
        "clients that do not know the password, and servers that do not."
    }

    fn leaves_open(&self) -> &'static str {
        "everything after the login: what is sent is neither hidden nor protected from change."
    }

    fn attachable(&self) -> bool {
        true
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: "scram-sha-256".to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(PasswordAsked(&DOORS))]
    }
}
