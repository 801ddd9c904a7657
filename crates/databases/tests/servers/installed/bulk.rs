//! Bulk loads and scans on real servers: every way and every kind of table, the result, and what is refused.

use expect_test::expect;
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres, redis::Redis};
use tithe_plugin::{product::Product, session::Session};

use crate::{
    loading::{Arm, workload},
    sandbox::Sandbox,
};

fn arm(sandbox: &Sandbox) -> Arm<'_> {
    Arm { database: sandbox.database, server: &sandbox.server, setup: &sandbox.setup }
}

const EVERY: &[&str] = &["plain", "keyed", "foreign", "trigger", "partitioned"];

#[test]
fn postgres_loads_and_scans() {
    let Some(sandbox) = Sandbox::start(&Postgres, &[]) else { return };
    let arm = arm(&sandbox);
    let told = arm.loads("copy", EVERY)
        + &arm.loads("multi", EVERY)
        + &arm.loads("single", EVERY)
        + &arm.loads("load", &["plain"])
        + &arm.scans();
    expect![[r#"
        copy plain: batches are whole, and each row is as it was made [150 500 649]
        copy keyed: batches are whole, and each row is as it was made [150 500 649]
        copy foreign: batches are whole, and each row is as it was made [150 500 649]
        copy trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        copy partitioned: batches are whole, and each row is as it was made [150 500 649]
        multi plain: batches are whole, and each row is as it was made [150 500 649]
        multi keyed: batches are whole, and each row is as it was made [150 500 649]
        multi foreign: batches are whole, and each row is as it was made [150 500 649]
        multi trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        multi partitioned: batches are whole, and each row is as it was made [150 500 649]
        single plain: batches are whole, and each row is as it was made [150 500 649]
        single keyed: batches are whole, and each row is as it was made [150 500 649]
        single foreign: batches are whole, and each row is as it was made [150 500 649]
        single trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        single partitioned: batches are whole, and each row is as it was made [150 500 649]
        load plain: refused: PostgreSQL has no bulk load `load`; what it has: copy, multi and single
        aggregate: scans of each kind answer what the rows make
        group: scans of each kind answer what the rows make
        range: scans of each kind answer what the rows make
        sort: scans of each kind answer what the rows make
    "#]].assert_eq(&told);
    // A sort of more than its memory spills.
    let long = workload("scan", 20_000, &[("query", "sort"), ("length", "400")]);
    arm.run(long.as_ref(), 1).expect("sorted");
    let Session::Sql(mut session) = arm.session(long.as_ref(), true) else { panic!("SQL") };
    let plan =
        session.run("EXPLAIN (ANALYZE) SELECT s_id FROM scan ORDER BY s_text LIMIT 1 OFFSET 19999").expect("a plan");
    assert!(format!("{plan:?}").contains("external merge"), "{plan:?}");
    // Data that was loaded and then changed outside the workload is not as it was made.
    let copy = workload("bulk", 1, &[("way", "copy"), ("batch", "50")]);
    arm.run(copy.as_ref(), 1).expect("loaded");
    session.run("UPDATE bulk SET b_number = b_number + 1 WHERE b_id = 7").expect("changed");
    let clients = copy.offered_by().clients().expect("clients");
    let wrong = clients.check(&mut arm.session(copy.as_ref(), true), false);
    expect![[r#"Err(Wrong("of 150 rows in batches of 50 1 are not as they were made"))"#]]
        .assert_eq(&format!("{wrong:?}"));
}

fn of_mysql(database: &'static dyn Product) -> Option<String> {
    let sandbox = Sandbox::start_as(database, &[], &[("local_infile", "ON")], &[])?;
    let arm = arm(&sandbox);
    let told = arm.loads("load", EVERY)
        + &arm.loads("multi", &["plain", "trigger"])
        + &arm.loads("single", &["plain", "foreign"])
        + &arm.loads("copy", &["plain"])
        + &arm.scans();
    // A server that does not let clients send files.
    let load = workload("bulk", 1, &[("way", "load"), ("batch", "50")]);
    let Session::Sql(mut session) = arm.session(load.as_ref(), true) else { panic!("SQL") };
    session.run("SET GLOBAL local_infile = OFF").expect("off");
    Some(told + &arm.loads("load", &["plain"]))
}

#[test]
fn mariadb_loads_and_scans() {
    let Some(told) = of_mysql(&MariaDb) else { return };
    expect![[r#"
        load plain: batches are whole, and each row is as it was made [150 500 649]
        load keyed: batches are whole, and each row is as it was made [150 500 649]
        load foreign: batches are whole, and each row is as it was made [150 500 649]
        load trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        load partitioned: batches are whole, and each row is as it was made [150 500 649]
        multi plain: batches are whole, and each row is as it was made [150 500 649]
        multi trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        single plain: batches are whole, and each row is as it was made [150 500 649]
        single foreign: batches are whole, and each row is as it was made [150 500 649]
        copy plain: refused: MariaDB has no bulk load `copy`; what it has: load, multi and single
        aggregate: scans of each kind answer what the rows make
        group: scans of each kind answer what the rows make
        range: scans of each kind answer what the rows make
        sort: scans of each kind answer what the rows make
        load plain: refused: 4166 (HY000): The used command is not allowed because the MariaDB server or client has disabled the local infile capability; write `settings = { local_infile = "ON" }`
    "#]].assert_eq(&told);
}

#[test]
fn mysql_loads_and_scans() {
    let Some(told) = of_mysql(&MySql) else { return };
    expect![[r#"
        load plain: batches are whole, and each row is as it was made [150 500 649]
        load keyed: batches are whole, and each row is as it was made [150 500 649]
        load foreign: batches are whole, and each row is as it was made [150 500 649]
        load trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        load partitioned: batches are whole, and each row is as it was made [150 500 649]
        multi plain: batches are whole, and each row is as it was made [150 500 649]
        multi trigger: batches are whole, and each row is as it was made; the trigger has written a row for each [150 500 649]
        single plain: batches are whole, and each row is as it was made [150 500 649]
        single foreign: batches are whole, and each row is as it was made [150 500 649]
        copy plain: refused: MySQL has no bulk load `copy`; what it has: load, multi and single
        aggregate: scans of each kind answer what the rows make
        group: scans of each kind answer what the rows make
        range: scans of each kind answer what the rows make
        sort: scans of each kind answer what the rows make
        load plain: refused: 3948 (42000): Loading local data is disabled; this must be enabled on both the client and server sides; write `settings = { local_infile = "ON" }`
    "#]].assert_eq(&told);
}

#[test]
fn redis_loads_in_pipelines() {
    let Some(sandbox) = Sandbox::start(&Redis, &[]) else { return };
    let arm = arm(&sandbox);
    let told = arm.loads("pipeline", &["plain"]) + &arm.loads("multi", &["plain"]);
    expect![[r#"
        pipeline plain: 
        multi plain: refused: Redis has no bulk load `multi`; what it has: pipeline
    "#]]
    .assert_eq(&told);
    // A record that is lost is missed.
    let pipeline = workload("bulk", 1, &[("way", "pipeline"), ("batch", "50"), ("keep", "50")]);
    arm.run(pipeline.as_ref(), 1).expect("written");
    let mut session = arm.session(pipeline.as_ref(), true);
    let key = "DEL tithe:bulk:row000000000007";
    session.connection().run_statement(key).expect("removed");
    let clients = pipeline.offered_by().clients().expect("clients");
    let mut client = clients.client(&clients.arm_state());
    client.seed(1);
    client.prepare();
    client.submit(&mut session).expect("sent");
    struct NoParts;
    impl tithe_plugin::workload::PartRecorder for NoParts {
        fn part(&mut self, _operation: usize) {}
    }
    let wrong = client.advance(&mut session, &mut NoParts);
    expect![[r#"Err(Wrong("of a pipeline of 50 records the server had 49"))"#]].assert_eq(&format!("{wrong:?}"));
}
