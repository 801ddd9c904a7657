//! How often was the password hashed that the server keeps?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::open;
use crate::postgres::target::PRODUCT;

/// Logs in, and reads the stored password if the account may. The setting only applies to passwords that are set from
/// now on; a login uses the iterations of the stored one.
pub struct ScramIterations(pub u32);

impl Check for ScramIterations {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("scram-iterations")
    }

    fn claim(&self) -> String {
        format!("the password that the server keeps was hashed {} times, and so it is at every login", self.0)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut session = open(context, &PRODUCT.target(context.server, context.setup)?)?;
        let (rounds, method) = (session.greeting().rounds, session.greeting().method.clone());
        // An account that logs in without SCRAM may have no stored password.
        let Some(rounds) = rounds else {
            return Ok(Observation::Exposed(format!("the login was by {method}, which hashes nothing so often")));
        };
        // `SCRAM-SHA-256$iterations:salt$stored key:server key` (documentation, "pg_authid").
        let kept =
            "SELECT split_part(split_part(rolpassword, '$', 2), ':', 1) FROM pg_authid WHERE rolname = session_user";
        let kept = match session.value(kept) {
            // Superusers alone may read it.
            Err(Fault::Refused(_)) => None,
            kept => Some(kept?),
        };
        Ok(judged(self.0, rounds, kept.as_deref()))
    }
}

/// Whether a login with `rounds` iterations, and the number that is `kept` if it is shown, prove the `wanted` number.
fn judged(wanted: u32, rounds: u32, kept: Option<&str>) -> Observation {
    let is_so = rounds == wanted && kept.is_none_or(|kept| kept == wanted.to_string());
    let kept = kept.map_or("is not shown to this account".to_owned(), |kept| format!("has {kept}"));
    let words = format!("a login took {rounds} iterations; what pg_authid keeps {kept}");
    if is_so { Observation::Protected(words) } else { Observation::Exposed(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_and_the_kept_password_have_the_iterations_that_were_asked_for() {
        for (rounds, kept, words, holds) in [
            (4096, None, "a login took 4096 iterations; what pg_authid keeps is not shown to this account", true),
            (4096, Some("4096"), "a login took 4096 iterations; what pg_authid keeps has 4096", true),
            (4096, Some("40960"), "a login took 4096 iterations; what pg_authid keeps has 40960", false),
            (4096, Some(""), "a login took 4096 iterations; what pg_authid keeps has ", false),
            (4095, None, "a login took 4095 iterations; what pg_authid keeps is not shown to this account", false),
            (4095, Some("4096"), "a login took 4095 iterations; what pg_authid keeps has 4096", false),
        ] {
            let expected = if holds { Observation::Protected } else { Observation::Exposed };
            assert_eq!(judged(4096, rounds, kept), expected(words.to_owned()));
        }
    }
}
