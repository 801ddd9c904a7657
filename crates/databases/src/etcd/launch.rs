//! Arguments and files that start one server, as data. Pure.
//!
//! A setting of an experiment is one of etcd's options (`snapshot-count`). One member is a complete cluster: its peer
//! port is on the loopback device and unused. Users and roles are data in etcd, and are created over its first
//! connection (`store`).

use std::{collections::BTreeMap, path::Path};

use rustix::process::Signal;
use tithe_machine::{
    credentials::KeyType,
    launch::{Command, Install, Launch, Place, Stored},
    paths::Paths,
};
use tithe_plugin::setup::{Authentication, Setup, Transport};

use super::install::LOWEST_TLS;

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";

/// Why settings about certificates are Tithe's.
const OF_TLS: &str = "decided by the protection `tls`";
/// Why settings about other members are Tithe's.
const OF_CLUSTER: &str = "each arm is a cluster of one member";

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("advertise-client-urls", "where servers listen is `listen` of `[load]`"),
    ("auth-token-ttl", "a client's token lasts as long as its connection"),
    ("auto-tls", OF_TLS),
    ("cert-file", OF_TLS),
    ("cipher-suites", OF_TLS),
    ("client-cert-auth", OF_TLS),
    ("config-file", "everything that decides about a server is in the experiment"),
    ("data-dir", "everything that a server writes stays in its folder"),
    ("discovery", OF_CLUSTER),
    ("force-new-cluster", OF_CLUSTER),
    ("initial-advertise-peer-urls", OF_CLUSTER),
    ("initial-cluster", OF_CLUSTER),
    ("initial-cluster-state", OF_CLUSTER),
    ("key-file", OF_TLS),
    ("listen-client-urls", "where servers listen is `listen` of `[load]`"),
    ("listen-peer-urls", OF_CLUSTER),
    ("log-outputs", "the server's output is its log"),
    ("name", OF_CLUSTER),
    ("tls-max-version", OF_TLS),
    ("tls-min-version", OF_TLS),
    ("trusted-ca-file", OF_TLS),
    ("wal-dir", "everything that a server writes stays in its folder"),
];

/// Size at which a server accepts no more writes, if an experiment does not set it: the largest that etcd recommends,
/// because every update keeps the previous value. Bytes.
const QUOTA: &str = "8589934592";

/// Longest time between two calls of a connection, s: after it, a client's token expires.
const TOKEN_S: &str = "86400";

/// A peer address to which no member connects.
const NO_PEER: &str = "http://127.0.0.1:2380";

/// Settings that do not change the content of the files.
const STORAGE_NEUTRAL: [&str; 8] = [
    "auto-compaction-mode",
    "auto-compaction-retention",
    "election-timeout",
    "enable-pprof",
    "heartbeat-interval",
    "log-level",
    "metrics",
    "quota-backend-bytes",
];

/// What a stopped server leaves. Users and roles are part of the data, so servers with passwords share no data with
/// those without.
pub fn stored(setup: &Setup) -> Stored {
    let asks = matches!(setup.authentication, Authentication::Password { .. });
    let mut storage_settings = vec![format!("authentication = {asks}")];
    let settings = setup.settings.iter().filter(|(name, _)| !STORAGE_NEUTRAL.contains(&name.as_str()));
    storage_settings.extend(settings.map(|(name, value)| format!("{name} = {value}")));
    Stored { paths: vec!["data".to_owned()], storage_settings }
}

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let data = place.folder.join("data");
    let file = |path: &Path| path.display().to_string();
    let scheme = if setup.transport == Transport::Plain { "http" } else { "https" };
    let clients = format!("{scheme}://{}", std::net::SocketAddr::new(place.listen, place.port));
    let mut settings = BTreeMap::from(
        [("auth-token-ttl", TOKEN_S), ("log-level", "warn"), ("logger", "zap"), ("quota-backend-bytes", QUOTA)]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    settings.extend(setup.settings.iter().map(|(name, value)| (name_of(name), value.replace(char::is_control, " "))));
    let own = [
        ("advertise-client-urls", clients.clone()),
        ("data-dir", file(&data)),
        ("initial-advertise-peer-urls", NO_PEER.to_owned()),
        ("initial-cluster", format!("default={NO_PEER}")),
        ("listen-client-urls", clients),
        ("listen-peer-urls", "http://127.0.0.1:0".to_owned()),
    ];
    settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
    if let Transport::Tls { mutual, .. } = setup.transport {
        let credentials = &setup.credentials;
        settings.insert("cert-file".to_owned(), file(&credentials.server_certificate));
        settings.insert("key-file".to_owned(), file(&credentials.server_key));
        let (name, value) = only_tls_1_3(install, setup);
        settings.insert(name.to_owned(), value.to_owned());
        if mutual {
            settings.insert("client-cert-auth".to_owned(), "true".to_owned());
            settings.insert("trusted-ca-file".to_owned(), file(&credentials.authority));
        }
    }
    Launch {
        steps: Vec::from_iter(setup.identity_step()),
        server: Some(Command {
            program: install.programs.join("etcd"),
            arguments: settings.iter().map(|(name, value)| format!("--{name}={value}")).collect(),
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: place.address(),
        paths: Paths {
            data: vec![data.join("member/snap")],
            journal: vec![data.join("member/wal")],
            logs: vec![place.folder.join(SERVER_LOG)],
        },
    }
}

/// The setting with which a server only accepts TLS 1.3. A server without a setting for its lowest version gets a
/// single TLS 1.2 cipher, the one that HTTP/2 requires, which does not fit its key: no TLS 1.2 handshake can succeed.
fn only_tls_1_3(install: &Install, setup: &Setup) -> (&'static str, &'static str) {
    if install.facts.get(LOWEST_TLS).is_some_and(|can| can == "yes") {
        return ("tls-min-version", "TLS1.3");
    }
    let is_rsa = matches!(setup.transport, Transport::Tls { key: Some(KeyType::Rsa2048 | KeyType::Rsa4096), .. });
    let cipher = match is_rsa {
        true => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        false => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    };
    ("cipher-suites", cipher)
}

/// A setting's name from an experiment, restricted to the characters of a name.
fn name_of(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    name.chars().map(letter).collect()
}
