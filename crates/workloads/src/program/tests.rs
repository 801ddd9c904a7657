use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tithe_machine::{launch::Content, secret::Secret};
use tithe_model::{
    catalogue::{Properties, WireProtocol},
    experiment::{self, Values},
    histogram::Histogram,
};
use tithe_plugin::{
    program::{Job, ProgramContext, ProgramReport},
    setup::{Reach, ReachTls, TlsVersion},
};

use super::*;
use crate::libpq;

mod own;

const PASSWORD: &str = "0123secret:4567";

fn reach(tls: bool) -> Reach {
    let path = |name: &str| PathBuf::from(format!("/m/{name}"));
    Reach {
        host: "127.0.0.1".to_owned(),
        port: 5432,
        user: "tithe".to_owned(),
        database: "postgres".to_owned(),
        password: tls.then(|| Secret::new(PASSWORD)),
        tls: tls.then(|| ReachTls {
            authority: path("ca.pem"),
            versions: vec![TlsVersion::V1_3],
            identity: (path("client.pem"), path("client.key")),
            mutual: true,
        }),
    }
}

fn at(protocol: WireProtocol, reach: &Reach) -> ProgramContext<'_> {
    ProgramContext {
        executable: Path::new("/bin/program"),
        protocol,
        reach,
        folder: Path::new("/f"),
        data: Path::new("/d"),
    }
}

fn properties(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn make(kind: &str, records: u64, pairs: &[(&str, &str)]) -> Result<Box<dyn Workload>, String> {
    let described = experiment::Workload {
        name: "mine".to_owned(),
        kind: kind.to_owned(),
        properties: properties(pairs),
        prepare: None,
    };
    crate::make(&described, &experiment::Data { records, values: Values::Ycsb }, 1)
}

/// Arguments and environment of all commands of `workload`'s program.
fn reported(workload: &dyn Workload, at: &ProgramContext<'_>) -> String {
    let program = workload.offered_by().program().expect("a program");
    let job = Job { clients: 20, rate: Some(50.0), seconds: 3, seed: 7 };
    let mut text = String::new();
    for statement in program.statements(at) {
        let _ = writeln!(text, "statement: {statement}");
    }
    for command in program.prepare(at).into_iter().chain([program.run(at, &job)]) {
        let _ = writeln!(text, "{} {}", command.program.display(), command.arguments.join(" "));
        for (name, value) in command.environment {
            let _ = writeln!(text, "  {name}={value}");
        }
    }
    text
}

/// As [`reported`], on a server with TLS and a password; the password must not appear.
fn told_in_secret(workload: &dyn Workload, protocol: WireProtocol, expect: Expect) {
    let reach = reach(true);
    let text = reported(workload, &at(protocol, &reach));
    assert!(!text.contains("secret"), "{text}");
    expect.assert_eq(&text);
}

#[test]
fn pgbench_is_told_by_arguments_and_environment() {
    let workload = make("pgbench", 200_000, &[("protocol", "prepared"), ("jobs", "30")]).expect("a workload");
    told_in_secret(
        workload.as_ref(),
        WireProtocol::Postgres,
        expect![[r#"
        /bin/program -i -q -s 2
          PGDATABASE=postgres
          PGGSSENCMODE=disable
          PGHOST=localhost
          PGHOSTADDR=127.0.0.1
          PGPASSFILE=/f/pgpass
          PGPORT=5432
          PGSSLCERT=/m/client.pem
          PGSSLKEY=/m/client.key
          PGSSLMAXPROTOCOLVERSION=TLSv1.3
          PGSSLMINPROTOCOLVERSION=TLSv1.3
          PGSSLMODE=verify-full
          PGSSLROOTCERT=/m/ca.pem
          PGUSER=tithe
        /bin/program -n -l --log-prefix=/f/log --random-seed=7 -c 20 -j 20 -T 3 -M prepared -b tpcb-like -R 50
          PGDATABASE=postgres
          PGGSSENCMODE=disable
          PGHOST=localhost
          PGHOSTADDR=127.0.0.1
          PGPASSFILE=/f/pgpass
          PGPORT=5432
          PGSSLCERT=/m/client.pem
          PGSSLKEY=/m/client.key
          PGSSLMAXPROTOCOLVERSION=TLSv1.3
          PGSSLMINPROTOCOLVERSION=TLSv1.3
          PGSSLMODE=verify-full
          PGSSLROOTCERT=/m/ca.pem
          PGUSER=tithe
    "#]],
    );
    let own = make("pgbench", 100_000, &[("script", "SELECT 1;\n")]).expect("a workload");
    let plain = reach(false);
    expect![[r#"
        /bin/program -i -q -s 1
          PGDATABASE=postgres
          PGGSSENCMODE=disable
          PGHOST=localhost
          PGHOSTADDR=127.0.0.1
          PGPASSFILE=/f/pgpass
          PGPORT=5432
          PGSSLMODE=disable
          PGUSER=tithe
        /bin/program -n -l --log-prefix=/f/log --random-seed=7 -c 20 -j 1 -T 3 -M simple -f /f/script.sql@1 -R 50
          PGDATABASE=postgres
          PGGSSENCMODE=disable
          PGHOST=localhost
          PGHOSTADDR=127.0.0.1
          PGPASSFILE=/f/pgpass
          PGPORT=5432
          PGSSLMODE=disable
          PGUSER=tithe
    "#]]
    .assert_eq(&reported(own.as_ref(), &at(WireProtocol::Postgres, &plain)));
    let files =
        own.offered_by().program().expect("a program").files(&at(WireProtocol::Postgres, &plain)).expect("files");
    assert_eq!(files, [("script.sql".to_owned(), Content::Text("SELECT 1;\n".to_owned()))]);
}

#[test]
fn the_password_stands_in_a_file() {
    let reach = reach(true);
    let files = libpq::files(&at(WireProtocol::Postgres, &reach));
    assert_eq!(files, [("pgpass".to_owned(), Content::Secret(Secret::new("*:*:*:*:0123secret\\:4567\n")))]);
}

#[test]
fn sysbench_is_told_by_arguments_and_a_file() {
    let workload = make("sysbench", 30_000, &[("script", "oltp_read_only"), ("tables", "3")]).expect("a workload");
    told_in_secret(
        workload.as_ref(),
        WireProtocol::MySql,
        expect![[r#"
            statement: CREATE DATABASE sbtest
            /bin/program oltp_read_only --config-file=/f/options --tables=3 --table-size=10000 prepare
            /bin/program oltp_read_only --config-file=/f/options --tables=3 --table-size=10000 --threads=20 --time=3 --events=0 --rand-seed=7 --histogram=on run
        "#]],
    );
    let plain = reach(false);
    for protocol in [WireProtocol::MySql, WireProtocol::Postgres] {
        let files = workload.offered_by().program().expect("a program").files(&at(protocol, &plain)).expect("files");
        let Content::Secret(options) = &files[0].1 else { panic!("{files:?}") };
        let expect = match protocol {
            WireProtocol::MySql => expect![[r#"
                db-driver=mysql
                mysql-host=127.0.0.1
                mysql-port=5432
                mysql-user=tithe
                mysql-db=sbtest
                mysql-ssl=off
            "#]],
            _ => expect![[r#"
                db-driver=pgsql
                pgsql-host=localhost
                pgsql-port=5432
                pgsql-user=tithe
                pgsql-db=postgres
            "#]],
        };
        expect.assert_eq(options.expose_text());
    }
}

#[test]
fn a_command_is_filled_in() {
    let run = "/opt/bench --at {host}:{port} --as '{user} of {database}' -c{clients} {seconds} {seed} {records} {data} \
               {password_file} {authority} {certificate} {key}";
    let pairs = [("pattern", "lines"), ("run", run), ("prepare", "/opt/load {port}")];
    let workload = make("command", 1000, &pairs).expect("a workload");
    told_in_secret(
        workload.as_ref(),
        WireProtocol::Redis,
        expect![[r#"
        /opt/load 5432
        /bin/program --at 127.0.0.1:5432 --as tithe of postgres -c20 3 7 1000 /d /f/password /m/ca.pem /m/client.pem /m/client.key
    "#]],
    );
}

#[test]
fn what_cannot_be_asked_for_is_told() {
    let problem = |kind: &str, records: u64, pairs: &[(&str, &str)], expect: Expect| {
        expect.assert_eq(&make(kind, records, pairs).err().unwrap_or_default());
    };
    problem(
        "pgbench",
        150_000,
        &[("protocol", "fast"), ("job", "2"), ("jobs", "0")],
        expect![[
            r#"job: is not known (there are: script, builtin, protocol, jobs, connect, define); protocol: "fast" is not known (write simple or extended or prepared); jobs: "0" is not a whole number from 1 on (write 1); records: pgbench loads 100000 rows for each unit of scale, and 150000 is not a multiple (write for example `records = 200000`)"#
        ]],
    );
    problem(
        "sysbench",
        100,
        &[("script", "mine"), ("tables", "3")],
        expect![[
            r#"script: "mine" is not known (write oltp_read_write or oltp_read_only or oltp_write_only or oltp_point_select or oltp_update_index or oltp_update_non_index or oltp_insert or oltp_delete); tables: 100 records do not share evenly among 3 tables (change `tables` or the records of `[data]`)"#
        ]],
    );
    problem(
        "command",
        1,
        &[("pattern", "mine"), ("run", "a {nothing} 'b")],
        expect![[
            r#"run: the quote ' is not closed (close it); pattern: there is no pattern "mine" (there are: pgbench, sysbench, ycsb, lines)"#
        ]],
    );
    problem(
        "command",
        1,
        &[("run", "a jdbc:x://ann:secret@{host} password=1"), ("writes", "no")],
        expect![[
            r#"run: may hold a password (write `://{host}` in URLs, and use {password_file}); writes: "no" is neither true nor false (write "true" or "false")"#
        ]],
    );
    problem(
        "command",
        1,
        &[("run", "a {nothing}")],
        expect![
            "run: there is nothing to fill in for {nothing} (places are {host} {port} {user} {database} {clients} {seconds} {records} {seed} {data} {password_file} {authority} {certificate} {key})"
        ],
    );
    for run in ["PGHOST={host} bench", "$HOME/bench {port}", "bench {port} | tee x", "load && bench"] {
        let told = make("command", 1, &[("run", run)]).err().unwrap_or_default();
        let expected = "run: has signs or variables of a shell, and no shell reads it (write `sh -c '…'` around it)";
        assert_eq!(told, expected, "{run}");
    }
    for run in ["bench --password hunter2", "sh -c 'bench --api-token hunter2'"] {
        let told = make("command", 1, &[("run", run)]).err().unwrap_or_default();
        assert!(told.starts_with("run: may hold a password") && !told.contains("hunter2"), "{told}");
    }
    assert!(make("command", 1, &[("run", "psql -F '|' -c 'SELECT 1 | 2'")]).is_ok());
    problem(
        "command",
        1,
        &[],
        expect![[r#"run: is missing (write `properties = { run = "program --port {port}" }`)"#]],
    );
}

/// The result of a pattern for the real output of a program.
fn check(read: output::Read, printed: &str, expect: Expect) {
    let text = match read(printed) {
        Ok(reported) => format!(
            "{} done, {} failed, {} ns, latencies {:?} ns, {} in the histogram, median {:?} ns\n",
            reported.transactions,
            reported.failed,
            reported.wall_ns,
            reported.latency_sum_ns,
            reported.latency.total(),
            reported.latency.quantile(0.5).map(f64::round)
        ),
        Err(why) => why,
    };
    expect.assert_eq(&text);
}

#[test]
fn output_of_pgbench() {
    check(
        output::pgbench,
        include_str!("golden/pgbench.txt"),
        expect![[r#"
        335 done, 0 failed, 1006709000 ns, latencies Some(4026700000) ns, 0 in the histogram, median None ns
    "#]],
    );
    check(
        output::pgbench,
        include_str!("golden/pgbench-rate.txt"),
        expect![[r#"
        87 done, 0 failed, 1968547988 ns, latencies Some(86217000) ns, 0 in the histogram, median None ns
    "#]],
    );
    check(output::pgbench, "pgbench: error: connection refused", expect!["no number of transactions"]);
    let still = "number of transactions actually processed: 0\ntps = 0.000000 (without initial connection time)\n";
    check(
        output::pgbench,
        still,
        expect![[r#"
        0 done, 0 failed, 0 ns, latencies None ns, 0 in the histogram, median None ns
    "#]],
    );
    // Version 13 prints the rate with connecting first.
    let old = "number of transactions actually processed: 10\nlatency average = 2.000 ms\n\
               tps = 80.0 (including connections establishing)\ntps = 100.0 (excluding connections establishing)\n";
    check(
        output::pgbench,
        old,
        expect![[r#"
        10 done, 0 failed, 100000000 ns, latencies Some(20000000) ns, 0 in the histogram, median None ns
    "#]],
    );
    // With several scripts it prints the rate of each behind that of all.
    let two = "number of transactions actually processed: 100\nlatency average = 2.000 ms\n\
               tps = 100.000000 (without initial connection time)\n\
               SQL script 1: one.sql\n - weight: 9 (targets 90.0% of total)\n\
               \x20- 90 transactions (90.0% of total, tps = 90.000000)\n - latency average = 1.500 ms\n\
               SQL script 2: two.sql\n - weight: 1 (targets 10.0% of total)\n\
               \x20- 10 transactions (10.0% of total, tps = 10.000000)\n - latency average = 6.500 ms\n";
    check(
        output::pgbench,
        two,
        expect![[r#"
        100 done, 0 failed, 1000000000 ns, latencies Some(200000000) ns, 0 in the histogram, median None ns
    "#]],
    );
}

#[test]
fn log_of_pgbench() {
    let read = |text: &str, scheduled: bool| {
        let mut log = output::Log::default();
        log.add(text, scheduled).map(|()| (log.latency.total(), log.intended.total(), log.sum_ns))
    };
    let plain = include_str!("golden/pgbench-log.txt");
    assert_eq!(read(plain, false).map(|(count, ..)| count), Ok(plain.lines().count() as u64));
    let scheduled = include_str!("golden/pgbench-rate-log.txt");
    let (count, intended, sum_ns) = read(scheduled, true).expect("a log");
    assert_eq!((count, intended), (scheduled.lines().count() as u64, count));
    assert_eq!(sum_ns, read(scheduled, false).expect("a log").2, "what began late was waited for");
    let mut late = output::Log::default();
    late.add("0 1 900 0 1 2 400\n", true).expect("a log");
    let median = |latency: &Histogram| latency.quantile(0.5).map(|ns| (ns / 1e4).round());
    assert_eq!((median(&late.latency), median(&late.intended), late.sum_ns), (Some(50.0), Some(90.0), 900_000));
    assert_eq!(read("0 1 skipped 0 1 2 3\n1 1 failed 0 1 2\n", false), Ok((0, 0, 0)));
    assert_eq!(read("0 1\n", false), Err("a line of the log is \"0 1\"".to_owned()));
    assert_eq!(read("0 1 25 0 1 2\n", true), Err("a line of the log is \"0 1 25 0 1 2\"".to_owned()));
}

#[test]
fn output_of_sysbench() {
    check(
        output::sysbench,
        include_str!("golden/sysbench-mysql.txt"),
        expect![[r#"
        1410 done, 0 failed, 1009600000 ns, latencies Some(4008420000) ns, 1410 in the histogram, median Some(2965692.0) ns
    "#]],
    );
    check(
        output::sysbench,
        include_str!("golden/sysbench-pgsql.txt"),
        expect![[r#"
        912 done, 0 failed, 1011900000 ns, latencies Some(2001700000) ns, 912 in the histogram, median Some(809344.0) ns
    "#]],
    );
    check(output::sysbench, "FATAL: unable to connect", expect!["no number of events"]);
    let cut = include_str!("golden/sysbench-mysql.txt").replace("number of events:  ", "number of events: 9");
    check(output::sysbench, &cut, expect!["9 events, and 1410 of them in the histogram"]);
}

#[test]
fn output_of_ycsb() {
    let printed = "[OVERALL], RunTime(ms), 3002\n[OVERALL], Throughput(ops/sec), 1000.5\n[READ], Operations, 2000\n\
                   [READ], Return=OK, 2000\n[UPDATE], Operations, 1003\n[UPDATE-FAILED], Operations, 2\n\
                   [Intended-UPDATE-FAILED], Operations, 2\n";
    check(
        output::ycsb,
        printed,
        expect![[r#"
        3002 done, 2 failed, 3002000000 ns, latencies None ns, 0 in the histogram, median None ns
    "#]],
    );
    check(output::ycsb, "[OVERALL], RunTime(ms), 3002\n", expect!["no throughput"]);
}

#[test]
fn output_in_lines() {
    let printed = "hello\noperations 3\nseconds 0.5\nfailed 1\nlatency_mean_us 20\nlatency_us 10 2\nlatency_us 40 1\n";
    check(
        output::lines,
        printed,
        expect![[r#"
        3 done, 1 failed, 500000000 ns, latencies Some(60000) ns, 3 in the histogram, median Some(10032.0) ns
    "#]],
    );
    check(output::lines, "operations 3\n", expect!["no line `seconds S`"]);
    check(output::lines, "operations many\nseconds 1\n", expect![[r#"`operations` is "many""#]]);
    check(output::lines, "operations 1\nseconds 1\nlatency_us 5\n", expect![[r#"`latency_us` is "5""#]]);
}

#[test]
fn a_shortfall_within_chance_is_none() {
    let job = Job { clients: 1, rate: Some(100.0), seconds: 4, seed: 1 };
    let reported = |transactions| ProgramReport { transactions, ..ProgramReport::default() };
    assert_eq!(
        (reported(345).unfinished(&job), reported(300).unfinished(&job), reported(900).unfinished(&job)),
        (0, 100, 0)
    );
    assert_eq!(reported(1).unfinished(&Job { rate: None, ..job }), 0);
    let busy = ProgramReport { transactions: 10, wall_ns: 1000, ..ProgramReport::default() };
    assert_eq!(busy.latency_sum_ns(&Job { clients: 4, ..job }), 4000, "clients that are never idle");
}

/// Text so similar to output that a reader gets far into it.
fn like_output() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "number of transactions actually processed: ",
        "number of failed transactions: ",
        "latency average = ",
        "tps = ",
        "total number of events: ",
        "total time: ",
        "  sum: ",
        "ignored errors: ",
        "Latency histogram (values are in milliseconds)\n value\n",
        " 1.5 |** ",
        "[OVERALL], RunTime(ms), ",
        "[OVERALL], Throughput(ops/sec), ",
        "[READ-FAILED], Operations, ",
        "operations ",
        "seconds ",
        "latency_mean_us ",
        "latency_us ",
    ]);
    let figure = prop_oneof![
        "[0-9]{1,30}",
        "-?[0-9.]{0,8}e?[0-9]{0,4}",
        "inf|nan|",
        "\\PC{0,6}",
        "[0-9] [0-9]{1,25}",
        "1 18446744073709551615"
    ];
    let line = (words, figure).prop_map(|(word, figure)| format!("{word}{figure}\n"));
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn foreign_output_never_panics_and_times_stay_finite(text in like_output()) {
        for (_, _, read) in output::PATTERNS {
            if let Ok(reported) = read(&text) {
                let job = Job { clients: 1024, rate: Some(1e6), seconds: 10, seed: 1 };
                prop_assert!(reported.wall_ns <= 32_000_000_000_000_000, "{reported:?}");
                prop_assert!(reported.unfinished(&job) <= 10_000_000);
                let _ = reported.latency_sum_ns(&job);
            }
        }
        for scheduled in [false, true] {
            let _ = output::Log::default().add(&text, scheduled);
        }
    }

    #[test]
    fn every_line_of_a_log_counts_once(times in proptest::collection::vec((0u64..10_000_000, 0u64..1000), 0..50)) {
        let text: String = times.iter().map(|(us, late)| format!("0 1 {} 0 1 2 {late}\n", us + late)).collect();
        let mut log = output::Log::default();
        log.add(&text, true).expect("a log");
        prop_assert_eq!(log.latency.total(), times.len() as u64);
        prop_assert_eq!(log.sum_ns, times.iter().map(|(us, late)| (us + late) * 1000).sum::<u64>());
    }
}
