//! Checks that only Cassandra has: one file each.

pub mod accounts;
pub mod audit_complete;
pub mod caching;
pub mod commitlog;
pub mod data_files;
pub mod internode;
pub mod logs_free;

use tithe_harness::{evidence::Scene, fault::Fault};

use super::{
    connection::CqlConnection,
    store::{administrator, tls_of_clients},
    target::of_clients,
};
use crate::{
    evidence::{
        Doors,
        whole::{Exception, Whole},
    },
    target::Target,
};

/// How the shared checks reach Cassandra.
pub static DOORS: Doors = Doors {
    target: |scene| of_clients(scene.server, scene.setup),
    open: |_, target| open(target),
    tls_of_server: |scene, _| tls_of_clients(scene.server, scene.setup),
    tls_source: "system_views.clients",
    others: |scene| Ok(Whole::of("system_views.settings", beside(scene)?)),
};

/// The port for plaintext that a server has beside one for TLS. At one port it asks for TLS before anybody says who it
/// is.
fn beside(scene: &Scene<'_>) -> Result<Vec<Exception>, Fault> {
    let mut session = administrator(scene.server, scene.setup)?;
    let mut setting = |name: &str| -> Result<Option<String>, Fault> {
        let rows = session.run(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"))?;
        let value = rows.into_iter().flatten().flatten().next();
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    };
    let (plain, tls) = (setting("native_transport_port")?, setting("native_transport_port_ssl")?);
    let other = tls.filter(|tls| !["null", ""].contains(&tls.as_str()) && plain.as_ref() != Some(tls)).and(plain);
    Ok(other
        .map(|port| Exception { text: format!("native_transport_port {port}"), loopback: false })
        .into_iter()
        .collect())
}

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
