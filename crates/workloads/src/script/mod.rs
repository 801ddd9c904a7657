//! Statements of the user's own, in pgbench's language, run by Tithe's own clients on any SQL session.
//!
//! The language is that of PostgreSQL 15's manual, and computes the same values from a seed as pgbench. Not supported:
//! `\shell` and `\setshell`, and the output of `debug`.

mod answer;
pub mod builtin;
mod client;
pub mod command;
pub mod config;
pub mod evaluation;
pub mod expression;
pub mod function;
pub mod guard;
mod observe;
mod parameters;
pub mod parse;
mod passes;
pub mod program;
pub mod random;
mod rollback;
pub mod statement;
pub mod value;
pub mod variables;

use std::sync::{Arc, atomic::AtomicU64};

use tithe_machine::fault::Fault;
use tithe_model::{catalogue::PropertyProblem, experiment};
use tithe_plugin::{
    own_tables::Asked,
    restore::Restore,
    session::{Protocol, Session, Table},
    sql::SqlTable,
    workload::{Answered, ArmState, Client, Clients, FileStatement, Load, NoState, Workload},
};

pub use config::entry;

use crate::dump::Dump;

use self::{client::ScriptClient, config::Config};

/// A workload of scripts.
pub struct Statements {
    config: Arc<Config>,
    seed: u64,
    /// Data of the user's own, in place of the tables of built-in scripts.
    data: Option<Dump>,
}

/// Makes the workload that an experiment describes.
///
/// # Errors
/// Every problem with the properties.
pub fn make(
    described: &experiment::Workload,
    _data: &experiment::Data,
    seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let mut problems = Vec::new();
    let data = Dump::of(described, &mut problems);
    let mut config = Config::resolve(&described.properties)?;
    if data.is_some() {
        config.built_in_scale = None;
    }
    if problems.is_empty() { Ok(Box::new(Statements { config: Arc::new(config), seed, data })) } else { Err(problems) }
}

impl Workload for Statements {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        self.config.program.operations.iter().map(String::as_str).collect()
    }

    fn texts(&self) -> Vec<&str> {
        self.config.program.texts.iter().map(String::as_str).collect()
    }

    fn speaks_sql(&self) -> bool {
        true
    }

    fn writes(&self) -> bool {
        self.config.program.writes()
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn tables(&self) -> &'static [SqlTable] {
        if self.config.built_in_scale.is_some() { &builtin::TABLES } else { &[] }
    }

    fn restore(&self) -> Option<&dyn Restore> {
        self.data.as_ref().map(|data| data as &dyn Restore)
    }

    fn own_tables(&self, placeholder: fn(usize) -> String) -> Option<Asked> {
        let brings = self.config.built_in_scale.is_some() || self.data.is_some();
        (!brings).then(|| self.config.program.own_tables(placeholder))
    }

    fn statements(&self) -> Vec<FileStatement> {
        self.config.program.located()
    }

    fn rows(&self, _records: u64) -> u64 {
        self.config.built_in_scale.map_or(0, builtin::rows)
    }

    fn describe(&self) -> Vec<(String, String)> {
        let program = &self.config.program;
        let scripts = program.scripts.iter().map(|script| format!("{}@{}", script.name, script.weight));
        let protocol = match program.protocol {
            Protocol::Simple => "simple: texts with their values",
            Protocol::Extended => "extended: texts and parameters",
            Protocol::Prepared => "prepared: parameters of prepared statements",
        };
        let tries = match program.transactions.max_tries {
            0 => "without limit".to_owned(),
            tries => tries.to_string(),
        };
        let mut lines = vec![
            ("scripts".to_owned(), scripts.collect::<Vec<_>>().join(", ")),
            ("protocol".to_owned(), protocol.to_owned()),
            ("tries of a transaction".to_owned(), tries),
        ];
        if !program.transactions.in_place.is_empty() {
            let end = if program.transactions.commit { "committed" } else { "rolled back" };
            lines.push(("changed in place".to_owned(), program.transactions.in_place.join(", ")));
            lines.push(("transactions".to_owned(), end.to_owned()));
        }
        if let Some(scale) = self.config.built_in_scale {
            lines.push(("scale".to_owned(), scale.to_string()));
        }
        lines.extend(self.data.as_ref().map(|data| ("prepared by".to_owned(), data.in_words())));
        lines
    }
}

impl Clients for Statements {
    fn load(&self, session: &mut Session, partition: u64, of: u64, done: &AtomicU64) -> Result<(), Fault> {
        match self.config.built_in_scale {
            Some(scale) => builtin::load(scale, session.sql()?, (partition, of), done),
            None => Ok(()),
        }
    }

    fn answers(&self, session: &mut Session, seed: u64) -> Result<Option<Vec<Vec<Answered>>>, Fault> {
        if passes::refuses(&self.config.program).is_some() {
            return Ok(None);
        }
        passes::answers(ScriptClient::new(Arc::clone(&self.config), self.seed), session, seed).map(Some)
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(NoState)
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(ScriptClient::new(Arc::clone(&self.config), self.seed))
    }
}

#[cfg(test)]
mod tests;
