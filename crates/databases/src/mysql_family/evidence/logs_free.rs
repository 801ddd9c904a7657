//! Do the logs repeat values? The shared check, with the family's way of writing a token into a log.

use tithe_machine::fault::Fault;
use tithe_model::record::Role;
use tithe_plugin::{
    checks::{canary::Targets, logs_free::LogsFree},
    evidence::CheckContext,
};

use crate::{evidence::marked::Log, mysql_family::access::Access, target::Target};

/// For logs that are meant to record who did what. If they hold the values too, that is not a failure, but worth
/// knowing.
pub fn disclosure(log: &Log) -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, log.plant)
}

/// Makes the server log `token`, as the name of an account that does not exist. MariaDB's error log keeps it
/// (`log_warnings` of 2, the default), and so does the general log of both products.
///
/// # Errors
/// When the login is not refused.
pub fn plant(access: &Access, context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let target = access.product.target(context.server, context.setup)?;
    match access.open(&Target { user: token.to_owned(), ..target }) {
        Err(Fault::Refused(_)) => Ok(()),
        Err(fault) => Err(fault),
        Ok(_) => Err(Fault::Wrong("an account that does not exist was let in".to_owned())),
    }
}
