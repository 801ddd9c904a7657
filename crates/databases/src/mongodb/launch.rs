//! Files, commands and arguments that start one server, as data. Pure.
//!
//! `mongod.conf` is written completely (MongoDB documentation, "Configuration File Options"). The server listens only
//! on 127.0.0.1 and runs in the foreground with its log on standard output. Settings of an experiment are written with
//! dots, as in `storage.wiredTiger.engineConfig.cacheSizeGB`.

use std::{collections::BTreeMap, fmt::Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use tithe_machine::{
    launch::{Address, Command, Content, Install, Launch, Place, Step},
    paths::Paths,
    secret::Secret,
};
use tithe_plugin::setup::{AtRest, Authentication, Setup, TlsVersion, Transport};

use super::target::CLIENT_IDENTITY;

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";
/// The server's certificate and key in one file.
const SERVER_IDENTITY: &str = "server.pem";
/// The file of the audit log.
const AUDIT_LOG: &str = "audit.json";
/// The data key, base64.
const KEY_FILE: &str = "encryption.key";

/// Settings of every server that Tithe launches, with the reason; an experiment may change them.
const COMMON: &[(&str, &str, &str)] = &[(
    "setParameter.diagnosticDataCollectionEnabled",
    "false",
    "it samples the whole state every second, into the slots of whichever arm is under way",
)];

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("auditLog.destination", "decided by the protection `audit`"),
    ("auditLog.filter", "decided by the protection `audit`"),
    ("auditLog.format", "evidence reads JSON"),
    ("auditLog.path", "evidence reads the log where Tithe puts it"),
    ("net.bindIp", "servers listen on 127.0.0.1 only"),
    ("net.bindIpAll", "servers listen on 127.0.0.1 only"),
    ("net.port", "Tithe chooses a free one"),
    // Older names of options below `net.tls`, which every version still accepts.
    ("net.ssl.CAFile", "decided by the protection `tls`"),
    ("net.ssl.PEMKeyFile", "decided by the protection `tls`"),
    ("net.ssl.allowConnectionsWithoutCertificates", "decided by the protection `tls`"),
    ("net.ssl.allowInvalidCertificates", "decided by the protection `tls`"),
    ("net.ssl.clusterCAFile", "decided by the protection `tls`"),
    ("net.ssl.disabledProtocols", "decided by the protection `tls`"),
    ("net.ssl.mode", "decided by the protection `tls`"),
    ("net.tls.allowInvalidCertificates", "decided by the protection `tls`"),
    ("net.tls.clusterCAFile", "decided by the protection `tls`"),
    ("net.tls.mode", "decided by the protection `tls`"),
    ("net.unixDomainSocket.enabled", "clients connect by TCP, as the measured ones do"),
    ("processManagement.fork", "the server runs in the foreground, so that it ends with Tithe"),
    ("replication.replSetName", "Tithe starts a single server; give the URL of a replica set"),
    ("security.authorization", "decided by the protection `scram`"),
    ("security.enableEncryption", "decided by the protection `encryption`"),
    ("security.encryptionCipherMode", "decided by the protection `encryption`"),
    ("security.encryptionKeyFile", "decided by the protection `encryption`"),
    ("setParameter.tlsUseSystemCA", "decided by the protection `tls`"),
    ("storage.dbPath", "each server has a folder of its own"),
    ("systemLog.destination", "evidence reads the log where Tithe puts it"),
    ("systemLog.path", "evidence reads the log where Tithe puts it"),
];

/// Everything that starts one server of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    let data = place.folder.join("data");
    let mut steps = vec![Step::Folder(data.clone())];
    steps.extend(setup.identity_step());
    let credentials = &setup.credentials;
    if let Transport::Tls { mutual, .. } = setup.transport {
        steps.push(join(&[&credentials.server_certificate, &credentials.server_key], place, SERVER_IDENTITY));
        if mutual {
            steps.push(join(&[&credentials.client_certificate, &credentials.client_key], place, CLIENT_IDENTITY));
        }
    }
    if let Some(AtRest { key, .. }) = &setup.at_rest {
        let content = Content::Secret(Secret::new(STANDARD.encode(key.expose()) + "\n"));
        steps.push(Step::Write { path: place.folder.join(KEY_FILE), content, mode: 0o600 });
    }
    let configuration = place.folder.join("mongod.conf");
    steps.push(Step::Write { path: configuration.clone(), content: Content::Text(text(setup, place)), mode: 0o600 });
    let mut logs = vec![place.folder.join(SERVER_LOG)];
    if setup.settings.contains_key(AUDIT_FILTER) {
        logs.push(place.folder.join(AUDIT_LOG));
    }
    Launch {
        steps,
        server: Some(Command {
            program: install.programs.join("mongod"),
            arguments: vec!["--config".to_owned(), configuration.display().to_string()],
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port: place.port },
        paths: Paths { journal: vec![data.join("journal")], data: vec![data], logs },
    }
}

/// The setting whose presence means that there is an audit log.
pub const AUDIT_FILTER: &str = "auditLog.filter";

/// Writes certificate and key into one file, as the server and the driver require.
fn join(parts: &[&std::path::PathBuf], place: &Place, name: &str) -> Step {
    let mut arguments = vec!["-c".to_owned(), "umask 077 && cat \"$1\" \"$2\" > \"$3\"".to_owned(), "sh".to_owned()];
    arguments.extend(parts.iter().map(|part| part.display().to_string()));
    arguments.push(place.folder.join(name).display().to_string());
    Step::Run(Command { program: "/bin/sh".into(), arguments, environment: BTreeMap::new() })
}

/// The configuration file.
fn text(setup: &Setup, place: &Place) -> String {
    let file = |name: &str| quoted(&place.folder.join(name).display().to_string());
    let mut settings: BTreeMap<String, String> =
        COMMON.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
    settings.extend(setup.settings.iter().map(|(name, value)| (name.clone(), value_of(value))));
    let mut own = |name: &str, value: String| drop(settings.insert(name.to_owned(), value));
    own("net.bindIp", "127.0.0.1".to_owned());
    own("net.port", place.port.to_string());
    own("net.unixDomainSocket.enabled", "false".to_owned());
    own("storage.dbPath", file("data"));
    if let Transport::Tls { version, mutual, .. } = setup.transport {
        own("net.tls.mode", "requireTLS".to_owned());
        own("net.tls.certificateKeyFile", file(SERVER_IDENTITY));
        own("net.tls.CAFile", quoted(&setup.credentials.authority.display().to_string()));
        own("net.tls.allowConnectionsWithoutCertificates", (!mutual).to_string());
        own("net.tls.disabledProtocols", disabled(version).to_owned());
    }
    if let Authentication::Password { mechanism } = &setup.authentication {
        own("security.authorization", "enabled".to_owned());
        own("setParameter.authenticationMechanisms", mechanism.clone());
    }
    if let Some(AtRest { cipher, .. }) = &setup.at_rest {
        own("security.enableEncryption", "true".to_owned());
        own("security.encryptionCipherMode", cipher.clone());
        own("security.encryptionKeyFile", file(KEY_FILE));
    }
    if setup.settings.contains_key(AUDIT_FILTER) {
        own("auditLog.destination", "file".to_owned());
        own("auditLog.format", "JSON".to_owned());
        own("auditLog.path", file(AUDIT_LOG));
    }
    nested(&settings)
}

/// The versions that the server must not use, by its own names.
fn disabled(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "TLS1_0,TLS1_1,TLS1_3",
        TlsVersion::V1_3 => "TLS1_0,TLS1_1,TLS1_2",
    }
}

/// Settings with dotted names, as the nested YAML that the server reads. Names are restricted to valid characters.
fn nested(settings: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    for (name, value) in settings {
        let parts: Vec<&str> = name.split('.').collect();
        let (last, folders) = parts.split_last().expect("splitting gives at least one part");
        let common = open.iter().zip(folders).take_while(|(before, now)| before == now).count();
        for (depth, folder) in folders.iter().enumerate().skip(common) {
            // Writing to memory cannot fail.
            let _ = writeln!(text, "{}{}:", "  ".repeat(depth), plain(folder));
        }
        let _ = writeln!(text, "{}{}: {value}", "  ".repeat(folders.len()), plain(last));
        open = folders.to_vec();
    }
    text
}

/// A name from an experiment, restricted to the characters of a name.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '_' }).collect()
}

/// A value from an experiment: numbers, flags and simple words as they are, anything else as a quoted string.
fn value_of(value: &str) -> String {
    let simple = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if !value.is_empty() && value.chars().all(simple) { value.to_owned() } else { quoted(value) }
}

/// A string of JSON, which is one of YAML as well.
fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_nested_by_their_dots() {
        let settings = [("a.b.c", "1"), ("a.b.d", "2"), ("a.e", "3"), ("f", "4"), ("g.b.h", "5")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(nested(&settings), "a:\n  b:\n    c: 1\n    d: 2\n  e: 3\nf: 4\ng:\n  b:\n    h: 5\n");
    }
}
