//! How PostgreSQL writes SQL.

use tithe_plugin::sql::{Dialect, Grammar, Isolation};

/// How PostgreSQL writes SQL. REPEATABLE READ is snapshot isolation there, under which TPC-C is serialisable: Fekete,
/// Liarokapis, O'Neil, O'Neil, Shasha, "Making Snapshot Isolation Serializable", TODS 30(2), 2005.
pub static DIALECT: Dialect = Dialect {
    grammar: Grammar::Postgres,
    integer: "integer",
    long: "bigint",
    text: |length| format!("varchar({length})"),
    bytes: |_| "bytea".to_owned(),
    row_lock: " FOR UPDATE",
    isolate: |_| &[],
    begin: |isolation| match isolation {
        Isolation::RepeatableRead => &["BEGIN ISOLATION LEVEL REPEATABLE READ"],
        Isolation::Serializable => &["BEGIN ISOLATION LEVEL SERIALIZABLE"],
    },
    settings: ("SELECT name, setting FROM pg_catalog.pg_settings WHERE source = 'session'", &[]),
    // serialization_failure and deadlock_detected, of the documentation's "PostgreSQL Error Codes".
    placeholder: |number| format!("${number}"),
    is_conflict: |text| text.starts_with("40001") || text.starts_with("40P01"),
};
