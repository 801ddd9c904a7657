//! A running server's statistics of its statements, and of the values in its columns: a production-like load is
//! generated from both.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_model::catalogue::WireProtocol;

/// A statement in the server's statistics: its text without values, sorted by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its text, with a parameter in place of each value.
    pub text: String,
    /// How often it was called.
    pub calls: u64,
    /// Time of all calls, ns.
    pub ns: u64,
    /// Rows that all calls returned or changed.
    pub rows: u64,
}

impl Counted {
    /// From a row with text, calls, nanoseconds and rows, as servers write them.
    pub fn of([text, calls, ns, rows]: [String; 4]) -> Self {
        let number = |text: String| text.parse().unwrap_or_default();
        Self { text, calls: number(calls), ns: number(ns), rows: number(rows) }
    }
}

/// Statistics of the values in a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnValues {
    /// Its table, without the schema.
    pub table: String,
    /// Its name.
    pub column: String,
    /// Its values are whole numbers, and so are values between them.
    pub is_whole: bool,
    /// It has a unique index.
    pub is_key: bool,
    /// Common values with their shares of all rows.
    pub common: Vec<(String, f64)>,
    /// Bounds of ranges with equally many of the other rows, in order.
    pub bounds: Vec<String>,
}

/// Queries a running server; changes nothing.
pub trait Production {
    /// The protocol, and so the SQL, of its statements.
    fn protocol(&self) -> WireProtocol;

    /// The sources of its counts and of parameter values.
    fn sources(&self) -> (&'static str, &'static str);

    /// The statements that were counted in the URL's database, the one with the most time first.
    ///
    /// # Errors
    /// [`Fault::Refused`] with everything that the server or the account lacks; the server's error.
    fn counted(&mut self) -> Result<Vec<Counted>, Fault>;

    /// Statistics of the columns with one of `names`, in tables with one of `names`.
    ///
    /// # Errors
    /// The server's error.
    fn columns(&mut self, names: &BTreeSet<String>) -> Result<Vec<ColumnValues>, Fault>;

    /// The statements by which an administrator lets the account read the tables in `statements`; `names` are all names
    /// in them.
    ///
    /// # Errors
    /// A broken connection.
    fn grants(&mut self, statements: &[&Counted], names: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault>;

    /// The server's error for preparing `text`; `None` if it accepts it.
    ///
    /// # Errors
    /// A broken connection.
    fn refuses(&mut self, text: &str) -> Result<Option<String>, Fault>;
}

/// A workload that learns its load from a server.
pub trait Learns {
    /// Learns the load from `production`, before any other use of the workload.
    ///
    /// # Errors
    /// [`Fault::Refused`] with all obstacles; the server's error.
    fn learn(&self, production: &mut dyn Production) -> Result<(), Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_servers_write_them() {
        let of = |calls: &str, ns: &str, rows: &str| {
            let Counted { text, calls, ns, rows } = Counted::of(["SELECT a", calls, ns, rows].map(str::to_owned));
            (text, calls, ns, rows)
        };
        assert_eq!(of("5", "7000", "12"), ("SELECT a".to_owned(), 5, 7000, 12));
        assert_eq!(of("5", "", "1.5"), ("SELECT a".to_owned(), 5, 0, 0), "what is no whole number is unknown");
    }
}
