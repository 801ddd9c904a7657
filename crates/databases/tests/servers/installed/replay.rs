//! Logs that real servers write are replayed on them: what was logged happens again, and none of it if each transaction
//! is undone.

use std::{
    fs,
    path::{Path, PathBuf},
};

use expect_test::{Expect, expect};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_machine::fault::Fault;
use tithe_model::experiment::{self, Arrivals, Values};
use tithe_plugin::{
    data,
    session::{Discard, Parameter, Progress, Session, SqlSession, rows},
    workload::Workload,
};

use super::{
    load::frame,
    sandbox::{Sandbox, chosen},
};
use crate::shared::eventually;

/// A text with characters that log readers may lose.
const TEXT: &str = "it''s \"one\",\n\ttwo\\\\lines; é";

/// The marks in a log before and after the part that the test reads.
const BEGINNING: &str = "the beginning";
const END: &str = "the end";

const TABLES: [&str; 3] = [
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint)",
    "CREATE TABLE note (what varchar(80))",
    "INSERT INTO account VALUES (1, 100), (2, 200)",
];

fn workload(log: &Path, properties: &[(&str, &str)]) -> Result<Box<dyn Workload>, String> {
    let log = log.to_str().expect("text");
    let properties = properties.iter().copied().chain([("log", log)]);
    let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let described =
        experiment::Workload { name: "log".to_owned(), kind: "replay".to_owned(), properties, prepare: None };
    tithe_workloads::make(&described, &experiment::Data { records: 0, values: Values::Ycsb }, 1)
}

/// A session as the clients of a replay have one.
fn session(sandbox: &Sandbox) -> Box<dyn SqlSession> {
    let log = tempfile::NamedTempFile::new().expect("a file");
    fs::write(log.path(), "260101 00:00:00\t1 Query\tSELECT 1\n").expect("a log");
    let any = workload(log.path(), &[]).expect("a workload");
    let how = super::how_for(any.table(), true);
    match data::connect(sandbox.database, &sandbox.server, &sandbox.setup, &how, any.as_ref()).expect("a session") {
        Session::Sql(session) => session,
        Session::KeyValue(_) => panic!("a replay speaks SQL"),
    }
}

fn answered(session: &mut dyn SqlSession) -> Result<(), Fault> {
    while session.advance(&mut Discard)? == Progress::Pending {}
    Ok(())
}

fn says(session: &mut dyn SqlSession, text: &str) -> Result<(), Fault> {
    session.submit_text(text).expect("sent");
    answered(session)
}

/// The work of a user's client: a transaction, a prepared statement, one that fails, and some that cannot be replayed.
fn work(sandbox: &Sandbox, session: &mut dyn SqlSession) {
    let insert = format!("INSERT INTO note VALUES ('{TEXT}')");
    says(session, &format!("SELECT '{BEGINNING}'")).expect("a mark");
    let transaction = ["BEGIN", "UPDATE account SET balance = balance + 1 WHERE id = 1", &insert, "COMMIT"];
    transaction.iter().for_each(|text| says(session, text).expect(text));
    let text = format!("UPDATE account SET balance = balance + 10 WHERE id = {}", (session.dialect().placeholder)(1));
    let prepared = session.prepare_text(&text).expect("prepared");
    for _ in 0..2 {
        session.submit(prepared.statement, &[Parameter::Text(b"2")]).expect("sent");
        answered(session).expect("updated");
    }
    // General and slow logs do not record failures, so it would fail again.
    if sandbox.database.id() == "postgres" {
        assert!(says(session, "SELECT nothing FROM nowhere").is_err());
    }
    says(session, "CREATE TABLE passing (id int)").expect("a table");
    says(session, "DROP TABLE passing").expect("no table");
    says(session, &format!("SELECT '{END}'")).expect("a mark");
}

/// Copies the log called `name` from the folder of the server: what `work` did.
fn log(sandbox: &Sandbox, name: &str, to: &Path) -> PathBuf {
    fn find(folder: &Path, name: &str) -> Option<PathBuf> {
        let entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        let here = entries.iter().find(|path| path.file_name().is_some_and(|it| it == name)).cloned();
        here.or_else(|| entries.iter().find_map(|path| find(path, name)))
    }
    let found = find(&sandbox.server.folder, name).unwrap_or_else(|| panic!("no {name}"));
    // The log collector writes with a delay.
    let mut text = String::new();
    eventually("the end of the log", || {
        // A character may be written in part.
        text = String::from_utf8_lossy(&fs::read(&found).expect("a log")).into_owned();
        text.lines().any(|line| line.contains(END)) && text.ends_with('\n')
    });
    let mark = text.rfind(BEGINNING).expect("the beginning");
    let next_line = mark + text[mark..].find('\n').expect("the end of a line") + 1;
    let copy = to.join(name);
    fs::write(&copy, &text[next_line..]).expect("copied");
    copy
}

/// Replays `log` undone, which changes nothing, and as it was logged; returns what is replayed and what is not.
fn replays(sandbox: &Sandbox, log: &Path) -> String {
    let with = |more: &[(&str, &str)]| workload(log, more).expect("a workload");
    let mut session = session(sandbox);
    let mut sum = || -> Vec<String> {
        let sums = "SELECT concat((SELECT sum(balance) FROM account), ' ', (SELECT count(*) FROM note))";
        rows::<1>(session.as_mut(), sums).expect("sums").into_iter().flatten().collect()
    };
    let before = sum();
    let undone = with(&[("finish", "rollback")]);
    frame(sandbox, undone.as_ref(), 2, Arrivals::Closed);
    assert_eq!(sum(), before, "each transaction is undone");
    let as_logged = with(&[]);
    let mut checked = Session::Sql(self::session(sandbox));
    let clients = as_logged.offered_by().clients().expect("clients");
    let seen = clients.check(&mut checked, true).expect("what the statements name").unwrap_or_default();
    assert_eq!(sum(), before, "a check changes nothing");
    assert!(frame(sandbox, as_logged.as_ref(), 1, Arrivals::Closed).operations > 0);
    assert_ne!(sum(), before, "what was logged happens again");
    let texts = "SELECT count(DISTINCT what) FROM note";
    assert_eq!(
        rows::<1>(self::session(sandbox).as_mut(), texts).expect("texts"),
        [["1".to_owned()]],
        "texts are whole"
    );
    let lines = as_logged.describe().into_iter().filter(|(name, _)| name.ends_with("replayed"));
    // Shares of time are never the same.
    let counts = lines.map(|(name, value)| {
        let value = value.split(", the first").next().unwrap_or_default().to_owned();
        let (reason, counts) = value.split_once(" % of").expect("a share");
        let reason = reason.rsplit_once(", ").map_or(String::new(), |(reason, _)| format!("{reason}: "));
        let counts = counts.rsplit_once(": ").map_or(counts, |(_, counts)| counts);
        format!("{name}: {reason}{counts}\n")
    });
    counts.collect::<String>() + &seen
}

/// Replays each of `logs`: they say the same.
fn of(sandbox: &Sandbox, logs: &[&str], expected: &Expect) {
    let folder = tempfile::tempdir().expect("a folder");
    let logs: Vec<PathBuf> = logs.iter().map(|name| log(sandbox, name, folder.path())).collect();
    let seen: Vec<String> = logs.iter().map(|log| replays(sandbox, log)).collect();
    expected.assert_eq(&seen[0]);
    assert!(seen.iter().all(|it| *it == seen[0]), "{seen:#?}");
}

/// Creates tables, and has the server log by `settings` from then on; returns the session that did so.
///
/// Servers may log a statement after its answer, and the log of one session is in order. So the work that follows in
/// this session is logged after the settings.
fn start(sandbox: &Sandbox, settings: &[&str]) -> Box<dyn SqlSession> {
    sandbox.database.create(&sandbox.server, &sandbox.setup, &super::table()).expect("a schema");
    let mut session = session(sandbox);
    TABLES.iter().chain(settings).for_each(|text| says(session.as_mut(), text).expect(text));
    session
}

/// Has PostgreSQL write logs called `name` from now on, as `settings` say.
fn log_as(sandbox: &Sandbox, name: &str, settings: &[&str]) {
    let mut session = session(sandbox);
    let file = format!("ALTER SYSTEM SET log_filename = '{name}'");
    let all = [&[file.as_str()], settings, &["SELECT pg_reload_conf()"]].concat();
    all.iter().for_each(|text| says(session.as_mut(), text).expect(text));
    let ask = |question| {
        let answer = sandbox.database.ask(&sandbox.server, &sandbox.setup, question);
        answer.expect("an answer").unwrap_or_default()
    };
    while ask("SHOW log_filename") != name || !ask("SELECT pg_current_logfile('csvlog')").contains(name) {
        says(session.as_mut(), "SELECT pg_rotate_logfile()").expect("rotated");
    }
}

#[test]
fn every_log_of_postgres_is_replayed() {
    let protections = ["tls", "pgaudit"].map(|id| chosen(&Postgres, id, &[]));
    let Some(sandbox) = Sandbox::start_as(&Postgres, &protections, &[("logging_collector", "on")], &[]) else { return };
    drop(start(&sandbox, &[]));
    let settings = [
        "ALTER SYSTEM SET log_destination = 'stderr,csvlog,jsonlog'",
        "ALTER SYSTEM SET log_line_prefix = '%m [%p] %q%u@%d '",
        "ALTER SYSTEM SET log_min_duration_statement = 0",
        "ALTER SYSTEM SET lc_messages = 'C'",
    ];
    log_as(&sandbox, "replayed", &settings);
    work(&sandbox, session(&sandbox).as_mut());
    of(
        &sandbox,
        &["replayed.csv", "replayed.json", "replayed"],
        &expect![[r#"
        replayed: 4 transactions, 7 statements
        not replayed: defines or maintains tables, accounts or the server: 2 transactions, 2 statements
        not replayed: failed when it was logged: 1 transaction, 1 statement
        of 3 kinds of transactions 3 succeed; each was undone"#]],
    );
    expect![[r#"wrong answer: the log's statements do not find their data: 42P01: relation "gone" does not exist; 42P01: relation "nowhere" does not exist; name a dump of the server's data by `prepare` (`--prepare DATA`)"#]].assert_eq(&missing(&sandbox));
    let settings = ["ALTER SYSTEM SET log_min_duration_statement = -1", "ALTER SYSTEM SET pgaudit.log = 'all'"];
    log_as(&sandbox, "audited", &settings);
    work(&sandbox, session(&sandbox).as_mut());
    of(
        &sandbox,
        &["audited.csv"],
        &expect![[r#"
        replayed: 4 transactions, 7 statements
        not replayed: defines or maintains tables, accounts or the server: 2 transactions, 2 statements
        not replayed: failed when it was logged: 1 transaction, 1 statement
        of 3 kinds of transactions 3 succeed; each was undone"#]],
    );
}

/// All missing tables are reported at once, before anything is measured.
fn missing(sandbox: &Sandbox) -> String {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let line =
        |text: &str| format!("2026-11-28 05:36:07.075 UTC [7] u@d LOG:  duration: 1.000 ms  statement: {text}\n");
    let texts = ["SELECT * FROM nowhere", "SELECT * FROM account", "UPDATE gone SET a = 1", "SELECT 1 / 0"];
    fs::write(log.path(), texts.map(line).concat()).expect("a log");
    let workload = workload(log.path(), &[]).expect("a workload");
    let clients = workload.offered_by().clients().expect("clients");
    clients.check(&mut Session::Sql(session(sandbox)), true).expect_err("missing tables").to_string()
}

/// Settings with which MariaDB and MySQL log everything.
const LOGS: [&str; 6] = [
    "SET GLOBAL general_log_file = 'general.log'",
    "SET GLOBAL general_log = ON",
    "SET GLOBAL slow_query_log_file = 'slow.log'",
    "SET GLOBAL long_query_time = 0",
    "SET SESSION long_query_time = 0",
    "SET GLOBAL slow_query_log = ON",
];

#[test]
fn every_log_of_mariadb_is_replayed() {
    let Some(sandbox) = Sandbox::start(&MariaDb, &[chosen(&MariaDb, "server-audit", &[])]) else { return };
    // MariaDB's sessions keep what was set when they began.
    let logs = [&LOGS[..], &["SET SESSION slow_query_log = ON"]].concat();
    work(&sandbox, start(&sandbox, &logs).as_mut());
    of(
        &sandbox,
        &["general.log", "slow.log", "audit.log"],
        &expect![[r#"
        replayed: 4 transactions, 7 statements
        not replayed: defines or maintains tables, accounts or the server: 2 transactions, 2 statements
        of 3 kinds of transactions 3 succeed; each was undone"#]],
    );
}

#[test]
fn both_logs_of_mysql_are_replayed() {
    let Some(sandbox) = Sandbox::start(&MySql, &[]) else { return };
    work(&sandbox, start(&sandbox, &LOGS).as_mut());
    of(
        &sandbox,
        &["general.log", "slow.log"],
        &expect![[r#"
        replayed: 4 transactions, 7 statements
        not replayed: defines or maintains tables, accounts or the server: 2 transactions, 2 statements
        of 3 kinds of transactions 3 succeed; each was undone"#]],
    );
}
