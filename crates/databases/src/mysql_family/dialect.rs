//! How MariaDB and MySQL write SQL.

use tithe_plugin::sql::{Dialect, Grammar, Isolation};

/// Errors caused by another transaction, from MariaDB's documentation, "MariaDB Error Codes": `ER_LOCK_WAIT_TIMEOUT`,
/// `ER_LOCK_DEADLOCK`, and `ER_CHECKREAD`, which servers with `innodb_snapshot_isolation` return.
const CONFLICTS: [&str; 3] = ["1205 ", "1213 ", "1020 "];

/// Variables that statements change without setting them, and global ones that the list of a session contains.
const CHANGING: [&str; 16] = [
    "timestamp",
    "last_insert_id",
    "identity",
    "insert_id",
    "rand_seed1",
    "rand_seed2",
    "warning_count",
    "error_count",
    "in_transaction",
    "statement_id",
    "last_gtid",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_purged",
];

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
    settings: ("SHOW SESSION VARIABLES", &CHANGING),
    is_conflict: |text| CONFLICTS.iter().any(|code| text.starts_with(code)),
};
