//! Checks that only Cassandra has: one file each.

pub mod accounts;
pub mod audit_complete;
pub mod caching;
pub mod commitlog;
pub mod data_files;
pub mod internode;
pub mod logs_free;

use tithe_harness::{evidence::Scene, fault::Fault};

use super::{connection::CqlConnection, store::tls_of_clients, target::of_clients};
use crate::{evidence::Doors, target::Target};

/// How the shared checks reach Cassandra.
pub static DOORS: Doors = Doors {
    target: |scene| of_clients(scene.server, scene.setup),
    open: |_, target| open(target),
    tls_of_server: |scene, _| tls_of_clients(scene.server, scene.setup),
    tls_source: "system_views.clients",
};

/// Opens and closes one connection, with something read in between; returns the method of authentication.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(target: &Target) -> Result<String, Fault> {
    let mut connection = CqlConnection::open(target)?;
    connection.run("SELECT key FROM system.local")?;
    Ok(connection.method().to_owned())
}

/// The table's name as the audit log has it.
fn audited(scene: &Scene<'_>) -> Result<String, Fault> {
    let keyspace = of_clients(scene.server, scene.setup)?.database;
    Ok(format!("|ks:{keyspace}|scope:{}|", scene.table.name))
}
