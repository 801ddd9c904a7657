//! Does the server let in those who know the password, and nobody else?

use tithe_harness::{
    evidence::{Evidence, Scene, Sight},
    fault::Fault,
    secret::Secret,
};

use super::{Attempt, sight};
use crate::postgres::{schema::is_local, session::PostgresSession, target::Target};

/// Connects without a password, with a wrong one, and with the right one.
pub struct PasswordAsked;

impl PasswordAsked {
    fn look_at(scene: &Scene<'_>) -> Result<Sight, Fault> {
        let right = Target::of(scene.server, scene.setup)?;
        let open = |target: &Target| PostgresSession::open(target, true, is_local(scene.server));
        let without = Target { password: None, must_ask: false, ..right.clone() };
        let without = match Attempt::of(open(&without))? {
            Attempt::Served => return Ok(Sight::Exposed("without a password: served".to_owned())),
            Attempt::Refused(words) => words,
        };
        let wrong = Target { password: Some(Secret::random_text(24)), must_ask: true, ..right.clone() };
        let wrong = match Attempt::of(open(&wrong))? {
            Attempt::Served => return Ok(Sight::Exposed("with a wrong password: served".to_owned())),
            Attempt::Refused(words) => words,
        };
        let method = open(&right)?.greeting().method.clone();
        Ok(Sight::Protected(format!(
            "without a password: refused ({without}); with a wrong one: refused ({wrong}); with the right one: served \
             by {method}"
        )))
    }
}

impl Evidence for PasswordAsked {
    fn id(&self) -> &'static str {
        "password-asked"
    }

    fn claim(&self) -> String {
        "clients without the password, and with a wrong one, are refused; the right one is served".to_owned()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Sight {
        sight(|| Self::look_at(scene))
    }
}
