//! Checks that only Cassandra has: one file each.

pub mod accounts;
pub mod audit_complete;
pub mod caching;
pub mod commitlog;
pub mod data_files;
pub mod internode;
pub mod logs_free;

use tithe_machine::fault::Fault;
use tithe_plugin::{claim::Probes, evidence::CheckContext, wire::Wire};

use super::{
    connection::{CqlConnection, named},
    store::{administrator, tls_of_clients},
    target::of_clients,
};
use crate::{
    evidence::{
        ConnectionProbes,
        password_asked::PasswordAsked,
        whole::{Exception, Whole},
    },
    target::Target,
};

/// How the shared checks reach Cassandra.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| open(target),
    names_mechanism: false,
    plaintext,
    tls_of_server: |context, _| tls_of_clients(context.server, context.setup).map_err(named),
    tls_source: "system_views.clients",
    others: |context| Ok(Whole::of("system_views.settings", beside(context).map_err(named)?)),
};

/// How Cassandra answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes { password: Some(|| Box::new(PasswordAsked(&PROBES))), count_in_log: None };

/// The plaintext port, in addition to one for TLS alone, from the server's settings `native_transport_port` and
/// `native_transport_port_ssl`. `?` if the first is not reported; `None` if there is only one port.
pub fn plaintext_port<'a>(plain: Option<&'a str>, tls: Option<&str>) -> Option<&'a str> {
    let set = |port: &&str| !matches!(*port, "" | "null");
    let (plain, tls) = (plain.filter(set), tls.filter(set)?);
    (plain != Some(tls)).then_some(plain.unwrap_or("?"))
}

/// A port for plaintext in addition to one for TLS. With one port the server requires TLS before any login.
fn beside(context: &CheckContext<'_>) -> Result<Vec<Exception>, Fault> {
    let mut session = administrator(context.server, context.setup)?;
    let mut setting = |name: &str| -> Result<Option<String>, Fault> {
        let rows = session.run(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"))?;
        let value = rows.into_iter().flatten().flatten().next();
        Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    };
    let (plain, tls) = (setting("native_transport_port")?, setting("native_transport_port_ssl")?);
    let port = plaintext_port(plain.as_deref(), tls.as_deref());
    let exception = |port: &str| Exception { text: format!("native_transport_port {port}"), loopback: false };
    Ok(port.map(exception).into_iter().collect())
}

/// Opens and closes one connection, with a read in between; returns the method of authentication.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(target: &Target) -> Result<String, Fault> {
    let mut connection = CqlConnection::open(target)?;
    connection.run("SELECT key FROM system.local")?;
    Ok(connection.method().to_owned())
}

/// A connection that leads to the process of the node.
///
/// # Errors
/// As [`open`].
fn dial(context: &CheckContext<'_>) -> Result<Wire, Fault> {
    Ok(CqlConnection::open(&of_clients(context.server, context.setup)?)?.into_wire())
}

/// As [`open`], [`Target::in_plaintext`].
///
/// # Errors
/// As [`open`].
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    open(&target.in_plaintext())
}

/// The table's name as written in the audit log.
fn audited(context: &CheckContext<'_>) -> Result<String, Fault> {
    let keyspace = of_clients(context.server, context.setup)?.database;
    Ok(format!("|ks:{keyspace}|scope:{}|", context.table.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plaintext_port_is_one_beside_another_port_for_tls() {
        for (plain, tls, expected) in [
            (Some("9042"), Some("9142"), Some("9042")),
            (Some("9042"), Some("9042"), None),
            (Some("9042"), None, None),
            (Some("9042"), Some(""), None),
            (Some("9042"), Some("null"), None),
            // What is not reported may be open.
            (None, Some("9142"), Some("?")),
            (Some("null"), Some("9142"), Some("?")),
            (None, None, None),
        ] {
            assert_eq!(plaintext_port(plain, tls), expected, "{plain:?} {tls:?}");
        }
    }
}
