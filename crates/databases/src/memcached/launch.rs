//! Arguments and files that start one server, as data. Pure.
//!
//! memcached has no configuration file: a setting of an experiment is one of its long options (`memory-limit`), or one
//! of its extended options (`lru_crawler_sleep`, `no_hashexpand`). It listens on the one address of its place. The
//! password is in a separate file, readable only by the server.

use std::{collections::BTreeMap, path::Path};

use rustix::process::Signal;
use tithe_machine::{
    launch::{Command, Content, Install, Launch, Place, Step},
    paths::Paths,
    secret::Secret,
};
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::target::USER;

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("auth-file", "decided by the protection `auth-file`"),
    ("daemon", "the server runs in the foreground, so that it ends with Tithe"),
    ("enable-sasl", "Tithe's clients speak the text protocol, which has no SASL"),
    ("enable-ssl", "decided by the protection `tls`"),
    ("ext_path", "everything that a server writes stays in its folder"),
    ("listen", "where servers listen is `listen` of `[load]`"),
    ("memory-file", "everything that a server writes stays in its folder"),
    ("pidfile", "everything that a server writes stays in its folder"),
    ("port", "Tithe chooses a free one"),
    ("protocol", "Tithe's clients speak the text protocol"),
    ("ssl_ca_cert", "decided by the protection `tls`"),
    ("ssl_chain_cert", "decided by the protection `tls`"),
    ("ssl_key", "decided by the protection `tls`"),
    ("ssl_min_version", "decided by the protection `tls`"),
    ("ssl_verify_mode", "decided by the protection `tls`"),
    ("udp-port", "UDP has neither TLS nor logins"),
    ("unix-socket", "servers listen at a port"),
    ("user", "the server runs as the account of the sandbox"),
];

/// Settings that are options of their own; all others are extended ones (`-o`).
pub const LONG: [&str; 20] = [
    "conn-limit",
    "disable-cas",
    "disable-dumping",
    "disable-evictions",
    "disable-flush-all",
    "disable-watch",
    "enable-coredumps",
    "enable-largepages",
    "enable-shutdown",
    "listen-backlog",
    "lock-memory",
    "max-item-size",
    "max-reqs-per-event",
    "memory-limit",
    "napi-ids",
    "slab-growth-factor",
    "slab-min-size",
    "threads",
    "unix-mask",
    "verbose",
];

/// Memory for items if an experiment does not set it: the product's default, MB.
const MEMORY_MB: u64 = 64;

/// Memory of an item relative to the bytes that clients send: includes key, header and the unused part of its slab
/// chunk.
const MEMORY_FACTOR: u64 = 4;

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let mut steps = Vec::new();
    steps.extend(setup.identity_step());
    let mut arguments =
        vec![format!("--listen={}", place.listen), format!("--port={}", place.port), "--udp-port=0".to_owned()];
    let mut extended = Vec::new();
    // Beyond its memory it would remove items, and reads would find nothing.
    let memory_mb = (setup.data_bytes.saturating_mul(MEMORY_FACTOR) >> 20).max(MEMORY_MB);
    let mut settings = BTreeMap::from([("memory-limit".to_owned(), memory_mb.to_string())]);
    settings.extend(setup.settings.iter().map(|(name, value)| (name_of(name), value_of(value))));
    for (name, value) in &settings {
        let option = if value.is_empty() { name.clone() } else { format!("{name}={value}") };
        match LONG.contains(&name.as_str()) {
            true => arguments.push(format!("--{option}")),
            false => extended.push(option),
        }
    }
    if let Transport::Tls { version, mutual, .. } = setup.transport {
        let file = |path: &Path| path.display().to_string();
        arguments.push("--enable-ssl".to_owned());
        extended.push(format!("ssl_chain_cert={}", file(&setup.credentials.server_certificate)));
        extended.push(format!("ssl_key={}", file(&setup.credentials.server_key)));
        extended.push(format!("ssl_min_version={}", number_of(version)));
        if mutual {
            extended.push(format!("ssl_verify_mode={REQUIRE}"));
            extended.push(format!("ssl_ca_cert={}", file(&setup.credentials.authority)));
        }
    }
    if let Authentication::Password { .. } = setup.authentication {
        let path = place.folder.join("users");
        arguments.push(format!("--auth-file={}", path.display()));
        let users = format!("{USER}:{}\n", setup.credentials.password.expose_text());
        steps.push(Step::Write { path, content: Content::Secret(Secret::new(users)), mode: 0o600 });
    }
    if !extended.is_empty() {
        arguments.push(format!("--extended={}", extended.join(",")));
    }
    Launch {
        steps,
        server: Some(Command {
            program: install.programs.join("memcached"),
            arguments,
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: place.address(),
        paths: Paths { logs: vec![place.folder.join(SERVER_LOG)], ..Paths::default() },
    }
}

/// `ssl_verify_mode` of a server that asks every client for a certificate.
const REQUIRE: u8 = 2;

/// A TLS version in memcached's numbers.
fn number_of(version: TlsVersion) -> u8 {
    match version {
        TlsVersion::V1_2 => 2,
        TlsVersion::V1_3 => 3,
    }
}

/// A setting's name from an experiment, restricted to the characters of a name: options have hyphens between their
/// words, extended ones underscores.
pub fn name_of(name: &str) -> String {
    let between = |mark: char| -> String {
        name.chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { mark })
            .collect()
    };
    let long = between('-');
    if LONG.contains(&long.as_str()) { long } else { between('_') }
}

/// A setting's value from an experiment: it cannot end an option or begin another.
fn value_of(value: &str) -> String {
    value.replace(|letter: char| letter.is_control() || letter == ',', "_")
}
