//! The set-up of an arm as text: one line for each step, so that two arms can be compared.

use tithe_machine::{
    credentials::ServerIdentity,
    launch::{Content, Launch, Place, Step},
};

use crate::{
    setup::{AfterLoading, Authentication, Setup, TlsVersion, Transport},
    sql::Compute,
};

/// The steps of `launch` and `setup`, one line each, secrets replaced, folder and port as placeholders so that two arms
/// can be compared.
pub fn configuration(launch: &Launch, setup: &Setup, place: &Place) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &launch.steps {
        match step {
            Step::Folder(path) => lines.push(format!("folder {}", path.display())),
            Step::Link { path, to } => lines.push(format!("link {} to {}", path.display(), to.display())),
            Step::Copy { path, from } => lines.push(format!("file {}: {}", path.display(), from.display())),
            Step::Write { path, content: Content::Secret(_), mode } => {
                lines.push(format!("file {} (mode {mode:o}): ***", path.display()))
            }
            Step::Write { path, content: Content::Text(text), .. } | Step::Append { path, content: text } => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let told = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
                lines.extend(told.map(|line| format!("{name}: {line}")));
            }
            Step::Identity { identity: ServerIdentity { key, chain }, .. } => {
                lines.push(format!("server certificate: {}, {chain} shown", key.name()))
            }
            Step::Run(command) | Step::MakeData(command) => {
                lines.push(format!("run {} {}", command.program.display(), command.arguments.join(" ")))
            }
        }
    }
    if let Some(command) = &launch.server {
        lines.push(format!("server {} {}", command.program.display(), command.arguments.join(" ")));
    }
    lines.extend(setup.volume.as_ref().map(|asked| format!("volume {}", asked.kind.layers(asked).join(", "))));
    lines.extend(client(setup));
    let folder = place.folder.display().to_string();
    let port = place.port.to_string();
    lines.iter().map(|line| line.replace(&folder, "{place}").replace(&port, "{port}")).collect()
}

/// What the clients of an arm do besides plain connections.
fn client(setup: &Setup) -> Vec<String> {
    let mut lines = Vec::new();
    if let Transport::Tls { version, mutual, resumption, suite, .. } = setup.transport {
        let version = match version {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        };
        let own = if mutual { ", shows a certificate of its own" } else { "" };
        let again = if resumption { ", sessions resumed" } else { "" };
        let alone = suite.map_or_else(String::new, |suite| format!(", {} alone", suite.name()));
        lines.push(format!("client: TLS {version} only, certificate verified{own}{again}{alone}"));
    }
    if let Authentication::Password { mechanism } = &setup.authentication {
        lines.push(format!("client: password, {mechanism}"));
    }
    if let Some(at_rest) = &setup.at_rest {
        lines.push(format!("files: cipher {}, key ***", at_rest.cipher));
    }
    if setup.rotates {
        lines.push("files: encrypted again with another key while measured, again and again".to_owned());
    }
    if let Some(server) = &setup.key_server {
        lines.push(format!("files: master key {} of the key server {}", server.key_id, server.address));
    }
    if let Some(columns) = &setup.columns {
        let what = match columns.names.as_slice() {
            [] => format!("{:.0} % of the fields", columns.share * 100.0),
            names => names.join(", "),
        };
        let cipher = if columns.deterministic { columns.cipher.deterministic_name() } else { columns.cipher.name() };
        let place = match (&columns.key_place.file, &columns.key_place.variable) {
            (Some(file), _) => format!(" of {}", file.display()),
            (None, Some(variable)) => format!(" of the environment variable {variable}"),
            (None, None) => String::new(),
        };
        lines.push(format!("client: encrypts {what}, {cipher}, key ***{place}"));
    }
    if setup.compute == Some(Compute::Server) {
        lines.push("client: runs the ordinary statements".to_owned());
    }
    let AfterLoading { statements, session, undo: _ } = &setup.after_loading;
    lines.extend(setup.session_statements.iter().chain(session).map(|statement| format!("client: {statement}")));
    lines.extend(statements.iter().map(|statement| format!("after loading: {statement}")));
    lines
}
