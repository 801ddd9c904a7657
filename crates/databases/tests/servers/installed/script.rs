//! Scripts on real servers: every protocol, rows that become variables, conflicts, and what a slot must not leave
//! behind.

use std::{collections::BTreeMap, sync::atomic::AtomicU64};

use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_machine::{clock::Clock, fault::Fault};
use tithe_model::experiment::{self, Data, Values};
use tithe_plugin::{
    data,
    database::Connect,
    product::Product,
    session::{Progress, Session, wait_ready},
    workload::{Client, PartRecorder, Workload},
};

use super::sandbox::Sandbox;

#[derive(Default)]
struct Counted(BTreeMap<usize, u64>);

impl PartRecorder for Counted {
    fn part(&mut self, operation: usize) {
        *self.0.entry(operation).or_default() += 1;
    }
}

fn workload(script: &str, properties: &[(&str, &str)]) -> Box<dyn Workload> {
    let mut all: BTreeMap<String, String> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let builtin = tithe_workloads::script::builtin::PRESETS.iter().find(|(name, ..)| *name == script);
    all.insert("script".to_owned(), builtin.map_or(script, |(_, _, set)| set[0].1).to_owned());
    all.insert("file".to_owned(), builtin.map_or("own.sql", |(name, ..)| *name).to_owned());
    let described =
        experiment::Workload { name: "s".to_owned(), kind: "script".to_owned(), properties: all, prepare: None };
    let data = Data { records: 1000, values: Values::Ycsb };
    tithe_workloads::make(&described, &data, 7).expect("a workload")
}

fn connect(sandbox: &Sandbox, workload: &dyn Workload, blocking: bool) -> Session {
    let how = Connect { blocking, lane: 0, clock: Clock::Real, table: workload.table() };
    data::connect(sandbox.database, &sandbox.server, &sandbox.setup, &how, workload).expect("a session")
}

fn run(session: &mut Session, client: &mut dyn Client, parts: &mut Counted) -> Result<(), Fault> {
    client.prepare();
    client.submit(session)?;
    while client.advance(session, parts)? == Progress::Pending {
        wait_ready(session.connection())?;
    }
    Ok(())
}

fn built_in_scripts_run_by_every_protocol(database: &'static dyn Product, protocols: &[&str]) {
    let Some(sandbox) = Sandbox::start(database, &[]) else { return };
    let tables = workload("builtin:tpcb-like", &[]);
    data::create(sandbox.database, &sandbox.server, &sandbox.setup, tables.as_ref()).expect("tables");
    let clients = tables.offered_by().clients().expect("clients of Tithe's");
    clients.load(&mut connect(&sandbox, tables.as_ref(), true), 0, 1, &AtomicU64::new(0)).expect("rows");
    for protocol in protocols {
        for script in ["builtin:tpcb-like", "builtin:simple-update", "builtin:select-only"] {
            let workload = workload(script, &[("protocol", protocol)]);
            let mut session = connect(&sandbox, workload.as_ref(), false);
            let clients = workload.offered_by().clients().expect("clients of Tithe's");
            let mut client = clients.client(&clients.arm_state());
            client.open(&mut session).expect("prepared");
            client.seed(5432);
            let mut parts = Counted::default();
            for _ in 0..20 {
                run(&mut session, client.as_mut(), &mut parts).expect("a transaction");
            }
            assert!(parts.0.values().all(|count| *count == 20), "{protocol} {script}: {parts:?}", parts = parts.0);
            assert_eq!(parts.0.len(), workload.operations().len() - 2, "{protocol} {script}");
        }
    }
    // What the accounts have and what the history says is the same: all was committed, once.
    let Session::Sql(mut session) = connect(&sandbox, tables.as_ref(), true) else { panic!("SQL") };
    let rows = session
        .run("SELECT (SELECT sum(abalance) FROM pgbench_accounts) - (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)")
        .expect("sums");
    let expected = (40 * protocols.len()).to_string();
    assert_eq!(rows, [[Some("0".to_owned()), Some(expected)]]);
}

fn rows_become_variables_and_no_transaction_is_left_open(database: &'static dyn Product, protocols: &[&str]) {
    let Some(sandbox) = Sandbox::start(database, &[]) else { return };
    let any = workload("SELECT 1;", &[]);
    data::create(sandbox.database, &sandbox.server, &sandbox.setup, any.as_ref()).expect("a place for data");
    for protocol in protocols {
        let outcome = |script: &str| {
            let workload = workload(script, &[("protocol", protocol)]);
            let mut session = connect(&sandbox, workload.as_ref(), true);
            let clients = workload.offered_by().clients().expect("clients of Tithe's");
            let mut client = clients.client(&clients.arm_state());
            client.open(&mut session).expect("prepared");
            client.seed(1);
            let first = run(&mut session, client.as_mut(), &mut Counted::default()).map_err(|fault| fault.to_string());
            let Session::Sql(session) = session else { panic!("SQL") };
            assert!(!session.in_transaction(), "{protocol}: {script}");
            first
        };
        let taken = "SELECT 40 AS a, 2 AS b \\gset x_\n\\if :x_a + :x_b <> 42\nSELECT nothing FROM nowhere;\n\\endif\nSELECT 1;";
        assert_eq!(outcome(taken), Ok(()), "{protocol}");
        let all =
            "SELECT 6 AS i6 \\; SELECT 7 AS i7 \\aset\n\\if :i7 <> 7\nSELECT nothing FROM nowhere;\n\\endif\nSELECT 1;";
        assert_eq!(outcome(all), Ok(()), "{protocol}");
        let open = outcome("BEGIN;\nSELECT 1;").expect_err("left open");
        assert!(open.contains("without completing the last transaction"), "{protocol}: {open}");
        let failed = outcome("BEGIN;\nSELECT 1;\nSELECT nothing FROM nowhere;\nCOMMIT;").expect_err("no such table");
        assert!(failed.contains("nowhere"), "{protocol}: {failed}");
        let two = outcome("SELECT 1 AS a UNION SELECT 2 \\gset\nSELECT 1;").expect_err("two rows");
        assert!(two.contains("own.sql, line 1: expected one row, got 2"), "{protocol}: {two}");
        let divided = outcome("BEGIN;\n\\set a 1 / 0\nCOMMIT;").expect_err("cannot be computed");
        assert!(divided.contains("own.sql, line 2, column 1: division by zero"), "{protocol}: {divided}");
        assert_eq!(outcome("\\if false\nSELECT 1;\n\\endif"), Ok(()), "{protocol}");
    }
}

const ALL: &[&str] = &["simple", "extended", "prepared"];
const OF_MYSQL: &[&str] = &["simple", "prepared"];

#[test]
fn postgres_runs_built_in_scripts() {
    built_in_scripts_run_by_every_protocol(&Postgres, ALL);
}

#[test]
fn postgres_takes_rows_as_variables() {
    rows_become_variables_and_no_transaction_is_left_open(&Postgres, ALL);
}

#[test]
fn mariadb_runs_built_in_scripts() {
    built_in_scripts_run_by_every_protocol(&MariaDb, OF_MYSQL);
}

#[test]
fn mariadb_takes_rows_as_variables() {
    rows_become_variables_and_no_transaction_is_left_open(&MariaDb, OF_MYSQL);
}

#[test]
fn mysql_runs_built_in_scripts() {
    built_in_scripts_run_by_every_protocol(&MySql, OF_MYSQL);
}

#[test]
fn mysql_takes_rows_as_variables() {
    rows_become_variables_and_no_transaction_is_left_open(&MySql, OF_MYSQL);
}
