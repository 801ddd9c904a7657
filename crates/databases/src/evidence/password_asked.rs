//! Does the server only let in clients that know the password?

use tithe_machine::{fault::Fault, observation::Observation, secret::Secret};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    setup::Authentication,
};

use super::{Attempt, ConnectionProbes, whole::THIS_ACCOUNT};
use crate::target::Target;

/// Connects without a password, with a wrong one, and after each with the right one, because an account may be locked
/// after two failures in a row. Id `password-asked`.
pub struct PasswordAsked(pub &'static ConnectionProbes);

impl Check for PasswordAsked {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("password-asked")
    }

    fn claim(&self) -> String {
        "clients without the password, and with a wrong one, are refused; the right one is served".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        // Tithe has written the rules of a server that it launched; those of others are not read here.
        if context.server.address.is_attached() {
            context.narrowed = Some(THIS_ACCOUNT);
        }
        let right = (self.0.target)(context)?;
        let open = |target: &Target| (self.0.open)(context, target);
        let without = Target { password: None, must_ask: false, ..right.clone() };
        let without = match Attempt::of(open(&without))? {
            Attempt::Served => return Ok(Observation::Exposed("without a password: served".to_owned())),
            Attempt::Refused(words) => words,
        };
        open(&right)?;
        let wrong = Target { password: Some(Secret::random_text(32)), must_ask: true, ..right.clone() };
        let wrong = match Attempt::of(open(&wrong))? {
            Attempt::Served => return Ok(Observation::Exposed("with a wrong password: served".to_owned())),
            Attempt::Refused(words) => words,
        };
        let method = open(&right)?;
        if let Authentication::Password { mechanism } = &context.setup.authentication
            && self.0.names_mechanism
            && method != *mechanism
        {
            return Ok(Observation::Exposed(format!("the account is known by {method}, the arm asks for {mechanism}")));
        }
        Ok(Observation::Protected(format!(
            "without a password: refused ({without}); with a wrong one: refused ({wrong}); with the right one: served \
             by {method}"
        )))
    }
}
