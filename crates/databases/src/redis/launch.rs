//! Files, commands and arguments that start one server, as data. Pure.
//!
//! `redis.conf` is written completely. The server listens on the one address of its place and runs in the foreground
//! with its log on standard output. Passwords are in separate files, readable only by the server, so that the
//! configuration can be shown.

use std::{collections::BTreeMap, path::Path};

use ring::digest::{SHA256, digest};
use rustix::process::Signal;
use tithe_machine::{
    launch::{Command, Content, Install, Launch, Place, Step, Stored},
    paths::Paths,
    secret::{Secret, hex},
};
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::{
    install::PROGRAM,
    target::{ACL, ADMINISTRATOR, USER, password_of_administrator},
};

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";

/// Settings of every server that Tithe launches, with the reason; an experiment may change them.
const COMMON: &[(&str, &str, &str)] = &[
    ("appendonly", "no", "the default; the protection `aof` decides"),
    ("auto-aof-rewrite-percentage", "0", "a rewrite would fall into the slots of one arm by chance"),
    (
        "save",
        "\"\"",
        "as auto-aof-rewrite-percentage: a snapshot forks the server; Tithe saves all arms between epochs",
    ),
];

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("aclfile", "decided by the protection `acl`"),
    ("appenddirname", "evidence looks for the append-only file where Tithe expects it"),
    ("bind", "where servers listen is `listen` of `[load]`"),
    ("daemonize", "the server runs in the foreground, so that it ends with Tithe"),
    ("dir", "each server has a folder of its own"),
    ("include", "the configuration is written whole"),
    ("io-threads", "Tithe binds the one thread that serves; others would spin in the slots of other arms"),
    ("logfile", "evidence reads the log where Tithe puts it"),
    ("pidfile", "everything that a server writes stays in its folder"),
    ("port", "Tithe chooses a free one"),
    ("requirepass", "decided by the protection `requirepass`"),
    ("syslog-enabled", "as logfile"),
    ("tls-auth-clients", "decided by the protection `tls`"),
    ("tls-ca-cert-dir", "decided by the protection `tls`"),
    ("tls-ca-cert-file", "decided by the protection `tls`"),
    ("tls-cert-file", "decided by the protection `tls`"),
    ("tls-key-file", "decided by the protection `tls`"),
    ("tls-port", "decided by the protection `tls`"),
    ("tls-protocols", "decided by the protection `tls`"),
    ("unixsocket", "clients connect by TCP, as the measured ones do"),
    ("user", "decided by the protection `acl`"),
];

/// Settings that leave no trace in the data folder of a stopped server: memory, connections, and when the append-only
/// file reaches the disk.
const STORAGE_NEUTRAL: [&str; 5] = ["appendfsync", "hz", "maxclients", "maxmemory", "no-appendfsync-on-rewrite"];

/// What a stopped server leaves: a snapshot and, if configured, the append-only file, without which such a server
/// starts empty. Accounts and passwords are in files of the set-up.
pub fn stored(setup: &Setup) -> Stored {
    let traced = setup.settings.iter().filter(|(name, _)| !STORAGE_NEUTRAL.contains(&name_of(name).as_str()));
    let storage_settings = traced.map(|(name, value)| format!("{name} = {value}")).collect();
    Stored { paths: vec!["data".to_owned()], storage_settings }
}

/// Settings that every server knows and experiments are likely to use: a server does not list its own before it is
/// started.
pub fn some_settings() -> Vec<String> {
    let common = COMMON.iter().map(|(name, ..)| *name);
    common.chain(STORAGE_NEUTRAL).map(str::to_owned).collect()
}

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let data = place.folder.join("data");
    let mut steps = vec![Step::Folder(data.clone())];
    steps.extend(setup.identity_step());
    if let Authentication::Password { mechanism } = &setup.authentication {
        let (name, content) = secret_file(mechanism, &setup.credentials.password);
        steps.push(Step::Write { path: place.folder.join(name), content: Content::Secret(content), mode: 0o600 });
    }
    let configuration = place.folder.join("redis.conf");
    steps.push(Step::Write { path: configuration.clone(), content: Content::Text(text(setup, place)), mode: 0o600 });
    Launch {
        steps,
        server: Some(Command {
            program: install.programs.join(install.facts.get(PROGRAM).map_or("redis-server", String::as_str)),
            arguments: vec![configuration.display().to_string()],
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: place.address(),
        paths: Paths {
            // Before Redis 7 the append-only file is one file in the data folder.
            journal: vec![data.join(AOF_FOLDER), data.join("appendonly.aof")],
            data: vec![data],
            logs: vec![place.folder.join(SERVER_LOG)],
        },
    }
}

/// Redis's own default for `appenddirname`.
const AOF_FOLDER: &str = "appendonlydir";

/// Name and content of the file with the clients' credentials. The file of accounts holds only hashes.
fn secret_file(mechanism: &str, password: &Secret) -> (&'static str, Secret) {
    if mechanism != ACL {
        return ("password.conf", Secret::new(format!("requirepass {}\n", password.expose_text())));
    }
    let hashed = |password: &Secret| hex(digest(&SHA256, password.expose()).as_ref());
    let (hash, of_administrator) = (hashed(password), hashed(&password_of_administrator(password)));
    let accounts = format!(
        "user default off resetpass -@all\n\
         user {USER} on #{hash} resetkeys ~tithe ~tithe:* -@all {CLIENT_RIGHTS}\n\
         user {ADMINISTRATOR} on #{of_administrator} ~* &* +@all\n"
    );
    ("users.acl", Secret::new(accounts))
}

/// What the measured account may do: read and write Tithe's keys, and nothing that manages the server.
const CLIENT_RIGHTS: &str = "+@read +@write +@connection -@dangerous";

/// The configuration file.
fn text(setup: &Setup, place: &Place) -> String {
    let file = |path: &Path| path.display().to_string();
    let mut lines: BTreeMap<String, String> =
        COMMON.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
    lines.extend(setup.settings.iter().map(|(name, value)| (name_of(name), value_of(value))));
    let mut own = |name: &str, value: String| drop(lines.insert(name.to_owned(), value));
    own("bind", place.listen.to_string());
    own("daemonize", "no".to_owned());
    own("dir", file(&place.folder.join("data")));
    own("logfile", "\"\"".to_owned());
    match setup.transport {
        Transport::Plain => own("port", place.port.to_string()),
        Transport::Tls { version, mutual, .. } => {
            own("port", "0".to_owned());
            own("tls-port", place.port.to_string());
            own("tls-cert-file", file(&setup.credentials.server_certificate));
            own("tls-key-file", file(&setup.credentials.server_key));
            own("tls-protocols", version_name(version).to_owned());
            own("tls-auth-clients", if mutual { "yes" } else { "no" }.to_owned());
            if mutual {
                own("tls-ca-cert-file", file(&setup.credentials.authority));
            }
        }
    }
    match &setup.authentication {
        Authentication::Password { mechanism } if mechanism == ACL => {
            own("aclfile", file(&place.folder.join("users.acl")))
        }
        Authentication::Password { .. } => own("include", file(&place.folder.join("password.conf"))),
        Authentication::None => {}
    }
    lines.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

/// A TLS version by Redis's name, which is OpenSSL's.
pub fn version_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "TLSv1.2",
        TlsVersion::V1_3 => "TLSv1.3",
    }
}

/// A setting's name from an experiment, restricted to the characters of a name.
pub fn name_of(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }).collect()
}

/// A setting's value from an experiment, always on one line; several words are several arguments, as in `save = "3600
/// 1"`.
fn value_of(value: &str) -> String {
    let value = value.replace(char::is_control, " ");
    if value.trim().is_empty() { "\"\"".to_owned() } else { value }
}
