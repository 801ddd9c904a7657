//! Do Cassandra's logs repeat values? The shared check, with Cassandra's way of writing a token into its log.

use tithe_machine::fault::Fault;
use tithe_model::record::Role;
use tithe_plugin::{
    checks::{canary::Targets, logs_free::LogsFree},
    evidence::CheckContext,
};

use crate::cassandra::{
    connection::CqlConnection,
    store::{KEY, qualified},
    target::of_clients,
};

/// For logs that are meant to record who did what. If they hold the values too, that is not a failure, but worth
/// knowing.
pub fn disclosure() -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, plant)
}

/// Makes the server log `token`: as the key in a read and in a write without preparation, at least one of which every
/// audit log keeps.
///
/// # Errors
/// The server's error.
fn plant(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let target = of_clients(context.server, context.setup)?;
    let table = qualified(&target.database, context.table);
    let mut connection = CqlConnection::open(&target)?;
    connection.run(&format!("SELECT {KEY} FROM {table} WHERE {KEY} = '{token}'"))?;
    connection.run(&format!("DELETE FROM {table} WHERE {KEY} = '{token}'")).map(drop)
}
