//! How SQLite writes SQL.

use tithe_plugin::sql::{Dialect, Grammar};

/// How SQLite writes SQL.
pub static DIALECT: Dialect = Dialect {
    grammar: Grammar::Sqlite,
    integer: "INTEGER",
    long: "INTEGER",
    text: |_| "TEXT".to_owned(),
    bytes: |_| "BLOB".to_owned(),
    row_lock: "",
    isolate: |_| &[],
    begin: |_| &["BEGIN IMMEDIATE"],
    // SQLITE_BUSY, with or without an extended code in the higher bytes: <https://sqlite.org/rescode.html>.
    placeholder: |_| "?".to_owned(),
    // Only `PRAGMA` sets something.
    settings: ("", &[]),
    is_conflict: |text| {
        let code = text.rsplit_once("(SQLite error ").and_then(|(_, code)| code.strip_suffix(')'));
        code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 5)
    },
};
