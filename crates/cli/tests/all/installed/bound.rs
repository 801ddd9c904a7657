//! The thread that serves a client runs on the client's processor: the single thread of a launched Redis on the same
//! processor in all arms, and a thread of an attached MariaDB or MySQL only as long as it is measured.
//!
//! Without the server a test is skipped with a notice; with `CI` set it fails.

use std::{cell::Cell, fs, os::unix::process::ExitStatusExt as _};

use rustix::process::Signal;
use tithe_databases::redis::Redis;
use tithe_machine::watch::process;

use crate::support::{
    Bench, err, out,
    process::Process,
    server::{OtherServer, Server, found},
    status, wait_until,
};

/// The processors on which each `redis-server` that was started below `tithe` may run.
fn allowed(tithe: u32) -> Vec<String> {
    let status = |process: &str| fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = |status: &str, name: &str| {
        status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned())).unwrap_or_default()
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let states = all.filter_map(|entry| Some(status(entry.file_name().to_str()?)));
    let is_ours = |state: &String| line(state, "Name:") == "redis-server" && line(state, "PPid:") == tithe.to_string();
    states.filter(is_ours).map(|state| line(&state, "Cpus_allowed_list:")).collect()
}

#[test]
fn the_thread_of_redis_runs_on_the_processor_of_a_client_in_all_arms() {
    if found(&Redis).is_none() {
        return;
    }
    let lanes: Vec<String> = process::processors().iter().take(2).map(usize::to_string).collect();
    let bench = Bench::new("bound");
    let arms = "[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"tls\"\nprotections = [{ use = \"tls\" }]\n";
    let experiment = format!(
        "title = \"Bound\"\ndatabase = \"redis\"\n[data]\nrecords = 500\n[load]\nclients = 2\n[measure]\nbudget = \"1 h\"\n\
         precision = \"0.01%\"\n[[workload]]\nycsb = \"c\"\n{arms}"
    );
    bench.file("e.toml", &experiment);
    let run = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    // Both servers on one processor, which differs between frames.
    for processor in lanes {
        let both = [processor.clone(), processor];
        assert!(awaited(|| allowed(run.id()) == both), "not seen: {both:?}");
    }
    run.signal(Signal::INT);
    let output = run.output();
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
}

/// Threads of the process `server` that may not run on all processors.
fn bound_threads(server: i32) -> usize {
    let all = process::processors();
    let threads = fs::read_dir(format!("/proc/{server}/task")).expect("the server's threads").flatten();
    let numbers = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|thread| process::processors_of(*thread).is_some_and(|its| its != all)).count()
}

/// Waits until `condition`; false if it takes too long.
fn awaited(condition: impl Fn() -> bool) -> bool {
    let seen = Cell::new(false);
    wait_until(|| {
        seen.set(condition());
        seen.get()
    });
    seen.get()
}

/// How a run ends.
#[derive(Clone, Copy)]
enum End {
    /// With its budget.
    Whole,
    Killed,
}

/// Measures two arms of this number of `clients` on the attached server of `database` at `url`, until its threads are
/// pinned (`is_bound`) and the run has come to its `end`. Returns the output.
fn measured((database, url, clients): (&str, &str, u32), is_bound: impl FnOnce(), end: End) -> String {
    let budget = match end {
        End::Whole => "10 s",
        End::Killed => "1 h",
    };
    let arms: String = ["plain", "again"].map(|arm| format!("[[arm]]\nname = \"{arm}\"\nurl = \"{url}\"\n")).concat();
    let bench = Bench::new("borrowed");
    let experiment = format!(
        "title = \"Borrowed\"\ndatabase = \"{database}\"\n[data]\nrecords = 500\n[load]\nclients = {clients}\n[measure]\n\
         budget = \"{budget}\"\nprecision = \"0.01%\"\ndesign = \"slices\"\nslot = \"100 ms\"\n[[workload]]\nycsb = \"c\"\n{arms}"
    );
    bench.file("e.toml", &experiment);
    let mut run = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    is_bound();
    let expected = match end {
        End::Whole => (Some(0), None),
        End::Killed => {
            run.kill();
            (None, Some(Signal::KILL.as_raw()))
        }
    };
    let output = run.output();
    let told = out(&output) + &err(&output);
    assert_eq!((output.status.code(), output.status.signal()), expected, "{told}");
    told
}

/// Measures an attached `server`, whose threads are pinned meanwhile. Once the run has come to its `end`, all have
/// their processors back. The known net time shows that no thread was left to the kernel.
fn threads_are_borrowed(server: &OtherServer, database: &str, end: End) -> String {
    let url = format!("{database}://tithe@{}", server.place("127.0.0.1"));
    // The connections of both arms.
    let are_bound = || assert!(awaited(|| bound_threads(server.process()) == 2), "{database}: not bound");
    let told = measured((database, &url, 1), are_bound, end);
    assert!(awaited(|| bound_threads(server.process()) == 0), "{database}: not given back");
    told
}

fn threads_are_given_back(database: &str) {
    let Some(server) = OtherServer::without_tls(database == "mysql") else { return };
    let told = threads_are_borrowed(&server, database, End::Whole);
    assert!(told.contains("net time per op") && !told.contains("cannot be told"), "{database}: {told}");
}

#[test]
fn threads_of_a_mariadb_that_is_not_ours_are_bound_and_given_back() {
    threads_are_given_back("mariadb");
}

#[test]
fn threads_of_a_mysql_that_is_not_ours_are_bound_and_given_back() {
    threads_are_given_back("mysql");
}

#[test]
fn threads_are_given_back_where_tithe_is_killed() {
    let Some(server) = OtherServer::without_tls(false) else { return };
    threads_are_borrowed(&server, "mariadb", End::Killed);
}

/// Measures an attached PostgreSQL: its log writer is pinned meanwhile, and has its processors back once the run has
/// come to its `end`. Returns the output; `None` if PostgreSQL is not installed.
fn log_writer_is_borrowed(end: End) -> Option<String> {
    let server = Server::start()?;
    let (writer, all) = (server.log_writer(), process::processors());
    let is_bound = || {
        for processor in all.iter().take(2) {
            assert!(awaited(|| process::processors_of(writer) == Some(vec![*processor])), "not bound to {processor}");
        }
    };
    let told = measured(("postgres", &server.url_of("tithe", false), 2), is_bound, end);
    assert!(awaited(|| process::processors_of(writer).as_ref() == Some(&all)), "not given back");
    Some(told)
}

#[test]
fn who_writes_the_log_of_a_postgresql_that_is_not_ours_is_bound_and_given_back() {
    let Some(told) = log_writer_is_borrowed(End::Whole) else { return };
    assert!(told.contains("net time per op") && !told.contains("cannot be told"), "{told}");
}

#[test]
fn who_writes_the_log_is_given_back_where_tithe_is_killed() {
    log_writer_is_borrowed(End::Killed);
}
