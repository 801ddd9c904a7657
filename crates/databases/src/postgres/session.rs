//! One connection to PostgreSQL as a [`SqlSession`]: prepared statements by name, one system call to send a request and
//! one to receive its answer.
//!
//! An execution is `Bind`, `Execute` and `Sync` in one write. Bytes and integers use PostgreSQL's binary formats
//! (documentation, "Formats and Format Codes"), everything else text. After an error of the server the session
//! continues at the next `ReadyForQuery`.

use std::{
    io::Write as _,
    mem::take,
    os::fd::{AsFd, BorrowedFd},
};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{
        Connection, Offers, Parameter, PreparedText, Progress, Rows, SqlSession, Statement, answered_within, wait_ready,
    },
    sql::{Column, ColumnType, Dialect, SqlTable},
    wire::{TlsFacts, Wire, kept::Kept},
};

use super::{
    dialect::DIALECT,
    protocol::{
        Body, Writer, each_column, next_frame, number_parameters, parameter_types, put_text, put_value, rows_of_tag,
        server_error, take_value,
    },
    startup::{Greeting, cancel, open, unexpected},
};
use crate::target::Target;

/// Type numbers, from PostgreSQL's `pg_type.dat`; they never change.
const BYTEA: i32 = 17;
const INT8: i32 = 20;
const INT2: i32 = 21;
const INT4: i32 = 23;
const TEXT: i32 = 25;

/// `Describe` of the unnamed portal.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// `Execute` of the unnamed portal without a limit.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
/// `Sync`.
const SYNC: &[u8] = b"S\0\0\0\x04";
/// `CopyFail` without a reason.
const COPY_FAIL: &[u8] = b"f\0\0\0\x05\0";
/// The status in `ReadyForQuery` outside a transaction.
const IDLE: u8 = b'I';
/// Timeout of a connection that only cancels a request, s.
const CANCEL_S: u16 = 1;

/// One connection.
pub struct PostgresSession {
    wire: Wire,
    greeting: Greeting,
    task: ServerTask,
    /// Where a request is cancelled.
    target: Target,
    /// Requests that are not answered yet.
    unanswered: u32,
    statements: Vec<Prepared>,
    /// Rows of the answer that is being read.
    rows: u64,
    /// Error of the answer that is being read.
    error: Option<Fault>,
    /// The transaction status in the last `ReadyForQuery`.
    transaction: u8,
    /// True while submitted requests wait for one `Sync`.
    pipeline: bool,
    /// True when the rows of a COPY have been sent already.
    copying: bool,
    /// True when rows are loaded by COPY.
    copies: bool,
}

/// What the execution of a statement needs.
struct Prepared {
    name: String,
    parameters: Vec<i32>,
    /// Number of columns and the format of each, as `Bind` requires them.
    result_formats: Vec<u8>,
}

impl PostgresSession {
    /// Connects to `target`, for questions. `local`: the server runs on this machine, so the process of this connection
    /// can be watched.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(target: &Target, local: bool) -> Result<Self, Fault> {
        let (wire, greeting) = open(target)?;
        let task = match greeting.process {
            Some(process) if local => ServerTask::Process(process),
            _ => ServerTask::Unknown,
        };
        Ok(Self {
            wire,
            greeting,
            task,
            target: Target { password: None, ..target.clone() },
            unanswered: 0,
            statements: Vec::new(),
            rows: 0,
            error: None,
            transaction: IDLE,
            pipeline: false,
            copying: false,
            copies: true,
        })
    }

    /// The same for the load.
    ///
    /// # Errors
    /// As [`PostgresSession::open`].
    pub fn open_measured(target: &Target, blocking: bool, local: bool) -> Result<Self, Fault> {
        let mut session = Self::open(target, local)?;
        session.wire.set_blocking(blocking)?;
        Ok(session)
    }

    /// Loads rows by `INSERT` from here on: the server refuses `COPY` into a table whose policies apply to the account
    /// (documentation, "COPY", "Notes").
    pub fn copies_nothing(&mut self) {
        self.copies = false;
    }

    /// What the server sent during the login.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// The TLS parameters that were negotiated, as the client sees them.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.wire.tls_facts()
    }

    /// The first value of the first row of `sql`.
    ///
    /// # Errors
    /// The server's error; [`Fault::Wrong`] if there is no value.
    pub fn value(&mut self, sql: &str) -> Result<String, Fault> {
        let first = self.run(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        first.ok_or_else(|| Fault::Wrong(format!("no value for `{sql}`")))
    }

    /// Reads the whole answer; `each` gets the messages that are not part of every answer.
    fn await_answer(&mut self, mut each: impl FnMut(u8, &[u8]) -> Result<(), Fault>) -> Result<(), Fault> {
        loop {
            while let Some(frame) = next_frame(self.wire.unread())? {
                let body = &self.wire.unread()[frame.body.clone()];
                match frame.kind {
                    b'E' => self.error = Some(read_error(body)?),
                    b'1' | b'C' | b'I' | b'N' | b'S' | b'A' | b'Z' => {}
                    kind => each(kind, body)?,
                }
                self.wire.consume(frame.body.end);
                if frame.kind == b'Z' {
                    return self.error.take().map_or(Ok(()), Err);
                }
            }
            if !self.wire.fill()? {
                wait_ready(self)?;
            }
        }
    }

    /// Prepares `sql` under a new name; `column` gets name and type of each column. Returns the name and the types of
    /// the parameters.
    fn prepare_as(&mut self, sql: &str, mut column: impl FnMut(&[u8], i32)) -> Result<(String, Vec<i32>), Fault> {
        let name = format!("s{}", self.statements.len());
        Writer { out: self.wire.output() }.prepare(&name, sql);
        self.send()?;
        let (mut parameters, mut kept) = (Vec::new(), Kept::default());
        self.await_answer(|kind, body| {
            match kind {
                b't' => parameters = parameter_types(body)?,
                b'T' => {
                    // Each of its columns takes at least nineteen bytes.
                    kept.add(1, body.len() * 4)?;
                    each_column(body, &mut column)?;
                }
                b'n' => {}
                _ => return Err(unexpected(kind)),
            }
            Ok(())
        })?;
        Ok((name, parameters))
    }

    /// Executes what was bound: now, or at the end of the pipeline.
    #[inline]
    fn execute(&mut self) -> Result<(), Fault> {
        let out = self.wire.output();
        out.extend_from_slice(EXECUTE);
        if self.pipeline {
            return Ok(());
        }
        out.extend_from_slice(SYNC);
        self.ask()
    }

    /// Sends a request whose answer [`SqlSession::advance`] reads.
    #[inline]
    fn ask(&mut self) -> Result<(), Fault> {
        self.unanswered += 1;
        self.wire.flush()
    }

    /// Sends a `COPY` and, directly after it, its `rows`: a server that refuses it skips them (documentation, "Message
    /// Flow", "COPY Operations").
    fn copy_in(&mut self, statement: &str, rows: &[u8]) -> Result<(), Fault> {
        let out = self.wire.output();
        Writer { out }.query(statement);
        Writer { out }.message(b'd', |out| out.extend_from_slice(rows));
        Writer { out }.message(b'c', |_| {});
        self.copying = true;
        self.ask()
    }

    /// Sends all of the written bytes.
    fn send(&mut self) -> Result<(), Fault> {
        self.wire.flush()?;
        while self.wire.wants_write() {
            wait_ready(self)?;
            self.wire.flush()?;
        }
        Ok(())
    }
}

/// An error of the server. One that ends the connection is returned at once: no `ReadyForQuery` follows it.
fn read_error(body: &[u8]) -> Result<Fault, Fault> {
    let error = server_error(body)?;
    if error.fatal { Err(error.fault()) } else { Ok(error.fault()) }
}

/// Hands the fields of one row over.
#[inline]
fn deliver(body: &[u8], rows: &mut dyn Rows) -> Result<(), Fault> {
    let mut body = Body::new(body);
    let count = body.be_i16()?;
    rows.row(None);
    for column in 0..count {
        rows.field(column as usize, take_value(&mut body)?);
    }
    Ok(())
}

/// 1 for PostgreSQL's binary format, 0 for text.
#[inline]
fn format_of(parameter: &Parameter<'_>, kind: i32) -> i16 {
    match parameter {
        Parameter::Bytes(_) => 1,
        Parameter::Integer(number) => match kind {
            INT8 => 1,
            INT4 => i16::from(i32::try_from(*number).is_ok()),
            INT2 => i16::from(i16::try_from(*number).is_ok()),
            _ => 0,
        },
        Parameter::Text(_) | Parameter::Null => 0,
    }
}

/// Appends `Bind` of the unnamed portal to the statement `name`, with parameters and their types.
#[inline]
fn put_bind<'p>(
    out: &mut Vec<u8>,
    name: &str,
    parameters: impl ExactSizeIterator<Item = (&'p Parameter<'p>, i32)> + Clone,
    result_formats: &[u8],
) {
    Writer { out }.message(b'B', |out| {
        out.push(0);
        put_text(out, name);
        let count = (parameters.len() as i16).to_be_bytes();
        out.extend_from_slice(&count);
        for (parameter, kind) in parameters.clone() {
            out.extend_from_slice(&format_of(parameter, kind).to_be_bytes());
        }
        out.extend_from_slice(&count);
        for (parameter, kind) in parameters {
            put_parameter(out, parameter, kind);
        }
        out.extend_from_slice(result_formats);
    });
}

/// Appends a parameter in the format that [`format_of`] names.
#[inline]
fn put_parameter(out: &mut Vec<u8>, parameter: &Parameter<'_>, kind: i32) {
    match parameter {
        Parameter::Bytes(bytes) | Parameter::Text(bytes) => put_value(out, bytes),
        Parameter::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
        Parameter::Integer(number) => match (format_of(parameter, kind), kind) {
            (1, INT4) => put_value(out, &(*number as i32).to_be_bytes()),
            (1, INT2) => put_value(out, &(*number as i16).to_be_bytes()),
            (1, _) => put_value(out, &number.to_be_bytes()),
            _ => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                // Writing to memory cannot fail.
                let _ = write!(out, "{number}");
                let length = (out.len() - start - 4) as i32;
                out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
        },
    }
}

/// Appends `values`, rows of `columns` each, in the binary format of `COPY` (documentation, "COPY", "Binary Format").
///
/// # Errors
/// A text for a numeric column: the server would read its bytes as a number.
fn copy_binary(out: &mut Vec<u8>, columns: &[Column], values: &[Parameter<'_>]) -> Result<(), Fault> {
    out.extend_from_slice(b"PGCOPY\n\xff\r\n\0");
    // No flags, no extension.
    out.extend_from_slice(&[0; 8]);
    for row in values.chunks(columns.len()) {
        out.extend_from_slice(&(columns.len() as i16).to_be_bytes());
        for (value, column) in row.iter().zip(columns) {
            let kind = match column.kind {
                ColumnType::Integer => INT4,
                ColumnType::Long => INT8,
                ColumnType::Text(_) => TEXT,
            };
            if matches!(value, Parameter::Text(_)) && kind != TEXT {
                return Err(Fault::Protocol(format!("a text for the numbers of column `{}`", column.name)));
            }
            put_parameter(out, value, kind);
        }
    }
    out.extend_from_slice(&(-1i16).to_be_bytes());
    Ok(())
}

impl Connection for PostgresSession {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wire.as_fd())
    }

    fn wants_write(&self) -> bool {
        self.wire.wants_write()
    }

    fn blocks(&self) -> bool {
        self.wire.blocks()
    }

    fn server_task(&self) -> ServerTask {
        self.task.clone()
    }

    fn serving_process(&self) -> Option<i32> {
        self.greeting.process
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        let Err(fault) = self.run(statement) else { return Ok(()) };
        let Some(name) = setting_refused(&fault) else { return Err(fault) };
        let account = self.value("SELECT quote_ident(current_user)")?;
        Err(Fault::Refused(format!(
            "{}; a superuser runs `GRANT SET ON PARAMETER {name} TO {account}` (PostgreSQL 15 and \
             newer), or `ALTER ROLE … SET {name} = …` for an account of this arm's own",
            fault.to_string().trim_start_matches("refused: ")
        )))
    }
}

/// The setting that an account may not set, from the server's message (its `guc.c`).
fn setting_refused(fault: &Fault) -> Option<&str> {
    let Fault::Refused(words) = fault else { return None };
    let name = words.split_once("permission denied to set parameter \"")?.1;
    name.strip_suffix('"')
}

impl SqlSession for PostgresSession {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        let mut result_formats = Vec::new();
        let (name, parameters) = self.prepare_as(&number_parameters(sql), |_, kind| {
            result_formats.extend_from_slice(&i16::from(kind == BYTEA).to_be_bytes());
        })?;
        let columns = (result_formats.len() / 2) as i16;
        result_formats.splice(..0, columns.to_be_bytes());
        self.statements.push(Prepared { name, parameters, result_formats });
        Ok(Statement(self.statements.len() - 1))
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        let mut columns = Vec::new();
        let (name, parameters) =
            self.prepare_as(sql, |name, _| columns.push(String::from_utf8_lossy(name).into_owned()))?;
        // No format: all columns come as text.
        self.statements.push(Prepared { name, parameters, result_formats: vec![0, 0] });
        Ok(PreparedText { statement: Statement(self.statements.len() - 1), columns })
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        Writer { out: self.wire.output() }.query(sql);
        self.ask()
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let out = self.wire.output();
        Writer { out }.parse("", sql);
        put_bind(out, "", parameters.iter().map(|parameter| (parameter, 0)), &[0, 0]);
        out.extend_from_slice(DESCRIBE);
        self.execute()
    }

    fn offers(&self) -> Offers {
        Offers { extended: true, combined: true, pipelines: true }
    }

    fn begin_pipeline(&mut self) {
        self.pipeline = true;
    }

    fn end_pipeline(&mut self) -> Result<(), Fault> {
        self.pipeline = false;
        self.wire.output().extend_from_slice(SYNC);
        self.ask()
    }

    fn in_transaction(&self) -> bool {
        self.transaction != IDLE
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    /// Messages are executed one by one in order (documentation, "Message Flow", "Pipelining").
    fn pipelines(&self) -> bool {
        true
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let prepared = self
            .statements
            .get(statement.0)
            .filter(|prepared| prepared.parameters.len() == parameters.len())
            .ok_or_else(|| Fault::Protocol("no such statement with so many parameters".to_owned()))?;
        let typed = parameters.iter().zip(prepared.parameters.iter().copied());
        put_bind(self.wire.output(), &prepared.name, typed, &prepared.result_formats);
        self.execute()
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        loop {
            let mut refused_copy = false;
            while let Some(frame) = next_frame(self.wire.unread())? {
                let body = &self.wire.unread()[frame.body.clone()];
                match frame.kind {
                    b'D' => deliver(body, rows)?,
                    b'T' => {
                        let mut column = 0;
                        each_column(body, |name, _| {
                            rows.column(column, name);
                            column += 1;
                        })?;
                    }
                    b'C' => self.rows = rows_of_tag(body)?,
                    b'E' => self.error = Some(read_error(body)?),
                    // A script has no rows for a COPY.
                    b'G' if !self.copying => refused_copy = true,
                    b'Z' => self.transaction = body.first().copied().unwrap_or(IDLE),
                    // ParseComplete, BindComplete, NoData, COPY data, CopyInResponse, EmptyQueryResponse, notices,
                    // changed settings, notifications.
                    b'1' | b'2' | b'n' | b'H' | b'd' | b'c' | b'G' | b'I' | b'N' | b'S' | b'A' => {}
                    kind => return Err(unexpected(kind)),
                }
                self.wire.consume(frame.body.end);
                if frame.kind == b'Z' {
                    let rows = take(&mut self.rows);
                    self.copying = false;
                    self.unanswered = self.unanswered.saturating_sub(1);
                    return self.error.take().map_or(Ok(Progress::Done(rows)), Err);
                }
            }
            if refused_copy {
                self.wire.output().extend_from_slice(COPY_FAIL);
                self.wire.flush()?;
            }
            if let Some(words) = rows.enough() {
                return Err(Fault::Connection(words));
            }
            if !self.wire.fill()? {
                return Ok(Progress::Pending);
            }
        }
    }

    /// By `COPY`.
    fn submit_copy(&mut self, table: &'static SqlTable, values: &[Parameter<'_>]) -> Result<bool, Fault> {
        if !self.copies {
            return Ok(false);
        }
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let mut rows = Vec::new();
        copy_binary(&mut rows, table.columns, values)?;
        self.copy_in(&format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.name, columns.join(", ")), &rows)?;
        Ok(true)
    }

    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        if !self.copies {
            return Ok(false);
        }
        self.copy_in(&format!("COPY {table} ({}) FROM STDIN", columns.join(", ")), lines)?;
        Ok(true)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        Writer { out: self.wire.output() }.query(sql);
        self.send()?;
        let (mut rows, mut kept) = (Vec::new(), Kept::default());
        self.await_answer(|kind, body| {
            match kind {
                b'D' => {
                    let row = texts(body)?;
                    kept.add_row(&row)?;
                    rows.push(row);
                }
                b'T' => {}
                _ => return Err(unexpected(kind)),
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// The fields of a row as text.
fn texts(body: &[u8]) -> Result<Vec<Option<String>>, Fault> {
    let mut body = Body::new(body);
    let count = body.be_i16()?;
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    (0..count).map(|_| take_value(&mut body).map(|value| value.map(text))).collect()
}

impl Drop for PostgresSession {
    /// Cancels unanswered requests, because the server would continue them, and sends Terminate, so that the server
    /// does not log a lost connection. Best effort: the connection may already be lost.
    fn drop(&mut self) {
        if let Some(key) = self.greeting.key.as_ref().filter(|_| self.unanswered > 0) {
            let _ = answered_within(CANCEL_S, || cancel(&self.target, key));
        }
        if !self.wire.wants_write() {
            Writer { out: self.wire.output() }.terminate();
            let _ = self.wire.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_plugin::sql::Sensitivity;

    use super::*;

    const COLUMNS: &[Column] = &[
        Column::new("number", ColumnType::Integer, Sensitivity::Figure),
        Column::new("long", ColumnType::Long, Sensitivity::Figure),
        Column::new("text", ColumnType::Text(9), Sensitivity::Remark),
    ];

    #[test]
    fn copied_rows_are_what_the_binary_format_wants() {
        let values = [
            Parameter::Integer(-7),
            Parameter::Integer(1 << 40),
            Parameter::Text(b"a\tb"),
            Parameter::Null,
            Parameter::Bytes(&[0, 0xAB]),
            Parameter::Text(b""),
        ];
        let mut out = Vec::new();
        copy_binary(&mut out, COLUMNS, &values).expect("rows");
        expect![[r#"PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x04\xff\xff\xff\xf9\x00\x00\x00\x08\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x03a\tb\x00\x03\xff\xff\xff\xff\x00\x00\x00\x02\x00\xab\x00\x00\x00\x00\xff\xff"#]].assert_eq(&out.escape_ascii().to_string());
    }

    #[test]
    fn a_text_is_not_copied_as_a_number() {
        let values = [Parameter::Text(b"1234"), Parameter::Integer(1), Parameter::Text(b"")];
        let fault = copy_binary(&mut Vec::new(), COLUMNS, &values).expect_err("refused");
        assert_eq!(fault.to_string(), "protocol: a text for the numbers of column `number`");
    }
}
