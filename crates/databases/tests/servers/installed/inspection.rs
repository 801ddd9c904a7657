//! `tithe inspect --write-canary`: what happens to records that are written into servers whose settings promise
//! protection.

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_harness::inspect;
use tithe_machine::launch::{Address, Server};
use tithe_model::experiment::{OptionValue, Url};
use tithe_plugin::{database::Database, matrix::Feature, product::Product, session::SqlSession, setup::Setup};

use super::{
    how,
    sandbox::{Sandbox, chosen},
    table,
};

/// What the canaries add to the two rows that they concern, without numbers.
fn canaries(database: &dyn Product, server: &Server, setup: &Setup) -> String {
    let mut cells = database.inspect(server, setup).expect("a matrix");
    inspect::with_canary(database, server, setup, &mut cells).expect("looked");
    let mut text = String::new();
    for cell in cells.iter().filter(|cell| [Feature::AtRest, Feature::Auditing].contains(&cell.feature)) {
        eprintln!("{}: {}", cell.feature.id(), cell.seen);
        text += &format!("{}: {}\n", cell.feature.id(), cell.state.words());
        for canary in cell.seen.split("; canary: ").skip(1) {
            text += &format!("  {}\n", canary.split_once(" (").map_or(canary, |(words, _)| words));
        }
    }
    text
}

/// As [`canaries`] on a server with `protections`; none of Tithe's tables may be left.
fn check(
    database: &'static dyn Product,
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
    let mut text = canaries(database, &sandbox.server, &sandbox.setup);
    let mut session =
        database.sql().expect("SQL").connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session");
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
            at-rest: available but not enforced
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
            at-rest: available but not enforced
              no key or field value is readable in the data files: holds
              no key or field value is readable in the journal: holds
            audit: available but not enforced
              every statement is in the log once, with its values: holds
            tables left: []
        "#]],
    );
}

fn administrator(sandbox: &Sandbox) -> Box<dyn SqlSession> {
    sandbox.database.sql().expect("SQL").connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session")
}

/// The log in each format that the server can write, and a log that cannot be checked.
#[test]
fn postgres_with_logs_of_all_formats_and_with_none_to_look_at() {
    let collects = [("logging_collector = 'off'", "logging_collector = 'on'")];
    let Some(sandbox) = Sandbox::start_wrong(&Postgres, &[chosen(&Postgres, "pgaudit", &[])], &collects) else {
        return;
    };
    let mut session = administrator(&sandbox);
    let mut text = String::new();
    for statements in ["none", "all"] {
        for destination in ["csvlog", "jsonlog", "syslog"] {
            session.run(&format!("ALTER SYSTEM SET log_statement = '{statements}'")).expect("set");
            session.run(&format!("ALTER SYSTEM SET log_destination = '{destination}'")).expect("set");
            reload(&sandbox, &mut *session, ("log_destination", destination), destination);
            text += &format!("log_statement = {statements}, log_destination = {destination}\n");
            let seen = canaries(&Postgres, &sandbox.server, &sandbox.setup);
            text += seen.split("at-rest").next().expect("a row");
        }
    }
    session.run("ALTER SYSTEM RESET log_destination").expect("set");
    session.run("ALTER SYSTEM SET log_min_messages = 'fatal'").expect("set");
    reload(&sandbox, &mut *session, ("log_min_messages", "fatal"), "stderr");
    text += "log_min_messages = fatal\n";
    text += canaries(&Postgres, &sandbox.server, &sandbox.setup).split("at-rest").next().expect("a row");
    expect![[r#"
        log_statement = none, log_destination = csvlog
        audit: enforced
          every statement of class read and write is in the audit log once, and no other: holds
        log_statement = none, log_destination = jsonlog
        audit: enforced
          every statement of class read and write is in the audit log once, and no other: holds
        log_statement = none, log_destination = syslog
        audit: cannot tell
          every statement of class read and write is in the audit log once, and no other: could not be checked
        log_statement = all, log_destination = csvlog
        audit: enforced
          every statement is in the log once, with its parameters: holds
        log_statement = all, log_destination = jsonlog
        audit: enforced
          every statement is in the log once, with its parameters: holds
        log_statement = all, log_destination = syslog
        audit: cannot tell
          every statement is in the log once, with its parameters: could not be checked
        log_min_messages = fatal
        audit: off
          every statement is in the log once, with its parameters: could not be checked
    "#]]
    .assert_eq(&text);
}

/// Reloads the settings, and waits until new sessions have them and the collector writes to `destination`.
fn reload(sandbox: &Sandbox, session: &mut dyn SqlSession, (name, value): (&str, &str), destination: &str) {
    session.run("SELECT pg_reload_conf()").expect("reloaded");
    await_answer(sandbox, &format!("SHOW {name}"), value);
    let collected = match destination {
        // It no longer writes, and reports that.
        "syslog" => "SELECT pg_current_logfile() IS NULL".to_owned(),
        destination => format!("SELECT pg_current_logfile('{destination}') IS NOT NULL"),
    };
    await_answer(sandbox, &collected, "t");
}

/// Waits until a new session gets `value`; gives up after minutes, which is enough even on a busy machine.
fn await_answer(sandbox: &Sandbox, question: &str, value: &str) {
    let asked = || administrator(sandbox).run(question).expect("a value");
    let waited = (0..6000).find(|_| {
        let answered = asked() == [[Some(value.to_owned())]];
        if !answered {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        answered
    });
    assert!(waited.is_some(), "{question}: {:?}", asked());
}

/// On a server that Tithe did not launch, pages stay in memory until a client has them written, which needs a
/// privilege.
#[test]
fn mariadb_that_is_made_to_write_its_table_or_may_not_be() {
    let asked = ["encryption", "password"].map(|id| chosen(&MariaDb, id, &[]));
    let grants = [("TO tithe@'127.0.0.1';", "TO tithe@'127.0.0.1' WITH GRANT OPTION;")];
    let Some(sandbox) = Sandbox::start_wrong(&MariaDb, &asked, &grants) else { return };
    MariaDb.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let password = sandbox.setup.credentials.password.expose_text();
    let mut session = administrator(&sandbox);
    session.run(&format!("CREATE USER least@'127.0.0.1' IDENTIFIED BY '{password}'")).expect("an account");
    session.run("GRANT ALL ON tithe.* TO least@'127.0.0.1'").expect("rights");
    session.run("GRANT SELECT, PROCESS ON *.* TO least@'127.0.0.1'").expect("rights");
    let Address::Tcp { host, port } = &sandbox.server.address else { panic!("a TCP server") };
    let address = Address::Attached(Url::new(format!("mariadb://least:{password}@{host}:{port}/")));
    let server = Server { address, process: None, remote: None, paths: Default::default(), ..sandbox.server.clone() };
    let mut observe = |rights: &str| {
        session.run(rights).expect("rights");
        let seen = canaries(&MariaDb, &server, &Setup::bare());
        format!("{rights}\n{}", seen.split("audit").next().expect("a row"))
    };
    let text = observe("GRANT SELECT ON *.* TO least@'127.0.0.1'")
        + &observe("GRANT RELOAD ON *.* TO least@'127.0.0.1'")
        // If the canary is found in an unencrypted table, the table was written.
        + &observe("SET GLOBAL innodb_encrypt_tables = OFF");
    expect![[r#"
        GRANT SELECT ON *.* TO least@'127.0.0.1'
        at-rest: cannot tell
          no key or field value is readable in the data files: could not be checked
          no key or field value is readable in the journal: could not be checked
        GRANT RELOAD ON *.* TO least@'127.0.0.1'
        at-rest: enforced
          no key or field value is readable in the data files: holds
          no key or field value is readable in the journal: holds
        SET GLOBAL innodb_encrypt_tables = OFF
        at-rest: available but not enforced
          no key or field value is readable in the data files: does not hold
          no key or field value is readable in the journal: holds
    "#]]
    .assert_eq(&text);
}
