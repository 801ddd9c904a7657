//! Cassandra on stage: roles and keyspaces that are removed again. What is set in files needs a server of its own.

use tithe_databases::cassandra::Cassandra;
use tithe_machine::launch::{Address, Server};
use tithe_model::experiment::Url;
use tithe_plugin::{
    database::Database as _,
    session::KeyValueSession,
    setup::{Setup, Transport},
};

use super::{Deception, Sandbox, Stage};
use crate::{how, key_value, table};

pub struct OnStage {
    session: Box<dyn KeyValueSession>,
}

impl OnStage {
    pub fn new(sandbox: &Sandbox) -> Self {
        // The accounts come with a table. A server without access control accepts all of it except the last statement,
        // a GRANT.
        if let Err(fault) = Cassandra.create(&sandbox.server, &sandbox.setup, &table()) {
            assert!(fault.to_string().contains("AllowAllAuthorizer"), "{fault}");
        }
        let address = Address::Attached(Url::new(url(sandbox, "")));
        let server = Server { address, process: None, ..sandbox.server.clone() };
        let session = Cassandra.connect(&server, &Setup::bare(), &how(true)).expect("an administrator's session");
        Self { session: key_value(session) }
    }

    fn run(&mut self, statement: &str) -> Result<(), String> {
        self.session.run_statement(statement).map_err(|fault| format!("`{statement}`: {fault}"))
    }
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        entry.statements.iter().try_for_each(|statement| self.run(statement))?;
        Ok(url(sandbox, &entry.asks))
    }

    fn clear(&mut self, _: &Sandbox, entry: &Deception) -> Result<(), String> {
        for statement in &entry.undo {
            self.run(statement)?;
        }
        let made = |statement: &str, kind: &str| Some(statement.strip_prefix(kind)?.split(' ').next()?.to_owned());
        for statement in entry.statements.iter().rev() {
            for kind in ["ROLE", "KEYSPACE"] {
                if let Some(name) = made(statement, &format!("CREATE {kind} ")) {
                    self.run(&format!("DROP {kind} {name}"))?;
                }
            }
        }
        Ok(())
    }
}

/// The URL of the administrator, or of the account that `asks`.
fn url(sandbox: &Sandbox, asks: &str) -> String {
    let Address::Tcp { host, port } = &sandbox.server.address else { panic!("a TCP server") };
    let credentials = &sandbox.setup.credentials;
    let user = if asks.is_empty() { "tithe_administrator" } else { asks };
    let password = credentials.password.expose_text();
    let options = match sandbox.setup.transport {
        Transport::Plain => String::new(),
        Transport::Tls { .. } => format!("?ca={}", credentials.authority.display()),
    };
    format!("cassandra://{user}:{password}@{host}:{port}/{options}")
}
