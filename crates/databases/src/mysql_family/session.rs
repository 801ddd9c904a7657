//! One connection to MariaDB or MySQL as a [`SqlSession`]: prepared statements of the binary protocol, one system call
//! to send a request and one to receive its answer.
//!
//! Values travel as bytes; numbers in rows are passed on as text. After an error of the server the session continues.

use std::{
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{
        Connection, Parameter, PreparedText, Progress, Rows, SqlSession, Statement, answered_within, timeout_s,
        wait_ready, wait_ready_for,
    },
    sql::Dialect,
    wire::{TlsFacts, Wire, kept::Kept},
};

use super::{
    dialect::DIALECT,
    protocol::{
        BYTES_PARAMETER, Body, INTEGER_PARAMETER, NULL_PARAMETER, TEXT_PARAMETER, affected, binary_row, column_name,
        column_type, ends_rows, is_unprepared, leaves_open, next_packet, put_packet, put_value, server_error,
        take_length, take_text_value,
    },
    startup::{self, Opened},
};
use crate::target::Target;

/// Timeout of a connection that only cancels a request, s.
const CANCEL_S: u16 = 1;
const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_PING: u8 = 0x0e;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
/// First byte of a packet with which the server requests a file (MariaDB documentation, "LOCAL INFILE packet").
const ASKS_FOR_FILE: u8 = 0xfb;
/// The file name for rows that are sent as a file.
const LINES: &str = "tithe-lines";
/// Most columns of a result: prepared statements count them in two bytes.
const MOST_COLUMNS: u64 = u16::MAX as u64;
/// Most bytes of such a file in one packet.
const FILE_PIECE: usize = 1 << 20;

/// One connection.
pub struct WireSession {
    wire: Wire,
    /// Statement that returns its thread in the server.
    thread: &'static str,
    method: String,
    offers_tls: bool,
    task: ServerTask,
    /// Where a request is cancelled, and the server's number of this connection.
    target: Target,
    number: u32,
    /// Requests that are not answered yet.
    unanswered: u32,
    statements: Vec<Prepared>,
    awaited: Awaited,
    /// Types of the columns of the answer that is being read.
    columns: Vec<u8>,
    /// Rows of the answer that is being read.
    rows: u64,
    /// True if that answers a text query, whose rows are text.
    text: bool,
    /// True when the last answer left a transaction open.
    in_transaction: bool,
    /// Rows that wait for the server to request them, which it does after the `LOAD DATA` that was sent for them.
    lines: Option<Vec<u8>>,
}

/// What the execution of a statement needs.
enum Prepared {
    /// Its number in the server, and of how many parameters.
    Number(u32, usize),
    /// Its text, which is sent each time: MySQL prepares no `START TRANSACTION`.
    Text(String),
}

/// Which packet of an answer comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    First,
    /// So many column definitions, then rows.
    Columns(u64),
    Rows,
}

/// The next part of an answer.
enum Event {
    /// Nothing more yet.
    Pending,
    /// A column of the answer to a text: its number, and its definition as a row has its body.
    Column(usize, std::ops::Range<usize>),
    /// A row; its body in the unread bytes, which the caller consumes up to its end.
    Row(std::ops::Range<usize>),
    /// The end: rows delivered or affected.
    Done(u64),
}

impl WireSession {
    /// A session on an open connection to `target`; the statement `thread` returns which server thread serves it.
    pub fn new(opened: Opened, target: &Target, thread: &'static str) -> Self {
        let Opened { wire, number, method, offers_tls } = opened;
        Self {
            wire,
            thread,
            method,
            offers_tls,
            task: ServerTask::Unknown,
            target: target.clone(),
            number,
            unanswered: 0,
            statements: Vec::new(),
            awaited: Awaited::First,
            columns: Vec::new(),
            rows: 0,
            text: false,
            in_transaction: false,
            lines: None,
        }
    }

    /// Lets reads and writes wait in the kernel, or not.
    ///
    /// # Errors
    /// When the machine refuses.
    pub fn set_blocking(&mut self, blocking: bool) -> Result<(), Fault> {
        self.wire.set_blocking(blocking)
    }

    /// Finds out which thread of the server `process`, which runs on this machine, serves this connection. If the
    /// server does not report it, no thread is watched.
    pub fn find_thread(&mut self, process: i32) {
        let asked = self.value(self.thread);
        let is_there = |thread: &i32| Path::new(&format!("/proc/{process}/task/{thread}")).exists();
        if let Some(thread) = asked.ok().and_then(|thread| thread.parse().ok()).filter(is_there) {
            self.task = ServerTask::Thread { process, thread };
        }
    }

    /// True if one thread of the server serves this connection to its end. In a thread pool every statement may be
    /// served by another thread.
    pub fn has_thread(&mut self) -> bool {
        self.value("SELECT @@thread_handling").is_ok_and(|how| how == "one-thread-per-connection")
    }

    /// How the client authenticated: `none`, or the name of the proof.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// True when the server's greeting offers TLS.
    pub fn offers_tls(&self) -> bool {
        self.offers_tls
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

    /// Its account, as statements name it: `'ann'@'%'`.
    ///
    /// # Errors
    /// The server's error.
    pub fn account(&mut self) -> Result<String, Fault> {
        let account = self.value("SELECT CURRENT_USER()")?;
        let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
        Ok(format!("'{user}'@'{host}'"))
    }

    /// The value of one server variable or status, read with `SHOW` and `what` (`GLOBAL VARIABLES`, `SESSION STATUS`);
    /// `None` if the server has none of this name.
    ///
    /// # Errors
    /// The server's error.
    pub fn shown(&mut self, what: &str, name: &str) -> Result<Option<String>, Fault> {
        let rows = self.run(&format!("SHOW {what} LIKE '{name}'"))?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten())
    }

    /// The value of a global setting; empty if the server has none of this name.
    ///
    /// # Errors
    /// The server's error.
    pub fn setting(&mut self, name: &str) -> Result<String, Fault> {
        self.shown("GLOBAL VARIABLES", name).map(Option::unwrap_or_default)
    }

    /// Sends one request, a byte and the `rest`, and waits until all of it is sent.
    fn send(&mut self, request: u8, rest: &[u8]) -> Result<(), Fault> {
        put_packet(self.wire.output(), 0, |out| {
            out.push(request);
            out.extend_from_slice(rest);
        })?;
        self.wire.flush()?;
        while self.wire.wants_write() {
            wait_ready(self)?;
            self.wire.flush()?;
        }
        Ok(())
    }

    /// As [`SqlSession::run`], for statements that may take the server up to `timeout_s` seconds. The session must be
    /// non-blocking.
    ///
    /// # Errors
    /// As [`SqlSession::run`].
    pub fn run_for(&mut self, sql: &str, timeout_s: u16) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.text = false;
        self.send(COM_QUERY, sql.as_bytes())?;
        let (mut rows, mut kept) = (Vec::new(), Kept::default());
        loop {
            match self.event()? {
                Event::Pending => wait_ready_for(self, timeout_s)?,
                Event::Done(_) => return Ok(rows),
                Event::Column(_, body) => self.wire.consume(body.end),
                Event::Row(body) => {
                    let row = texts(&self.wire.unread()[body.clone()], self.columns.len())?;
                    kept.add_row(&row)?;
                    rows.push(row);
                    self.wire.consume(body.end);
                }
            }
        }
    }

    /// Sends a request whose answer [`SqlSession::advance`] reads.
    #[inline]
    fn ask(&mut self) -> Result<(), Fault> {
        self.unanswered += 1;
        self.wire.flush()
    }

    /// Reads what has arrived of an answer, up to its next row.
    #[inline]
    fn event(&mut self) -> Result<Event, Fault> {
        loop {
            let Some(packet) = next_packet(self.wire.unread())? else {
                if self.wire.fill()? {
                    continue;
                }
                return Ok(Event::Pending);
            };
            let body = &self.wire.unread()[packet.body.clone()];
            let mut done = None;
            match (self.awaited, body.first()) {
                (_, Some(0xff)) => done = Some(Err(server_error(body))),
                (Awaited::First, Some(0)) => {
                    self.in_transaction = leaves_open(body)?;
                    done = Some(affected(body));
                }
                (Awaited::First, Some(&ASKS_FOR_FILE)) => {
                    let (named, number) = (&body[1..] == LINES.as_bytes(), packet.number);
                    let lines = self.lines.take().filter(|_| named).ok_or_else(|| {
                        Fault::Protocol("the server asks for a file that it was not offered".to_owned())
                    })?;
                    self.wire.consume(packet.body.end);
                    put_file(self.wire.output(), number, &lines)?;
                    self.wire.flush()?;
                    continue;
                }
                (Awaited::First, _) => {
                    self.columns.clear();
                    let columns = take_length(&mut Body::new(body))?;
                    if columns > MOST_COLUMNS {
                        return Err(Fault::Protocol(format!("the server announces {columns} columns")));
                    }
                    self.awaited = Awaited::Columns(columns);
                }
                (Awaited::Columns(left), _) => {
                    self.columns.push(column_type(body)?);
                    self.awaited = if left <= 1 { Awaited::Rows } else { Awaited::Columns(left - 1) };
                    if self.text {
                        return Ok(Event::Column(self.columns.len() - 1, packet.body));
                    }
                }
                (Awaited::Rows, _) if ends_rows(body) => {
                    self.in_transaction = leaves_open(body)?;
                    done = Some(Ok(self.rows));
                }
                (Awaited::Rows, _) => {
                    self.rows += 1;
                    return Ok(Event::Row(packet.body));
                }
            }
            self.wire.consume(packet.body.end);
            if let Some(done) = done {
                (self.awaited, self.rows, self.lines) = (Awaited::First, 0, None);
                self.unanswered = self.unanswered.saturating_sub(1);
                return done.map(Event::Done);
            }
        }
    }

    /// The next packet of an answer outside the load.
    fn packet(&mut self) -> Result<Vec<u8>, Fault> {
        loop {
            if let Some(packet) = next_packet(self.wire.unread())? {
                let body = self.wire.unread()[packet.body.clone()].to_vec();
                self.wire.consume(packet.body.end);
                return Ok(body);
            }
            if !self.wire.fill()? {
                wait_ready(self)?;
            }
        }
    }
}

/// The fields of a row of the text protocol.
fn texts(body: &[u8], columns: usize) -> Result<Vec<Option<String>>, Fault> {
    let mut texts = Vec::new();
    text_row(body, columns, |_, value| texts.push(value.map(|value| String::from_utf8_lossy(value).into_owned())))?;
    Ok(texts)
}

/// Hands the fields of a row of the text protocol with at most so many `columns` over.
fn text_row(body: &[u8], columns: usize, mut each: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Fault> {
    let mut body = Body::new(body);
    let mut column = 0;
    while !body.rest().is_empty() {
        if column == columns {
            return Err(Fault::Protocol("a row has more values than columns".to_owned()));
        }
        each(column, take_text_value(&mut body)?);
        column += 1;
    }
    Ok(())
}

impl Connection for WireSession {
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

    fn wire_bytes(&self) -> (u64, u64) {
        self.wire.bytes()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        let Err(fault) = self.run(statement) else { return Ok(()) };
        let words = fault.to_string();
        let Some(right) = right_missing(&words) else { return Err(fault) };
        let account = self.account()?;
        let words = words.trim_start_matches("refused: ");
        Err(Fault::Refused(format!("{words}; an administrator runs `GRANT {right} ON *.* TO {account}`")))
    }
}

/// The privilege that an account lacks, from the server's message; if one of several is enough, the last, which grants
/// least.
fn right_missing(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once("you need (at least one of) the ")?;
    let (rights, _) = rest.split_once(" privilege(s)")?;
    rights.rsplit(", ").next()?.rsplit(" or ").next()
}

impl SqlSession for WireSession {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        Ok(self.prepare_text(sql)?.statement)
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        // For a statement with a parameter in ORDER BY, MySQL 8.0 defines fewer parameters than it announces. Nothing
        // marks the last one, except the answer to a further request, which is not a definition.
        let may_lack = sql.to_ascii_uppercase().contains("ORDER BY");
        self.send(COM_STMT_PREPARE, sql.as_bytes())?;
        if may_lack {
            self.send(COM_PING, &[])?;
        }
        let answer = self.packet()?;
        if answer.first() != Some(&0) {
            if may_lack {
                self.packet()?;
            }
            if !is_unprepared(&answer) {
                return Err(server_error(&answer));
            }
            self.statements.push(Prepared::Text(sql.to_owned()));
            return Ok(PreparedText { statement: Statement(self.statements.len() - 1), columns: Vec::new() });
        }
        let mut body = Body::new(&answer[1..]);
        let number = body.le::<4>()? as u32;
        let (columns, parameters) = (body.le::<2>()?, body.le::<2>()?);
        let (mut definitions, mut kept) = (Vec::new(), Kept::default());
        while may_lack || (definitions.len() as u64) < parameters + columns {
            match self.packet()? {
                answered if may_lack && answered.first() == Some(&0) => break,
                definition => {
                    kept.add(1, definition.len())?;
                    definitions.push(definition);
                }
            }
        }
        // The definitions of the columns come last.
        let defined = definitions.len().checked_sub(columns as usize);
        let defined = defined.ok_or_else(|| Fault::Protocol("a statement lacks definitions of columns".to_owned()))?;
        let name = |definition: &Vec<u8>| Ok(String::from_utf8_lossy(column_name(definition)?).into_owned());
        let names = definitions[defined..].iter().map(name).collect::<Result<Vec<_>, Fault>>()?;
        self.statements.push(Prepared::Number(number, parameters as usize));
        Ok(PreparedText { statement: Statement(self.statements.len() - 1), columns: names })
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.text = true;
        put_packet(self.wire.output(), 0, |out| {
            out.push(COM_QUERY);
            out.extend_from_slice(sql.as_bytes());
        })?;
        self.ask()
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    /// Each thread of the server reads its next request after it has answered the previous one.
    fn pipelines(&self) -> bool {
        true
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let out = self.wire.output();
        let prepared = self.statements.get(statement.0);
        self.text = matches!(prepared, Some(Prepared::Text(_)));
        match prepared {
            Some(&Prepared::Number(number, count)) if count == parameters.len() => {
                put_packet(out, 0, |out| put_execution(out, number, parameters))?;
            }
            Some(Prepared::Text(sql)) if parameters.is_empty() => put_packet(out, 0, |out| {
                out.push(COM_QUERY);
                out.extend_from_slice(sql.as_bytes());
            })?,
            _ => return Err(Fault::Protocol("no such statement with so many parameters".to_owned())),
        }
        self.ask()
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        if self.wire.wants_write() {
            self.wire.flush()?;
        }
        loop {
            match self.event()? {
                Event::Pending => return Ok(Progress::Pending),
                Event::Done(count) => return Ok(Progress::Done(count)),
                Event::Column(column, body) => {
                    rows.column(column, column_name(&self.wire.unread()[body.clone()])?);
                    self.wire.consume(body.end);
                }
                Event::Row(body) => {
                    rows.row(None);
                    let row = &self.wire.unread()[body.clone()];
                    if self.text {
                        text_row(row, self.columns.len(), |column, value| rows.field(column, value))?;
                    } else {
                        binary_row(row, &self.columns, |column, value| rows.field(column, value))?;
                    }
                    self.wire.consume(body.end);
                    if let Some(words) = rows.enough() {
                        return Err(Fault::Connection(words));
                    }
                }
            }
        }
    }

    /// Uses `LOAD DATA LOCAL` without a real file: the server requests [`LINES`], and gets the lines.
    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        self.lines = Some(lines.to_vec());
        self.submit_text(&format!("LOAD DATA LOCAL INFILE '{LINES}' INTO TABLE {table} ({})", columns.join(", ")))?;
        Ok(true)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.run_for(sql, timeout_s())
    }
}

/// Appends the answer to a request for a file: its content in packets, and an empty packet. `number` is the request's.
fn put_file(out: &mut Vec<u8>, number: u8, content: &[u8]) -> Result<(), Fault> {
    let mut next = number.wrapping_add(1);
    for piece in content.chunks(FILE_PIECE).chain([&[][..]]) {
        put_packet(out, next, |out| out.extend_from_slice(piece))?;
        next = next.wrapping_add(1);
    }
    Ok(())
}

/// The body of `COM_STMT_EXECUTE` without a cursor: number, NULLs, types, values.
#[inline]
fn put_execution(out: &mut Vec<u8>, number: u32, parameters: &[Parameter<'_>]) {
    out.push(COM_STMT_EXECUTE);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if parameters.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + parameters.len().div_ceil(8), 0);
    // The parameter types follow.
    out.push(1);
    for (position, parameter) in parameters.iter().enumerate() {
        let kind = match parameter {
            Parameter::Text(_) => TEXT_PARAMETER,
            Parameter::Bytes(_) => BYTES_PARAMETER,
            Parameter::Integer(_) => INTEGER_PARAMETER,
            Parameter::Null => {
                out[nulls + position / 8] |= 1 << (position % 8);
                NULL_PARAMETER
            }
        };
        out.extend_from_slice(&kind);
    }
    for parameter in parameters {
        match parameter {
            Parameter::Text(value) | Parameter::Bytes(value) => put_value(out, value),
            Parameter::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
            Parameter::Null => {}
        }
    }
}

impl Drop for WireSession {
    /// Cancels unanswered requests, because the server would continue them, and sends COM_QUIT, so that it does not log
    /// a lost connection. Best effort: the connection may already be lost.
    fn drop(&mut self) {
        if self.unanswered > 0 {
            let kill = format!("KILL QUERY {}", self.number);
            let _ = answered_within(CANCEL_S, || {
                let opened = startup::open(&self.target, |_| Ok(()))?;
                Self::new(opened, &self.target, self.thread).run(&kill)
            });
        }
        if !self.wire.wants_write() {
            let _ = put_packet(self.wire.output(), 0, |out| out.push(COM_QUIT));
            let _ = self.wire.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{Shutdown, TcpListener},
        time::Duration,
    };

    use expect_test::{Expect, expect};
    use tithe_plugin::session::Discard;

    use super::*;

    /// The session's result with a server that answers every request with `said`, and what that server then received.
    fn check(said: &[u8], ask: impl FnOnce(&mut WireSession), expect: Expect) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (outcome, got) = std::thread::scope(|scope| {
            let server = scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                let _ = stream.read(&mut [0; 4096]);
                stream.write_all(said).expect("sent");
                let mut got = Vec::new();
                let mut bytes = [0; 4096];
                stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
                while !got.ends_with(&[0, 0, 0, 3]) {
                    match stream.read(&mut bytes) {
                        Ok(length) if length > 0 => got.extend_from_slice(&bytes[..length]),
                        _ => break,
                    }
                }
                let _ = stream.write_all(&[7, 0, 0, 4, 0, 2, 0, 2, 0, 0, 0]);
                let _ = stream.shutdown(Shutdown::Both);
                got
            });
            let wire = Wire::connect("127.0.0.1", port).expect("a connection");
            let opened = Opened { wire, number: 1, method: "none".to_owned(), offers_tls: false };
            let mut session = WireSession::new(opened, &Target::default(), "SELECT 1");
            ask(&mut session);
            let outcome = session.finish(&mut Discard);
            drop(session);
            (outcome, server.join().expect("the server ends"))
        });
        let outcome = outcome.map_or_else(|fault| fault.to_string(), |rows| format!("{rows} rows"));
        expect.assert_eq(&format!("{outcome}: {}", got.escape_ascii()));
    }

    /// A server that requests the file `name`.
    fn asking(name: &str) -> Vec<u8> {
        [&[name.len() as u8 + 1, 0, 0, 1, ASKS_FOR_FILE], name.as_bytes()].concat()
    }

    #[test]
    fn a_server_gets_rows_that_it_was_offered_and_never_a_file() {
        let load = |session: &mut WireSession| {
            assert_eq!(session.submit_lines("t", &["a", "b"], b"1\tx\n2\ty\n"), Ok(true));
        };
        check(&asking(LINES), load, expect![[r#"2 rows: \x08\x00\x00\x021\tx\n2\ty\n\x00\x00\x00\x03"#]]);
        check(
            &asking("/etc/passwd"),
            load,
            expect![[r#"protocol: the server asks for a file that it was not offered: \x01\x00\x00\x00\x01"#]],
        );
        check(
            &asking(LINES),
            |session| session.submit_text("SELECT 1").expect("sent"),
            expect![[r#"protocol: the server asks for a file that it was not offered: \x01\x00\x00\x00\x01"#]],
        );
    }

    #[test]
    fn a_long_file_goes_in_several_packets() {
        let mut out = Vec::new();
        put_file(&mut out, 255, &vec![b'x'; FILE_PIECE + 1]).expect("written");
        assert_eq!(out.len(), FILE_PIECE + 1 + 3 * 4);
        assert_eq!(&out[..4], [0, 0, 16, 0]);
        assert_eq!(&out[FILE_PIECE + 4..], [1, 0, 0, 1, b'x', 0, 0, 0, 2]);
    }

    #[test]
    fn of_the_rights_that_would_do_the_least_is_named() {
        let words = "1227 (42000): Access denied; you need (at least one of) the SUPER, SYSTEM_VARIABLES_ADMIN or \
                     SESSION_VARIABLES_ADMIN privilege(s) for this operation";
        assert_eq!(right_missing(words), Some("SESSION_VARIABLES_ADMIN"));
        assert_eq!(
            right_missing(&words.replace("SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN", "SUPER")),
            Some("SUPER")
        );
        assert_eq!(right_missing("1045 (28000): Access denied for user"), None);
    }
}
