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
    session::{Discard, Parameter, Progress, Session, SqlSession, rows, wait_ready},
    workload::{Client, PartRecorder, Workload},
};

use crate::{
    sandbox::{Sandbox, chosen},
    shared::eventually,
};

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
    // The balances and the history agree: everything was committed, once.
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

/// MySQL 8.0 announces two parameters of the first and defines one.
#[test]
fn statements_are_prepared_whose_order_depends_on_a_parameter() {
    for database in [&MariaDb as &'static dyn Product, &MySql] {
        let Some(sandbox) = Sandbox::start(database, &[]) else { continue };
        let any = workload("SELECT 1;", &[]);
        data::create(sandbox.database, &sandbox.server, &sandbox.setup, any.as_ref()).expect("a place for data");
        let Session::Sql(mut session) = connect(&sandbox, any.as_ref(), true) else { panic!("no session") };
        session.run("CREATE TABLE shop (id int PRIMARY KEY, price int)").expect("a table");
        session.run("INSERT INTO shop VALUES (1, 30), (2, 20), (3, 10)").expect("rows");
        for text in [
            "SELECT id AS one, price FROM shop WHERE id > ? ORDER BY ?",
            "SELECT id AS one, price FROM shop WHERE id > ? ORDER BY ?, price DESC LIMIT 9",
            "SELECT id AS one, price FROM shop WHERE id > ? ORDER BY id = ?",
        ] {
            let prepared = session.prepare_text(text).expect(text);
            assert_eq!(prepared.columns, ["one", "price"], "{}: {text}", database.title());
            let parameters = [b"1", b"2"].map(|value| Parameter::Text(value));
            assert_eq!(session.call(prepared.statement, &parameters, &mut Discard).expect(text), 2, "{text}");
        }
        let refused = session.prepare_text("SELECT id FROM nowhere ORDER BY ?").map(|_| ());
        assert!(refused.expect_err("refused").to_string().contains("1146"), "{}", database.title());
        assert_eq!(session.run("SELECT 1").expect("it goes on").len(), 1);
    }
}

#[test]
fn mysql_takes_rows_as_variables() {
    rows_become_variables_and_no_transaction_is_left_open(&MySql, OF_MYSQL);
}

/// What `pg_stat_statements` has recorded on the tables of built-in scripts, and about transactions: texts with calls.
fn statements_seen(session: &mut dyn SqlSession) -> Vec<(String, String)> {
    let seen = "SELECT replace(query, 'END', 'COMMIT'), calls::text FROM public.pg_stat_statements WHERE (query LIKE \
                '%pgbench_%' AND query NOT ILIKE '%count(*)%' AND query NOT LIKE '%pg_catalog%') OR query IN ('BEGIN', 'END', \
                'COMMIT') ORDER BY 1";
    rows(session, seen).expect("statements").into_iter().map(|[text, calls]| (text, calls)).collect()
}

#[test]
fn built_in_scripts_are_the_statements_of_pgbench() {
    const TRANSACTIONS: usize = 15;
    let further = [("shared_preload_libraries", "pg_stat_statements")];
    let Some(sandbox) = Sandbox::start_as(&Postgres, &[], &further, &[]) else { return };
    let tables = workload("builtin:tpcb-like", &[]);
    data::create(sandbox.database, &sandbox.server, &sandbox.setup, tables.as_ref()).expect("tables");
    let clients = tables.offered_by().clients().expect("clients of Tithe's");
    clients.load(&mut connect(&sandbox, tables.as_ref(), true), 0, 1, &AtomicU64::new(0)).expect("rows");
    let Session::Sql(mut asking) = connect(&sandbox, tables.as_ref(), true) else { panic!("SQL") };
    asking.run("CREATE EXTENSION pg_stat_statements SCHEMA public").expect("the extension");
    let reach = sandbox.database.reach(&sandbox.server, &sandbox.setup).expect("a way");
    for protocol in ["simple", "prepared"] {
        for name in ["tpcb-like", "simple-update", "select-only"] {
            let workload = workload(&format!("builtin:{name}"), &[("protocol", protocol)]);
            let mut session = connect(&sandbox, workload.as_ref(), true);
            let clients = workload.offered_by().clients().expect("clients of Tithe's");
            let mut client = clients.client(&clients.arm_state());
            client.open(&mut session).expect("prepared");
            client.seed(1);
            asking.run("SELECT public.pg_stat_statements_reset()").expect("nothing seen");
            for _ in 0..TRANSACTIONS {
                run(&mut session, client.as_mut(), &mut Counted::default()).expect("a transaction");
            }
            let of_tithe = statements_seen(asking.as_mut());
            asking.run("SELECT public.pg_stat_statements_reset()").expect("nothing seen");
            let pgbench = std::process::Command::new("pgbench")
                .args([
                    "-h",
                    &reach.host,
                    "-p",
                    &reach.port.to_string(),
                    "-U",
                    &reach.user,
                    "-n",
                    "-b",
                    name,
                    "-M",
                    protocol,
                ])
                .args(["-t", &TRANSACTIONS.to_string(), &reach.database])
                .env("PGOPTIONS", "-c search_path=tithe")
                .output()
                .expect("pgbench");
            assert!(pgbench.status.success(), "{}", String::from_utf8_lossy(&pgbench.stderr));
            let of_pgbench = statements_seen(asking.as_mut());
            assert_eq!(of_tithe, of_pgbench, "{name}, {protocol}");
            // The server counts the BEGIN and COMMIT of prepared transactions once.
            let mut on_tables = of_tithe.iter().filter(|(text, _)| text.contains("pgbench_"));
            assert!(on_tables.all(|(_, calls)| *calls == TRANSACTIONS.to_string()), "{of_tithe:?}");
            assert_eq!(of_tithe.len(), workload.operations().len() - 2, "{of_tithe:?}");
        }
    }
}

/// A client of `script` on a server of `database` with a table `t` of two rows.
fn opened(sandbox: &Sandbox, script: &str, properties: &[(&str, &str)]) -> (Box<dyn Client>, Session) {
    let workload = workload(script, properties);
    let mut session = connect(sandbox, workload.as_ref(), true);
    let clients = workload.offered_by().clients().expect("clients of Tithe's");
    let mut client = clients.client(&clients.arm_state());
    client.open(&mut session).expect("prepared");
    client.seed(1);
    (client, session)
}

fn with_rows(database: &'static dyn Product) -> Option<Sandbox> {
    let sandbox = Sandbox::start(database, &[])?;
    let any = workload("SELECT 1;", &[]);
    data::create(sandbox.database, &sandbox.server, &sandbox.setup, any.as_ref()).expect("a place for data");
    let Session::Sql(mut session) = connect(&sandbox, any.as_ref(), true) else { panic!("SQL") };
    for statement in ["CREATE TABLE t (id int PRIMARY KEY, a int)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)"] {
        session.run(statement).expect(statement);
    }
    Some(sandbox)
}

/// If the server aborts a transaction in favour of another one, it is repeated if possible, and counted.
fn a_deadlock_is_tried_again(database: &'static dyn Product) {
    let Some(sandbox) = with_rows(database) else { return };
    let script = "BEGIN;\nUPDATE t SET a = a + 1 WHERE id = 1;\nUPDATE t SET a = a + 1 WHERE id = 2;\nCOMMIT;";
    let workload = workload(script, &[("max_tries", "1000")]);
    // The client may lock its first row again before the other transaction wakes, and is then aborted again: it gets
    // more tries than it can use up.
    for tries in ["1", "1000"] {
        let (mut client, mut session) = opened(&sandbox, script, &[("max_tries", tries)]);
        let Session::Sql(mut other) = connect(&sandbox, workload.as_ref(), true) else { panic!("SQL") };
        // It has changed more and does not check for deadlocks, so the other transaction is aborted.
        if database.id() == "postgres" {
            other.run("SET deadlock_timeout = '60s'").expect("an administrator");
        }
        other.run("BEGIN").expect("begun");
        other.run("UPDATE t SET a = a WHERE id > 1").expect("locked");
        // Not from rows of the table, which MySQL would lock, so that the client would hold nothing.
        let rows: Vec<String> = (10..30).map(|id| format!("({id}, 0)")).collect();
        other.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).expect("rows");
        let waiting = match database.id() {
            "postgres" => "SELECT 1 FROM pg_locks WHERE NOT granted",
            // The table of transactions is cached for a tenth of a second after each read: frequent reads see old data.
            _ => "SHOW GLOBAL STATUS LIKE 'innodb_row_lock_current_waits'",
        };
        let is_some = |row: &Vec<Option<String>>| row.last().is_some_and(|value| value.as_deref() != Some("0"));
        let mut parts = Counted::default();
        let (outcome, other) = std::thread::scope(|scope| {
            let ending = scope.spawn(move || {
                eventually("the client waits for a lock", || {
                    other.run(waiting).expect("an answer").iter().any(is_some)
                });
                other.run("UPDATE t SET a = a WHERE id = 1").expect("the other one was ended");
                other.run("ROLLBACK").expect("ended");
            });
            let outcome = run(&mut session, client.as_mut(), &mut parts);
            (outcome, ending.join())
        });
        other.expect("the other session");
        let again = parts.0.get(&(workload.operations().len() - 1)).copied().unwrap_or_default();
        assert_eq!(
            (outcome.is_ok(), again > 0),
            (tries == "1000", tries == "1000"),
            "{}: {outcome:?}",
            database.title()
        );
    }
}

#[test]
fn postgres_tries_again_what_a_deadlock_ended() {
    a_deadlock_is_tried_again(&Postgres);
}

#[test]
fn mariadb_tries_again_what_a_deadlock_ended() {
    a_deadlock_is_tried_again(&MariaDb);
}

#[test]
fn mysql_tries_again_what_a_deadlock_ended() {
    a_deadlock_is_tried_again(&MySql);
}

/// No statement shows what the function that it calls does to the session.
#[test]
fn settings_that_a_function_changes_for_good_are_seen() {
    for (database, make, fleeting, lasting, setting) in [
        (
            &Postgres as &'static dyn Product,
            "CREATE FUNCTION change(fleeting boolean) RETURNS text LANGUAGE sql AS $$SELECT set_config('work_mem', '5MB', \
             fleeting)$$",
            "SELECT change(true);",
            "SELECT change(false);",
            "work_mem",
        ),
        (
            &MariaDb,
            "CREATE PROCEDURE change_it() SET SESSION group_concat_max_len = 5000",
            "DO 1;",
            "CALL change_it();",
            "group_concat_max_len",
        ),
        (
            &MySql,
            "CREATE PROCEDURE change_it() SET SESSION group_concat_max_len = 5000",
            "DO 1;",
            "CALL change_it();",
            "group_concat_max_len",
        ),
    ] {
        let Some(sandbox) = with_rows(database) else { continue };
        let Session::Sql(mut session) = connect(&sandbox, workload("SELECT 1;", &[]).as_ref(), true) else { panic!() };
        session.run(make).expect(make);
        let seen = |script: &str| {
            let (mut client, mut session) = opened(&sandbox, script, &[]);
            assert_eq!(client.lasting_change(&mut session), Ok(None), "{script}");
            run(&mut session, client.as_mut(), &mut Counted::default()).expect(script);
            client.lasting_change(&mut session).expect(script)
        };
        assert_eq!(seen(fleeting), None, "{}", database.title());
        let told = seen(lasting).expect(lasting);
        assert!(told.contains(&format!("the setting `{setting}` of its session")), "{told}");
    }
}

/// Endless answers are aborted, and use no memory.
#[test]
fn an_answer_that_is_too_large_ends_its_connection() {
    let large = "SELECT repeat('x', 1000) FROM";
    for (database, rows) in [
        (&Postgres as &'static dyn Product, "generate_series(1, 1000000)"),
        (&MariaDb, "information_schema.COLUMNS a, information_schema.COLUMNS b, information_schema.COLUMNS c"),
    ] {
        let Some(sandbox) = with_rows(database) else { continue };
        let (mut client, mut session) = opened(&sandbox, &format!("{large} {rows};"), &[]);
        let outcome = run(&mut session, client.as_mut(), &mut Counted::default());
        let Err(Fault::Connection(words)) = outcome else { panic!("{}: {outcome:?}", database.title()) };
        assert!(words.contains("more than 67 MB"), "{words}");
    }
}

/// The answers of transactions are read outside of the load, and they leave nothing behind.
#[test]
fn answers_are_seen_and_rolled_back() {
    for database in [&Postgres as &'static dyn Product, &MariaDb] {
        let Some(sandbox) = with_rows(database) else { continue };
        let script = "\\set id random(1, 3)\nBEGIN;\nUPDATE t SET a = a + 1 WHERE id = :id;\nSELECT a, id FROM t WHERE id = \
                      :id;\nSELECT id FROM t ORDER BY id;\nCOMMIT;";
        for protocol in ["simple", "prepared"] {
            let workload = workload(script, &[("protocol", protocol)]);
            let clients = workload.offered_by().clients().expect("clients of Tithe's");
            let answers = |seed| {
                let mut session = connect(&sandbox, workload.as_ref(), true);
                clients.answers(&mut session, seed).expect("answers").expect("they are compared")
            };
            let (first, again, other) = (answers(7), answers(7), answers(8));
            assert_eq!(first, again, "{}", database.title());
            assert_ne!(first, other, "{}", database.title());
            let words: Vec<&str> = first[0].iter().map(|answer| answer.words.as_str()).collect();
            assert!(words[1].starts_with("(1, "), "{words:?}");
            assert_eq!([words[0], words[2]], ["no row", "3 rows, first (1)"], "{}", database.title());
        }
        let Session::Sql(mut session) = connect(&sandbox, workload("SELECT 1;", &[]).as_ref(), true) else { panic!() };
        let sum = session.run("SELECT sum(a) FROM t").expect("a sum");
        assert_eq!(sum, [[Some("0".to_owned())]], "{}", database.title());
        let failing = workload("SELECT nothing FROM nowhere;", &[]);
        let clients = failing.offered_by().clients().expect("clients of Tithe's");
        let failed =
            clients.answers(&mut connect(&sandbox, failing.as_ref(), true), 1).expect("answers").expect("some");
        assert!(failed.iter().all(|answers| answers.last().is_some_and(|answer| answer.failed)), "{failed:?}");
    }
}

/// The server does not notice by itself that a connection is closed.
#[test]
fn a_statement_without_an_end_is_cancelled_with_its_connection() {
    for (database, protection, text, running) in [
        (
            &Postgres as &'static dyn Product,
            "tls",
            "SELECT pg_sleep(100000)",
            "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'",
        ),
        (
            &MariaDb,
            "password",
            "SELECT count(*) FROM seq_1_to_100000000 a, seq_1_to_100000000 b",
            "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT count(*) FROM seq%'",
        ),
    ] {
        let Some(sandbox) = Sandbox::start(database, &[chosen(database, protection, &[])]) else { continue };
        let any = workload("SELECT 1;", &[]);
        data::create(sandbox.database, &sandbox.server, &sandbox.setup, any.as_ref()).expect("a place for data");
        let session = || match connect(&sandbox, any.as_ref(), true) {
            Session::Sql(session) => session,
            Session::KeyValue(_) => panic!("SQL"),
        };
        let (mut asking, mut asked) = (session(), session());
        let mut is_running = || !asking.run(running).expect("an answer").is_empty();
        asked.submit_text(text).expect("sent");
        eventually("the statement runs", &mut is_running);
        drop(asked);
        eventually("the statement was cancelled", || !is_running());
    }
}
