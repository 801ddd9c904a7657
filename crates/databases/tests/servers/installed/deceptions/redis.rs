//! Redis on stage: settings by `CONFIG SET`, accounts that are removed again, and a replica if an entry has one.

use std::net::Ipv4Addr;

use tithe_databases::redis::Redis;
use tithe_machine::{launch::Address, sandbox::ports::Port};
use tithe_plugin::{
    database::Database as _,
    session::KeyValueSession,
    setup::{Authentication, Transport},
};

use super::{Deception, Sandbox, Stage, until};
use crate::{how, key_value, sandbox::chosen};

pub struct OnStage {
    /// Opened before any entry changes the login rules.
    session: Box<dyn KeyValueSession>,
    /// Settings as they were, of the entry that is on stage.
    before: Vec<(String, String)>,
    /// A second server, once an entry needs one.
    replica: Option<Sandbox>,
    /// A free port for the entry that is on stage.
    free: Option<Port>,
}

/// Before a statement that is for the second server.
const REPLICA: &str = "replica: ";

impl OnStage {
    pub fn new(sandbox: &Sandbox) -> Self {
        Self { session: session(sandbox), before: Vec::new(), replica: None, free: None }
    }

    fn run(&mut self, statement: &str) -> Result<(), String> {
        let Some(statement) = statement.strip_prefix(REPLICA) else { return said(&mut *self.session, statement) };
        let replica = self.replica.get_or_insert_with(|| {
            let tls = chosen(&Redis, "tls", &[]);
            Sandbox::start(&Redis, &[tls]).expect("a server, as there is one already")
        });
        said(&mut *session(replica), statement)
    }

    fn placed(&self, text: &str, sandbox: &Sandbox) -> String {
        let Address::Tcp { port, .. } = sandbox.server.address else { return text.to_owned() };
        let authority = sandbox.setup.credentials.authority.display().to_string();
        let free = self.free.as_ref().map_or(0, Port::number);
        let text = text.replace("@FREE@", &free.to_string()).replace("@AUTHORITY@", &authority);
        text.replace("@PORT@", &port.to_string())
    }
}

fn session(sandbox: &Sandbox) -> Box<dyn KeyValueSession> {
    key_value(Redis.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session"))
}

fn said(session: &mut dyn KeyValueSession, statement: &str) -> Result<(), String> {
    session.run_statement(statement).map_err(|fault| format!("`{statement}`: {fault}"))
}

/// Waits until the replication section of `sandbox` contains `wanted`.
fn await_replication(sandbox: &Sandbox, wanted: &str) -> Result<(), String> {
    until(&format!("no {wanted}"), || {
        let told = Redis.ask(&sandbox.server, &sandbox.setup, "INFO replication").map_err(|fault| fault.to_string())?;
        Ok(told.is_some_and(|told| told.contains(wanted)))
    })
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        self.free = Some(Port::draw(Ipv4Addr::LOCALHOST.into()).map_err(|fault| fault.to_string())?);
        // In a fixed order, in which a certificate file comes before the settings that need it.
        for name in entry.settings.keys() {
            let question = format!("CONFIG GET {name}");
            let before = Redis.ask(&sandbox.server, &sandbox.setup, &question).map_err(|fault| fault.to_string())?;
            self.before.push((name.clone(), before.unwrap_or_default()));
        }
        let pairs: Vec<String> = entry.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !pairs.is_empty() {
            let statement = self.placed(&format!("CONFIG SET {}", pairs.join(" ")), sandbox);
            self.run(&statement)?;
        }
        for statement in &entry.statements {
            let statement = self.placed(statement, sandbox);
            self.run(&statement)?;
        }
        if let Some(replica) =
            self.replica.as_ref().filter(|_| entry.statements.iter().any(|it| it.contains("REPLICAOF")))
        {
            await_replication(replica, "master_link_status:up")?;
            await_replication(sandbox, "state=online")?;
        }
        url(sandbox, &entry.asks)
    }

    fn clear(&mut self, _: &Sandbox, entry: &Deception) -> Result<(), String> {
        for statement in &entry.undo {
            self.run(statement)?;
        }
        for name in entry.statements.iter().filter_map(|it| it.strip_prefix("ACL SETUSER ")?.split(' ').next()) {
            self.run(&format!("ACL DELUSER {name}"))?;
        }
        let before = std::mem::take(&mut self.before);
        let pairs: Vec<String> = before
            .iter()
            .rev()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        if pairs.is_empty() { Ok(()) } else { self.run(&format!("CONFIG SET {}", pairs.join(" "))) }
    }
}

/// The URL of the administrator, with the run's certificate if `asks` names it.
fn url(sandbox: &Sandbox, asks: &str) -> Result<String, String> {
    let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
    let credentials = &sandbox.setup.credentials;
    let password = match sandbox.setup.authentication {
        Authentication::None => String::new(),
        Authentication::Password { .. } => format!(":{}@", credentials.password.expose_text()),
    };
    let (scheme, mut options) = match sandbox.setup.transport {
        Transport::Plain => ("redis", String::new()),
        Transport::Tls { .. } => ("rediss", format!("?ca={}", credentials.authority.display())),
    };
    if asks == "certificate" {
        let (certificate, key) = (credentials.client_certificate.display(), credentials.client_key.display());
        options += &format!("&cert={certificate}&key={key}");
    }
    Ok(format!("{scheme}://{password}{host}:{port}/0{options}"))
}
