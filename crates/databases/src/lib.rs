//! The databases: one folder, one cargo feature and one line in [`all`] each. They do not know each other.

use tithe_harness::database::Database;

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "wiredtiger")]
pub mod wiredtiger;
pub mod ycsb_over_sql;

/// Every database of this build, in the order of `tithe ls`.
pub fn all() -> &'static [&'static dyn Database] {
    &[
        #[cfg(feature = "sqlite")]
        &sqlite::Sqlite,
        #[cfg(feature = "postgres")]
        &postgres::Postgres,
        #[cfg(feature = "wiredtiger")]
        &wiredtiger::WiredTiger,
    ]
}
