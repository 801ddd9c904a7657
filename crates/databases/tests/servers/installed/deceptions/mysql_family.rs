//! MariaDB and MySQL on stage: the server's administrator runs the statements of an entry, and its own statements undo
//! them.

use tithe_machine::launch::Address;
use tithe_plugin::{
    session::SqlSession,
    setup::{Authentication, Transport},
};

use super::{Deception, Sandbox, Stage};
use crate::{how, table};

/// What every server has in addition to its administrator: a database, and two accounts without privileges.
const BASE: [&str; 3] = [
    "CREATE DATABASE shop",
    "CREATE USER app@'%' IDENTIFIED BY 'app-pw' REQUIRE SSL",
    "CREATE USER clerk@'%' IDENTIFIED BY 'clerk-pw' REQUIRE SSL",
];

pub struct OnStage(Box<dyn SqlSession>);

impl OnStage {
    pub fn new(sandbox: &Sandbox) -> Self {
        sandbox.database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
        let sql = sandbox.database.sql().expect("SQL");
        let mut session = sql.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session");
        BASE.iter().for_each(|statement| drop(session.run(statement).expect("the base")));
        Self(session)
    }

    fn run(&mut self, statements: &[String]) -> Result<(), String> {
        let run =
            |statement: &String| self.0.run(statement).map(drop).map_err(|fault| format!("`{statement}`: {fault}"));
        statements.iter().try_for_each(run)
    }
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        self.run(&entry.statements)?;
        for (name, value) in &entry.settings {
            self.run(&[format!("SET @{name} = @@GLOBAL.{name}"), format!("SET GLOBAL {name} = {value}")])?;
        }
        url(sandbox)
    }

    fn clear(&mut self, _: &Sandbox, entry: &Deception) -> Result<(), String> {
        for name in entry.settings.keys() {
            self.run(&[format!("SET GLOBAL {name} = @{name}")])?;
        }
        self.run(&entry.undo)
    }
}

/// The URL of the administrator.
fn url(sandbox: &Sandbox) -> Result<String, String> {
    let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
    let credentials = &sandbox.setup.credentials;
    let password = match sandbox.setup.authentication {
        Authentication::None => String::new(),
        Authentication::Password { .. } => format!(":{}", credentials.password.expose_text()),
    };
    let options = match sandbox.setup.transport {
        Transport::Plain => String::new(),
        Transport::Tls { .. } => format!("?ssl-mode=verify_identity&ssl-ca={}", credentials.authority.display()),
    };
    Ok(format!("{}://tithe{password}@{host}:{port}/{options}", sandbox.database.id()))
}
