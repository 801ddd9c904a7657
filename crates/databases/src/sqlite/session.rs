//! A [`SqlSession`] over a connection: `submit` binds, `advance` does the work and is never pending.

use std::os::fd::BorrowedFd;

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{self, Parameter, Progress, Rows, SqlSession, Statement},
    sql::Dialect,
};

use super::{connection::Connection, dialect::DIALECT};

/// One connection with at most one request under way.
pub struct SqliteSession {
    connection: Connection,
    /// The statement that was submitted and not yet answered.
    submitted: Option<Statement>,
}

impl SqliteSession {
    /// A session over `connection`.
    pub fn new(connection: Connection) -> Self {
        Self { connection, submitted: None }
    }
}

impl session::Connection for SqliteSession {
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
        self.connection.run(statement).map(drop)
    }
}

impl SqlSession for SqliteSession {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        self.connection.prepare(sql)
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.connection.bind(statement, parameters)?;
        self.submitted = Some(statement);
        Ok(())
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let Some(statement) = self.submitted.take() else {
            return Err(Fault::Protocol("nothing was submitted".to_owned()));
        };
        let columns = self.connection.columns(statement);
        let mut count = 0;
        while self.connection.step(statement)? {
            count += 1;
            rows.row(None);
            for column in 0..columns {
                rows.field(column, self.connection.value(statement, column));
            }
        }
        // A statement without columns delivers no rows but may have changed some.
        Ok(Progress::Done(if columns == 0 { self.connection.changes() } else { count }))
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.connection.run(sql)
    }
}
