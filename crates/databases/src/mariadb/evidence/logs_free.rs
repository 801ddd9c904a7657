//! What MariaDB's logs repeat: the shared check, with MariaDB's way of writing a token into its log.

use tithe_harness::{
    evidence::{Scene, canary::Targets, logs_free::LogsFree},
    fault::Fault,
};
use tithe_model::record::Role;

use crate::{
    evidence::marked::Log,
    mariadb::{session::MariaDbSession, target::PRODUCT},
    target::Target,
};

/// MariaDB's logs. A server does not show them to its clients.
pub static LOG: Log = Log { plant, served: |_| None };

/// For logs that are meant to tell who did what: that they tell the values too is not a failure, but good to know.
pub fn disclosure() -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, plant)
}

/// Makes the server log `token`: as the name of an account that does not exist, which the error log keeps (`log_warnings`
/// of 2, the default).
///
/// # Errors
/// When the login is not refused.
fn plant(scene: &Scene<'_>, token: &str) -> Result<(), Fault> {
    let target = PRODUCT.target(scene.server, scene.setup)?;
    match MariaDbSession::open(&Target { user: token.to_owned(), ..target }) {
        Err(Fault::Refused(_)) => Ok(()),
        Err(fault) => Err(fault),
        Ok(_) => Err(Fault::Wrong("an account that does not exist was let in".to_owned())),
    }
}
