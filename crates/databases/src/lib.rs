//! The databases: one folder and one line in [`all`] each, with a cargo feature where one brings a crate or C code.
//! They do not know each other.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start what they look at"))]

use tithe_harness::product::Product;

#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(feature = "connected")]
mod evidence;
#[cfg(feature = "connected")]
mod inspect;
#[cfg(feature = "mariadb")]
pub mod mariadb;
#[cfg(any(feature = "cassandra", feature = "mysql"))]
mod maven;
#[cfg(feature = "mongodb")]
pub mod mongodb;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(any(feature = "mariadb", feature = "mysql"))]
mod mysql_family;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "connected")]
mod target;
#[cfg(test)]
mod test_setup;
#[cfg(feature = "connected")]
mod tls;
#[cfg(feature = "wiredtiger")]
pub mod wiredtiger;
pub mod ycsb_over_sql;

/// Every database of this build, in the order of `tithe ls`.
pub fn all() -> &'static [&'static dyn Product] {
    &[
        #[cfg(feature = "sqlite")]
        &sqlite::Sqlite,
        #[cfg(feature = "postgres")]
        &postgres::Postgres,
        #[cfg(feature = "mariadb")]
        &mariadb::MariaDb,
        #[cfg(feature = "mysql")]
        &mysql::MySql,
        #[cfg(feature = "redis")]
        &redis::Redis,
        #[cfg(feature = "cassandra")]
        &cassandra::Cassandra,
        #[cfg(feature = "mongodb")]
        &mongodb::MongoDb,
        #[cfg(feature = "wiredtiger")]
        &wiredtiger::WiredTiger,
    ]
}
