//! How DuckDB writes SQL.

use tithe_plugin::sql::{Dialect, Grammar};

/// How DuckDB writes SQL. Transactions see a snapshot, and the first writer of a row wins.
pub static DIALECT: Dialect = Dialect {
    grammar: Grammar::DuckDb,
    integer: "INTEGER",
    long: "BIGINT",
    text: |_| "VARCHAR".to_owned(),
    bytes: |_| "BLOB".to_owned(),
    row_lock: "",
    isolate: |_| &[],
    begin: |_| &["BEGIN"],
    placeholder: |_| "?".to_owned(),
    // A function cannot set anything.
    settings: ("", &[]),
    is_conflict,
};

/// True for DuckDB's words about a row that another transaction has changed.
pub fn is_conflict(text: &str) -> bool {
    text.contains("TransactionContext Error") && text.to_lowercase().contains("conflict on")
}
