//! How a node of a launched cluster treats another one.

use std::time::Duration;

use tithe_machine::fault::Fault;
use tithe_plugin::{evidence::CheckContext, setup::TlsVersion, wire::Wire};

use crate::target::{Authority, Tls};

/// Connects to a node's port with TLS and waits for its answer. A node that accepts the certificate waits for a message
/// without a limit; one that does not accept it answers at once.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn knock(context: &CheckContext<'_>, host: &str, port: u16, with_certificate: bool) -> Result<(), Fault> {
    let credentials = &context.setup.credentials;
    let tls = Tls {
        authority: Authority::Of(credentials.authority.clone()),
        server_name: None,
        versions: vec![TlsVersion::V1_3],
        // A node uses its server certificate as client, too.
        identity: with_certificate.then(|| (credentials.server_certificate.clone(), credentials.server_key.clone())),
        resumption: false,
        suite: None,
        protocol: None,
    };
    let mut wire = Wire::connect(host, port)?;
    tls.start(&mut wire, host, port)?;
    wire.set_blocking(false)?;
    // One that is busy may be slow to say no.
    for _ in 0..if with_certificate { 100 } else { 1000 } {
        if wire.fill()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
