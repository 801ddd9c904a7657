//! How a node of a launched cluster treats another one.

use std::time::Duration;

use tithe_machine::fault::Fault;
use tithe_plugin::{
    evidence::CheckContext,
    setup::{Setup, TlsVersion},
    wire::Wire,
};

use crate::target::{Authority, Tls};

/// Between two looks at a connection.
const PAUSE: Duration = Duration::from_millis(10);

/// How a node connects to another one, with its certificate or without.
pub fn tls(setup: &Setup, with_certificate: bool) -> Tls {
    let credentials = &setup.credentials;
    Tls {
        authority: Authority::Of(credentials.authority.clone()),
        server_name: None,
        versions: vec![TlsVersion::V1_3],
        // A node uses its server certificate as client, too.
        identity: with_certificate.then(|| (credentials.server_certificate.clone(), credentials.server_key.clone())),
        resumption: false,
        suite: None,
        protocol: None,
    }
}

/// True if a node answers within this time; false if it keeps the connection without a word.
///
/// # Errors
/// A broken connection.
pub fn answers(wire: &mut Wire, within: Duration) -> Result<bool, Fault> {
    wire.set_blocking(false)?;
    for _ in 0..within.as_millis() / PAUSE.as_millis() {
        if wire.fill()? {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}

/// Connects to a node's port with TLS and waits for its answer. A node that accepts the certificate waits for a message
/// without a limit; one that does not accept it answers at once.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn knock(context: &CheckContext<'_>, host: &str, port: u16, with_certificate: bool) -> Result<(), Fault> {
    let mut wire = Wire::connect(host, port)?;
    tls(context.setup, with_certificate).start(&mut wire, host, port)?;
    // One that is busy may be slow to say no.
    let patience = Duration::from_secs(if with_certificate { 1 } else { 10 });
    answers(&mut wire, patience).map(drop)
}
