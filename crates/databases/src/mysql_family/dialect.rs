//! How MariaDB and MySQL write SQL.

use tithe_plugin::sql::{Dialect, Grammar, Isolation};

/// Errors caused by another transaction, from MariaDB's documentation, "MariaDB Error Codes": `ER_LOCK_WAIT_TIMEOUT`,
/// `ER_LOCK_DEADLOCK`, and `ER_CHECKREAD`, which servers with `innodb_snapshot_isolation` return.
const CONFLICTS: [&str; 3] = ["1205 ", "1213 ", "1020 "];

/// How both products write SQL.
pub static DIALECT: Dialect = Dialect {
    grammar: Grammar::MySql,
    integer: "int",
    long: "bigint",
    text: |length| format!("varchar({length})"),
    bytes: |length| format!("varbinary({length})"),
    row_lock: " FOR UPDATE",
    isolate: |isolation| match isolation {
        Isolation::RepeatableRead => &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
        Isolation::Serializable => &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
    },
    begin: |_| &["START TRANSACTION"],
    placeholder: |_| "?".to_owned(),
    is_conflict: |text| CONFLICTS.iter().any(|code| text.starts_with(code)),
};
