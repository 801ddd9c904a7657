//! How the shared checks reach memcached.

use tithe_machine::fault::Fault;
use tithe_plugin::{claim::Probes, evidence::CheckContext};

use super::{
    connection::MemcachedConnection,
    inspect::{doors_beside, plaintext},
    store::open,
    target::PRODUCT,
};
use crate::{
    evidence::{
        ConnectionProbes,
        password_asked::PasswordAsked,
        whole::{Exception, Whole},
    },
    target::Target,
};

/// How they do.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| PRODUCT.target(context.server, context.setup),
    open: |_, target| Ok(MemcachedConnection::open(target)?.method().to_owned()),
    names_mechanism: false,
    plaintext,
    tls_of_server,
    tls_source: "the client's own view, and stats settings",
    others,
};

/// How memcached answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes { password: Some(|| Box::new(PasswordAsked(&PROBES))), count_in_log: None };

/// Which listeners of the server have no TLS.
fn others(context: &CheckContext<'_>) -> Result<Whole, Fault> {
    let doors = doors_beside(&open(context.server, context.setup)?.stats("settings")?);
    let exceptions = doors.into_iter().map(|text| Exception { text, loopback: false }).collect();
    Ok(Whole::of(
        "stats settings (ssl_enabled, inter, udpport), and a listener with TLS speaks nothing else",
        exceptions,
    ))
}

/// memcached does not report the transport of one connection; its listeners have TLS or plaintext, never both.
fn tls_of_server(context: &CheckContext<'_>, target: &Target) -> Result<String, Fault> {
    let mut connection = MemcachedConnection::open(target)?;
    let seen = connection.tls_facts().map_or_else(|| "plaintext".to_owned(), |tls| tls.suite());
    let settings = open(context.server, context.setup)?.stats("settings")?;
    let told = ["ssl_enabled", "ssl_min_version", "ssl_verify_mode"]
        .iter()
        .filter_map(|name| Some(format!("{name} {}", settings.get(*name)?)))
        .collect::<Vec<_>>();
    connection.line("version")?;
    Ok(format!("{seen}, which the client sees; the server reports {}", told.join(", ")))
}
