//! The one thread of a launched Redis runs where a client does, on the same processor in all arms.
//!
//! Without Redis this test says that it is skipped; with `CI` set it fails.

use std::{cell::Cell, fs, process::Stdio};

use tithe_databases::redis::Redis;
use tithe_machine::watch::process;

use crate::support::{Bench, err, out, server::found, status, wait_until};

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
    let mut command = bench.command(&["run", "e.toml", "--quiet"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tithe starts");
    // Both servers on one processor, in one frame on this and in another on that.
    for processor in lanes {
        let both = [processor.clone(), processor];
        let seen = Cell::new(false);
        wait_until(|| {
            seen.set(allowed(run.id()) == both);
            seen.get()
        });
        assert!(seen.get(), "not seen: {both:?}");
    }
    // SAFETY: the child is running; SIGINT asks it to end and keep what it has.
    unsafe { libc::kill(run.id() as i32, libc::SIGINT) };
    let output = run.wait_with_output().expect("the child ends");
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
}
