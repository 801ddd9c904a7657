//! A [`SqlSession`] over a connection: `submit` binds, `advance` does the work in the client's own thread and never
//! waits.

use std::{os::fd::BorrowedFd, sync::Arc};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{self, Offers, Parameter, PreparedText, Progress, Rows, SqlSession, Statement},
    sql::{Dialect, SqlTable},
};

use super::{
    ATTACHED, Opened,
    dialect::{DIALECT, is_conflict},
    engine::Connection,
};

/// Most tries of a statement outside a transaction that conflicts with other clients.
const TRIES: usize = 100;

/// One connection with at most one request under way.
pub struct DuckSession {
    connection: Connection,
    /// The database stays open as long as the session.
    _opened: Arc<Opened>,
    /// What each prepared statement does to the transaction.
    prepared: Vec<Bound>,
    submitted: Option<Submitted>,
    in_transaction: bool,
}

/// A request under way.
enum Submitted {
    Statement(Statement),
    Text(String),
    /// Rows that were appended.
    Appended(Result<u64, Fault>),
}

/// What a statement does to the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Begins,
    Ends,
    Neither,
}

impl Bound {
    fn of(sql: &str) -> Self {
        let word = sql.split_whitespace().next().unwrap_or_default().trim_end_matches(';').to_ascii_uppercase();
        match word.as_str() {
            "BEGIN" | "START" => Self::Begins,
            "COMMIT" | "END" | "ROLLBACK" | "ABORT" => Self::Ends,
            _ => Self::Neither,
        }
    }
}

impl DuckSession {
    /// A session over `connection` to `opened`.
    pub fn new(connection: Connection, opened: Arc<Opened>) -> Self {
        Self { connection, _opened: opened, prepared: Vec::new(), submitted: None, in_transaction: false }
    }

    /// Notes the statement that has been carried out, or has failed. A failed COMMIT ends the transaction, too.
    fn passed(&mut self, bound: Bound, succeeded: bool) {
        match bound {
            Bound::Begins if succeeded => self.in_transaction = true,
            Bound::Ends => self.in_transaction = false,
            _ => {}
        }
    }

    /// Executes `statement`, and again if it is a transaction of its own that conflicts with another one. An error
    /// comes before any row.
    fn executed(&mut self, statement: Statement, rows: &mut dyn Rows) -> Result<u64, Fault> {
        let mut tries = 1;
        loop {
            match self.connection.execute(statement, rows) {
                Err(Fault::Server(words)) if !self.in_transaction && is_conflict(&words) && tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }
}

impl session::Connection for DuckSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.run(statement).map(drop)
    }
}

impl SqlSession for DuckSession {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        let statement = self.connection.prepare(sql)?;
        self.prepared.push(Bound::of(sql));
        Ok(statement)
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        let statement = self.prepare(sql)?;
        Ok(PreparedText { statement, columns: self.connection.column_names(statement) })
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.submitted = Some(Submitted::Text(sql.to_owned()));
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers::default()
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn run_all(&mut self, text: &str) -> Result<(), Fault> {
        self.connection.query(text, &mut session::Discard).map(drop)
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.connection.bind(statement, parameters)?;
        self.submitted = Some(Submitted::Statement(statement));
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let (bound, outcome) = match self.submitted.take() {
            Some(Submitted::Statement(statement)) => (self.prepared[statement.0], self.executed(statement, rows)),
            Some(Submitted::Text(sql)) => (Bound::of(&sql), self.connection.query(&sql, rows)),
            Some(Submitted::Appended(outcome)) => (Bound::Neither, outcome),
            None => return Err(Fault::Protocol("nothing was submitted".to_owned())),
        };
        self.passed(bound, outcome.is_ok());
        outcome.map(Progress::Done)
    }

    fn submit_copy(&mut self, table: &'static SqlTable, values: &[Parameter<'_>]) -> Result<bool, Fault> {
        let appended = self.connection.append(ATTACHED, table.name, table.columns.len(), values);
        self.submitted = Some(Submitted::Appended(appended));
        Ok(true)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        let outcome = self.connection.run(sql);
        self.passed(Bound::of(sql), outcome.is_ok());
        outcome
    }
}
