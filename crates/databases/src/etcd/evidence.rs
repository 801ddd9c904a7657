//! How the shared checks reach etcd, and the check that only it has.

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::{
    connection::EtcdConnection,
    inspect::{UNADVERTISED, doors_beside, plaintext},
    messages::{STATUS, USER_LIST},
    store::{administrator, client, members},
    target::of_clients,
};
use crate::{
    evidence::{
        ConnectionProbes, rights,
        whole::{Exception, Whole},
    },
    target::Target,
};

/// How they do.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| Ok(EtcdConnection::open(target)?.method().to_owned()),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "the client's own view, and the list of members",
    others,
};

/// Which listeners of the cluster have no TLS.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let doors = doors_beside(&members(&mut administrator(context.server, context.setup)?)?);
    let exceptions = doors.into_iter().map(|text| Exception { text, loopback: false }).collect();
    let whole = Whole::of("the list of members (clientURLs), and a listener with TLS speaks nothing else", exceptions);
    let doubts = if context.server.address.is_attached() { vec![UNADVERTISED.to_owned()] } else { Vec::new() };
    Ok(Whole { doubts, ..whole })
}

/// etcd does not report the transport of one connection; its listeners have TLS or plaintext, never both.
fn tls_of_server(_context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let mut connection = EtcdConnection::open(target)?;
    let seen = connection.tls_facts().map_or_else(|| "plaintext".to_owned(), |tls| tls.suite());
    connection.call(STATUS, |_| {})?;
    let urls: Vec<String> = members(&mut connection)?.into_iter().flat_map(|member| member.clients).collect();
    Ok(format!("{seen}, which the client sees; the server reports {}", urls.join(", ")))
}

/// As the measured account: reads a key outside Tithe's and asks for the list of accounts, which must be refused. Then
/// reads one of Tithe's keys, which must be served. Neither changes anything. Id `rights-enforced`.
pub struct RightsEnforced;

impl Check for RightsEnforced {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rights-enforced")
    }

    fn claim(&self) -> String {
        "the measured account is refused other keys and what manages the server".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut connection = client(context.server, context.setup)?;
        let tried = [
            ("a key of someone else", connection.range(b"someone/else", b"", 1)),
            ("all keys", connection.range(b"\0", b"\0", 1)),
            ("the list of accounts", connection.call(USER_LIST, |_| {})),
        ];
        rights(tried, || connection.range(context.setup.space.as_bytes(), b"", 1).map(drop))
    }
}
