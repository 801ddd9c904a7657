//! Checks that only Redis has: one file each.

pub mod aof_written;
pub mod rights_enforced;

use tithe_machine::fault::Fault;
use tithe_plugin::{claim::Probes, evidence::CheckContext};

use super::{
    connection::{RedisConnection, named},
    inspect::{hops::other_servers, plaintext},
    store::administrator,
    target::of_clients,
};
use crate::{
    evidence::{
        ConnectionProbes,
        password_asked::PasswordAsked,
        whole::{Exception, Whole},
    },
    inspect::ENDS_TLS,
    target::Target,
};

/// How the shared checks reach Redis.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| of_clients(context.server, context.setup),
    open: |_, target| Ok(RedisConnection::open(target)?.method().to_owned()),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "CONFIG GET, and the client's own view",
    others,
};

/// How Redis answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes { password: Some(|| Box::new(PasswordAsked(&PROBES))), count_in_log: None };

/// Clients that are served in plaintext: all at the plaintext port, if there is one.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let mut administrator = administrator(context.server, context.setup)?;
    let port = administrator.setting("port").map_err(named)?.unwrap_or_default();
    let beside = Exception { text: format!("port {port} speaks plaintext"), loopback: false };
    let exceptions = if port == "0" { Vec::new() } else { vec![beside] };
    let whole = Whole::of("CONFIG GET port, and the port of TLS asks before any login", exceptions);
    // A launched server has no others.
    let is_attached = context.server.address.is_attached();
    Ok(Whole { doubts: if is_attached { other_servers(&mut administrator) } else { Vec::new() }, ..whole })
}

/// Redis does not report the transport of one connection. It reports its versions and ports; without a plaintext port,
/// the client's view is complete. An attached server may have another port and hide its settings: a port has either TLS
/// or plaintext.
fn tls_of_server(context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let client = RedisConnection::open(target)?.tls_facts();
    if context.server.address.is_attached() {
        let seen = client.map(|tls| tls.suite());
        let port = administrator(context.server, context.setup).and_then(|mut it| it.setting("tls-port"));
        return Ok(as_the_client_sees(seen, port.ok().flatten().as_deref()));
    }
    let mut administrator = administrator(context.server, context.setup)?;
    let mut setting = |name: &str| administrator.setting(name).map(Option::unwrap_or_default);
    let (versions, port, clients) = (setting("tls-protocols")?, setting("port")?, setting("tls-auth-clients")?);
    let client = client.map_or_else(|| "plaintext".to_owned(), |tls| tls.suite());
    Ok(told(&port, &versions, &clients, &client))
}

/// What a server with these settings and a `client` report. The versions are in front only if all its connections have
/// them.
fn told(port: &str, versions: &str, clients: &str, client: &str) -> String {
    if port == "0" {
        format!("{versions} only, no plaintext port, tls-auth-clients {clients} ({client})")
    } else {
        format!("also a plaintext port, {port} ({versions}, {client})")
    }
}

/// The TLS that the client has `seen` of an attached server with this `port` for it, if that is known.
fn as_the_client_sees(seen: Option<String>, port: Option<&str>) -> String {
    match (seen, port) {
        (Some(tls), Some("0")) => {
            format!("{tls} by the client's own handshake, and only up to there: {ENDS_TLS}, whose tls-port is 0")
        }
        (seen, _) => {
            let seen = seen.unwrap_or_else(|| "plaintext".to_owned());
            format!("{seen}, which the client sees: a port of Redis speaks nothing else")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_port_for_tls_is_behind_what_ends_it() {
        let told = |seen: Option<&str>, port| as_the_client_sees(seen.map(str::to_owned), port);
        for (seen, port) in [(Some("TLSv1.3 x"), Some("6380")), (Some("TLSv1.3 x"), None), (None, Some("0"))] {
            assert!(told(seen, port).ends_with("a port of Redis speaks nothing else"));
        }
        assert!(told(Some("TLSv1.3 x"), Some("0")).contains("something ends TLS before the server"));
    }

    #[test]
    fn a_server_with_a_plaintext_port_does_not_speak_tls_only() {
        let told = |port: &str| super::told(port, "TLSv1.3", "yes", "TLSv1.3 TLS_AES_256_GCM_SHA384");
        let only = "TLSv1.3 only, no plaintext port, tls-auth-clients yes (TLSv1.3 TLS_AES_256_GCM_SHA384)";
        assert_eq!(told("0"), only);
        let also = "also a plaintext port, 6379 (TLSv1.3, TLSv1.3 TLS_AES_256_GCM_SHA384)";
        assert_eq!(told("6379"), also);
        assert!(!told("").starts_with("TLSv1.3"), "a port that is not reported is not closed");
    }
}
