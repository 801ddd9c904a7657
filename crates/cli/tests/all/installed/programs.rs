//! Other programs as workloads, as a user runs them: pgbench, sysbench and commands on real servers, and refusals.
//!
//! Without a server or program these tests are skipped with a notice; with `CI` set they fail.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

use crate::support;

use std::{fs, path::Path};

use expect_test::{Expect, expect};
use serde_json::Value;
use support::{
    Bench, err, interrupted_after, out,
    server::{found, installed, small_logs_text},
    status, write_program,
};
use tithe_databases::mysql::MySql;

/// A short experiment on `database` with slices of a second.
fn experiment(database: &str, records: u64, workload: &str, arms: &str) -> String {
    format!(
        r#"title = "Slices"
database = "{database}"
{settings}[data]
records = {records}
[load]
clients = 2
[measure]
budget = "{budget}"
slot = "1 s"
precision = "90%"
epochs = 1
[[workload]]
{workload}
[[arm]]
name = "plain"
{arms}"#,
        settings = small_logs_text(database),
        budget = if arms.matches("[[arm]]").count() > 1 { "45 s" } else { "30 s" }
    )
}

const SECURED: &str = "[[arm]]\nname = \"secured\"\nprotections = [{ use = \"tls\" }, { use = \"PASSWORD\" }]\n";

/// True when `program` is in one of the usual folders; prints a notice if not.
fn there(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    assert!(found || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Runs the experiment to its end; the first cell of its report.
fn run(name: &str, text: &str) -> (Bench, Value) {
    let bench = Bench::new(name);
    bench.file("e.toml", text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let cell = cell_of_slices(&bench);
    (bench, cell)
}

/// As [`run`], interrupted after three frames: all slices have the same form, and arms are checked in the end anyway.
fn begin(name: &str, text: &str) -> (Bench, Value) {
    let bench = Bench::new(name);
    bench.file("e.toml", text);
    let output = interrupted_after(3, &bench, &mut bench.command(&["run", "e.toml", "--quiet"]));
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    let cell = cell_of_slices(&bench);
    (bench, cell)
}

/// The first cell of the only report. Every slot must have the values of a slice.
fn cell_of_slices(bench: &Bench) -> Value {
    let cell = bench.report()["cells"][0].take();
    assert_eq!(cell["mode"], "twin, slices, the other servers stopped, not bound to processors");
    let slots = bench.kept("slots.csv");
    let (mut rows, mut sums) = (0, [0u64; 5]);
    for row in slots.lines().skip(1) {
        let row = row.strip_suffix(',').expect("nobody sees what neighbours took");
        let fields: Vec<u64> = row.split(',').map(|field| field.parse().expect("a number")).collect();
        let [n, counted, wall_ns, latency_sum_ns, client_cpu_ns, server_cpu_ns, wait_ns] = fields[5..] else {
            panic!("{row}")
        };
        assert!(counted == n && wait_ns == 0, "{row}");
        let seen = [n, wall_ns, latency_sum_ns, client_cpu_ns, server_cpu_ns];
        sums = std::array::from_fn(|column| sums[column] + seen[column]);
        rows += 1;
    }
    // Of all slots together: on a busy machine a whole second may have few transactions or none.
    let [n, wall_ns, latency_sum_ns, client_cpu_ns, server_cpu_ns] = sums;
    assert!(n > 0 && client_cpu_ns > 0 && server_cpu_ns > 0, "{slots}");
    assert!(wall_ns > rows * 100_000_000 && latency_sum_ns > wall_ns, "both clients are busy in each second: {slots}");
    cell
}

/// The arm of `cell` with TLS and a password is proven, and by these findings.
fn assert_is_proven(bench: &Bench, cell: &Value) {
    assert_eq!(cell["arms"][1]["proof"]["proof"], "proven", "{cell}");
    let mut lines: Vec<String> = bench
        .kept_lines("evidence.jsonl")
        .iter()
        .filter(|finding| finding["role"] != "disclosure")
        .map(|finding| format!("{} {}\n", finding["check"], finding["verdict"]))
        .collect();
    lines.sort();
    lines.dedup();
    expect![[r#"
        "password-asked" "holds"
        "program-wire" "holds"
        "tls-negotiated" "holds"
        "wire-canary" "holds"
    "#]]
    .assert_eq(&lines.concat());
}

fn level(cell: &Value, arm: usize, name: &str) -> f64 {
    let levels = cell["arms"][arm]["levels"].as_array().expect("levels");
    let level = levels.iter().find(|level| level["name"] == name).unwrap_or_else(|| panic!("no level {name}"));
    level["value"].as_f64().expect("a number")
}

#[test]
fn pgbench_over_tls_is_proven_and_priced() {
    if installed().is_none() {
        return;
    }
    let arms = SECURED.replace("PASSWORD", "scram");
    let (bench, cell) = run("pgbench", &experiment("postgres", 100_000, "pgbench = \"tpcb-like\"", &arms));
    assert_is_proven(&bench, &cell);
    // All transactions are in the histogram, so the percentiles must be in order around the median.
    let [p50, p99] = ["latency_p50_TRANSACTION", "latency_p99_TRANSACTION"].map(|name| level(&cell, 1, name));
    assert!(0.0 < p50 && p50 <= p99, "{p50} {p99}");
    let logs = fs::read_dir(bench.run_folder().join("logs")).expect("logs").flatten();
    let kept = logs.filter(|log| log.file_name().to_string_lossy().ends_with("--program.log")).count();
    assert_eq!(kept, 2, "what the program printed is kept for each arm");
}

#[test]
fn a_script_at_a_rate_counts_latency_from_the_scheduled_start() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("script");
    bench.file("one.sql", "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n");
    let workload = "pgbench_file = \"one.sql\"\nproperties = { protocol = \"prepared\" }";
    let text = experiment("postgres", 100_000, workload, "[[arm]]\nname = \"again\"\n");
    bench.file("e.toml", &text.replace("clients = 2", "clients = 2\nrate = 200\narrivals = \"poisson\""));
    let output = interrupted_after(1, &bench, &mut bench.command(&["run", "e.toml", "--quiet"]));
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    let frames = bench.kept_lines("frames.jsonl");
    let arm = &frames[0]["arms"][1];
    let total = |name: &str| {
        let buckets = arm[name]["TRANSACTION"].as_array().expect("a histogram");
        buckets.iter().map(|bucket| bucket[1].as_u64().expect("a count")).sum::<u64>()
    };
    let operations = arm["operations"].as_u64().expect("operations");
    assert_eq!((total("latency"), total("intended")), (operations, operations));
}

#[test]
fn sysbench_over_tls_is_proven() {
    if !there("mariadbd") || !there("sysbench") {
        return;
    }
    let arms = SECURED.replace("PASSWORD", "password").replace("\"tls\"", "\"tls\", mutual = true");
    let workload = "sysbench = \"oltp_read_only\"\nproperties = { tables = \"2\" }";
    let (bench, cell) = begin("sysbench", &experiment("mariadb", 2000, workload, &arms));
    assert_is_proven(&bench, &cell);
}

#[test]
fn sysbench_drives_mysql() {
    if found(&MySql).is_none() || !there("sysbench") {
        return;
    }
    let arms = SECURED.replace("PASSWORD", "password").replace("\"tls\"", "\"tls\", mutual = true");
    let (bench, cell) = begin("sysbench-mysql", &experiment("mysql", 1000, "sysbench = \"oltp_write_only\"", &arms));
    assert_is_proven(&bench, &cell);
}

#[test]
fn sysbench_drives_postgres() {
    if installed().is_none() || !there("sysbench") {
        return;
    }
    let arms = SECURED.replace("PASSWORD", "scram");
    let (bench, cell) = begin("sysbench-pg", &experiment("postgres", 1000, "sysbench = \"oltp_write_only\"", &arms));
    assert_is_proven(&bench, &cell);
}

/// A shell program that records its calls, and ends with `status`.
fn script(bench: &Bench, status: i32) -> String {
    let text = format!(
        "#!/bin/sh\nsleep 0.2\necho operations 50\necho seconds 1.0\necho latency_us 100 50\necho broken down >&2\nexit {status}\n"
    );
    // Below a folder that the servers' account may read: the test's own folder may be private.
    let path = std::env::temp_dir().join(format!("tithe-test-tools-{}-{status}", std::process::id()));
    write_program(&path, &text);
    let again = "[[arm]]\nname = \"again\"\n";
    let workload = format!(
        "name = \"mine\"\ncommand = \"lines\"\nproperties = {{ run = \"'{}' {{host}} {{port}} {{data}}\", writes = false }}",
        path.display()
    );
    bench.file("e.toml", &experiment("postgres", 10, &workload, again));
    path.display().to_string()
}

#[test]
fn a_command_that_fails_ends_its_cell_with_its_own_words() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("command-fails");
    let path = script(&bench, 1);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    fs::remove_file(&path).expect("the script goes");
    assert_eq!(status(&output), 4, "{}{}", out(&output), err(&output));
    let cells = bench.kept("cells/0.json");
    assert!(cells.contains("failed (exit status: 1)") && cells.contains("broken down"), "{cells}");
}

#[test]
fn a_command_is_measured() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("command");
    let path = script(&bench, 0);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    fs::remove_file(&path).expect("the script goes");
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let frames = bench.kept("frames.jsonl");
    assert!(frames.lines().count() >= 15 && frames.lines().all(|line| line.contains("\"operations\":50")), "{frames}");
}

/// The text of `tithe plan` about a problem, without the lines of the file.
fn refused(text: &str, expect: Expect) {
    let bench = Bench::new("refused");
    bench.file("e.toml", text);
    let output = bench.tithe(&["plan", "e.toml"]);
    assert_eq!(status(&output), 2, "{}{}", out(&output), err(&output));
    let reported = err(&output);
    let lines = reported
        .lines()
        .filter(|line| line.starts_with("error") || line.contains("help:") || line.starts_with("tithe"));
    expect.assert_eq(&lines.map(|line| format!("{}\n", line.trim())).collect::<String>());
}

/// Needs no installed server: the test is in `refused`.
pub fn what_programs_cannot_do_is_refused_before_anything_starts() {
    let again = "[[arm]]\nname = \"again\"\n";
    let of = |database: &str, workload: &str| experiment(database, 100_000, workload, again);
    refused(
        &of("mariadb", "pgbench = \"select-only\""),
        expect![[r#"
        tithe: workload select-only: pgbench does not drive mariadb; it drives what speaks the protocol of PostgreSQL; nothing was started
    "#]],
    );
    refused(
        &of("postgres", "pgbench = \"fastest\""),
        expect![[r#"
        error: `pgbench` has no preset `fastest`
        = help: for a file of your own write `pgbench_file = …`; the presets are: `tpcb-like`, `simple-update`, `select-only`
        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    refused(
        &of("postgres", "pgbench_file = \"nothing.sql\""),
        expect![[r#"
        error: the file `nothing.sql` cannot be read: No such file or directory (os error 2)
        = help: the path is relative to the folder of the experiment file
        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    refused(
        &of("postgres", "command = \"mine\""),
        expect![[r#"
        error: `command` has no preset `mine`
        = help: for a file of your own write `command_file = …`; the presets are: `pgbench`, `sysbench`, `ycsb`, `lines`
        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    refused(
        &of("postgres", "pgbench = \"select-only\"\nproperties = { threads = \"2\" }"),
        expect![[r#"
            error: `threads`: is not known
            = help: there are: script, builtin, protocol, jobs, connect, define
            tithe: 1 problem in e.toml; nothing was started
        "#]],
    );
    refused(
        &of("postgres", "pgbench = \"select-only\"").replace("1 s", "1.5 s"),
        expect![[r#"
        error: a budget of 30 s buys 10 frames of cell `select-only`, and an interval needs 15
        = help: write at least `budget = "45 s"` in `[measure]`, or measure fewer arms, workloads or resources
        error: the load of cell `select-only` comes from another program, which cannot run for 1.5 s
        = help: write whole seconds, for example `slot = "3 s"`, or leave `slot` out
        tithe: 2 problems in e.toml; nothing was started
    "#]],
    );
    refused(
        &of("postgres", "pgbench = \"select-only\"").replace("slot =", "design = \"duet\"\nslot ="),
        expect![[r#"
            error: a budget of 30 s buys 3 frames of cell `select-only`, and an interval needs 15
            = help: write at least `budget = "120 s"` in `[measure]`, or measure fewer arms, workloads or resources
            error: the load of cell `select-only` comes from another program, which cannot change arms
            = help: leave `design` out: other programs' load is measured in slices
            tithe: 2 problems in e.toml; nothing was started
        "#]],
    );
    refused(
        &of("postgres", "pgbench = \"select-only\"").replace("100000", "150000"),
        expect![[r#"
        tithe: workload select-only: records: pgbench loads 100000 rows for each unit of scale, and 150000 is not a multiple (write for example `records = 200000`)
    "#]],
    );
    refused(
        &of("postgres", "sysbench = \"oltp_insert\"").replace("clients = 2", "clients = 2\nrate = 500"),
        expect![[r#"
            tithe: workload oltp_insert: sysbench is offered a closed loop only: leave `rate` out; nothing was started
        "#]],
    );
    let one_sided = SECURED.replace("PASSWORD", "password");
    refused(
        &experiment("mariadb", 2000, "sysbench = \"oltp_insert\"", &one_sided),
        expect![[r#"
        tithe: workload oltp_insert: sysbench speaks TLS to MariaDB with certificates on both sides only, and to MySQL it was not tried: write `use = "tls", mutual = true` (arm secured); nothing was started
    "#]],
    );
    let columns = "[[arm]]\nname = \"columns\"\nprotections = [{ use = \"columns\" }]\n";
    refused(
        &experiment("postgres", 100_000, "pgbench = \"select-only\"", columns),
        expect![[r#"
        tithe: workload select-only: pgbench has none of what arm columns asks of Tithe's own clients; nothing was started
    "#]],
    );
}

#[test]
fn a_program_that_is_not_there_is_told_with_its_package() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("missing");
    let run = "command = \"lines\"\nproperties = { run = \"no-such-program-of-mine\" }";
    bench.file("e.toml", &experiment("postgres", 10, run, "[[arm]]\nname = \"again\"\n"));
    let planned = bench.tithe(&["plan", "e.toml"]);
    assert_eq!(status(&planned), 0, "{}", err(&planned));
    assert!(err(&planned).contains("lacks the program no-such-program-of-mine, so `tithe run` cannot run this"));
    let output = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&output), 3, "{}", err(&output));
    assert!(err(&output).contains("lacks the program no-such-program-of-mine"), "{}", err(&output));
}

#[test]
fn a_plan_names_the_mode() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("plan");
    let text = experiment("postgres", 100_000, "pgbench = \"select-only\"", "[[arm]]\nname = \"again\"\n");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["plan", "e.toml"]);
    // The machine's swap is not part of the test.
    let reported: Vec<String> = out(&output).lines().map(|line| format!("{line}\n")).collect();
    let (swap, rest): (Vec<_>, Vec<_>) = reported.into_iter().partition(|line| line.starts_with("Swap     "));
    assert_eq!(swap.len(), 1, "{swap:?}");
    expect![[r#"
        Slices
        PostgreSQL, 100,000 records, YCSB's printable values, seed 1

        Arms
          plain  plain, the baseline
          again  plain

        Cells
          cell         clients  load                                    slot  frame  frames    starts
          select-only  2        closed loop, slices of another program  1 s   2 s    15 to 15  1

        A cell ends when processor time per operation is known to ±90.00 %, or with its last frame.
        Measured load     at most 30 s
        Everything else   roughly 40 s: starting, loading, warming up, evidence
        Disk              roughly 48 MB at a time
        Few starts        cell select-only: one start, so its intervals reach ±3.4 % at least
                          because starts differ by 1.5 % (two arms over 12 starts of 10 s, workload A, 50,000 records, 2 clients, 2 processors, 2026-11-26); with four `epochs` or more their own spread is used

        What each arm changes
          again
            nothing that shows in the configuration
    "#]]
    .assert_eq(&rest.concat());
}
