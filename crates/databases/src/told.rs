//! A server that answers statements as a test says. With it, what asks a server and judges its answers is tested as a
//! whole. The protocol is that of its product.

use std::{
    io,
    net::TcpStream,
    path::{Path, PathBuf},
};

use tithe_machine::{launch::Server, observation::Observation, paths::Paths};
use tithe_plugin::{
    evidence::{Check, CheckContext},
    product::Product,
    session::Table,
};

use crate::{
    evidence::marked::{Gained, Log},
    test_setup::{as_arm, attached, changed_rows, plain, whole_rows},
};

/// Rows of an answer.
pub type Rows = &'static [&'static [&'static str]];

/// Code and words of an error.
pub type Error = (&'static str, &'static str);

/// Words of a statement, and the answer to it.
pub type Answer = (&'static str, Result<Rows, Error>);

/// The state and the answers of a server.
#[derive(Clone)]
pub struct Told {
    /// Its product.
    pub product: &'static dyn Product,
    /// Serves one connection.
    pub serve: fn(&Told, TcpStream) -> io::Result<()>,
    /// Its version.
    pub version: &'static str,
    /// It asks for a password.
    pub password: bool,
    /// It has TLS, or says so.
    pub tls: bool,
    /// The code by which it denies an account something.
    pub denied: &'static str,
    /// Its settings.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Its answers, each to statements with these words; the first that fits counts.
    pub answers: Vec<Answer>,
}

/// The password of the account that asks.
pub const PASSWORD: &str = "correct horse";

impl Told {
    /// The same, with another setting.
    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value));
        self
    }

    /// The same, without a setting.
    pub fn without(mut self, name: &str) -> Self {
        self.settings.retain(|(known, _)| *known != name);
        self
    }

    /// The same, with other rows for statements with these words.
    pub fn telling(mut self, words: &'static str, rows: Rows) -> Self {
        self.answers.insert(0, (words, Ok(rows)));
        self
    }

    /// The same to an account that may not run statements with these words.
    pub fn refusing(self, words: &'static str) -> Self {
        let denied = self.denied;
        self.failing(words, (denied, "denied to this account"))
    }

    /// The same, with an error for statements with these words.
    pub fn failing(mut self, words: &'static str, error: Error) -> Self {
        self.answers.insert(0, (words, Err(error)));
        self
    }

    /// The answer to `sql`, if a test has given one.
    pub fn given(&self, sql: &str) -> Option<Result<Vec<Vec<&'static str>>, Error>> {
        let (_, answer) = self.answers.iter().find(|(words, _)| sql.contains(words))?;
        Some(answer.map(|rows| rows.iter().map(|row| row.to_vec()).collect()))
    }

    /// The result of `look` on it, as an attached server.
    pub fn seen<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        let password = if self.password { format!(":{}", PASSWORD.replace(' ', "%20")) } else { String::new() };
        let scheme = self.product.entry().schemes[0];
        let told = self.clone();
        attached(&format!("{scheme}://ann{password}@"), move |stream| (told.serve)(&told, stream), look)
    }

    /// What `check` observes on it as the protected arm, in words.
    pub fn observed(&self, check: &dyn Check) -> String {
        let table = Table { name: "usertable".to_owned(), fields: 1, field_prefix: "field".to_owned() };
        let setup = plain();
        let seen = self.seen(|server| {
            let (database, table, setup) = (self.product, &table, &setup);
            check.observe(&mut CheckContext {
                database,
                server,
                setup,
                table,
                protected: true,
                nonce: 7,
                narrowed: None,
            })
        });
        match seen {
            Ok(Observation::Protected(words)) => format!("protected: {words}"),
            Ok(Observation::Exposed(words)) => format!("exposed: {words}"),
            Ok(Observation::Unknown(words) | Observation::OutOfReach(words)) => format!("unknown: {words}"),
            Err(fault) => fault.to_string(),
        }
    }

    /// What its `log` gains while something `happens`, or why that cannot be read.
    pub fn gained(&self, log: &Log, happens: impl FnOnce()) -> Result<Gained, String> {
        self.seen(|server| {
            as_arm(self.product, server, |context| {
                let read = (log.served)(context)?;
                happens();
                read(context).map_err(|fault| fault.to_string())
            })
        })
    }

    /// Where canaries can be searched on it and which checks of records apply, in words; files below `folder`.
    pub fn canaries(&self, folder: &Path) -> String {
        let table = Table { name: "usertable".to_owned(), fields: 1, field_prefix: "field".to_owned() };
        let find = self.product.canary_checks().expect("it can be asked");
        let found = match self.seen(|server| find(server, &plain(), &table)) {
            Ok(found) => found,
            Err(fault) => return fault.to_string(),
        };
        let names = |paths: &[PathBuf]| {
            let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
            paths.iter().map(name).collect::<Vec<_>>().join(" ")
        };
        let checks: Vec<String> =
            found.audit.iter().map(|check| format!("{}: {}", check.entry().id, check.claim())).collect();
        let Paths { data, journal, logs } = &found.paths;
        format!("data {}; journal {}; logs {}; {}", names(data), names(journal), names(logs), checks.join("; "))
    }

    /// The rows of its security matrix.
    pub fn matrix(&self) -> Vec<String> {
        whole_rows(&self.seen(|server| self.product.inspect(server, &plain()).expect("it can be reached")))
    }

    /// For each of `changes` the rows of its matrix that differ from those of this server.
    pub fn changed_rows(&self, changes: &[(&str, Told)]) -> String {
        let changes: Vec<_> = changes.iter().map(|(name, told)| (*name, told.matrix())).collect();
        changed_rows(&self.matrix(), &changes)
    }
}
