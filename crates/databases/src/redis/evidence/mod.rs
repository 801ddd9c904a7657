//! Checks that only Redis has: one file each.

pub mod aof_written;
pub mod rights_enforced;

use tithe_machine::fault::Fault;
use tithe_plugin::evidence::CheckContext;

use super::{connection::RedisConnection, store::administrator, target::of_clients};
use crate::{
    evidence::{ConnectionProbes, whole::Whole},
    target::Target,
};

/// How the shared checks reach Redis.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| Ok(RedisConnection::open(target)?.method().to_owned()),
    tls_of_server,
    tls_source: "CONFIG GET, and the client's own view",
    // A server with another port that speaks plaintext has not come so far: see below.
    others: |_| Ok(Whole::of("port = 0, and the port of TLS asks before anybody says who it is", Vec::new())),
};

/// Redis does not say what one connection speaks. It says which versions and ports it has, and with no plaintext port
/// what the client sees is what there is.
fn tls_of_server(context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let client = RedisConnection::open(target)?.tls_facts();
    let mut administrator = administrator(context.server, context.setup)?;
    let mut setting = |name: &str| administrator.setting(name).map(Option::unwrap_or_default);
    let (versions, port) = (setting("tls-protocols")?, setting("port")?);
    let client = client.map_or_else(|| "plaintext".to_owned(), |tls| format!("{} {}", tls.version, tls.cipher));
    if port != "0" {
        return Ok(format!("a plaintext port beside it, {port} ({versions}, {client})"));
    }
    Ok(format!("{versions} only, no plaintext port, tls-auth-clients {} ({client})", setting("tls-auth-clients")?))
}
