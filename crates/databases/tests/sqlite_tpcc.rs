//! TPC-C on SQLite, plain and with encrypted columns.

#[path = "support/tpcc.rs"]
mod tpcc;

use std::{collections::BTreeMap, path::Path};

use tithe_databases::sqlite::Sqlite;
use tithe_harness::{
    database::{Database, Install, Place, Server},
    fault::Fault,
    protection::{ColumnCipher, Columns, Materials, Setup},
    secret::Secret,
    sql::Compute,
    workload::tpcc::Tpcc,
};
use tpcc::Arm;

fn setup(folder: &Path) -> Setup {
    let nowhere = || folder.join("none");
    let materials = Materials {
        authority: nowhere(),
        server_certificate: nowhere(),
        server_key: nowhere(),
        client_certificate: nowhere(),
        client_key: nowhere(),
        stranger: nowhere(),
        password: Secret::random(16),
        key: Secret::random(32),
    };
    Setup::plain(BTreeMap::from([("synchronous".to_owned(), "OFF".to_owned())]), materials)
}

fn server(setup: &Setup, folder: &Path) -> Server {
    let place = Place { folder: folder.to_owned(), port: 0 };
    let launch = Sqlite.launch(&Install::default(), setup, &place);
    Server { address: launch.address, process: None, paths: launch.paths, folder: folder.to_owned() }
}

fn with_arm(change: impl FnOnce(&mut Setup), workload: &Tpcc, test: impl FnOnce(Arm<'_>)) {
    let folder = tempfile::Builder::new().prefix("tithe-tpcc-").tempdir().expect("a folder");
    let mut setup = setup(folder.path());
    change(&mut setup);
    let server = server(&setup, folder.path());
    test(Arm { database: &Sqlite, server: &server, setup: &setup, workload });
}

fn columns(share: f64, cipher: ColumnCipher) -> impl FnOnce(&mut Setup) {
    move |setup| setup.columns = Some(Columns { cipher, ..Columns::of_share(share, setup.materials.key.clone()) })
}

#[test]
fn conditions_hold_after_loading_and_after_every_form_of_statements() {
    for compute in ["server", "client"] {
        let workload = tpcc::workload(&[("compute", compute)]);
        with_arm(
            |_| {},
            &workload,
            |arm| {
                assert!(arm.load() > 5000);
                arm.check(true).expect("consistent when fresh");
                let counted = arm.run(0, 600);
                assert_eq!((0..5).map(|operation| counted[&operation]).sum::<u64>(), 600, "{counted:?}");
                assert!(counted[&6] > 0 && !counted.contains_key(&5), "{counted:?}");
                arm.check(false).expect("consistent when used");
                // Condition 11 is about fresh data, and 600 transactions have delivered something.
                assert!(matches!(arm.check(true), Err(Fault::Wrong(text)) if text.contains("condition 11")));
            },
        );
    }
}

#[test]
fn conditions_hold_on_decrypted_values() {
    let workload = tpcc::workload(&[("compute", "client")]);
    for (share, cipher) in
        [(0.0, ColumnCipher::Aes256Gcm), (0.2, ColumnCipher::Aes256Gcm), (0.5, ColumnCipher::Sm4Gcm), (1.0, ColumnCipher::Sm4Gcm), (1.0, ColumnCipher::Aes256Gcm)]
    {
        with_arm(columns(share, cipher), &workload, |arm| {
            arm.load();
            arm.check(true).expect("consistent when fresh");
            arm.run(0, 200);
            arm.check(false).expect("consistent when used");
        });
    }
}

#[test]
fn a_broken_book_is_told() {
    let workload = tpcc::workload(&[]);
    with_arm(
        |_| {},
        &workload,
        |arm| {
            arm.load();
            for (damage, condition) in [
                ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1", "conditions 1 and 8"),
                ("UPDATE district SET d_next_o_id = 99 WHERE d_w_id = 1 AND d_id = 1", "condition 2"),
                ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 AND no_o_id = 25", "conditions 3, 5"),
                ("DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 1", "conditions 4, 6"),
                ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 1", "7"),
                ("UPDATE history SET h_amount = 1 WHERE h_w_id = 1 AND h_d_id = 3", "9, 10"),
                ("UPDATE customer SET c_ytd_payment = 1 WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 1", "12"),
                ("DELETE FROM customer WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 1", "not all there"),
            ] {
                let mut session = arm.connect();
                session.connection().run_statement(damage).expect_err("SQLite runs statements by `run` only");
                let tithe_harness::session::Session::Sql(sql) = &mut session else { panic!("a SQL session") };
                sql.run("BEGIN").expect("begun");
                sql.run(damage).expect(condition);
                let outcome = tithe_harness::workload::Workload::check(&workload, &mut session, false);
                assert!(matches!(&outcome, Err(Fault::Wrong(_))), "{condition}: {outcome:?}");
                let tithe_harness::session::Session::Sql(sql) = &mut session else { panic!("a SQL session") };
                sql.run("ROLLBACK").expect("rolled back");
            }
            arm.check(true).expect("every damage was rolled back");
        },
    );
}

#[test]
fn what_cannot_be_encrypted_is_refused() {
    let workload = tpcc::workload(&[("compute", "client")]);
    let refusal = |names: &[&str], share: f64| {
        let mut told = String::new();
        let change = |setup: &mut Setup| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            setup.columns = Some(Columns { names, ..Columns::of_share(share, setup.materials.key.clone()) });
        };
        with_arm(change, &workload, |arm| {
            told = tithe_harness::data::create(arm.database, arm.server, arm.setup, arm.workload)
                .expect_err("refused")
                .to_string();
        });
        told
    };
    expect_test::expect!["refused: share = 0.3 stands for no set of columns of SQL tables: say 0, 0.2 (identifiers), 0.5 (prices, dates and quantities too) or 1 (all), or name the columns"]
        .assert_eq(&refusal(&[], 0.3));
    expect_test::expect!["refused: no column is called `w_yt`: there are w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd"]
        .assert_eq(&refusal(&["c_data", "w_yt"], 1.0));
    expect_test::expect!["refused: columns that are compared with each other must be encrypted together: add ol_i_id, s_i_id"]
        .assert_eq(&refusal(&["i_id"], 1.0));
    with_arm(
        |setup| {
            columns(1.0, ColumnCipher::Aes256Gcm)(setup);
            setup.compute = Some(Compute::Server);
        },
        &workload,
        |arm| {
            arm.load();
            let mut session = arm.connect();
            let mut client = tithe_harness::workload::Workload::client(&workload, &tithe_harness::workload::Workload::arm_state(&workload));
            client.compute_in(Compute::Server);
            client.prepare();
            let refused = client.submit(&mut session).expect_err("refused");
            expect_test::expect![[r#"refused: encrypted columns cannot be computed with in the server: give the workload `compute = "client"`"#]]
                .assert_eq(&refused.to_string());
        },
    );
}

#[test]
fn another_key_does_not_open_the_books() {
    let workload = tpcc::workload(&[("compute", "client")]);
    with_arm(columns(1.0, ColumnCipher::Sm4Gcm), &workload, |arm| {
        arm.load();
        let mut stranger = arm.setup.clone();
        columns(1.0, ColumnCipher::Sm4Gcm)(&mut stranger);
        if let Some(columns) = &mut stranger.columns {
            columns.key = Secret::random(32);
        }
        let outcome = Arm { setup: &stranger, ..arm }.check(true);
        assert!(matches!(&outcome, Err(Fault::Wrong(text)) if text.contains("does not decrypt")), "{outcome:?}");
    });
}
