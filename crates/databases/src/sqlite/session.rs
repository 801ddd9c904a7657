//! A [`SqlSession`] over a connection: `submit` binds, `advance` does the work and never waits.

use std::os::fd::BorrowedFd;

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{self, Offers, Parameter, PreparedText, Progress, Rows, SqlSession, Statement},
    sql::Dialect,
};

use super::{connection::Connection, dialect::DIALECT};

/// One connection with at most one request under way.
pub struct SqliteSession {
    connection: Connection,
    /// A submitted request that is not answered yet.
    submitted: Option<Submitted>,
}

/// A request under way.
enum Submitted {
    Statement(Statement),
    Text(String, Vec<Value>),
}

/// A parameter that is kept until the request is carried out.
enum Value {
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    Integer(i64),
    Null,
}

impl Value {
    fn new(parameter: &Parameter<'_>) -> Self {
        match parameter {
            Parameter::Text(text) => Self::Text(text.to_vec()),
            Parameter::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Parameter::Integer(number) => Self::Integer(*number),
            Parameter::Null => Self::Null,
        }
    }

    fn parameter(&self) -> Parameter<'_> {
        match self {
            Self::Text(text) => Parameter::Text(text),
            Self::Bytes(bytes) => Parameter::Bytes(bytes),
            Self::Integer(number) => Parameter::Integer(*number),
            Self::Null => Parameter::Null,
        }
    }
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

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        let statement = self.connection.prepare(sql)?;
        Ok(PreparedText { statement, columns: self.connection.column_names(statement) })
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.submit_once(sql, &[])
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.submitted = Some(Submitted::Text(sql.to_owned(), parameters.iter().map(Value::new).collect()));
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers { extended: true, combined: true, pipelines: false }
    }

    fn in_transaction(&self) -> bool {
        self.connection.in_transaction()
    }

    fn run_all(&mut self, text: &str) -> Result<(), Fault> {
        self.connection.run_all(text)
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
        let statement = match self.submitted.take() {
            Some(Submitted::Statement(statement)) => statement,
            Some(Submitted::Text(sql, values)) => {
                let parameters: Vec<Parameter<'_>> = values.iter().map(Value::parameter).collect();
                return self.connection.run_each(&sql, &parameters, rows).map(Progress::Done);
            }
            None => return Err(Fault::Protocol("nothing was submitted".to_owned())),
        };
        let columns = self.connection.columns(statement);
        let mut count = 0;
        while self.connection.step(statement)? {
            count += 1;
            rows.row(None);
            for column in 0..columns {
                rows.field(column, self.connection.value(statement, column));
            }
            if let Some(words) = rows.enough() {
                return Err(Fault::Connection(words));
            }
        }
        // A statement without columns delivers no rows but may have changed some.
        Ok(Progress::Done(if columns == 0 { self.connection.changes() } else { count }))
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.connection.run(sql)
    }
}
