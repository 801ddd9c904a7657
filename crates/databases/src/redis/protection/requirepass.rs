//! One password for everyone.

use tithe_harness::{
    evidence::Evidence,
    protection::Protection,
    setup::{Authentication, Setup},
};
use tithe_model::experiment;

use crate::{
    evidence::password_asked::PasswordAsked,
    redis::{evidence::DOORS, target::REQUIREPASS},
};

/// `requirepass`. It costs at connecting, not afterwards.
pub struct RequirePass;

impl Protection for RequirePass {
    fn id(&self) -> &'static str {
        REQUIREPASS
    }

    fn title(&self) -> &'static str {
        "password (requirepass)"
    }

    fn guards_against(&self) -> &'static str {
        "clients that do not know the password."
    }

    fn leaves_open(&self) -> &'static str {
        "the password itself, which travels in the clear without TLS; whoever knows it may do everything."
    }

    fn attachable(&self) -> bool {
        true
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.authentication = Authentication::Password { mechanism: REQUIREPASS.to_owned() };
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(PasswordAsked(&DOORS))]
    }
}
