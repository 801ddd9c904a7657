//! A server's log as the load: the parts that are replayed, refusals before anything starts, and missing tables.

use std::{
    io::{BufWriter, Write as _},
    process::Stdio,
};

use crate::support::{Bench, err, out, server::found, status};

use expect_test::{Expect, expect};
use tithe_databases::postgres::Postgres;

const LOG: &str = include_str!("../../../../workloads/src/replay/samples/postgres.csv");

/// The tables that the log's statements name.
const SCHEMA: &str = "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int);
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int);
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp);
CREATE TABLE note (id int, t text);
";

#[test]
fn the_plan_counts_what_is_replayed_and_refuses_logs_by_line() {
    if found(&Postgres).is_none() {
        return;
    }
    let bench = Bench::new("replay-plan");
    let lines: Vec<&str> = LOG.split_inclusive('\n').collect();
    let first = |count: usize| lines[..count].concat();
    bench.file("schema.sql", SCHEMA);
    let plan = |log: &str, further: &[&str]| {
        bench.file("log.csv", log);
        let words = ["plan", "postgres", "--protect", "tls", "--replay", "log.csv"];
        let output = bench.tithe(&[&words[..], further].concat());
        let folder = bench.path("").canonicalize().expect("a folder").display().to_string();
        let told = out(&output);
        let told =
            told.lines().skip_while(|line| !line.starts_with("Replay")).take_while(|line| !line.starts_with("Swap"));
        let said = err(&output).replace(&format!("{folder}/"), "");
        format!("{}: {}{said}", status(&output), told.map(|line| format!("{line}\n")).collect::<String>())
    };
    let check = |log: &str, further: &[&str], expected: Expect| expected.assert_eq(&plan(log, further));
    check(
        LOG,
        &["--prepare", "schema.sql", "--property", "pace=2"],
        expect![[r#"
        0: Replay            log: log: log.csv, csvlog
                          sessions: 9 sessions, 2 at a time, over 267.9 ms
                          pace: 2 times that of the log with 2 clients
                          transactions end: as logged
                          waits within transactions: left out
                          prepared by: schema.sql, statements
                          replayed: 70.9 % of the logged time: 12 transactions, 32 statements
                          not replayed: defines or maintains tables, accounts or the server, 28.2 % of the logged time: 1 transaction, 1 statement, the first in line 58
                          not replayed: sets something in its session, 0.5 % of the logged time: 3 transactions, 3 statements, the first in line 67
                          not replayed: copies rows that are not in the log, 0.4 % of the logged time: 1 transaction, 1 statement, the first in line 66
                          not replayed: failed when it was logged, 0.0 % of the logged time: 1 transaction, 1 statement, the first in line 62
    "#]],
    );
    check(
        &(first(20) + &lines[20][..40]),
        &[],
        expect![[r#"
        0: Replay            log: log: log.csv, csvlog
                          sessions: 3 sessions, 2 at a time, over 15.9 ms
                          pace: closed loop: one transaction after the other in each client
                          transactions end: as logged
                          waits within transactions: left out
                          replayed: 100.0 % of the logged time: 3 transactions, 15 statements
                          the log ends: in the middle of the record in line 21
    "#]],
    );
    check(
        &(first(20) + &lines[20][..40] + "\n" + lines[21]),
        &[],
        expect![[r#"
        2: tithe: workload log: log: log.csv: line 21: is not a record of a csvlog, which has 23, 24 or 26 columns: this one has 27 (the log is damaged here: take the part before this line, or the part behind the damage)
    "#]],
    );
    check(
        &(first(20) + &lines[20].replace("2026-11-28", "2026-11-25")),
        &[],
        expect![[r#"
        2: tithe: workload log: log: log.csv: line 21: was written 72.0 h before line 20: the log is of two servers, or out of order (give the log of one server, its files in the order of time)
    "#]],
    );
    check(
        &first(1),
        &[],
        expect![[r#"
        2: tithe: workload log: log: log.csv: line 1: the log has no statements (log every statement: PostgreSQL by log_min_duration_statement = 0 with lc_messages = C, MariaDB and MySQL by general_log, or slow_query_log with long_query_time = 0)
    "#]],
    );
    check(
        "",
        &[],
        expect![[r#"
        2: tithe: workload log: log: log.csv: line 1: the log is empty (name a log with statements)
    "#]],
    );
    check(
        LOG,
        &["--property", "database=shop"],
        expect![[r#"
        2: tithe: workload log: log: log.csv: line 1: the log has no statement in the database shop: it has app (37 statements) (choose one that it has)
    "#]],
    );
    check(
        "srv1 <2026> [7] LOG:  statement: select 1\n",
        &["--property", "prefix=%m [%p] "],
        expect![[r#"
        2: tithe: workload log: log: log.csv: line 1: does not begin with the prefix "%m [%p] " (write `prefix = "…"` as `SHOW log_line_prefix` prints it; the log must be of one server, with lc_messages in English)
    "#]],
    );
}

#[test]
fn tables_that_a_log_names_must_be_there() {
    if found(&Postgres).is_none() {
        return;
    }
    let bench = Bench::new("replay-verify");
    bench.file("log.csv", LOG);
    bench.file("schema.sql", SCHEMA);
    let words = ["verify", "postgres", "--protect", "tls", "--replay", "log.csv"];
    let output = bench.tithe(&words);
    let said = format!("{}{}", out(&output), err(&output));
    let named = said.lines().find(|line| line.contains("the log's statements"));
    expect![[r#"✗ wrong answer: arm plain: the log's statements do not find their data: 42P01: relation "note" does not exist; 42P01: relation "pgbench_accounts" does not exist; 42P01: relation "pgbench_branches" does not exist; name a dump of the server's data by `prepare` (`--prepare DATA`)"#]].assert_eq(named.unwrap_or(&said).trim());
    let output = bench.tithe(&[&words[..], &["--prepare", "schema.sql"]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
}

/// The maximum memory for planning a replay of `lines`, bytes: each is a session of its own, and no end is logged.
#[allow(clippy::zombie_processes, reason = "wait4 waits for the child, and says what it has used")]
fn memory_of(bench: &Bench, lines: u32) -> i64 {
    let mut log = BufWriter::new(std::fs::File::create(bench.path("large.log")).expect("a file"));
    for number in 0..lines {
        let text = format!("SELECT {number}, '{number:0>200}'");
        writeln!(log, "2026-11-28 05:36:07.075 UTC [{number}] u@d LOG:  duration: 0.100 ms  statement: {text}")
            .expect("written");
    }
    drop(log);
    let words = ["plan", "postgres", "--protect", "tls", "--replay", "large.log", "--property", "memory=1"];
    let child = bench.command(&words).stdout(Stdio::null()).spawn().expect("tithe starts");
    let (mut ended, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the kernel writes both, and only this process waits for the child.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(child.id() as i32, &raw mut ended, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    assert_eq!((waited, ended), (child.id() as i32, 0));
    usage.ru_maxrss * 1024
}

#[test]
fn a_log_larger_than_the_memory_that_it_may_take_is_streamed() {
    if found(&Postgres).is_none() {
        return;
    }
    let bench = Bench::new("replay-large");
    let (small, large) = (memory_of(&bench, 1000), memory_of(&bench, 250_000));
    let log = std::fs::metadata(bench.path("large.log")).expect("a log").len() as i64;
    assert!(large - small < log / 2, "{small} and {large} bytes for a log of {log}");
}
