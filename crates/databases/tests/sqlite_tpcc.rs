//! TPC-C on SQLite, plain and with encrypted columns.

#[path = "support/tpcc.rs"]
mod tpcc;

use std::{collections::BTreeMap, path::Path};

use tithe_databases::sqlite::Sqlite;
use tithe_machine::{
    credentials::Credentials,
    fault::Fault,
    launch::{Install, Place, Server},
    secret::Secret,
};
use tithe_plugin::{
    data,
    database::{Connect, Database},
    product::Product,
    session::Session,
    setup::{ColumnCipher, Columns, Setup},
    sql::Compute,
    workload::{Clients, Workload},
};
use tithe_workloads::tpcc::Tpcc;
use tpcc::Arm;

fn setup() -> Setup {
    let credentials = Credentials::without_files(Secret::random(16), Secret::random(32));
    Setup::plain(BTreeMap::from([("synchronous".to_owned(), "OFF".to_owned())]), credentials)
}

fn server(setup: &Setup, folder: &Path) -> Server {
    let place = Place::on_loopback(folder.to_owned(), 0);
    let launch = Sqlite.launch(&Install::default(), setup, &place);
    Server::embedded(&launch, folder)
}

fn with_arm(change: impl FnOnce(&mut Setup), workload: &Tpcc, test: impl FnOnce(Arm<'_>)) {
    let folder = tempfile::Builder::new().prefix("tithe-tpcc-").tempdir().expect("a folder");
    let mut setup = setup();
    change(&mut setup);
    let server = server(&setup, folder.path());
    test(Arm { database: &Sqlite, server: &server, setup: &setup, workload });
}

fn columns(share: f64, cipher: ColumnCipher) -> impl FnOnce(&mut Setup) {
    move |setup| setup.columns = Some(Columns { cipher, ..Columns::of_share(share, setup.credentials.key.clone()) })
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
    for (share, cipher) in [
        (0.0, ColumnCipher::Aes256Gcm),
        (0.2, ColumnCipher::Aes256Gcm),
        (0.5, ColumnCipher::Sm4Gcm),
        (1.0, ColumnCipher::Sm4Gcm),
        (1.0, ColumnCipher::Aes256Gcm),
    ] {
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
            for (damage, expected) in [
                ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1", "1: 1, 8: 1"),
                ("UPDATE district SET d_next_o_id = 99 WHERE d_w_id = 1 AND d_id = 1", "2: 1"),
                ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 AND no_o_id = 25", "3: 1, 5: 1, 11: 1"),
                ("DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 1", "4: 1, 6: 1, 7: 0"),
                (
                    "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 1",
                    "7: 1",
                ),
                (
                    "UPDATE history SET h_amount = 999 WHERE h_c_w_id = 1 AND h_c_d_id = 3 AND h_c_id = 1",
                    "8: 1, 9: 1, 10: 1",
                ),
                ("UPDATE customer SET c_ytd_payment = 1 WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 1", "12: 1"),
                ("DELETE FROM customer WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 1", "0: 2"),
            ] {
                let mut session = arm.connect();
                run(&mut session, "BEGIN");
                run(&mut session, damage);
                let outcome = workload.check(&mut session, true);
                let Err(Fault::Wrong(told)) = outcome else { panic!("{damage}: {outcome:?}") };
                for (condition, cases) in expected.split(", ").filter_map(|pair| pair.split_once(": ")) {
                    let text = match condition {
                        "0" => format!("not all there ({cases} cases)"),
                        _ => format!("condition {condition} does not hold in {cases} cases"),
                    };
                    assert_eq!(told.contains(&text), cases != "0", "{damage}: {told}");
                }
                let problems = expected.split(", ").filter(|pair| !pair.ends_with(": 0")).count();
                assert_eq!(told.matches("cases").count(), problems, "{damage}: {told}");
                run(&mut session, "ROLLBACK");
            }
            arm.check(true).expect("every damage was rolled back");
        },
    );
}

fn run(session: &mut Session, sql: &str) {
    let Session::Sql(session) = session else { panic!("a SQL session") };
    session.run(sql).expect(sql);
}

#[test]
fn terminals_wait_for_the_one_writer() {
    let workload = tpcc::workload(&[]);
    with_arm(
        |_| {},
        &workload,
        |arm| {
            arm.load();
            arm.run_together(3, 60);
            arm.check(false).expect("consistent when used");
        },
    );
}

#[test]
fn encrypted_columns_are_proven() {
    let workload = tpcc::workload(&[("compute", "client")]);
    let columns = Sqlite.protections().iter().find(|protection| protection.entry().id == "columns").expect("columns");
    let defaults =
        columns.entry().options.iter().filter_map(|option| Some((option.name.to_owned(), option.default?.value())));
    let chosen = tithe_model::experiment::Protection::listed("columns", defaults.collect());
    with_arm(
        |_| {},
        &workload,
        |plain| {
            plain.load();
            with_arm(
                |setup| columns.apply(&chosen, setup),
                &workload,
                |protected| {
                    protected.load();
                    let seen = tpcc::evidence(*columns, &chosen, protected, plain);
                    assert_eq!(seen, ["ciphertext-seen: holds", "wrong-column-key: holds", "disk-canary: holds"]);
                    protected.check(true).expect("the evidence leaves nothing behind");
                },
            );
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
            setup.columns = Some(Columns { names, ..Columns::of_share(share, setup.credentials.key.clone()) });
        };
        with_arm(change, &workload, |arm| {
            told = data::create(arm.database, arm.server, arm.setup, arm.workload).expect_err("refused").to_string();
        });
        told
    };
    expect_test::expect!["refused: share = 0.3 is not a set of columns of SQL tables: write 0, 0.2 (identifiers), 0.5 (prices, dates and quantities too) or 1 (all), or name the columns"]
        .assert_eq(&refusal(&[], 0.3));
    expect_test::expect!["refused: no column is called `w_yt`: there are w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd"]
        .assert_eq(&refusal(&["c_data", "w_yt"], 1.0));
    expect_test::expect![
        "refused: columns that are compared with each other must be encrypted together: add ol_i_id, s_i_id"
    ]
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
            let mut client = workload.client(&workload.arm_state());
            client.compute_in(Compute::Server);
            client.prepare();
            let refused = client.submit(&mut session).expect_err("refused");
            expect_test::expect![[r#"refused: encrypted columns cannot be computed with in the server: give the workload `compute = "client"`, where it has that; `bulk` encrypts by `multi` and `single`"#]]
                .assert_eq(&refused.to_string());
        },
    );
}

#[test]
fn another_key_does_not_open_the_books() {
    let workload = tpcc::workload(&[("compute", "client")]);
    with_arm(columns(1.0, ColumnCipher::Sm4Gcm), &workload, |arm| {
        arm.load();
        let mut wrong_key = arm.setup.clone();
        columns(1.0, ColumnCipher::Sm4Gcm)(&mut wrong_key);
        if let Some(columns) = &mut wrong_key.columns {
            columns.key = Secret::random(32);
        }
        let outcome = Arm { setup: &wrong_key, ..arm }.check(true);
        assert!(matches!(&outcome, Err(Fault::Wrong(text)) if text.contains("does not decrypt")), "{outcome:?}");
    });
}

#[test]
fn a_set_that_was_not_loaded_to_its_end_is_told() {
    let workload = tpcc::workload(&[]);
    with_arm(
        |_| {},
        &workload,
        |arm| {
            data::create(arm.database, arm.server, arm.setup, arm.workload).expect("tables");
            for part in 0..3 {
                let told = arm.check(true).expect_err("not whole").to_string();
                assert!(told.contains("as when loading did not end"), "{told}");
                workload.load(&mut arm.connect(), part, 3, &std::sync::atomic::AtomicU64::new(0)).expect("rows");
            }
            arm.check(true).expect("whole");
        },
    );
}

#[test]
fn a_key_of_another_length_is_refused() {
    let workload = tpcc::workload(&[("compute", "client")]);
    for cipher in [ColumnCipher::Aes256Gcm, ColumnCipher::Sm4Gcm] {
        with_arm(columns(1.0, cipher), &workload, |arm| {
            data::create(arm.database, arm.server, arm.setup, arm.workload).expect("tables");
            let mut setup = arm.setup.clone();
            setup.columns = Some(Columns { cipher, ..Columns::of_share(1.0, Secret::random(16)) });
            let how = Connect::blocking(workload.table());
            let refused = data::connect(arm.database, arm.server, &setup, &how, arm.workload).err();
            let expected = "a column key has 32 bytes, and this one 16";
            assert_eq!(refused, Some(Fault::Refused(expected.to_owned())));
        });
    }
}

#[test]
fn computing_in_the_client_takes_twenty_statements_more_for_a_delivery_and_none_for_others() {
    // Nine orders of each district wait to be delivered.
    const COUNT: u64 = 9;
    let statements = |compute: &str, mix: &str| {
        let workload = tpcc::workload(&[("compute", compute), ("mix", mix)]);
        let mut statements = 0;
        with_arm(
            |_| {},
            &workload,
            |arm| {
                arm.load();
                statements = arm.run_counting(0, COUNT).1;
            },
        );
        statements
    };
    for (mix, more) in
        [("1,0,0,0,0", 0), ("0,1,0,0,0", 0), ("0,0,1,0,0", 0), ("0,0,0,1,0", 20 * COUNT), ("0,0,0,0,1", 0)]
    {
        let ordinary = statements("server", mix);
        assert!(ordinary >= 4 * COUNT, "{mix}: {ordinary}");
        assert_eq!(statements("client", mix), ordinary + more, "{mix}");
    }
}
