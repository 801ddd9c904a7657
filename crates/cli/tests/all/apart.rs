//! An embedded database is measured in a process of its own for every start: what the process gets, how it ends, and
//! that nothing of it remains.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;
use tithe_machine::proc::signal;

use crate::support::{Bench, assert_valid, begins_with, err, out, process::Process, status, wait_until};

/// Name of the command with which Tithe starts itself.
const COMMAND: &str = "measure-apart";

/// The key of encrypted columns.
const COLUMN_KEY: &str = "8f41c2d7a90b36e5f7102948bd6c3ea1905f7be2d4860c1a3b5d7f9182c4e6a8";

/// An experiment with `arms` and their protections, under workload `ycsb`.
fn experiment(ycsb: &str, budget: &str, precision: &str, arms: &str) -> String {
    format!(
        "title = \"Apart\"\ndatabase = \"sqlite\"\n[data]\nrecords = 500\n[measure]\nbudget = \"{budget}\"\n\
         precision = \"{precision}\"\n[[workload]]\nycsb = \"{ycsb}\"\n[[arm]]\nname = \"plain\"\n{arms}"
    )
}

/// In slices a frame is as short as one slot of each arm.
fn in_slices(experiment: &str, measure: &str) -> String {
    experiment.replace("precision", &format!("design = \"slices\"\n{measure}\nprecision"))
}

fn arm(name: &str, protection: &str) -> String {
    format!("[[arm]]\nname = \"{name}\"\nprotections = [{{ {protection} }}]\n")
}

/// The processes in which `tithe` measures now.
fn measuring(tithe: u32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{tithe}/task/{tithe}/children")).unwrap_or_default();
    let is_it = |process: &i32| fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| contains(&line, COMMAND));
    children.split_ascii_whitespace().filter_map(|word| word.parse().ok()).filter(is_it).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn is_there(process: i32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// The frames of the only run of `bench` so far.
fn frames(bench: &Bench) -> Vec<Value> {
    let runs = fs::read_dir(bench.path("tithe-runs")).into_iter().flatten().flatten().map(|run| run.path());
    let texts = runs.filter_map(|run| fs::read_to_string(run.join("frames.jsonl")).ok());
    texts.flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()).collect()
}

fn starts(frames: &[Value]) -> BTreeSet<u64> {
    frames.iter().map(|frame| frame["start"].as_u64().expect("a number")).collect()
}

/// Waits until `tithe` measures at least its second frame, and returns the process that measures it.
fn await_measuring(bench: &Bench, tithe: &mut Process) -> i32 {
    wait_until(|| !frames(bench).is_empty() && !measuring(tithe.id()).is_empty());
    match measuring(tithe.id())[..] {
        [process] => process,
        ref others => panic!("{others:?} measure, and tithe has ended: {}", tithe.has_ended()),
    }
}

/// All files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |entry: fs::DirEntry| if entry.path().is_dir() { files(&entry.path()) } else { vec![entry.path()] };
    fs::read_dir(folder).into_iter().flatten().flatten().flat_map(below).collect()
}

#[test]
fn every_start_has_a_process_that_is_told_its_keys_in_secret_and_every_cipher_is_proven() {
    let bench = Bench::new("apart");
    let mut arms = arm("columns", "use = 'columns', key_variable = 'TITHE_TEST_COLUMN_KEY'");
    for cipher in ["aegis", "chacha20", "sqlcipher"] {
        arms += &arm(cipher, &format!("use = 'page-encryption', cipher = '{cipher}', key = 'raw'"));
    }
    arms += &arm("aes256cbc", "use = 'page-encryption', cipher = 'aes256cbc'");
    bench.file("e.toml", &in_slices(&experiment("c", "7 s", "90%", &arms), "slot = \"50 ms\""));
    let mut command = bench.command(&["run", "e.toml", "--quiet"]);
    let mut tithe = Process::heard(command.env("TITHE_TEST_COLUMN_KEY", COLUMN_KEY));
    let mut seen: BTreeMap<i32, (Vec<u8>, Vec<u8>)> = BTreeMap::new();
    while !tithe.has_ended() {
        for process in measuring(tithe.id()) {
            let told = |what: &str| fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
            let told = (told("cmdline"), told("environ"));
            // A program that is just being executed has its arguments first, and one that has just ended has neither.
            if !told.1.is_empty() {
                seen.entry(process).or_insert(told);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = tithe.output();
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let frames = frames(&bench);
    assert!(frames.len() >= 15, "{} frames", frames.len());
    assert_eq!(starts(&frames).len(), frames.len(), "a workload that reads has a start for every frame");
    assert_eq!(seen.len(), frames.len(), "a start is a process: {:?}", seen.keys());
    let lengths: BTreeSet<usize> = seen.values().map(|(_, environment)| environment.len()).collect();
    assert!(lengths.len() > 10, "environments are of drawn lengths: {lengths:?}");
    for (arguments, environment) in seen.values() {
        assert_eq!(arguments, format!("tithe\0{COMMAND}\0").as_bytes());
        let names = environment.split(|byte| *byte == 0).filter_map(|line| line.split(|byte| *byte == b'=').next());
        let names: BTreeSet<_> = names.map(String::from_utf8_lossy).filter(|name| !name.is_empty()).collect();
        let known = ["HOME", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "RUST_BACKTRACE", "TITHE_PADDING"];
        assert!(names.contains("TITHE_PADDING") && names.iter().all(|name| known.contains(&&**name)), "{names:?}");
        assert!(!contains(environment, COLUMN_KEY));
    }
    let holds = |file: &PathBuf| fs::read(file).is_ok_and(|bytes| contains(&bytes, COLUMN_KEY));
    assert_eq!(files(&bench.run_folder()).iter().find(|file| holds(file)), None);
    assert!(seen.keys().all(|process| !is_there(*process)));
}

/// The next start must know the inserts of the previous one: otherwise its own inserts would fail.
#[test]
fn a_workload_that_inserts_goes_on_from_start_to_start() {
    let bench = Bench::new("apart-inserts");
    let text = experiment("d", "4 s", "90%", &arm("aegis", "use = 'page-encryption', cipher = 'aegis', key = 'raw'"));
    bench.file("e.toml", &in_slices(&text, "slot = \"100 ms\"\nstarts = 4"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let frames = frames(&bench);
    assert!((4..=frames.len()).contains(&starts(&frames).len()), "{:?} of {} frames", starts(&frames), frames.len());
    assert_valid(&frames);
    for frame in &frames {
        let failed: u64 = frame["arms"].as_array().expect("arms").iter().filter_map(|arm| arm["failed"].as_u64()).sum();
        assert_eq!(failed, 0, "{frame}");
    }
    let evidence = bench.kept("evidence.jsonl");
    assert!(evidence.contains("\"phase\":\"after\""));
}

#[test]
fn a_process_that_is_killed_ends_its_cell_with_words_and_leaves_nothing() {
    let bench = Bench::new("apart-killed");
    // Not a workload that only reads, which has a process for every frame.
    bench.file("e.toml", &experiment("a", "1 h", "0.01%", &arm("aegis", "use = 'page-encryption', cipher = 'aegis'")));
    let mut tithe = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    let process = await_measuring(&bench, &mut tithe);
    signal(process, Signal::KILL).expect("it measures frame after frame");
    let output = tithe.output();
    assert_eq!(status(&output), 4, "{}{}", out(&output), err(&output));
    let cell = bench.kept_json("cells/0.json");
    let expected = "failed: the process that SQLite is measured in ended (signal: 9 (SIGKILL)); it printed nothing";
    assert_eq!(cell["ending"], expected);
    assert!(!frames(&bench).is_empty(), "what was measured is kept");
    assert!(!is_there(process));
    let left = fs::read_dir(bench.run_folder()).expect("the run folder").flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("tithe-sandbox-")));
}

#[test]
fn a_run_that_is_stopped_keeps_what_was_measured_and_leaves_no_process() {
    let bench = Bench::new("apart-stopped");
    bench.file("e.toml", &experiment("a", "1 h", "0.01%", &arm("aegis", "use = 'page-encryption', cipher = 'aegis'")));
    let mut command = bench.command(&["run", "e.toml", "--quiet"]);
    // If these tests are to outlive their terminal, the program inherits that the signal is ignored.
    begins_with(&mut command, libc::SIGHUP, libc::SIG_DFL);
    let mut tithe = Process::heard(&mut command);
    let process = await_measuring(&bench, &mut tithe);
    // When a terminal is closed, both its shell and the kernel send the signal.
    tithe.signal(Signal::HUP);
    tithe.signal(Signal::HUP);
    let output = tithe.output();
    assert_eq!(status(&output), 130, "{}{}", out(&output), err(&output));
    assert!(!is_there(process));
    assert!(!frames(&bench).is_empty(), "what was measured is kept");
    let evidence = bench.kept("evidence.jsonl");
    assert!(evidence.contains("\"phase\":\"after\""), "it was looked at what the process has left: {}", err(&output));
}

#[test]
fn a_tithe_that_is_killed_takes_the_process_with_it() {
    let bench = Bench::new("apart-orphan");
    bench.file("e.toml", &experiment("c", "1 h", "0.01%", &arm("aegis", "use = 'page-encryption', cipher = 'aegis'")));
    let mut tithe = Process::heard(&mut bench.command(&["run", "e.toml", "--quiet"]));
    let process = await_measuring(&bench, &mut tithe);
    tithe.signal(Signal::KILL);
    tithe.output();
    // It is not this test's child: the process that inherits it reaps it.
    let stat = || fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    wait_until(|| !is_there(process) || stat().contains(") Z "));
    assert!(!is_there(process) || stat().contains(") Z "), "{}", stat());
}

#[test]
fn the_command_is_known_to_nobody_and_refuses_who_calls_it() {
    let bench = Bench::new("apart-called");
    for arguments in [&["--help"][..], &["help"], &["manual"], &["manual", "bash"], &["manual", "zsh"]] {
        let output = bench.tithe(arguments);
        assert_eq!(status(&output), 0, "{arguments:?}: {}", err(&output));
        assert!(!out(&output).is_empty() && !out(&output).contains(COMMAND), "{arguments:?}");
    }
    let output = bench.command(&[COMMAND]).stdin(Stdio::null()).output().expect("tithe starts");
    assert_eq!(status(&output), 1);
    let told = err(&output);
    assert!(told.starts_with("tithe: refused: tithe runs this command itself") && told.contains("tithe run"), "{told}");
}
