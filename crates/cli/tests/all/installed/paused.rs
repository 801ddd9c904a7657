//! In slices the servers of the other arms are paused: seen on real servers, which run again afterwards, however the
//! run ends.
//!
//! Without PostgreSQL these tests are skipped with a notice; with `CI` set they fail.

use crate::support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use rustix::process::Signal;
use support::{
    Bench, FEW_OPERATIONS, err, known_costs, out, process::Process, sealed, server::installed, status, wait_until,
};

const ARMS: &str = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"again\"\n[[arm]]\nname = \"tls\"\nprotections = [{ use = \"tls\" }]\n";

/// Slices of Tithe's own load, or of pgbench, which loads at least 100,000 rows.
fn experiment(workload: &str, measure: &str) -> String {
    let records = if workload.starts_with("pgbench") { 100_000 } else { 1000 };
    format!(
        "title = \"Slices\"\ndatabase = \"postgres\"\n[data]\nrecords = {records}\n[load]\nclients = 2\n[measure]\n\
         budget = \"1 h\"\nprecision = \"0.01%\"\nepochs = 1\n{measure}\n[[workload]]\n{workload}\n{ARMS}"
    )
}

const OWN: (&str, &str) = ("ycsb = \"b\"", "design = \"slices\"\nslot = \"200 ms\"\nwarmup = \"0 s\"");
const PGBENCH: (&str, &str) = ("pgbench = \"select-only\"", "slot = \"1 s\"");

/// State and parent of every process, by its number.
fn processes() -> BTreeMap<i32, (String, i32)> {
    let stat = |entry: fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        Some((process, (fields.next()?.to_owned(), fields.next()?.parse().ok()?)))
    };
    fs::read_dir("/proc").expect("/proc").flatten().filter_map(stat).collect()
}

/// The servers of the run `tithe`, each with all its processes and their states. Other programs that it runs are left
/// out.
fn servers(tithe: i32) -> BTreeMap<i32, Vec<(i32, String)>> {
    let all = processes();
    let children = |of: i32| all.iter().filter(move |(_, (_, parent))| *parent == of);
    let is_server = |process: &i32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.trim() == "postgres" && children(*process).next().is_some()
    };
    let tree = |process: i32, state: &str| {
        let below = children(process).map(|(child, (state, _))| (*child, state.clone()));
        std::iter::once((process, state.to_owned())).chain(below).collect()
    };
    children(tithe)
        .filter(|(server, _)| is_server(server))
        .map(|(server, (state, _))| (*server, tree(*server, state)))
        .collect()
}

fn start(bench: &Bench, (workload, measure): (&str, &str)) -> Process {
    bench.file("e.toml", &experiment(workload, measure));
    Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]))
}

/// Watches `run` until each of its three servers was seen running while all processes of both others were paused;
/// returns all processes that were seen.
fn watch(run: &mut Process) -> BTreeSet<i32> {
    let mut ran_alone = BTreeSet::new();
    let mut seen = BTreeSet::new();
    while ran_alone.len() < 3 {
        assert!(!run.has_ended(), "the run ended by itself; alone: {ran_alone:?}");
        let servers = servers(run.id() as i32);
        let is_paused = |tree: &Vec<(i32, String)>| tree.iter().all(|(_, state)| state == "T");
        let running: Vec<i32> =
            servers.iter().filter(|(_, tree)| !is_paused(tree)).map(|(server, _)| *server).collect();
        if let (3, [alone]) = (servers.len(), &running[..]) {
            let runs = servers[alone].iter().all(|(_, state)| state != "T");
            // A reading may come between the signals to two processes.
            ran_alone.extend(runs.then_some(*alone));
        }
        seen.extend(servers.into_values().flatten().map(|(process, _)| process));
        // A reading covers all of /proc; the shortest slice is four times as long as this pause.
        std::thread::sleep(Duration::from_millis(50));
    }
    seen
}

/// Waits until none of `processes` exists; they were PostgreSQL's, so another program with such a number does not
/// count.
fn await_end(processes: &BTreeSet<i32>) {
    let left = || {
        let name = |process: &&i32| fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        processes.iter().filter(|process| name(process).trim() == "postgres").copied().collect::<Vec<i32>>()
    };
    wait_until(|| left().is_empty());
    assert_eq!(left(), Vec::<i32>::new());
}

/// The others are paused under `load`, and a cancelled run leaves none of them paused or running.
fn pause_and_cancel(load: (&str, &str)) {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("pause");
    let mut run = start(&bench, load);
    let seen = watch(&mut run);
    run.signal(Signal::INT);
    let output = run.output();
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    await_end(&seen);
    let cells = bench.kept("cells/0.json");
    assert!(cells.contains("twin, slices, the other servers stopped"), "{cells}");
    let frames = fs::read_to_string(bench.run_folder().join("frames.jsonl")).unwrap_or_default();
    assert!(!frames.contains("could not be paused"), "{frames}");
}

#[test]
fn the_others_are_paused_and_a_cancelled_run_leaves_none_of_them() {
    pause_and_cancel(OWN);
}

#[test]
fn the_others_are_paused_while_pgbench_is_at_one_of_them() {
    pause_and_cancel(PGBENCH);
}

#[test]
fn the_next_start_ends_what_a_killed_run_left_paused() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("pause-killed");
    let mut run = start(&bench, OWN);
    let seen = watch(&mut run);
    run.kill();
    // Elsewhere, and with another database: every start of servers cleans up first.
    let next = Bench::new("pause-next");
    next.file("e.toml", &known_costs(FEW_OPERATIONS, &sealed(0.05), "20 s"));
    let output = next.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    await_end(&seen);
}
