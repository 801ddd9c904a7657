//! What a running server has counted of the statements that it was sent, and what it knows of the values in its
//! columns: from both a load like that of production is drawn.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_model::catalogue::WireProtocol;

/// A statement as a server counts it: its text without values, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its text, with a parameter in place of each value.
    pub text: String,
    /// How often it was called.
    pub calls: u64,
    /// What all calls took, ns.
    pub ns: u64,
    /// Rows that all calls returned or changed.
    pub rows: u64,
}

impl Counted {
    /// That of a row with its text, calls, nanoseconds and rows, as servers write them.
    pub fn of([text, calls, ns, rows]: [String; 4]) -> Self {
        let number = |text: String| text.parse().unwrap_or_default();
        Self { text, calls: number(calls), ns: number(ns), rows: number(rows) }
    }
}

/// What is known of the values in a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnValues {
    /// Its table, without the schema.
    pub table: String,
    /// Its name.
    pub column: String,
    /// Its values are whole numbers: what is between two of them is one too.
    pub is_whole: bool,
    /// A unique index has it.
    pub is_key: bool,
    /// Common values with their shares of all rows.
    pub common: Vec<(String, f64)>,
    /// Bounds of parts with equally many of the other rows, in order.
    pub bounds: Vec<String>,
}

/// Asks a running server; changes nothing.
pub trait Production {
    /// Whose SQL its statements are.
    fn protocol(&self) -> WireProtocol;

    /// Where its counts come from, and where values of parameters do.
    fn sources(&self) -> (&'static str, &'static str);

    /// The statements that were counted in the URL's database, the one that took most first.
    ///
    /// # Errors
    /// [`Fault::Refused`] with everything that the server or the account lacks for it; the server's error.
    fn counted(&mut self) -> Result<Vec<Counted>, Fault>;

    /// What is known of the columns that have one of `names`, of tables that have one of them.
    ///
    /// # Errors
    /// The server's error.
    fn columns(&mut self, names: &BTreeSet<String>) -> Result<Vec<ColumnValues>, Fault>;

    /// The statements by which an administrator lets the account read what `statements` name; `names` are all names in
    /// them.
    ///
    /// # Errors
    /// A broken connection.
    fn grants(&mut self, statements: &[&Counted], names: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault>;

    /// The words by which the server refuses to prepare `text`; `None` where it takes it.
    ///
    /// # Errors
    /// A broken connection.
    fn refuses(&mut self, text: &str) -> Result<Option<String>, Fault>;
}

/// A workload that learns from a server what it does.
pub trait Learns {
    /// Learns from `production` what the load is, before anything else is asked of the workload.
    ///
    /// # Errors
    /// [`Fault::Refused`] with everything that stands in the way; the server's error.
    fn learn(&self, production: &mut dyn Production) -> Result<(), Fault>;
}
