//! DuckDB under workloads on SQL tables: loads, scans, and TPC-C with encrypted columns.

use std::collections::BTreeMap;

use expect_test::expect;
use tempfile::TempDir;
use tithe_databases::duckdb::DuckDb;
use tithe_machine::{
    credentials::Credentials,
    launch::{Place, Search, Server},
    secret::Secret,
};
use tithe_plugin::{
    database::Database,
    setup::{ColumnCipher, Columns, Setup},
};

use crate::{
    loading::Arm,
    sandbox::{chosen, present, protection},
    support,
};

/// An arm's file in a folder, with these settings; encrypted or plain.
fn arm(settings: &[(&str, &str)], encrypted: bool) -> Option<(TempDir, Server, Setup)> {
    let install = present(DuckDb.find(&Search::default()))?;
    let folder = tempfile::tempdir().expect("a folder");
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let credentials = Credentials::without_files(Secret::random(16), Secret::random(32));
    let mut setup = Setup::plain(settings.collect::<BTreeMap<_, _>>(), credentials);
    if encrypted {
        protection(&DuckDb, "encryption").apply(&chosen(&DuckDb, "encryption", &[]), &mut setup);
    }
    let place = Place::on_loopback(folder.path().to_owned(), 0);
    let launch = DuckDb.launch(&install, &setup, &place);
    let server = Server::embedded(&launch, &place.folder);
    Some((folder, server, setup))
}

#[test]
fn duckdb_loads_and_scans() {
    let Some((_folder, server, setup)) = arm(&[], true) else { return };
    let arm = Arm { database: &DuckDb, server: &server, setup: &setup };
    let told = arm.loads("multi", &["plain", "keyed", "trigger", "foreign"])
        + &arm.loads("single", &["plain"])
        + &arm.loads("append", &["plain", "keyed"])
        + &arm.loads("copy", &["plain"])
        + &arm.scans();
    DuckDb.close(&server);
    expect![[r#"
        multi plain: batches are whole, and each row is as it was made [150 500 649]
        multi keyed: batches are whole, and each row is as it was made [150 500 649]
        multi trigger: refused: DuckDB has no table `trigger`; it has plain and keyed
        multi foreign: refused: DuckDB has no table `foreign`; it has plain and keyed
        single plain: batches are whole, and each row is as it was made [150 500 649]
        append plain: batches are whole, and each row is as it was made [150 500 649]
        append keyed: batches are whole, and each row is as it was made [150 500 649]
        copy plain: refused: DuckDB has no bulk load `copy`; what it has: append, multi and single
        aggregate: scans of each kind answer what the rows make
        group: scans of each kind answer what the rows make
        range: scans of each kind answer what the rows make
        sort: scans of each kind answer what the rows make
    "#]]
    .assert_eq(&told);
}

#[test]
fn duckdb_keeps_the_books_of_tpcc_with_encrypted_columns() {
    let Some((_folder, server, mut setup)) = arm(&[], false) else { return };
    let key = setup.credentials.key.clone();
    setup.columns = Some(Columns { cipher: ColumnCipher::Aes256Gcm, ..Columns::of_share(1.0, key) });
    let workload = support::workload(&[("compute", "client")]);
    let arm = support::Arm { database: &DuckDb, server: &server, setup: &setup, workload: &workload };
    arm.load();
    arm.check(true).expect("consistent when fresh");
    arm.run(0, 20);
    arm.check(false).expect("consistent when used");
    DuckDb.close(&server);
}
