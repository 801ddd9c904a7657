//! `tithe inspect --write-canary`: what becomes of records that are written into servers of which the settings promise
//! something.

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_harness::{
    clock::Clock,
    database::{Connect, Database},
    inspect::{self, Feature},
};
use tithe_model::experiment::OptionValue;

use super::{
    sandbox::{Sandbox, chosen},
    table,
};

/// What the canaries add to the two rows that they are about, without numbers; none of Tithe's tables may be left.
fn check(
    database: &'static dyn Database,
    protections: &[(&str, &[(&str, OptionValue)])],
    tables: &str,
    expected: Expect,
) {
    let asked: Vec<_> = protections.iter().map(|(id, options)| chosen(database, id, options)).collect();
    // PostgreSQL shows its clients a log that it collects itself.
    let collects = ("logging_collector = 'off'", "logging_collector = 'on'");
    let changed: &[_] = if database.id() == "postgres" { &[collects] } else { &[] };
    let Some(sandbox) = Sandbox::start_wrong(database, &asked, changed) else { return };
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let mut cells = database.inspect(&sandbox.server, &sandbox.setup).expect("a matrix");
    inspect::with_canary(database, &sandbox.server, &sandbox.setup, &mut cells).expect("looked");
    let mut text = String::new();
    for cell in cells.iter().filter(|cell| [Feature::AtRest, Feature::Auditing].contains(&cell.feature)) {
        eprintln!("{}: {}", cell.feature.id(), cell.seen);
        text += &format!("{}: {}\n", cell.feature.id(), cell.state.words());
        for canary in cell.seen.split("; canary: ").skip(1) {
            text += &format!("  {}\n", canary.split_once(" (").map_or(canary, |(words, _)| words));
        }
    }
    let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: table() };
    let mut session = database.sql().expect("SQL").connect(&sandbox.server, &sandbox.setup, &how).expect("a session");
    let left = session.run(tables).expect("a list");
    text += &format!("tables left: {left:?}\n");
    expected.assert_eq(&text);
}

const OF_POSTGRES: &str = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'tithe\\_%'";
const OF_MYSQL_FAMILY: &str = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'tithe\\_%'";

#[test]
fn postgres_with_nothing_and_with_logs() {
    check(
        &Postgres,
        &[],
        OF_POSTGRES,
        expect![[r#"
        audit: off
        at-rest: not offered by this product
          no key or field value is readable in the data files: does not hold
          no key or field value is readable in the journal: does not hold
        tables left: []
    "#]],
    );
    check(
        &Postgres,
        &[("pgaudit", &[])],
        OF_POSTGRES,
        expect![[r#"
            audit: enforced
              every statement of class read and write is in the audit log once, and no other: holds
            at-rest: not offered by this product
              no key or field value is readable in the data files: does not hold
              no key or field value is readable in the journal: does not hold
            tables left: []
        "#]],
    );
    check(
        &Postgres,
        &[("pgaudit", &[("log", OptionValue::Text("write".to_owned()))])],
        OF_POSTGRES,
        expect![[r#"
            audit: available but not enforced
              every statement of class read and write is in the audit log once, and no other: does not hold
            at-rest: not offered by this product
              no key or field value is readable in the data files: does not hold
              no key or field value is readable in the journal: does not hold
            tables left: []
        "#]],
    );
    check(
        &Postgres,
        &[("log-statement", &[])],
        OF_POSTGRES,
        expect![[r#"
            audit: enforced
              every statement is in the log once, with its parameters: holds
            at-rest: not offered by this product
              no key or field value is readable in the data files: does not hold
              no key or field value is readable in the journal: does not hold
            tables left: []
        "#]],
    );
}

#[test]
fn mariadb_with_nothing_and_with_encryption_and_audit() {
    check(
        &MariaDb,
        &[],
        OF_MYSQL_FAMILY,
        expect![[r#"
        at-rest: off
          no key or field value is readable in the data files: does not hold
          no key or field value is readable in the journal: does not hold
        audit: off
        tables left: []
    "#]],
    );
    check(
        &MariaDb,
        &[("encryption", &[]), ("server-audit", &[])],
        OF_MYSQL_FAMILY,
        expect![[r#"
        at-rest: enforced
          no key or field value is readable in the data files: holds
          no key or field value is readable in the journal: holds
        audit: enforced
          every event of CONNECT,QUERY is in the audit log once, and no other: holds
        tables left: []
    "#]],
    );
    check(
        &MariaDb,
        &[("general-log", &[])],
        OF_MYSQL_FAMILY,
        expect![[r#"
        at-rest: off
          no key or field value is readable in the data files: does not hold
          no key or field value is readable in the journal: does not hold
        audit: available but not enforced
          every statement is in the log once, with its values: holds
        tables left: []
    "#]],
    );
}

#[test]
fn mysql_with_nothing_and_with_encryption_and_a_log() {
    check(
        &MySql,
        &[],
        OF_MYSQL_FAMILY,
        expect![[r#"
        at-rest: off
          no key or field value is readable in the data files: does not hold
          no key or field value is readable in the journal: does not hold
        audit: off
        tables left: []
    "#]],
    );
    check(
        &MySql,
        &[("encryption", &[]), ("general-log", &[])],
        OF_MYSQL_FAMILY,
        expect![[r#"
        at-rest: enforced
          no key or field value is readable in the data files: holds
          no key or field value is readable in the journal: holds
        audit: available but not enforced
          every statement is in the log once, with its values: holds
        tables left: []
    "#]],
    );
}
