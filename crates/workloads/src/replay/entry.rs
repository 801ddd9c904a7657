//! The output of the readers of logs, the same for every format: one entry after the other, each of one session.

use std::fmt;

/// One record of a log about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line where the record begins, from 1.
    pub line: u64,
    /// Distinguishes the session from others in the log.
    pub session: String,
    /// The database of the session; empty if the record does not contain it.
    pub database: String,
    /// When it was written, µs of the log's own clock; for a statement with a duration, when the statement began.
    pub at_us: Option<i64>,
    /// The event.
    pub event: Event,
}

/// An event in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A statement ran, or begins to run if its duration follows.
    Statement(Logged),
    /// The duration of the statement before, ns.
    Duration(u64),
    /// Time of preparing the statement that is executed next, ns.
    Aside(u64),
    /// The plan of a statement, by auto_explain. Where its text ends there is unknown.
    Plan,
    /// A statement failed; its text if the record has it.
    Failed(Option<String>),
    /// The session begins.
    Begins,
    /// The session ends.
    Ends,
}

/// A statement in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its text.
    pub sql: String,
    /// The values of its parameters.
    pub values: Values,
    /// Its duration, ns, if the same record has it.
    pub duration_ns: Option<u64>,
    /// How it was sent.
    pub sent: Sent,
    /// True for the record of an audit extension; the server may also write its own record.
    pub audited: bool,
    /// The number that the audit extension gives it in its session, which the records about its tables share.
    pub number: Option<u64>,
}

impl Logged {
    /// A `COMMIT` that the log does not contain.
    pub fn commit() -> Self {
        let (sql, values, sent) = ("COMMIT".to_owned(), Values::InText, Sent::Text);
        Self { sql, values, duration_ns: None, sent, audited: false, number: None }
    }
}

/// The parameters of a statement in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// They are in the text, or there are none.
    InText,
    /// One value each; `None` is SQL's NULL.
    Known(Vec<Option<String>>),
    /// The log does not have them.
    Absent,
    /// The log has only their beginnings.
    Cut,
}

/// How the client sent a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// As text.
    Text,
    /// As text with separate parameters.
    Once,
    /// Prepared under a name before.
    Prepared,
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// With a complete record.
    Whole,
    /// Within the record that begins at this line, for example because the log was copied while it was written.
    Cut(u64),
}

/// Why a log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// The problem.
    pub what: String,
    /// The remedy.
    pub help: String,
}

impl Problem {
    /// A problem with `line`.
    pub fn new(line: u64, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.what)
    }
}

/// Receives the entries of a log in its order.
pub type Sink<'s> = &'s mut dyn FnMut(Entry) -> Result<(), Problem>;
