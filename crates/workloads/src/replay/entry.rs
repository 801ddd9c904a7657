//! What the readers of logs deliver, whatever the form of the log: one entry after the other, each of one session.

use std::fmt;

/// One record of a log that says something of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line where the record begins, from 1.
    pub line: u64,
    /// What tells the session from others in the log.
    pub session: String,
    /// The database of the session; empty where the record does not say it.
    pub database: String,
    /// When it was written, µs of the log's own clock; for a statement with a duration, when that began.
    pub at_us: Option<i64>,
    /// What happened.
    pub event: Event,
}

/// What happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A statement ran, or begins to run where its duration follows.
    Statement(Logged),
    /// What the statement before took, ns.
    Duration(u64),
    /// Time of preparing what is executed next, ns.
    Aside(u64),
    /// A statement failed; its text where the record has it.
    Failed(Option<String>),
    /// The session begins.
    Begins,
    /// The session ends.
    Ends,
}

/// A statement as a log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its text.
    pub sql: String,
    /// The values of its parameters.
    pub values: Values,
    /// How long it took, ns, where the same record says it.
    pub duration_ns: Option<u64>,
    /// How it was sent.
    pub sent: Sent,
    /// True for the record of an audit extension, beside which the server may have one of its own.
    pub audited: bool,
}

/// What a log has of the parameters of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// They are in the text, or there are none.
    InText,
    /// One value each; `None` is SQL's NULL.
    Known(Vec<Option<String>>),
    /// The log does not have them.
    Absent,
    /// The log has their beginnings only.
    Cut,
}

/// How the client sent a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// As text.
    Text,
    /// As text with parameters beside it.
    Once,
    /// Prepared under a name before.
    Prepared,
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// With a whole record.
    Whole,
    /// In the middle of the record that begins at this line, as when a log is copied while it is written.
    Cut(u64),
}

/// Why a log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
    /// What to do.
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

/// Takes the entries of a log in its order.
pub type Sink<'s> = &'s mut dyn FnMut(Entry) -> Result<(), Problem>;
