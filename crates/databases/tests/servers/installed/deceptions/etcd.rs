//! etcd on stage: run-time changes are made by its own client.

use std::process::Command;

use tithe_machine::launch::Address;
use tithe_plugin::setup::{Authentication, Transport};

use super::{Deception, Sandbox, Stage};

pub struct OnStage;

impl OnStage {
    /// Says each of `commands` as the administrator.
    fn say(sandbox: &Sandbox, commands: &[String]) -> Result<(), String> {
        let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
        let credentials = &sandbox.setup.credentials;
        for words in commands {
            let mut command = Command::new("etcdctl");
            command.env("ETCDCTL_API", "3").args(["--dial-timeout", "20s", "--command-timeout", "20s"]);
            if let Transport::Tls { .. } = sandbox.setup.transport {
                command.arg(format!("--endpoints=https://{host}:{port}"));
                command.arg(format!("--cacert={}", credentials.authority.display()));
                command.arg(format!("--cert={}", credentials.client_certificate.display()));
                command.arg(format!("--key={}", credentials.client_key.display()));
            } else {
                command.arg(format!("--endpoints=http://{host}:{port}"));
            }
            if let Authentication::Password { .. } = sandbox.setup.authentication {
                command.env("ETCDCTL_USER", "root").env("ETCDCTL_PASSWORD", credentials.password.expose_text());
            }
            let output = command.args(words.split(' ')).output().map_err(|error| format!("etcdctl: {error}"))?;
            if !output.status.success() {
                return Err(format!("etcdctl {words}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(())
    }
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        Self::say(sandbox, &entry.statements)?;
        let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
        let credentials = &sandbox.setup.credentials;
        let user = if entry.asks == "administrator" { "root" } else { "tithe-clients" };
        let login = match sandbox.setup.authentication {
            Authentication::None => String::new(),
            Authentication::Password { .. } if entry.asks == "certificate alone" => String::new(),
            Authentication::Password { .. } => format!("{user}:{}@", credentials.password.expose_text()),
        };
        let (scheme, mut options) = match sandbox.setup.transport {
            Transport::Plain => ("etcd", String::new()),
            Transport::Tls { .. } => ("etcds", format!("?ca={}", credentials.authority.display())),
        };
        if entry.asks.starts_with("certificate") {
            let (certificate, key) = (credentials.client_certificate.display(), credentials.client_key.display());
            options += &format!("&cert={certificate}&key={key}");
        }
        Ok(format!("{scheme}://{login}{host}:{port}{options}"))
    }

    fn clear(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<(), String> {
        Self::say(sandbox, &entry.undo)
    }
}
