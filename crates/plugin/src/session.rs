//! One connection, as a key-value store or as a SQL database: the load loop drives it.
//!
//! There are two narrow interfaces and not one wide one: a key-value store needs no transactions, and TPC-C needs no
//! maps. Both are split into *submit* and *advance*, so that one thread can drive several connections from one
//! `epoll_wait` (a third less processor time per operation than a thread each, if client and server share a core) and a
//! single connection can simply block. An embedded database does all its work in `submit`.
//!
//! Nothing here allocates per operation: keys and values are borrowed, and rows are handed over field by
//! field as they are parsed.

use std::{cell::Cell, io, os::fd::BorrowedFd};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    time::Timespec,
};
use tithe_machine::{fault::Fault, proc::ServerTask};

use crate::sql::{self, Described, Dialect, SqlTable};

/// A connection in one of its two shapes.
pub enum Session {
    /// Records by key.
    KeyValue(Box<dyn KeyValueSession>),
    /// Statements.
    Sql(Box<dyn SqlSession>),
}

impl Session {
    /// What both shapes share.
    pub fn connection(&mut self) -> &mut dyn Connection {
        match self {
            Self::KeyValue(session) => session.as_mut(),
            Self::Sql(session) => session.as_mut(),
        }
    }

    /// The SQL session.
    ///
    /// # Errors
    /// [`Fault::Protocol`] if it is of the other kind.
    pub fn sql(&mut self) -> Result<&mut (dyn SqlSession + 'static), Fault> {
        match self {
            Self::Sql(session) => Ok(session.as_mut()),
            Self::KeyValue(_) => {
                Err(Fault::Protocol("statements were asked of a session of records by key".to_owned()))
            }
        }
    }
}

/// What the load loop needs of every connection, with any protocol.
pub trait Connection: Send {
    /// The descriptor that becomes readable (or writable) when [`KeyValueSession::advance`] can continue; `None` for an
    /// embedded database, which is never pending.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// True when unsent bytes wait for the descriptor to become writable.
    fn wants_write(&self) -> bool {
        false
    }

    /// True if reading an answer waits for it in the kernel, so that nobody has to wait for the descriptor first.
    fn blocks(&self) -> bool {
        false
    }

    /// The task that serves this connection, for processor accounting.
    fn server_task(&self) -> ServerTask;

    /// The process that serves this connection by the server's own number, which is valid only on the server's machine;
    /// `None` if the server does not report it.
    fn serving_process(&self) -> Option<i32> {
        None
    }

    /// Bytes sent and received on the wire so far; 0 for an embedded database.
    fn wire_bytes(&self) -> (u64, u64);

    /// Reads the whole table once, so that caches hold all data that fit, independently of the first requests. Called
    /// between opening and measuring if caches start empty.
    ///
    /// # Errors
    /// The server's error.
    fn warm(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Runs one statement in the product's own language, outside the measured path; its rows are discarded.
    ///
    /// # Errors
    /// The server's error, or that this product has no such statements.
    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        Err(Fault::Protocol(format!("this connection runs no statements, and was given `{statement}`")))
    }
}

/// A session around another one, such as the one that encrypts columns: its connection is that of the inner session.
pub trait SessionWrapper: Send {
    /// The inner session.
    fn inner(&self) -> &dyn Connection;

    /// The inner session.
    fn inner_mut(&mut self) -> &mut dyn Connection;
}

impl<S: SessionWrapper> Connection for S {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner().descriptor()
    }

    fn wants_write(&self) -> bool {
        self.inner().wants_write()
    }

    fn blocks(&self) -> bool {
        self.inner().blocks()
    }

    fn server_task(&self) -> ServerTask {
        self.inner().server_task()
    }

    fn serving_process(&self) -> Option<i32> {
        self.inner().serving_process()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.inner().wire_bytes()
    }

    fn warm(&mut self) -> Result<(), Fault> {
        self.inner_mut().warm()
    }

    fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
        self.inner_mut().run_statement(statement)
    }
}

/// The state of a submitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Wait for the descriptor, then call `advance` again. Returned only if the kernel had nothing more to read and
    /// accepted nothing more to send, or if a request has just been sent: lanes wait for a *change* of the descriptor.
    Pending,
    /// The answer is complete. For writes: rows affected; for reads: rows delivered.
    Done(u64),
}

/// Takes the rows of an answer as they are parsed.
pub trait Rows {
    /// A row begins; `key` is its key if the request could match several (scan), else `None`.
    fn row(&mut self, key: Option<&[u8]>);
    /// The value of `field` (its number in the table) of the current row; `None` is SQL's NULL.
    fn field(&mut self, field: usize, value: Option<&[u8]>);
    /// Rows with such a column follow; column 0 begins a further result. Called for statements that are sent as text;
    /// prepared ones have reported their columns before.
    fn column(&mut self, _column: usize, _name: &[u8]) {}
    /// Why the rest of the answer is not read and its connection is closed. Called before more of it is read.
    fn enough(&self) -> Option<String> {
        None
    }
}

/// Discards rows.
pub struct Discard;

impl Rows for Discard {
    fn row(&mut self, _key: Option<&[u8]>) {}
    fn field(&mut self, _field: usize, _value: Option<&[u8]>) {}
}

/// The fields of a record that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fields {
    /// All of them.
    All,
    /// One, by number.
    One(usize),
}

/// One request to a key-value store. Borrowed: made by the workload before the clock starts.
#[derive(Debug, Clone, Copy)]
pub enum Request<'a> {
    /// Fetch `fields` of the record `key`.
    Read {
        /// The record's key.
        key: &'a [u8],
        /// What to fetch.
        fields: Fields,
    },
    /// Overwrite fields of the record `key`.
    Update {
        /// The record's key.
        key: &'a [u8],
        /// Field number and new value; either one field or all of them, in ascending order.
        values: &'a [(usize, &'a [u8])],
    },
    /// Add the record `key`.
    Insert {
        /// The record's key.
        key: &'a [u8],
        /// All fields, in ascending order.
        values: &'a [(usize, &'a [u8])],
    },
    /// Fetch up to `count` records in key order from `start` on.
    Scan {
        /// First key, inclusive.
        start: &'a [u8],
        /// Largest number of records.
        count: u32,
        /// What to fetch.
        fields: Fields,
    },
    /// Remove the record `key`.
    Delete {
        /// The record's key.
        key: &'a [u8],
    },
}

/// A key, and fields by number with new values.
pub type Update<'a> = (&'a [u8], &'a [(usize, &'a [u8])]);

/// A store of records by key, each with numbered fields.
pub trait KeyValueSession: Connection {
    /// Sends one request. [`KeyValueSession::advance`] reads the answer; no second request before it is complete.
    ///
    /// # Errors
    /// A broken connection.
    fn submit(&mut self, request: &Request<'_>) -> Result<(), Fault>;

    /// Reads the available part of the answer.
    ///
    /// # Errors
    /// The server's error (the session can continue after [`Fault::Server`]), or a broken connection.
    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault>;

    /// False if the rows of a scan do not come in key order, for example if rows are stored by hash. Then a scan begins
    /// with the requested key and continues with any others.
    fn scans_in_key_order(&self) -> bool {
        true
    }

    /// Sends `updates`, each a key with fields by number and their values, before any is answered. They have one common
    /// answer: how many of the records existed. False if the product takes one request at a time; then nothing was
    /// sent.
    ///
    /// # Errors
    /// As `submit`.
    fn submit_updates(&mut self, updates: &[Update<'_>]) -> Result<bool, Fault> {
        let _ = updates;
        Ok(false)
    }

    /// Begins a group of writes that may be made durable together. Used for loading only.
    ///
    /// # Errors
    /// As `advance`.
    fn begin_bulk(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Ends the group that [`KeyValueSession::begin_bulk`] began.
    ///
    /// # Errors
    /// As `advance`.
    fn end_bulk(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Sends `request` and waits for its whole answer: for loading and for evidence, not for the load loop.
    ///
    /// # Errors
    /// As `submit` and `advance`.
    fn call(&mut self, request: &Request<'_>, rows: &mut dyn Rows) -> Result<u64, Fault> {
        self.submit(request)?;
        loop {
            match self.advance(rows)? {
                Progress::Done(count) => return Ok(count),
                Progress::Pending => wait_ready(self)?,
            }
        }
    }
}

/// A prepared statement of one session, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(pub usize);

/// A statement that was prepared in the product's own syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedText {
    /// The statement.
    pub statement: Statement,
    /// Names of the columns of its rows; none if it returns no rows.
    pub columns: Vec<String>,
}

/// How the text of a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// As text with its values in it, each time.
    Simple,
    /// As text and parameters, each time.
    Extended,
    /// Once, and then only its parameters.
    Prepared,
}

/// How a product accepts statements, besides [`Protocol::Simple`] and [`Protocol::Prepared`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// By [`Protocol::Extended`].
    pub extended: bool,
    /// Several statements of one text in one request.
    pub combined: bool,
    /// Several statements as one, up to the first error.
    pub pipelines: bool,
}

/// A parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Parameter<'a> {
    /// Text.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A whole number.
    Integer(i64),
    /// SQL's NULL.
    Null,
}

/// A database that prepares and executes statements.
pub trait SqlSession: Connection {
    /// Prepares `sql`; parameters are written `?` and numbered from the left, whatever the product's own syntax is.
    ///
    /// # Errors
    /// The server's error.
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault>;

    /// Prepares a statement whose parameters and results are known by column, as a session that encrypts columns needs.
    ///
    /// # Errors
    /// As [`SqlSession::prepare`].
    fn prepare_described(&mut self, statement: &Described) -> Result<Statement, Fault> {
        self.prepare(&statement.sql)
    }

    /// This product's SQL dialect.
    fn dialect(&self) -> &'static Dialect {
        &sql::STANDARD
    }

    /// True if the server cannot read some column: it cannot compute with it either.
    fn hides_values(&self) -> bool {
        false
    }

    /// True if more may be submitted before earlier answers are read; answers come in the same order. Only the last may
    /// have rows.
    fn pipelines(&self) -> bool {
        false
    }

    /// Sends one execution of `statement`. The parameters are not needed once this returns.
    ///
    /// # Errors
    /// A broken connection.
    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault>;

    /// Prepares `sql` in the product's own syntax: parameters are `$1` or `?`, as in
    /// [`Dialect::placeholder`](sql::Dialect::placeholder). Rows come as text.
    ///
    /// # Errors
    /// The server's error.
    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        Err(no_texts(sql))
    }

    /// Sends `sql` unchanged. If it contains several statements and the product takes them in one request, their
    /// results come one after the other. [`SqlSession::advance`] reads the answer, rows as text.
    ///
    /// # Errors
    /// A broken connection.
    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        Err(no_texts(sql))
    }

    /// Sends `sql` and its parameters in one request that leaves no prepared statement. [`SqlSession::advance`] reads
    /// the answer, rows as text.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the product has no such request; a broken connection.
    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let _ = (sql, parameters);
        Err(Fault::Refused(
            "this product has no request with a text and parameters: choose `simple` or `prepared`".to_owned(),
        ))
    }

    /// How statements can be sent.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Begins a pipeline, if the product [has them](Offers::pipelines): later submissions are held until
    /// [`SqlSession::end_pipeline`].
    fn begin_pipeline(&mut self) {}

    /// Sends everything submitted since [`SqlSession::begin_pipeline`]. It has one common answer.
    ///
    /// # Errors
    /// A broken connection.
    fn end_pipeline(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// True when the last answer left a transaction open, failed or not.
    fn in_transaction(&self) -> bool {
        false
    }

    /// Reads the available part of the answer. Row fields are numbered by column; rows have no key here.
    ///
    /// # Errors
    /// As [`KeyValueSession::advance`].
    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault>;

    /// Waits for the whole answer to the last submission: for loading and checks, not for the load loop.
    ///
    /// # Errors
    /// As `advance`.
    fn finish(&mut self, rows: &mut dyn Rows) -> Result<u64, Fault> {
        loop {
            match self.advance(rows)? {
                Progress::Done(count) => return Ok(count),
                Progress::Pending => wait_ready(self)?,
            }
        }
    }

    /// Sends one execution of `statement` and waits for its whole answer.
    ///
    /// # Errors
    /// As `submit` and `finish`.
    fn call(&mut self, statement: Statement, parameters: &[Parameter<'_>], rows: &mut dyn Rows) -> Result<u64, Fault> {
        self.submit(statement, parameters)?;
        self.finish(rows)
    }

    /// Sends rows for `table` by the product's own bulk method: `values` are those of its columns, row by row.
    /// [`SqlSession::advance`] reads the answer; after an error, none of the rows was added. False if the product has
    /// no such method; then nothing was sent, and `INSERT` is used.
    ///
    /// # Errors
    /// A broken connection.
    fn submit_copy(&mut self, table: &'static SqlTable, values: &[Parameter<'_>]) -> Result<bool, Fault> {
        let _ = (table, values);
        Ok(false)
    }

    /// Sends rows for `columns` of the table `table`, as lines of tab-separated values, by the product's statement for
    /// such lines (`COPY`, `LOAD DATA`). In both, a backslash begins an escape. [`SqlSession::advance`] reads the
    /// answer. False if the product has no such statement; then nothing was sent.
    ///
    /// # Errors
    /// [`Fault::Refused`] if values are encrypted; a broken connection.
    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        let _ = (table, columns, lines);
        Ok(false)
    }

    /// Runs one statement outside the load: text in, rows of text out.
    ///
    /// # Errors
    /// The server's error.
    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault>;

    /// Runs all statements of `text`, one after the other, outside the measured path; their rows are discarded.
    ///
    /// # Errors
    /// The server's error; [`Fault::Protocol`] if the product takes one statement at a time.
    fn run_all(&mut self, _text: &str) -> Result<(), Fault> {
        Err(Fault::Protocol("this session takes one statement at a time".to_owned()))
    }
}

fn no_texts(sql: &str) -> Fault {
    Fault::Protocol(format!("this session takes no text of a statement, and was given `{sql}`"))
}

/// The rows of `sql`, which has `N` columns, with an empty text for NULL.
///
/// # Errors
/// As [`SqlSession::run`].
pub fn rows<const N: usize>(session: &mut dyn SqlSession, sql: &str) -> Result<Vec<[String; N]>, Fault> {
    let rows = session.run(sql)?.into_iter();
    let row = |row: Vec<Option<String>>| <[Option<String>; N]>::try_from(row).ok();
    Ok(rows.filter_map(row).map(|row| row.map(Option::unwrap_or_default)).collect())
}

/// How long a server may be silent before it counts as dead, s: a minute without any answer is not slowness.
pub const TIMEOUT_S: u16 = 60;

thread_local! {
    /// How long this thread waits for an answer, s.
    static CURRENT_TIMEOUT_S: Cell<u16> = const { Cell::new(TIMEOUT_S) };
}

/// Runs `work`; during it the calling thread waits no longer than `seconds` for any answer, also on connections opened
/// in it.
pub fn answered_within<T>(seconds: u16, work: impl FnOnce() -> T) -> T {
    let outer = CURRENT_TIMEOUT_S.replace(seconds.min(timeout_s()));
    let done = work();
    CURRENT_TIMEOUT_S.set(outer);
    done
}

/// How long the calling thread waits for an answer, s: [`TIMEOUT_S`] outside [`answered_within`].
pub fn timeout_s() -> u16 {
    CURRENT_TIMEOUT_S.get()
}

/// Waits until a pending connection can continue.
///
/// # Errors
/// If the machine cannot wait, or nothing happens for [`timeout_s`] seconds.
pub fn wait_ready<C: Connection + ?Sized>(connection: &C) -> Result<(), Fault> {
    wait_ready_for(connection, timeout_s())
}

/// The same with its own timeout, seconds.
///
/// # Errors
/// As [`wait_ready`].
pub fn wait_ready_for<C: Connection + ?Sized>(connection: &C, timeout_s: u16) -> Result<(), Fault> {
    let Some(descriptor) = connection.descriptor() else { return Ok(()) };
    let mut events = PollFlags::IN;
    if connection.wants_write() {
        events |= PollFlags::OUT;
    }
    let timeout = Timespec { tv_sec: timeout_s.into(), tv_nsec: 0 };
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, events)], Some(&timeout)) {
        Ok(0) => Err(Fault::Connection(format!("the server did not answer for {timeout_s} s"))),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// The table of a key-value workload: a key and numbered fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, letters, digits and underscores only.
    pub name: String,
    /// Number of fields; they are called `field0`, `field1`, … unless `field_prefix` is set.
    pub fields: usize,
    /// The prefix of a field's number in its name.
    pub field_prefix: String,
}

impl Table {
    /// The table to which evidence writes canaries, if a workload's own tables must not change.
    pub fn of_canaries() -> Self {
        Self { name: "tithe_canary".to_owned(), fields: 10, field_prefix: "field".to_owned() }
    }
}

impl Table {
    /// The name of field number `field`.
    pub fn field(&self, field: usize) -> String {
        format!("{}{field}", self.field_prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::{fd::AsFd as _, unix::net::UnixStream},
    };

    use super::*;
    use crate::{database::SqlDatabase as _, simulated::sql_bench::SqlBench};

    /// A connection that differs from the defaults in everything.
    struct Socket {
        stream: Option<UnixStream>,
        wants_write: bool,
        ran: Vec<String>,
    }

    impl Connection for Socket {
        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            self.stream.as_ref().map(|stream| stream.as_fd())
        }

        fn wants_write(&self) -> bool {
            self.wants_write
        }

        fn blocks(&self) -> bool {
            true
        }

        fn server_task(&self) -> ServerTask {
            ServerTask::Caller
        }

        fn serving_process(&self) -> Option<i32> {
            Some(7)
        }

        fn wire_bytes(&self) -> (u64, u64) {
            (30, 400)
        }

        fn warm(&mut self) -> Result<(), Fault> {
            self.ran.push("warmed".to_owned());
            Ok(())
        }

        fn run_statement(&mut self, statement: &str) -> Result<(), Fault> {
            self.ran.push(statement.to_owned());
            Ok(())
        }
    }

    fn socket(stream: Option<UnixStream>, wants_write: bool) -> Socket {
        Socket { stream, wants_write, ran: Vec::new() }
    }

    struct Around(Socket);

    impl SessionWrapper for Around {
        fn inner(&self) -> &dyn Connection {
            &self.0
        }

        fn inner_mut(&mut self) -> &mut dyn Connection {
            &mut self.0
        }
    }

    #[test]
    fn a_wrapped_connection_is_the_one_within() {
        let (stream, _other) = UnixStream::pair().expect("sockets");
        let mut around = Around(socket(Some(stream), true));
        assert!(around.descriptor().is_some() && around.wants_write() && around.blocks());
        assert_eq!((around.serving_process(), around.wire_bytes()), (Some(7), (30, 400)));
        assert!(matches!(around.server_task(), ServerTask::Caller));
        assert_eq!((around.warm(), around.run_statement("SET a")), (Ok(()), Ok(())));
        assert_eq!(around.0.ran, ["warmed", "SET a"]);
        let silent = Around(socket(None, false));
        assert!(silent.descriptor().is_none() && !silent.wants_write());
    }

    #[test]
    fn what_is_pending_goes_on_when_there_is_something_to_read_or_room_to_write() {
        let (stream, mut other) = UnixStream::pair().expect("sockets");
        let mut pending = socket(Some(stream), false);
        let late = Fault::Connection("the server did not answer for 0 s".to_owned());
        assert_eq!(wait_ready_for(&pending, 0), Err(late), "nothing has come");
        pending.wants_write = true;
        assert_eq!(wait_ready_for(&pending, 0), Ok(()), "there is room to write");
        pending.wants_write = false;
        other.write_all(b"answer").expect("sent");
        assert_eq!(wait_ready_for(&pending, 0), Ok(()));
        assert_eq!(wait_ready_for(&socket(None, false), 0), Ok(()), "an embedded database is never pending");
    }

    #[test]
    fn rows_have_as_many_columns_as_are_asked_for_and_an_empty_text_for_null() {
        let mut arm = SqlBench::plain();
        arm.database.answers = Some(|_, _, _| {
            let text = |text: &str| Some(text.to_owned());
            Ok(vec![vec![text("a"), None], vec![text("alone")], vec![None, text("b")], vec![None, None, None]])
        });
        let SqlBench { bench, database } = &arm;
        let mut session = database.connect(&bench.server, &bench.setup, &bench.context().how()).expect("a session");
        let two = rows::<2>(session.as_mut(), "SELECT").expect("rows");
        assert_eq!(two, [["a", ""], ["", "b"]].map(|row| row.map(str::to_owned)));
        assert_eq!(rows::<1>(session.as_mut(), "SELECT").expect("rows"), [["alone".to_owned()]]);
    }

    #[test]
    fn a_session_of_records_by_key_runs_no_statements() {
        let bench = crate::simulated::test_bench::Bench::plain();
        let mut session = bench.context().connect().expect("a session");
        assert!(matches!(session.sql().err(), Some(Fault::Protocol(_))));
        let refused = session.connection().run_statement("SET a").expect_err("it has none").to_string();
        assert_eq!(refused, "protocol: this connection runs no statements, and was given `SET a`");
        let table = Table { field_prefix: "f".to_owned(), ..Table::of_canaries() };
        assert_eq!([table.field(0), Table::of_canaries().field(9)], ["f0", "field9"]);
    }
}
