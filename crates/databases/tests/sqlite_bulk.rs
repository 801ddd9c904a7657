//! Bulk loads and scans on SQLite.

#[path = "support/bulk.rs"]
mod loading;

use std::collections::BTreeMap;

use expect_test::expect;
use loading::Arm;
use tithe_databases::sqlite::Sqlite;
use tithe_machine::{
    credentials::Credentials,
    launch::{Install, Place, Server},
    secret::Secret,
};
use tithe_plugin::{database::Database, setup::Setup};

#[test]
fn sqlite_loads_and_scans() {
    let folder = tempfile::Builder::new().prefix("tithe-bulk-").tempdir().expect("a folder");
    let credentials = Credentials::without_files(Secret::random(16), Secret::random(32));
    let setup = Setup::plain(BTreeMap::from([("synchronous".to_owned(), "OFF".to_owned())]), credentials);
    let place = Place::on_loopback(folder.path().to_owned(), 0);
    let launch = Sqlite.launch(&Install::default(), &setup, &place);
    let server = Server::embedded(&launch, folder.path());
    let arm = Arm { database: &Sqlite, server: &server, setup: &setup };
    let told = arm.loads("multi", &["plain", "keyed", "trigger", "foreign", "partitioned"])
        + &arm.loads("single", &["plain", "trigger"])
        + &arm.loads("copy", &["plain"])
        + &arm.scans();
    expect![[r#"
        multi plain: batches are whole, and each row is as it was made [150 500 649]
        multi keyed: batches are whole, and each row is as it was made [150 500 649]
        multi trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        multi foreign: refused: SQLite has no table `foreign`; it has plain, keyed and trigger
        multi partitioned: refused: SQLite has no table `partitioned`; it has plain, keyed and trigger
        single plain: batches are whole, and each row is as it was made [150 500 649]
        single trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        copy plain: refused: SQLite has no bulk load `copy`; what it has: multi and single, where it speaks SQL
        aggregate: scans of each kind answer what the rows make
        group: scans of each kind answer what the rows make
        range: scans of each kind answer what the rows make
        sort: scans of each kind answer what the rows make
    "#]].assert_eq(&told);
}
