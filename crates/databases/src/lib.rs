//! The databases: one folder and one line in [`all`] each, with a cargo feature if one needs a crate or C code. They do
//! not depend on each other.

use tithe_plugin::product::Product;

/// A protection that `protections/PRODUCT/NAME.toml` describes.
macro_rules! described {
    ($product:literal, $name:literal, $probes:expr) => {{
        static IT: ::tithe_plugin::custom::Described = ::tithe_plugin::custom::Described::new(
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/protections/", $product, "/", $name, ".toml")),
            $probes,
        );
        &IT
    }};
}

#[cfg(feature = "connected")]
mod attached;
#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(any(
    feature = "cassandra",
    feature = "duckdb",
    feature = "mysql",
    feature = "opensearch",
    feature = "postgres",
    feature = "redis"
))]
mod downloads;
#[cfg(feature = "duckdb")]
pub mod duckdb;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "connected")]
mod evidence;
pub mod findings;
#[cfg(any(feature = "mariadb", feature = "mysql", feature = "postgres"))]
mod hops;
#[cfg(feature = "connected")]
mod inspect;
#[cfg(feature = "java")]
mod java;
#[cfg(feature = "mariadb")]
pub mod mariadb;
#[cfg(feature = "memcached")]
pub mod memcached;
#[cfg(feature = "mongodb")]
pub mod mongodb;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(any(feature = "mariadb", feature = "mysql"))]
mod mysql_family;
#[cfg(feature = "opensearch")]
pub mod opensearch;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "connected")]
mod programs;
#[cfg(test)]
mod proven_by;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "connected")]
mod target;
#[cfg(test)]
mod test_operations;
#[cfg(test)]
mod test_setup;
#[cfg(feature = "connected")]
mod tls;
#[cfg(test)]
mod told;
#[cfg(feature = "wiredtiger")]
pub mod wiredtiger;
pub mod ycsb_over_sql;

/// Every database of this build, in the order of `tithe ls`.
pub fn all() -> &'static [&'static dyn Product] {
    &[
        #[cfg(feature = "sqlite")]
        &sqlite::Sqlite,
        #[cfg(feature = "duckdb")]
        &duckdb::DuckDb,
        #[cfg(feature = "postgres")]
        &postgres::Postgres,
        #[cfg(feature = "mariadb")]
        &mariadb::MariaDb,
        #[cfg(feature = "mysql")]
        &mysql::MySql,
        #[cfg(feature = "redis")]
        &redis::Redis,
        #[cfg(feature = "memcached")]
        &memcached::Memcached,
        #[cfg(feature = "etcd")]
        &etcd::Etcd,
        #[cfg(feature = "cassandra")]
        &cassandra::Cassandra,
        #[cfg(feature = "opensearch")]
        &opensearch::OpenSearch,
        #[cfg(feature = "mongodb")]
        &mongodb::MongoDb,
        #[cfg(feature = "wiredtiger")]
        &wiredtiger::WiredTiger,
    ]
}

/// The features of databases that this build has not.
pub fn left_out() -> &'static [&'static str] {
    &[
        #[cfg(not(feature = "sqlite"))]
        "sqlite",
        #[cfg(not(feature = "duckdb"))]
        "duckdb",
        #[cfg(not(feature = "postgres"))]
        "postgres",
        #[cfg(not(feature = "mariadb"))]
        "mariadb",
        #[cfg(not(feature = "mysql"))]
        "mysql",
        #[cfg(not(feature = "redis"))]
        "redis",
        #[cfg(not(feature = "memcached"))]
        "memcached",
        #[cfg(not(feature = "etcd"))]
        "etcd",
        #[cfg(not(feature = "cassandra"))]
        "cassandra",
        #[cfg(not(feature = "opensearch"))]
        "opensearch",
        #[cfg(not(feature = "mongodb"))]
        "mongodb",
        #[cfg(not(feature = "wiredtiger"))]
        "wiredtiger",
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use tithe_harness::arms;
    use tithe_model::{catalogue::ProtectionEntry, experiment::Url};

    use super::{all, test_setup::plain};

    #[test]
    fn what_databases_say_of_themselves_fits_together() {
        let mut names = BTreeSet::new();
        for entry in all().iter().map(|database| database.entry()) {
            // Attaching finds a database by its URL schemes; an experiment finds it by its id.
            let schemes = entry.schemes.iter().chain(entry.scheme_aliases).filter(|it| **it != entry.id);
            // A product that is called as experiments call it has one name.
            let title = [&entry.title].into_iter().filter(|title| **title != entry.id);
            for name in [&entry.id].into_iter().chain(title).chain(schemes) {
                assert!(!name.is_empty() && names.insert(*name), "{}: {name}", entry.id);
            }
            assert!(entry.keeps_data || !entry.restarts, "{}: it restarts, and does not keep its data", entry.id);
            assert!(!entry.embedded || entry.schemes.is_empty() && entry.wire_protocol.is_none(), "{}", entry.id);
        }
    }

    #[test]
    fn schemes_that_frameworks_print_are_known() {
        for (id, schemes) in [
            ("mysql", &["mysql2", "trilogy", "mysqli", "pdo-mysql", "mysql+pymysql"][..]),
            ("postgres", &["postgis", "pdo-pgsql", "postgresql+asyncpg"][..]),
        ] {
            for database in all().iter().filter(|database| database.id() == id) {
                assert!(schemes.iter().all(|scheme| database.entry().has_scheme(scheme)), "{id}");
            }
        }
    }

    #[test]
    fn every_protection_says_what_it_is() {
        for database in all() {
            for protection in arms::all(*database) {
                let ProtectionEntry { id, title, protects_against, leaves_open, .. } = *protection.entry();
                assert!([id, title, protects_against, leaves_open].iter().all(|text| !text.is_empty()), "{id} {title}");
            }
        }
    }

    /// Such a URL would be one without TLS.
    #[test]
    fn schemes_that_may_ask_for_tls_have_no_driver() {
        for entry in all().iter().map(|database| database.entry()) {
            for scheme in entry.schemes {
                let is_taken = |behind: &str| entry.has_scheme(&format!("{scheme}+{behind}"));
                assert!(!is_taken("tls") && !is_taken("ssl"), "{scheme}");
                assert_eq!(is_taken("driver"), entry.url_tls.schemes.is_none(), "{scheme}");
            }
        }
    }

    #[test]
    fn a_percent_sign_before_a_letter_beyond_ascii_is_no_panic() {
        for database in all() {
            for scheme in database.entry().schemes {
                let url = Url::new(format!("{scheme}://ann:hunter2%&é@"));
                assert!(database.check_url(&url, &plain()).is_err(), "{scheme}");
            }
        }
    }

    proptest! {
        #[test]
        fn foreign_urls_never_panic_and_are_never_quoted(rest in "[a-z:@/?=&%\\[\\]é0-9,]{0,40}") {
            for database in all() {
                for scheme in database.entry().schemes {
                    let url = Url::new(format!("{scheme}://ann:hunter2{rest}"));
                    let fault = database.check_url(&url, &plain()).err().map(|fault| fault.to_string());
                    prop_assert!(!fault.iter().any(|text| text.contains("hunter2")), "{fault:?}");
                    let _ = database.endpoint(&url);
                }
            }
        }
    }
}
