//! TPC-C on a real server, plain and with encrypted columns.

use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_model::experiment::OptionValue;
use tithe_plugin::{
    data,
    product::Product,
    session::{Discard, Parameter, Session},
    setup::Setup,
};
use tithe_workloads::tpcc::Tpcc;

use super::{
    sandbox::{self, Sandbox},
    support::{Arm, evidence, workload},
};

type Tested = &'static dyn Product;

fn arm<'a>(sandbox: &'a Sandbox, setup: &'a Setup, workload: &'a Tpcc) -> Arm<'a> {
    Arm { database: sandbox.database, server: &sandbox.server, setup, workload }
}

fn conditions_hold_after_loading_and_with_terminals_in_each_others_way(database: Tested) {
    let Some(sandbox) = Sandbox::start(database, &[]) else { return };
    for (compute, isolation) in
        [("server", "repeatable-read"), ("client", "repeatable-read"), ("client", "serializable")]
    {
        let workload = workload(&[("compute", compute), ("isolation", isolation)]);
        let arm = arm(&sandbox, &sandbox.setup, &workload);
        assert!(arm.load() > 5000);
        arm.check(true).expect("consistent when fresh");
        let counted = arm.run_together(4, 150);
        assert_eq!((0..5).map(|operation| counted[&operation]).sum::<u64>(), 600, "{counted:?}");
        arm.check(false).expect("consistent when used");
    }
}

fn encrypted_columns_are_proven_and_consistent(database: Tested) {
    let Some(sandbox) = Sandbox::start(database, &[]) else { return };
    let workload = workload(&[("compute", "client")]);
    let Some(plain_sandbox) = Sandbox::start(database, &[]) else { return };
    let plain = arm(&plain_sandbox, &plain_sandbox.setup, &workload);
    plain.load();
    let columns = sandbox::protection(database, "columns");
    for (share, names, cipher) in [
        (0.2, "", "aes-256-gcm"),
        (0.5, "", "sm4-128-gcm"),
        (1.0, "", "aes-256-gcm"),
        (1.0, "c_data,c_last,d_next_o_id,w_ytd", "sm4-128-gcm"),
    ] {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let options = [("share", OptionValue::Number(share)), ("names", text(names)), ("cipher", text(cipher))];
        let chosen = sandbox::chosen(database, "columns", &options);
        let mut setup = sandbox.setup.clone();
        columns.apply(&chosen, &mut setup);
        let protected = arm(&sandbox, &setup, &workload);
        protected.load();
        protected.check(true).expect("consistent when fresh");
        protected.run_together(2, 100);
        protected.check(false).expect("consistent when used");
        let mut seen = evidence(columns, &chosen, protected, plain);
        assert!(seen.pop().is_some_and(|last| last.starts_with("recorders: ")));
        assert_eq!(
            seen,
            ["ciphertext-seen: holds", "wrong-column-key: holds", "disk-canary: holds", "wire-canary: holds"]
        );
        protected.check(false).expect("the evidence leaves nothing behind");
    }
}

fn a_wrapped_session_and_ordinary_statements_are_told_for_what_they_are(sandbox: &Sandbox) {
    let database = sandbox.database;
    let workload = workload(&[("compute", "client")]);
    let plain = arm(sandbox, &sandbox.setup, &workload);
    plain.load();
    for (id, options, expected) in [
        ("columns", [("share", OptionValue::Number(0.0))].as_slice(), "wrapper-idle: holds"),
        ("ordinary-statements", &[], "statements-ordinary: holds"),
    ] {
        let mut setup = sandbox.setup.clone();
        let chosen = sandbox::chosen(database, id, options);
        sandbox::protection(database, id).apply(&chosen, &mut setup);
        let protected = arm(sandbox, &setup, &workload);
        assert_eq!(evidence(sandbox::protection(database, id), &chosen, protected, plain), [expected]);
        protected.run(0, 60);
        protected.check(false).expect("consistent when used");
    }
}

fn answers_come_in_the_order_of_what_was_sent_and_a_refusal_is_its_own(sandbox: &Sandbox) {
    let workload = workload(&[]);
    let arm = arm(sandbox, &sandbox.setup, &workload);
    data::create(arm.database, arm.server, arm.setup, &workload).expect("tables");
    let Session::Sql(mut session) = arm.connect() else { panic!("a session of statements") };
    assert!(session.pipelines());
    let add = session.prepare("INSERT INTO new_order VALUES (?, 1, 1)").expect("a statement");
    for order in [1, 2, 1, 3] {
        session.submit(add, &[Parameter::Integer(order)]).expect("sent");
    }
    let answers = [(); 4].map(|()| session.finish(&mut Discard).ok());
    assert_eq!(answers, [Some(1), Some(1), None, Some(1)]);
}

macro_rules! on {
    ($name:ident, $database:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn conditions_hold_after_loading_and_with_terminals_in_each_others_way() {
                super::conditions_hold_after_loading_and_with_terminals_in_each_others_way($database);
            }

            #[test]
            fn encrypted_columns_are_proven_and_consistent() {
                super::encrypted_columns_are_proven_and_consistent($database);
            }

            #[test]
            fn sessions_are_told_for_what_they_are_and_answer_in_order() {
                let Some(sandbox) = Sandbox::start($database, &[]) else { return };
                a_wrapped_session_and_ordinary_statements_are_told_for_what_they_are(&sandbox);
                answers_come_in_the_order_of_what_was_sent_and_a_refusal_is_its_own(&sandbox);
            }
        }
    };
}

on!(postgres, &Postgres);
on!(mariadb, &MariaDb);
on!(mysql, &MySql);
