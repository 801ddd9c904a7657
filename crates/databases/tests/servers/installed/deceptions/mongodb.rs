//! MongoDB's protocol on stage: the stand-in, which each entry configures (`Pretence.java`). A real server is not
//! available from package registries.

use std::{fs, path::Path};

use tithe_databases::mongodb::MongoDb;
use tithe_machine::launch::Address;
use tithe_plugin::{database::Database as _, product::Product, session::KeyValueSession, setup::Transport};

use super::{super::mongodb::started, Deception, Sandbox, Stage, Start, all_hold, chosen};
use crate::{how, key_value};

#[test]
fn mongodb() {
    let text = include_str!("../../../deceptions/mongodb.toml");
    all_hold(&MongoDb, text, 25, stand_in, |sandbox| Box::new(OnStage::new(sandbox)));
}

/// The stand-in, which also accepts plaintext if a setting allows it.
fn stand_in(database: &'static dyn Product, start: &Start) -> Option<Sandbox> {
    let protections: Vec<_> = start.protections.iter().map(|id| chosen(database, id, &[])).collect();
    let mode = start.settings.get("net.tls.mode");
    started(&protections, mode.is_some_and(|mode| mode != "requireTLS"))
}

struct OnStage {
    session: Box<dyn KeyValueSession>,
    /// Certificate and key of a client in one file, as MongoDB's URLs name it.
    identity: tempfile::NamedTempFile,
}

impl OnStage {
    fn new(sandbox: &Sandbox) -> Self {
        let session = key_value(MongoDb.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session"));
        let identity = tempfile::NamedTempFile::new().expect("a file");
        let credentials = &sandbox.setup.credentials;
        let read = |path: &Path| fs::read(path).expect("a file of the run");
        let both = [read(&credentials.client_certificate), read(&credentials.client_key)].concat();
        fs::write(identity.path(), both).expect("written");
        Self { session, identity }
    }

    fn run(&mut self, statement: &str) -> Result<(), String> {
        self.session.run_statement(statement).map_err(|fault| format!("`{statement}`: {fault}"))
    }
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        entry.statements.iter().try_for_each(|statement| self.run(statement))?;
        url(sandbox, &entry.asks, self.identity.path())
    }

    fn clear(&mut self, _: &Sandbox, _: &Deception) -> Result<(), String> {
        self.run(r#"{"pretend": 1}"#)
    }
}

/// The URL of `asks`: an account, whose password is its name with `-pw`, or `certificate`, or no login if it is empty;
/// followed by `plaintext` if TLS is not used with a server that has it.
fn url(sandbox: &Sandbox, asks: &str, identity: &Path) -> Result<String, String> {
    let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
    let mut words = asks.split_whitespace().peekable();
    let account = words.next_if(|word| *word != "plaintext").unwrap_or_default();
    let mut options = "directConnection=true".to_owned();
    if sandbox.setup.transport != Transport::Plain && words.next() != Some("plaintext") {
        options += &format!("&tls=true&tlsCAFile={}", sandbox.setup.credentials.authority.display());
    }
    let login = match account {
        "" => String::new(),
        "certificate" => {
            options += &format!("&authMechanism=MONGODB-X509&tlsCertificateKeyFile={}", identity.display());
            String::new()
        }
        name => format!("{name}:{name}-pw@"),
    };
    Ok(format!("mongodb://{login}{host}:{port}/?{options}"))
}
