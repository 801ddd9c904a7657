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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tithe_machine::{credentials::KeyType, launch::Command, secret::Secret};

    use super::*;
    use crate::setup::{AtRest, ColumnCipher, Columns, KeyServer, Suite};

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn command(program: &str, words: &[&str]) -> Command {
        Command { program: program.into(), arguments: owned(words), ..Command::default() }
    }

    /// The lines of an arm with `steps` and this set-up, in `/run/7` at port 5499.
    fn told(steps: Vec<Step>, setup: &Setup) -> Vec<String> {
        let launch = Launch { steps, ..Launch::default() };
        configuration(&launch, setup, &Place::on_loopback("/run/7", 5499))
    }

    #[test]
    fn every_step_is_told_without_its_place_and_its_secrets() {
        let path = |name: &str| PathBuf::from(format!("/run/7/{name}"));
        let secret = Content::Secret(Secret::new(*b"hunter2"));
        let text = Content::Text("# a remark\n\nport = 5499\n  \nlog = '/run/7/log'\n".to_owned());
        let (key, certificate) = (path("key"), path("certificate"));
        let identity = ServerIdentity { key: KeyType::Rsa2048, chain: 3 };
        let steps = vec![
            Step::Folder(path("data")),
            Step::Link { path: path("lib"), to: "/usr/lib/db".into() },
            Step::Copy { path: path("rules"), from: "/my/rules".into() },
            Step::Write { path: path("password"), content: secret, mode: 0o600 },
            Step::Write { path: path("db.conf"), content: text, mode: 0o644 },
            Step::Append { path: path("hba.conf"), content: "# none\nhost all\n".to_owned() },
            Step::Identity { identity, certificate, key },
            Step::MakeData(command("/usr/bin/init", &["-D", "/run/7/data"])),
            Step::Run(command("/usr/bin/check", &[])),
        ];
        let server = Some(command("/usr/bin/db", &["--port=5499"]));
        let launch = Launch { steps, server, ..Launch::default() };
        let lines = [
            "folder {place}/data",
            "link {place}/lib to /usr/lib/db",
            "file {place}/rules: /my/rules",
            "file {place}/password (mode 600): ***",
            "db.conf: port = {port}",
            "db.conf: log = '{place}/log'",
            "hba.conf: host all",
            "server certificate: rsa-2048, 3 shown",
            "run /usr/bin/init -D {place}/data",
            "run /usr/bin/check ",
            "server /usr/bin/db --port={port}",
        ];
        assert_eq!(configuration(&launch, &Setup::bare(), &Place::on_loopback("/run/7", 5499)), lines);
        assert_eq!(told(Vec::new(), &Setup::bare()), [""; 0], "nothing protects a plain arm");
    }

    #[test]
    fn what_clients_do_besides_plain_connections_is_told() {
        let with = |change: &dyn Fn(&mut Setup)| {
            let mut setup = Setup::bare();
            change(&mut setup);
            told(Vec::new(), &setup).join("\n")
        };
        let tls = |version, mutual, resumption, suite| {
            let transport = Transport::Tls { version, mutual, resumption, suite, key: None, chain: None };
            with(&move |setup| setup.transport = transport)
        };
        let only = "certificate verified";
        assert_eq!(tls(TlsVersion::V1_2, false, false, None), format!("client: TLS 1.2 only, {only}"));
        let all = "shows a certificate of its own, sessions resumed, aes-128-gcm alone";
        let told_of_all = tls(TlsVersion::V1_3, true, true, Some(Suite::Aes128Gcm));
        assert_eq!(told_of_all, format!("client: TLS 1.3 only, {only}, {all}"));
        let mechanism = || "scram".to_owned();
        let password = with(&|setup| setup.authentication = Authentication::Password { mechanism: mechanism() });
        assert_eq!(password, "client: password, scram");
        let at_rest = || AtRest { cipher: "aes-256".to_owned(), key: Secret::new(*b"hunter2") };
        assert_eq!(with(&|setup| setup.at_rest = Some(at_rest())), "files: cipher aes-256, key ***");
        let rotated = with(&|setup| setup.rotates = true);
        assert_eq!(rotated, "files: encrypted again with another key while measured, again and again");
        let key_server = || KeyServer {
            address: "kms:5696".to_owned(),
            key_id: "42".to_owned(),
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            authority: PathBuf::new(),
        };
        let kept = with(&|setup| setup.key_server = Some(key_server()));
        assert_eq!(kept, "files: master key 42 of the key server kms:5696");
        assert_eq!(with(&|setup| setup.compute = Some(Compute::Server)), "client: runs the ordinary statements");
        assert_eq!(with(&|setup| setup.compute = Some(Compute::Client)), "", "as the plain arm's");
        let said = with(&|setup| {
            setup.session_statements = owned(&["SET a"]);
            setup.after_loading.session = owned(&["SET b"]);
            setup.after_loading.statements = owned(&["GRANT c"]);
            setup.after_loading.undo = owned(&["REVOKE c"]);
        });
        assert_eq!(said, "client: SET a\nclient: SET b\nafter loading: GRANT c");
    }

    #[test]
    fn encrypted_columns_are_told_by_share_or_name_with_cipher_and_place_of_the_key() {
        let with = |change: &dyn Fn(&mut Columns)| {
            let mut columns = Columns::of_share(0.2, Secret::new(*b"hunter2"));
            change(&mut columns);
            told(Vec::new(), &Setup { columns: Some(columns), ..Setup::bare() }).join("\n")
        };
        assert_eq!(with(&|_| ()), "client: encrypts 20 % of the fields, AES-256-GCM, key ***");
        let named = with(&|columns| {
            columns.names = owned(&["field0", "field3"]);
            (columns.deterministic, columns.cipher) = (true, ColumnCipher::Sm4Gcm);
            columns.key_place.file = Some("/my/key".into());
        });
        assert_eq!(named, "client: encrypts field0, field3, SM4-128-SIV, key *** of /my/key");
        let of_variable = with(&|columns| columns.key_place.variable = Some("KEY".to_owned()));
        assert!(of_variable.ends_with("AES-256-GCM, key *** of the environment variable KEY"), "{of_variable}");
        for (cipher, names) in [
            (ColumnCipher::Aes256Gcm, ["AES-256-GCM", "AES-256-SIV"]),
            (ColumnCipher::Sm4Gcm, ["SM4-128-GCM", "SM4-128-SIV"]),
            (ColumnCipher::Secretbox, ["XSalsa20-Poly1305", "AES-256-SIV"]),
        ] {
            for (deterministic, name) in [false, true].into_iter().zip(names) {
                let told = with(&|columns| (columns.cipher, columns.deterministic) = (cipher, deterministic));
                assert!(told.contains(&format!(", {name}, key")), "{told}");
            }
        }
    }
}
