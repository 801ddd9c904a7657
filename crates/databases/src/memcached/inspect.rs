//! The security matrix of a running memcached, from `stats settings` and from connection attempts.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus},
    recording::Recording,
    setup::Setup,
};

use super::{connection::MemcachedConnection, target::PRODUCT};
use crate::{
    findings,
    inspect::{Rules, authentication, client_rows, not_offered, transport},
    target::Target,
};

/// The output of `stats settings`.
type Settings = BTreeMap<String, String>;

/// Judges every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = PRODUCT.target(server, setup)?;
    let mut connection = MemcachedConnection::open(&target)?;
    let method = connection.method();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| format!("{} {}", tls.version, tls.cipher));
    let settings = connection.stats("settings")?;
    let written = written(&connection.stats("")?);
    let at_rest = match written.as_slice() {
        [] => "items are in memory alone".to_owned(),
        written => format!("Memcached encrypts no file; {}", written.join("; ")),
    };
    let logins = authentication(&target, method, opened).with_rules(Ok(logins(&settings)), "");
    let mut seen = vec![logins.of(Feature::Authentication)];
    let offers = Ok(is_on(&settings, "ssl_enabled"));
    let clients = transport(&target, &tls, offers, plaintext).with_rules(Ok(listeners(&settings)), "");
    seen.extend(client_rows(clients));
    seen.extend(not_offered(&[
        (
            Feature::Authorisation,
            "Memcached has no rights: every client that is let in may read, change and flush \
            everything",
        ),
        (Feature::NodeToNode, "servers of Memcached do not speak to each other"),
        (Feature::AtRest, &at_rest),
        (Feature::Auditing, "Memcached has no audit log; `watch` shows keys to any client that is let in"),
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "every login is checked again"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    Ok(seen)
}

/// Recorders that repeat values in plaintext.
///
/// # Errors
/// When the server cannot be reached.
pub fn recording(connection: &mut MemcachedConnection) -> Result<Recording, Fault> {
    Ok(Recording { repeats: written(&connection.stats("")?), doubts: Vec::new() })
}

/// Features that write items to a file, from `stats`.
fn written(stats: &Settings) -> Vec<String> {
    let extstore = stats.keys().any(|name| name.starts_with("extstore_"));
    extstore.then(|| "extstore (ext_path) writes items to a file in the clear".to_owned()).into_iter().collect()
}

fn opened(target: &Target) -> Result<String, Fault> {
    Ok(MemcachedConnection::open(target)?.method().to_owned())
}

/// Comes in [`Target::in_plaintext`].
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    opened(&target.in_plaintext())
}

fn is_on(settings: &Settings, name: &str) -> bool {
    settings.get(name).is_some_and(|value| value == "yes")
}

/// Logins by other listeners: if no password is required, a listener without TLS requires no certificate either.
fn logins(settings: &Settings) -> Rules {
    let asks = settings.get("auth_enabled_ascii").is_some_and(|file| file != "no");
    let exceptions = if asks || !is_on(settings, "ssl_enabled") { Vec::new() } else { doors_beside(settings) };
    Rules {
        read: "stats settings".to_owned(),
        exceptions,
        remedy: "remove `notls:` listeners, and start it with udp-port 0",
        ..Rules::default()
    }
}

fn listeners(settings: &Settings) -> Rules {
    let exceptions = if is_on(settings, "ssl_enabled") { doors_beside(settings) } else { Vec::new() };
    let findings = if exceptions.is_empty() { Vec::new() } else { vec![&findings::MEMCACHED_TLS_OPTIONAL] };
    Rules {
        read: "stats settings".to_owned(),
        exceptions,
        remedy: "remove `notls:` listeners, and start it with udp-port 0",
        findings,
        ..Rules::default()
    }
}

/// The listeners without TLS, each by its name: all of them if the server has no TLS.
pub fn doors_beside(settings: &Settings) -> Vec<String> {
    if !is_on(settings, "ssl_enabled") {
        return vec!["ssl_enabled is no: every listener speaks plaintext".to_owned()];
    }
    let listeners = settings.get("inter").map_or("", String::as_str).split(',');
    let udp = settings.get("udpport").filter(|port| *port != "0");
    let udp = udp.map(|port| format!("UDP port {port} speaks plaintext, and asks for no certificate"));
    let plain = listeners.filter_map(|listener| listener.strip_prefix("notls:"));
    let plain = plain.map(|listener| format!("the listener {listener} speaks plaintext (notls)"));
    plain.chain(udp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_without_tls_are_named() {
        let doors = |pairs: &[(&str, &str)]| {
            doors_beside(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(doors(&[]).len(), 1, "a server that does not say that it has TLS has none");
        let on = ("ssl_enabled", "yes");
        assert_eq!(doors(&[on, ("udpport", "0"), ("inter", "127.0.0.1")]), Vec::<String>::new());
        assert_eq!(
            doors(&[on, ("udpport", "11211"), ("inter", "10.0.0.1,notls:127.0.0.1:11212")]),
            [
                "the listener 127.0.0.1:11212 speaks plaintext (notls)",
                "UDP port 11211 speaks plaintext, and asks for no certificate"
            ]
        );
    }
}
