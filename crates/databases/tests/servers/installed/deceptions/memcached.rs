//! Memcached on stage: every entry has its own server, because nothing can be set while it runs.

use tithe_machine::launch::Address;
use tithe_plugin::setup::{Authentication, Transport};

use super::{Deception, Sandbox, Stage};

pub struct OnStage;

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
        let credentials = &sandbox.setup.credentials;
        let login = match sandbox.setup.authentication {
            Authentication::None => String::new(),
            Authentication::Password { .. } => format!("tithe:{}@", credentials.password.expose_text()),
        };
        let (scheme, mut options) = match sandbox.setup.transport {
            Transport::Plain => ("memcached", String::new()),
            Transport::Tls { .. } => ("memcacheds", format!("?ca={}", credentials.authority.display())),
        };
        if entry.asks == "certificate" {
            let (certificate, key) = (credentials.client_certificate.display(), credentials.client_key.display());
            options += &format!("&cert={certificate}&key={key}");
        }
        Ok(format!("{scheme}://{login}{host}:{port}{options}"))
    }

    fn clear(&mut self, _: &Sandbox, _: &Deception) -> Result<(), String> {
        Ok(())
    }
}
