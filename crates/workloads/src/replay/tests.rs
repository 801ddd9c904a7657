//! Real logs, small: of PostgreSQL 15.18 with pgbench and psql, and of MariaDB 10.11.

mod mariadb;
mod player;

use std::{io::Cursor, sync::Arc};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use tithe_model::catalogue::Properties;
use tithe_plugin::workload::{Client, Workload};

use super::{
    account::Reason,
    client::Player,
    config::{Config, Replayed},
    entry::Problem,
    recording::{Recording, Transaction},
};

const CSVLOG: &str = include_str!("samples/postgres.csv");
const JSONLOG: &str = include_str!("samples/postgres.json");
const STDERR: &str = include_str!("samples/postgres.log");
const STATEMENT_DURATION: &str = include_str!("samples/statement-duration.csv");
const PGAUDIT: &str = include_str!("samples/pgaudit.log");
const GENERAL: &str = include_str!("samples/general.log");
const SLOW: &str = include_str!("samples/slow.log");
const SERVER_AUDIT: &str = include_str!("samples/server-audit.log");

fn read(log: impl AsRef<[u8]>, properties: &[(&str, &str)]) -> Result<Replayed, Problem> {
    let given = [("log", "sample")].into_iter().chain(properties.iter().copied());
    let properties: Properties = given.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (config, problems) = Config::resolve(&properties);
    assert_eq!(problems, []);
    config.read_from(&mut Cursor::new(log.as_ref()), "sample".to_owned())
}

fn transaction(recording: &Recording, transaction: &Transaction) -> String {
    let steps = recording.steps(transaction).iter().map(|step| {
        let values: Vec<String> = recording.values(step).map(|value| format!("{value:?}")).collect();
        let values = if values.is_empty() { String::new() } else { format!(" {}", values.join(" ")) };
        let end = if step.ends { " ." } else { "" };
        format!("  {:?} {}{values}{end}\n", step.sent, recording.texts[step.text].replace('\n', "\\n"))
    });
    let begins = if transaction.begins { "  + BEGIN\n" } else { "" };
    let us = transaction.end_us - transaction.start_us;
    format!(
        "session {}, {us} µs, kind {}\n{begins}{}",
        transaction.session,
        transaction.class,
        steps.collect::<String>()
    )
}

fn told(replayed: &Replayed) -> String {
    let Replayed { form, recording, account, .. } = replayed;
    let mut text = format!("{form}\n");
    recording.transactions.iter().for_each(|each| text.push_str(&transaction(recording, each)));
    for (number, class) in recording.classes.iter().enumerate() {
        text.push_str(&format!("kind {number}: {}\n", class.name));
    }
    recording.digests.iter().for_each(|digest| text.push_str(&format!("{} {}\n", digest.name, digest.text)));
    account.lines().into_iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\n")));
    text
}

fn is(log: &str, expected: &Expect) {
    expected.assert_eq(&told(&read(log, &[]).unwrap()));
}

fn refused(log: impl AsRef<[u8]>, properties: &[(&str, &str)]) -> String {
    let problem = read(log, properties).err().expect("a log that cannot be replayed");
    format!("{problem}\n{}", problem.help)
}

#[test]
fn times_that_no_clock_shows_do_not_overflow() {
    let line = "2026-11-28 05:36:07.075 UTC [7] LOG:  duration: 1e300 ms  statement: select 1\n";
    assert_eq!(read(line.repeat(3), &[]).expect("a log").recording.transactions.len(), 3);
    let line = "-1e300 [7] LOG:  statement: select 1\n";
    let replayed = read(line.repeat(3), &[("prefix", "%n [%p] ")]).expect("a log");
    assert_eq!((replayed.recording.transactions.len(), replayed.recording.has_times), (3, false));
}

#[test]
fn a_csvlog_becomes_transactions_by_session() {
    is(
        CSVLOG,
        &expect![[r#"
            csvlog
            session 0, 908 µs, kind 1
              Text select count(*) from pgbench_branches
            session 1, 5054 µs, kind 0
              Text BEGIN;
              Text UPDATE pgbench_accounts SET abalance = abalance + 4792 WHERE aid = 68630;
              Text SELECT abalance FROM pgbench_accounts WHERE aid = 68630;
              Text UPDATE pgbench_tellers SET tbalance = tbalance + 4792 WHERE tid = 7;
              Text UPDATE pgbench_branches SET bbalance = bbalance + 4792 WHERE bid = 1;
              Text INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (7, 1, 68630, 4792, CURRENT_TIMESTAMP);
              Text END; .
            session 2, 5059 µs, kind 0
              Text BEGIN;
              Text UPDATE pgbench_accounts SET abalance = abalance + 1083 WHERE aid = 11711;
              Text SELECT abalance FROM pgbench_accounts WHERE aid = 11711;
              Text UPDATE pgbench_tellers SET tbalance = tbalance + 1083 WHERE tid = 2;
              Text UPDATE pgbench_branches SET bbalance = bbalance + 1083 WHERE bid = 1;
              Text INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (2, 1, 11711, 1083, CURRENT_TIMESTAMP);
              Text END; .
            session 3, 609 µs, kind 1
              Text select count(*) from pgbench_branches
            session 4, 3094 µs, kind 0
              Prepared BEGIN;
              Prepared UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2; Some("3216") Some("44545")
              Prepared SELECT abalance FROM pgbench_accounts WHERE aid = $1; Some("44545")
              Prepared UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2; Some("3216") Some("3")
              Prepared UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2; Some("3216") Some("1")
              Prepared INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP); Some("3") Some("1") Some("44545") Some("3216")
              Prepared END; .
            session 5, 595 µs, kind 1
              Text select count(*) from pgbench_branches
            session 6, 664 µs, kind 2
              Once SELECT abalance FROM pgbench_accounts WHERE aid = $1; Some("29311")
            session 7, 252 µs, kind 3
              Text insert into note values (1, 'it''s\ntwo lines; "quoted"');
            session 7, 185 µs, kind 5
              Text select * from note where t like '%é%';
            session 7, 39 µs, kind 6
              Text begin;
              Text insert into note values (2,'b');
              Text rollback; .
            session 7, 21 µs, kind 7
              Text select 1; select 2;
            session 8, 238 µs, kind 4
              Text select 1
            kind 0: update-pgbench_accounts+4
            kind 1: select-pgbench_branches
            kind 2: select-pgbench_accounts
            kind 3: insert-note
            kind 4: select
            kind 5: select-note
            kind 6: insert-note#2
            kind 7: select+1
            log:1 UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?
            log:2 UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?
            log:3 select count(*) from pgbench_branches
            log:4 SELECT abalance FROM pgbench_accounts WHERE aid = ?
            log:5 UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?
            log:6 INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, CURRENT_TIMESTAMP)
            log:7 insert into note values (?)
            log:8 select ?
            log:9 select * from note where t like ?
            log:10 BEGIN
            log:11 END
            log:12 select ?; select ?
            log:13 begin
            log:14 rollback
            log:other all others
            replayed: 70.9 % of the logged time: 12 transactions, 32 statements
            not replayed: defines or maintains tables, accounts or the server, 28.2 % of the logged time: 1 transaction, 1 statement, the first in line 58
            not replayed: sets something in its session, 0.5 % of the logged time: 3 transactions, 3 statements, the first in line 67
            not replayed: copies rows that are not in the log, 0.4 % of the logged time: 1 transaction, 1 statement, the first in line 66
            not replayed: failed when it was logged, 0.0 % of the logged time: 1 transaction, 1 statement, the first in line 62
        "#]],
    );
}

#[test]
fn a_jsonlog_and_a_log_as_text_say_the_same() {
    let csvlog = told(&read(CSVLOG, &[]).unwrap());
    let same = |log: &str, form: &str| {
        let told = told(&read(log, &[]).unwrap());
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().skip(1).map(|line| line.split(", the first in").next().unwrap_or_default());
            lines.map(str::to_owned).collect()
        };
        assert!(told.starts_with(form));
        assert_eq!(lines(&told), lines(&csvlog));
    };
    same(JSONLOG, "jsonlog\n");
    same(&of_cloud_native(JSONLOG), "jsonlog\n");
    same(STDERR, "stderr\n");
}

/// `jsonlog` as CloudNativePG writes it, after a line of its own.
fn of_cloud_native(jsonlog: &str) -> String {
    let line = |logger: &str, msg: &str, record: serde_json::Value| {
        let line = json!({ "level": "info", "ts": 1.5, "logger": logger, "msg": msg, "record": record });
        format!("{line}\n")
    };
    let records = jsonlog.lines().map(|text| {
        let record: serde_json::Value = serde_json::from_str(text).unwrap();
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        let record = json!({
            "log_time": text("timestamp"),
            "database_name": text("dbname"),
            "session_id": text("session_id"),
            "error_severity": text("error_severity"),
            "message": text("message"),
            "detail": text("detail"),
            "query": text("statement"),
        });
        line("postgres", "record", record)
    });
    line("instance-manager", "Starting up", json!(null)) + &records.collect::<String>()
}

#[test]
fn records_of_pgaudit_that_cloudnativepg_takes_apart_are_statements() {
    let line = |audit: serde_json::Value| {
        let record = json!({
            "log_time": "2026-11-28 05:56:00.220 UTC",
            "database_name": "app",
            "session_id": "610011cb.cb",
            "error_severity": "LOG",
            "audit": audit,
        });
        format!("{}\n", json!({ "logger": "pgaudit", "msg": "record", "record": record }))
    };
    let log = [
        json!({ "substatement_id": "1", "statement": "select 'a, \"b\"'", "parameter": "<none>" }),
        json!({ "substatement_id": "2", "statement": "select inner", "parameter": "<none>" }),
        json!({ "substatement_id": "1", "statement": "select $1", "parameter": "\"x,\"\"y\"\"\"" }),
    ];
    let told = told(&read(log.map(line).concat(), &[]).unwrap());
    for step in ["Text select 'a, \"b\"'", "Once select $1 Some(\"x,\\\"y\\\"\")"] {
        assert!(told.contains(step), "{told}");
    }
    assert!(!told.contains("inner"), "{told}");
}

#[test]
fn durations_may_stand_in_records_of_their_own() {
    is(
        STATEMENT_DURATION,
        &expect![[r#"
            csvlog
            session 0, 1068 µs, kind 1
              Text select count(*) from pgbench_branches
            session 1, 4116 µs, kind 0
              Text BEGIN;
              Text UPDATE pgbench_accounts SET abalance = abalance + 4788 WHERE aid = 67842;
              Text SELECT abalance FROM pgbench_accounts WHERE aid = 67842;
              Text UPDATE pgbench_tellers SET tbalance = tbalance + 4788 WHERE tid = 6;
              Text UPDATE pgbench_branches SET bbalance = bbalance + 4788 WHERE bid = 1;
              Text INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (6, 1, 67842, 4788, CURRENT_TIMESTAMP);
              Text END; .
            session 2, 7226 µs, kind 0
              Text BEGIN;
              Text UPDATE pgbench_accounts SET abalance = abalance + 1552 WHERE aid = 41192;
              Text SELECT abalance FROM pgbench_accounts WHERE aid = 41192;
              Text UPDATE pgbench_tellers SET tbalance = tbalance + 1552 WHERE tid = 7;
              Text UPDATE pgbench_branches SET bbalance = bbalance + 1552 WHERE bid = 1;
              Text INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (7, 1, 41192, 1552, CURRENT_TIMESTAMP);
              Text END; .
            session 3, 618 µs, kind 1
              Text select count(*) from pgbench_branches
            session 4, 3129 µs, kind 0
              Prepared BEGIN;
              Prepared UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2; Some("-3829") Some("77160")
              Prepared SELECT abalance FROM pgbench_accounts WHERE aid = $1; Some("77160")
              Prepared UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2; Some("-3829") Some("3")
              Prepared UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2; Some("-3829") Some("1")
              Prepared INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP); Some("3") Some("1") Some("77160") Some("-3829")
              Prepared END; .
            session 5, 560 µs, kind 1
              Text select count(*) from pgbench_branches
            session 6, 734 µs, kind 2
              Once SELECT abalance FROM pgbench_accounts WHERE aid = $1; Some("90599")
            session 7, 369 µs, kind 3
              Text insert into note values (1, 'it''s\ntwo lines; "quoted"');
            session 7, 237 µs, kind 5
              Text select * from note where t like '%é%';
            session 7, 96 µs, kind 6
              Text begin;
              Text insert into note values (2,'b');
              Text rollback; .
            session 7, 35 µs, kind 7
              Text select 1; select 2;
            session 8, 238 µs, kind 4
              Text select 1
            kind 0: update-pgbench_accounts+4
            kind 1: select-pgbench_branches
            kind 2: select-pgbench_accounts
            kind 3: insert-note
            kind 4: select
            kind 5: select-note
            kind 6: insert-note#2
            kind 7: select+1
            log:1 UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?
            log:2 select count(*) from pgbench_branches
            log:3 SELECT abalance FROM pgbench_accounts WHERE aid = ?
            log:4 UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?
            log:5 UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?
            log:6 INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, CURRENT_TIMESTAMP)
            log:7 insert into note values (?)
            log:8 BEGIN
            log:9 select ?
            log:10 select * from note where t like ?
            log:11 END
            log:12 select ?; select ?
            log:13 begin
            log:14 rollback
            log:other all others
            replayed: 67.8 % of the logged time: 12 transactions, 32 statements
            not replayed: defines or maintains tables, accounts or the server, 30.6 % of the logged time: 1 transaction, 1 statement, the first in line 86
            not replayed: sets something in its session, 0.9 % of the logged time: 3 transactions, 3 statements, the first in line 103
            not replayed: copies rows that are not in the log, 0.7 % of the logged time: 1 transaction, 1 statement, the first in line 101
            not replayed: failed when it was logged, 0.0 % of the logged time: 1 transaction, 1 statement, the first in line 93
        "#]],
    );
}

#[test]
fn records_of_pgaudit_about_the_tables_of_one_statement_are_one() {
    let record = |number: u32, table: &str| {
        format!(
            "2026-11-28 05:36:07.075 UTC [7] u@d LOG:  AUDIT: SESSION,{number},1,READ,SELECT,TABLE,public.{table},\
             \"select 1 from a, b\",<none>\n"
        )
    };
    let log = [record(1, "a"), record(1, "b"), record(2, "a"), record(2, "b")].concat();
    assert_eq!(read(log, &[]).unwrap().recording.transactions.len(), 2);
    // CloudNativePG takes records apart.
    let record = |number: &str| {
        let audit = json!({ "statement_id": number, "substatement_id": "1", "statement": "select 1 from a, b" });
        let record = json!({
            "log_time": "2026-11-28 05:56:00.220 UTC",
            "session_id": "610011cb.cb",
            "error_severity": "LOG",
            "audit": audit,
        });
        format!("{}\n", json!({ "logger": "pgaudit", "msg": "record", "record": record }))
    };
    let log = [record("1"), record("1"), record("2")].concat();
    assert_eq!(read(log, &[]).unwrap().recording.transactions.len(), 2);
}

#[test]
fn pgaudit_has_statements_with_parameters_and_no_durations() {
    is(
        PGAUDIT,
        &expect![[r#"
            stderr
            session 0, 0 µs, kind 0
              Text select count(*) from pgbench_branches
            session 1, 12000 µs, kind 1
              Text BEGIN;
              Text UPDATE pgbench_accounts SET abalance = abalance + -2737 WHERE aid = 86629;
              Text SELECT abalance FROM pgbench_accounts WHERE aid = 86629;
              Text UPDATE pgbench_tellers SET tbalance = tbalance + -2737 WHERE tid = 2;
              Text UPDATE pgbench_branches SET bbalance = bbalance + -2737 WHERE bid = 1;
              Text INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (2, 1, 86629, -2737, CURRENT_TIMESTAMP);
              Text END; .
            session 2, 6000 µs, kind 1
              Text BEGIN;
              Text UPDATE pgbench_accounts SET abalance = abalance + 3074 WHERE aid = 70049;
              Text SELECT abalance FROM pgbench_accounts WHERE aid = 70049;
              Text UPDATE pgbench_tellers SET tbalance = tbalance + 3074 WHERE tid = 10;
              Text UPDATE pgbench_branches SET bbalance = bbalance + 3074 WHERE bid = 1;
              Text INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (10, 1, 70049, 3074, CURRENT_TIMESTAMP);
              Text END; .
            session 3, 0 µs, kind 0
              Text select count(*) from pgbench_branches
            session 4, 2000 µs, kind 1
              Text BEGIN;
              Once UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2; Some("-1164") Some("54418")
              Once SELECT abalance FROM pgbench_accounts WHERE aid = $1; Some("54418")
              Once UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2; Some("-1164") Some("7")
              Once UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2; Some("-1164") Some("1")
              Once INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP); Some("7") Some("1") Some("54418") Some("-1164")
              Text END; .
            session 5, 0 µs, kind 0
              Text select count(*) from pgbench_branches
            session 6, 0 µs, kind 2
              Once SELECT abalance FROM pgbench_accounts WHERE aid = $1; Some("50326")
            session 7, 0 µs, kind 3
              Text insert into note values (1, 'it''s\ntwo lines; "quoted"');
            session 7, 0 µs, kind 4
              Text select * from note where t like '%é%';
            session 7, 0 µs, kind 5
              Text begin;
              Text insert into note values (2,'b');
              Text rollback; .
            session 7, 0 µs, kind 6
              Text select 1; select 2;
            session 8, 0 µs, kind 7
              Text select 1
            kind 0: select-pgbench_branches
            kind 1: update-pgbench_accounts+4
            kind 2: select-pgbench_accounts
            kind 3: insert-note
            kind 4: select-note
            kind 5: insert-note#2
            kind 6: select+1
            kind 7: select
            log:1 SELECT abalance FROM pgbench_accounts WHERE aid = ?
            log:2 select count(*) from pgbench_branches
            log:3 BEGIN
            log:4 UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?
            log:5 UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?
            log:6 UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?
            log:7 INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, CURRENT_TIMESTAMP)
            log:8 END
            log:9 insert into note values (?)
            log:10 select * from note where t like ?
            log:11 begin
            log:12 rollback
            log:13 select ?; select ?
            log:14 select ?
            log:other all others
            replayed: 84.2 % of the logged statements (the log has no durations): 12 transactions, 32 statements
            not replayed: sets something in its session, 5.3 % of the logged statements (the log has no durations): 2 transactions, 2 statements, the first in line 56
            not replayed: values of parameters are not in the log, 2.6 % of the logged statements (the log has no durations): 1 transaction, 1 statement, the first in line 59
            not replayed: defines or maintains tables, accounts or the server, 2.6 % of the logged statements (the log has no durations): 1 transaction, 1 statement, the first in line 44
            not replayed: copies rows that are not in the log, 2.6 % of the logged statements (the log has no durations): 1 transaction, 1 statement, the first in line 55
            not replayed: failed when it was logged, 2.6 % of the logged statements (the log has no durations): 1 transaction, 1 statement, the first in line 48
        "#]],
    );
}

#[test]
fn a_log_that_is_copied_while_it_is_written_ends_in_a_record() {
    for (log, ends_at) in [
        (&CSVLOG[..CSVLOG.len() - 100], CSVLOG.lines().count()),
        (&JSONLOG[..JSONLOG.len() - 100], JSONLOG.lines().count()),
        (&STDERR[..STDERR.len() - 10], STDERR.lines().count()),
        (&GENERAL[..GENERAL.len() - 1], GENERAL.lines().count()),
        (&SERVER_AUDIT[..SERVER_AUDIT.len() - 10], SERVER_AUDIT.lines().count()),
    ] {
        let replayed = read(log, &[]).unwrap();
        assert_eq!(replayed.account.cut_at, Some(ends_at as u64), "{}", replayed.form);
    }
}

#[test]
fn a_log_with_a_hole_is_refused_by_line() {
    let hole = |log: &str| {
        let (from, to) = (log.len() / 3, log.len() / 3 + 150);
        format!("{}{}", &log[..from], &log[to..])
    };
    expect![[r#"
        line 25: is not a record of a csvlog, which has 23, 24 or 26 columns: this one has 34
        the log is damaged here: take the part before this line, or the part behind the damage
        line 25: is not a record of a jsonlog: expected `,` or `}` at line 1 column 394
        the log is damaged here: take the part before this line, or the part behind the damage"#]]
    .assert_eq(&[CSVLOG, JSONLOG].map(|log| refused(hole(log), &[])).join("\n"));
    let within = refused(STDERR, &[("form", "csvlog")]);
    assert!(within.starts_with("line 1: ") && within.contains("or leave `form` out"), "{within}");
    let other = refused("{\"audit_record\":{\"name\":\"Query\"}}\n", &[]);
    assert!(other.contains("missing field `timestamp`") && other.contains("and no other JSON"), "{other}");
}

#[test]
fn logs_of_two_servers_are_refused() {
    let earlier = CSVLOG.replace("2026-11-28", "2026-11-20");
    let older: String = CSVLOG
        .lines()
        .filter(|line| line.ends_with(",0"))
        .map(|line| format!("{}\n", &line[..line.len() - 3]))
        .collect();
    expect![[r#"
        line 77: was written 192.0 h before line 74: the log is of two servers, or out of order
        give the log of one server, its files in the order of time
        line 75: has 24 columns, and those before have 26: a server of another version
        give the log of one server"#]]
    .assert_eq(&[refused(format!("{CSVLOG}{earlier}"), &[]), refused(format!("{CSVLOG}{older}"), &[])].join("\n"));
}

#[test]
fn databases_are_chosen() {
    let two = format!("{CSVLOG}{}", CSVLOG.replace("\"app\"", "\"shop\"").replace("6b0a", "7c1b"));
    expect![[r#"
        line 1: the log is of several databases: app (37 statements), shop (37 statements)
        choose one: `database = "shop"`
        line 1: the log has no statement in the database nobody: it has app (37 statements), shop (37 statements)
        choose one that it has"#]]
    .assert_eq(&[refused(&two, &[]), refused(&two, &[("database", "nobody")])].join("\n"));
    let chosen = read(&two, &[("database", "shop")]).unwrap();
    assert_eq!(chosen.recording.transactions.len(), read(CSVLOG, &[]).unwrap().recording.transactions.len());
}

#[test]
fn a_compressed_log_is_refused_by_its_first_bytes() {
    expect![[r#"
        line 1: the log is compressed
        unpack it first, as by `gunzip -k` or `zstd -d`"#]]
    .assert_eq(&refused(b"\x1f\x8b\x08", &[]));
    for head in [&b"\x04\x22\x4d\x18\0"[..], b"PK\x03\x04\0", b"7z\xbc\xaf\x27\x1c\0"] {
        assert!(refused(head, &[]).starts_with("line 1: the log is compressed"), "{head:?}");
    }
}

#[test]
fn a_file_that_is_no_log_of_statements_is_refused_by_what_it_is() {
    expect![[r#"
        line 1: is a binary log, in which statements that only read are missing
        name the general log, or the slow log with long_query_time = 0"#]]
    .assert_eq(&refused(b"\xfebin\x01", &[]));
    expect![[r#"
        line 1: is an export of statements that a server has counted, without their values
        ask the server itself: `like_production = "calls"` (`--like-production`)"#]]
    .assert_eq(&refused("queryid,query,calls\n1,select $1,7\n", &[]));
}

#[test]
fn a_foreign_prefix_is_refused_and_the_right_one_is_read() {
    let foreign = STDERR.replace("2026-11-28 ", "<app> 2026-11-28 ");
    expect![[r#"
        line 1: does not begin with the prefix of the lines before, or with one that is known
        write `prefix = "…"` as `SHOW log_line_prefix` prints it; the log must be of one server, with lc_messages in English
        line 1: does not begin with the prefix "%t %c "
        write `prefix = "…"` as `SHOW log_line_prefix` prints it; the log must be of one server, with lc_messages in English
        line 1: the prefix "%m " has neither %p nor %c, so it does not say which session a line is of
        write the server's own log_line_prefix
        line 1: does not begin with the prefix of the lines before, or with one that is known
        write `prefix = "…"` as `SHOW log_line_prefix` prints it; the log must be of one server, with lc_messages in English"#]].assert_eq(
        &[
            refused(&foreign, &[]),
            refused(STDERR, &[("prefix", "%t %c ")]),
            refused(STDERR, &[("prefix", "%m ")]),
            refused(STDERR.replacen("[", "(", 30), &[]),
        ]
        .join("\n"),
    );
    assert_eq!(
        told(&read(&foreign, &[("prefix", "<app> %m [%p] %q%u@%d ")]).unwrap()),
        told(&read(STDERR, &[]).unwrap())
    );
}

#[test]
fn logs_of_providers_and_containers_are_known_and_a_verbose_one_says_the_same() {
    let texts = |log: &str| read(log, &[]).unwrap().recording.texts.join("|");
    let at = "2026-11-28 05:36:07.075 UTC";
    let statement = "duration: 0.1 ms  statement: select";
    // The first lines are of no session, and many prefixes match them.
    let log = format!(
        "{at} [1] LOG:  ready\n{at} [7] [user=u,db=d,app=a] LOG:  {statement} 1\n{at} [1] LOG:  checkpoint\n{at} [7] \
         [user=u,db=d,app=a] LOG:  {statement} 2\n"
    );
    assert_eq!(texts(&log), "select 1|select 2");
    for prefix in [
        "2026-11-28 05:36:07 UTC-6b0a6bf0.6bf0-",
        "2026-11-28 05:36:07.075 UTC [7]: [1-1] db=d,user=u ",
        "pid=7,user=u,db=d,app=a,client=10.0.0.7 ",
        "2026-11-28 05:36:07 UTC [7]: [1-1] user=u,db=d ",
        "2026-11-28 05:36:07 UTC [7]: [1-1] u@d ",
        "10.0.0.7 2026-11-28 05:36:07.075 UTC [7] u@d ",
    ] {
        assert_eq!(texts(&format!("{prefix}LOG:  {statement} 3\n")), "select 3", "{prefix}");
    }
    // As `docker logs` prints it.
    let banner = "\nPostgreSQL Database directory appears to contain a database; Skipping initialization\n\n";
    let record = |number: u32| format!("{at} [7] LOG:  {statement} {number}\n");
    assert_eq!(texts(&format!("{banner}{}{banner}{}", record(1), record(2))), "select 1|select 2");
    let made = format!(
        "The files belonging to this database system will be owned by user \"postgres\".\ncreating subdirectories ... \
         ok\n\nwaiting for server to start....{at} [48] LOG:  starting PostgreSQL\n{at} [51] LOG:  {statement} 0\n\
         PostgreSQL init process complete; ready for start up.\n\n"
    );
    assert_eq!(texts(&format!("{made}{}", record(1))), "select 1");
    let coloured = "\u{1b}[38;5;6mpostgresql \u{1b}[38;5;5m05:36:06.76 \u{1b}[0m==> ** Starting PostgreSQL **\n";
    assert_eq!(texts(&format!("{coloured}{}", record(1))), "select 1");
    let verbose = format!(
        "{at} [7] u@d LOG:  00000: {statement} 1\n{at} [7] u@d LOCATION:  exec_simple_query, postgres.c:1358\n\
         {at} [7] u@d LOG:  00000: {statement} 2\n"
    );
    assert_eq!(texts(&verbose), "select 1|select 2");
}

#[test]
fn a_log_without_times_has_no_pace_whatever_its_statements_took() {
    let record = |process: u32| {
        let prefix = format!("pid={process},user=u,db=d,app=a,client=10.0.0.7 ");
        format!("{prefix}LOG:  duration: 2.000 ms  statement: select {process}\n")
    };
    let log = [record(7), record(8)].concat();
    let why = refused(&log, &[("pace", "1")]);
    assert!(why.starts_with("line 1: the log has no times, so it has no pace"), "{why}");
    let replay = super::Replay { replayed: Arc::new(read(&log, &[]).unwrap()), data: None };
    let told = Workload::describe(&replay);
    let sessions = told.iter().find(|(name, _)| name == "sessions").map(|(_, words)| words.as_str());
    assert_eq!(sessions, Some("2 sessions; how many at a time is unknown, as the log has no times"));
}

#[test]
fn latin1_is_refused_by_line_unless_it_is_asked_for() {
    let log: Vec<u8> = CSVLOG.chars().map(|character| u32::from(character) as u8).collect();
    expect![[r#"
        line 61: the byte 0xe9 is not UTF-8
        write `encoding = "latin1"` if the server's database is in LATIN1"#]]
    .assert_eq(&refused(&log, &[]));
    assert_eq!(told(&read(&log, &[("encoding", "latin1")]).unwrap()), told(&read(CSVLOG, &[]).unwrap()));
}

#[test]
fn a_log_without_statements_is_refused_with_what_to_switch_on() {
    let durations = "2026-11-28 05:36:07.075 UTC [1] u@d LOG:  duration: 0.1 ms\n";
    let copies = "2026-11-28 05:36:07.075 UTC [1] u@d LOG:  duration: 0.1 ms  statement: copy t from stdin\n";
    expect![[r#"
        line 1: the log is empty
        name a log with statements
        line 1: the log has no statements
        log every statement: PostgreSQL by log_min_duration_statement = 0 with lc_messages = C, MariaDB and MySQL by general_log, or slow_query_log with long_query_time = 0
        line 1: the log has no transaction that can be replayed; replayed: 0.0 % of the logged time: 0 transactions, 0 statements; not replayed: copies rows that are not in the log, 100.0 % of the logged time: 1 transaction, 1 statement, the first in line 1
        log every statement: PostgreSQL by log_min_duration_statement = 0 with lc_messages = C, MariaDB and MySQL by general_log, or slow_query_log with long_query_time = 0"#]].assert_eq(&[refused("", &[]), refused(durations, &[]), refused(copies, &[])].join("\n"));
}

#[test]
fn a_log_of_plans_alone_is_refused_by_what_it_has() {
    let plan = "2026-11-28 05:36:07.075 UTC [1] u@d LOG:  duration: 0.1 ms  plan:\n\tQuery Text: select 1\n\tResult\n";
    assert!(refused(plan, &[]).contains("the log has plans of auto_explain, and no statements"));
    let both = format!("{plan}{}", plan.replace("plan:", "statement: select 1 --"));
    assert_eq!(read(both, &[]).unwrap().recording.transactions.len(), 1);
}

#[test]
fn memory_bounds_what_is_kept_and_not_what_is_counted() {
    let line = |number: u64| {
        format!("2026-11-28 05:36:07.075 UTC [1] u@d LOG:  duration: 0.1 ms  statement: select {number:0>999}\n")
    };
    let log: String = (0..2000).map(line).collect();
    let replayed = read(&log, &[("memory", "1")]).unwrap();
    let kept = replayed.recording.transactions.len();
    assert!((200..1000).contains(&kept), "{kept}");
    assert_eq!(replayed.account.left_out.values().map(|tally| tally.transactions).sum::<u64>(), 2000 - kept as u64);
    // A transaction that does not end is not stored either.
    let begin = line(0).replace("select ", "begin --");
    let large = read(format!("{}{begin}{log}", line(0)), &[("memory", "1")]).unwrap().account;
    assert_eq!((large.replayed.statements, large.left_out[&Reason::NoMemory].statements), (1, 2001));
}

#[test]
fn at_the_pace_of_the_log_a_client_goes_on_in_the_next_slot_where_it_was() {
    // Every ten seconds a burst of three transactions.
    let line = |second: u32, ms: u32| {
        let at = format!("2026-11-28 05:36:{second:02}.{ms:03} UTC");
        format!("{at} [1] u@d LOG:  duration: 0.100 ms  statement: select {second}{ms}\n")
    };
    let log: String = [0, 10, 20, 30].into_iter().flat_map(|second| [1, 2, 3].map(|ms| line(second, ms))).collect();
    let replayed = Arc::new(read(log, &[("pace", "1")]).unwrap());
    let starts: Vec<i64> = replayed.recording.transactions.iter().map(|it| it.start_us).collect();
    assert_eq!(starts.len(), 12);
    let mut player = Player::new(Arc::clone(&replayed));
    let run: Vec<(i64, u64)> = (0..30)
        .map(|slot| {
            // As a lane does: a seed for every slot, in which one transaction ends.
            player.seed(slot);
            player.prepare();
            (player.transaction().start_us, player.pause_ns())
        })
        .collect();
    let first = starts.iter().position(|start| *start == run[0].0).expect("a transaction of the log");
    for (number, (start_us, pause_ns)) in run.iter().enumerate().skip(1) {
        let place = (first + number) % starts.len();
        assert_eq!(*start_us, starts[place], "{run:?}");
        // Before a burst is its pause, except before the first one, with which the log starts over.
        let ms = if matches!(place, 3 | 6 | 9) { 9_997 } else { 0 };
        assert_eq!(*pause_ns / 1_000_000, ms, "{run:?}");
    }
}

#[test]
fn clients_have_gaps_between_transactions_at_the_pace_of_the_log() {
    let gaps = |pace: &str| (super::entry().shape)(&[("pace".to_owned(), pace.to_owned())].into()).gaps;
    assert_eq!(["closed", "1"].map(gaps), [false, true]);
}

/// A statement in the text form of a csvlog.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

proptest! {
    #[test]
    fn what_is_written_as_a_csvlog_is_read_again(
        statements in prop::collection::vec((0u8..4, "[ -~é\n]{0,40}", 0u32..1_000_000), 1..20),
    ) {
        let mut log = String::new();
        for (number, (session, text, us)) in statements.iter().enumerate() {
            let ms = f64::from(*us) / 1000.0;
            let value = text.replace('\'', "''");
            let message = quoted(&format!("duration: {ms:.3} ms  execute <unnamed>: select $1"));
            let detail = quoted(&format!("parameters: $1 = '{value}!'"));
            log.push_str(&format!(
                "2026-11-28 05:36:07.075 UTC,\"u\",\"d\",1,\"[local]\",s{session},{number},\"SELECT\",2026-11-28 05:36:07 \
                 UTC,3/0,0,LOG,00000,{message},{detail},,,,,,,,\"psql\",\"client backend\",,0\n"
            ));
        }
        let replayed = read(&log, &[]).unwrap();
        let mut found: Vec<String> = Vec::new();
        for each in &replayed.recording.transactions {
            let steps = replayed.recording.steps(each).iter();
            found.extend(steps.flat_map(|step| replayed.recording.values(step).flatten().map(str::to_owned).collect::<Vec<_>>()));
        }
        let mut expected: Vec<(u8, String)> =
            statements.iter().map(|(session, text, _)| (*session, format!("{text}!"))).collect();
        // Sessions are numbered as they appear.
        let mut seen: Vec<u8> = Vec::new();
        statements.iter().for_each(|(session, ..)| if !seen.contains(session) { seen.push(*session) });
        expected.sort_by_key(|(session, _)| seen.iter().position(|it| it == session));
        prop_assert_eq!(found, expected.into_iter().map(|(_, text)| text).collect::<Vec<_>>());
        prop_assert_eq!(replayed.account.replayed.ns, statements.iter().map(|(.., us)| u64::from(*us) * 1000).sum::<u64>());
    }

    #[test]
    fn a_damaged_log_never_panics(
        which in 0usize..8, at in 0.0f64..1.0, length in 0usize..300, with in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let logs = [CSVLOG, JSONLOG, STDERR, STATEMENT_DURATION, PGAUDIT, GENERAL, SLOW, SERVER_AUDIT];
        let mut log = logs[which].as_bytes().to_vec();
        let from = (at * log.len() as f64) as usize;
        let to = (from + length).min(log.len());
        log.splice(from..to, with);
        let forms = ["csvlog", "jsonlog", "stderr", "csvlog", "stderr", "general-log", "slow-log", "server-audit"];
        let _ = read(&log, &[("form", forms[which])]);
    }
}

#[test]
fn a_log_asks_for_the_tables_that_its_statements_name() {
    let line =
        |text: &str| format!("2026-11-28 05:36:07.075 UTC [7] u@d LOG:  duration: 1.000 ms  statement: {text}\n");
    let asked = |texts: &[&str]| {
        let log: String = texts.iter().map(|text| line(text)).collect();
        let asked = super::own_tables::asked(&read(log, &[]).unwrap());
        let statements: Vec<String> =
            asked.statements.into_iter().map(|it| format!("{}: {}", it.place, it.text)).collect();
        format!("writes: {}, names: {:?}\n{}", asked.writes, asked.names, statements.join("\n"))
    };
    expect![[r#"
        writes: false, names: {"FROM", "SELECT", "WHERE", "a", "b", "c", "from", "select", "t", "u", "where"}
        select-t: SELECT a FROM t WHERE b = 'x'"#]]
    .assert_eq(&asked(&[
        "SELECT a FROM t WHERE b = 'x'",
        "SELECT a FROM t WHERE b = 'y'",
        "SELECT 1; SELECT c FROM u",
    ]));
    expect![[r#"
        writes: true, names: {"FROM", "SELECT", "a", "from", "select", "t"}
        select-t: SELECT "a" FROM t"#]]
    .assert_eq(&asked(&["BEGIN READ WRITE", "SELECT \"a\" FROM t", "COMMIT"]));
}
