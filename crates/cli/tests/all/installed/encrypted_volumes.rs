//! Servers on volumes: ctrl-C during the measurement leaves nothing of the run mounted, looped or running; and a memory
//! limit includes the pages of each volume.
//!
//! If the requirements of a volume (root, loop devices, tools) or a database are missing, the test is skipped with a
//! notice; with `CI` set that fails.

use crate::support;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;
use support::{Bench, err, out, process::Process, status, wait_until};
use tithe_databases::all;
use tithe_harness::{arms::named, volumes::own_swap};
use tithe_machine::launch::Search;
use tithe_model::experiment::Protection;

/// A run that would take an hour. Every arm is on a volume: the plain one on a plain volume.
fn experiment(database: &str, volume: &str) -> String {
    format!(
        "title = \"Interrupted\"\ndatabase = \"{database}\"\n[data]\nrecords = 200\n[measure]\nbudget = \"1 h\"\n\
         precision = \"0.01%\"\nwarmup = \"0 s\"\n[[workload]]\nycsb = \"a\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"{volume}\"\n\
         protections = [{{ use = \"{volume}\", size_mb = 500 }}]\n"
    )
}

/// True if `database` can run on `volume`; prints a notice if not.
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn possible(database: &str, volume: &str) -> bool {
    let database = *all().iter().find(|found| found.id() == database).expect("a database of this build");
    let protection = named(database, volume).expect("a volume");
    let options = protection.entry().options.iter();
    let defaults = options.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
    let chosen = Protection::listed(volume, defaults);
    let install = database.find(&Search::default());
    match install.and_then(|install| protection.needs(&install, &chosen)) {
        Ok(()) => true,
        Err(missing) => {
            assert!(std::env::var_os("CI").is_none(), "{missing:?}");
            eprintln!("SKIPPED: {missing:?}");
            false
        }
    }
}

/// The remains of the sandboxes of process `tithe`, which have its number in their names: mounts, loop devices,
/// processes, folders.
fn left(tithe: u32, run: &Path) -> Vec<String> {
    let mark = format!("tithe-sandbox-{tithe}-");
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let mut left: Vec<String> = mounts.lines().map(|line| format!("mount {line}")).collect();
    let read = |folder: &str, file: &str| {
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path().join(file));
        files.filter_map(|path| Some((path.clone(), fs::read(path).ok()?))).collect::<Vec<(PathBuf, Vec<u8>)>>()
    };
    for (folder, file) in [("/sys/block", "loop/backing_file"), ("/proc", "cmdline")] {
        let all = read(folder, file).into_iter();
        left.extend(all.map(|(path, text)| format!("{} {}", path.display(), String::from_utf8_lossy(&text))));
    }
    left.extend(fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.path().display().to_string()));
    left.retain(|line| line.contains(&mark));
    left
}

fn interrupt(database: &str, volume: &str, processes: usize) {
    if !possible(database, volume) {
        return;
    }
    let bench = Bench::new(&format!("interrupted-{database}"));
    bench.file("e.toml", &experiment(database, volume));
    let mut child = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    while bench.frames_so_far() == 0 {
        if child.has_ended() {
            panic!("the run ended before it was interrupted: {}", err(&child.output()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let tithe = child.id();
    let run = bench.run_folder();
    let count = |what: &str| left(tithe, &run).iter().filter(|line| line.starts_with(what)).count();
    assert!(count("mount ") >= 2 && count("/sys/block") >= 2, "nothing is there: {:?}", left(tithe, &run));
    assert!(count("/proc/") >= processes, "nothing is there: {:?}", left(tithe, &run));
    child.signal(Signal::INT);
    let output = child.output();
    assert_eq!(status(&output), 130, "{}", err(&output));
    // The kernel releases a loop device shortly after its last user.
    wait_until(|| count("/sys/block") == 0);
    assert_eq!(left(tithe, &run), Vec::<String>::new());
    let frames = fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    assert!(!frames.is_empty(), "what was measured is kept");
}

#[test]
fn encrypted_swap_is_planned_or_refused_with_the_reason() {
    let bench = Bench::new("encrypted-swap");
    bench.file(
        "e.toml",
        "title = \"Swap\"\ndatabase = \"sqlite\"\nencrypted_swap = \"64 MiB\"\n[data]\nrecords = 200\n[[workload]]\n\
         ycsb = \"a\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"again\"\n",
    );
    let output = bench.tithe(&["plan", "e.toml"]);
    match own_swap::needs() {
        Ok(()) => {
            let line = format!("Encrypted swap    {}, for the run\n", own_swap::layers(64 << 20));
            assert!(out(&output).contains(&line), "{}", out(&output));
        }
        Err(missing) => {
            assert_eq!(status(&output), 0, "{}", err(&output));
            assert!(err(&output).contains(&format!("lacks {}", missing.what)), "{}", err(&output));
            let output = bench.tithe(&["verify", "e.toml"]);
            assert_eq!(status(&output), 3, "{}", err(&output));
            assert!(missing.looked_in.iter().all(|seen| err(&output).contains(seen)), "{}", err(&output));
        }
    }
}

#[test]
fn an_interrupted_server_leaves_no_volume() {
    interrupt("postgres", "volume-fscrypt", 2);
}

#[test]
fn an_interrupted_embedded_database_leaves_no_helper_of_its_volume() {
    interrupt("sqlite", "volume-gocryptfs", 1);
}

/// Tithe has copied and searched the files of all servers before they are measured. Pages that it leaves in the page
/// cache are charged to Tithe: a server that used them would have more memory than its limit, and would look faster
/// than the others.
#[test]
fn a_limit_of_memory_holds_for_the_page_cache() {
    if !possible("postgres", "volume-fscrypt") {
        return;
    }
    let bench = Bench::new("exceeds");
    bench.file(
        "e.toml",
        r#"title = "Exceeds"
database = "postgres"
[settings]
shared_buffers = "4MB"
maintenance_work_mem = "4MB"
default_statistics_target = "10"
[data]
records = 120_000
values = "incompressible"
[measure]
budget = "6 s"
precision = "50%"
design = "slices"
slot = "200 ms"
aa_arm = false
[[resources]]
data_per_memory = 1.5
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "fscrypt"
protections = [{ use = "volume-fscrypt", size_mb = 1000 }]
"#,
    );
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let frames = bench.kept_lines("frames.jsonl");
    for arm in 0..2 {
        let sum = |field: &dyn Fn(&serde_json::Value) -> Option<u64>| -> u64 {
            frames.iter().map(|frame| field(&frame["arms"][arm]).expect("counted")).sum()
        };
        let operations = sum(&|arm| arm["operations"].as_u64());
        let read_bytes = sum(&|arm| arm["counters"]["read_bytes"].as_u64());
        // A third of the data is not in memory. Even with the most uneven draw of keys, one operation in ten reads a
        // page of 8 KB.
        assert!(read_bytes / operations > 800, "arm {arm}: {read_bytes} bytes read in {operations} operations");
    }
}
