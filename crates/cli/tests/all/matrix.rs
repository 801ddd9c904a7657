//! Several tasks of one matrix: carried out, interrupted, gathered and reported.

use std::{os::unix::process::ExitStatusExt, path::Path, process::Command};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Bench, FEW_OPERATIONS, err, known_costs, out, process::Process, sealed, status, wait_until};

/// A cheap task: two arms of the simulated database.
fn experiment() -> String {
    known_costs(FEW_OPERATIONS, &sealed(0.05), "30 s")
}

/// An experiment that does not end during the test: it needs a very high precision.
fn endless() -> String {
    experiment().replace("30 s", "1 h").replace("0.2%", "0.01%")
}

fn bench(name: &str, replicates: u32) -> Bench {
    let bench = Bench::new(name);
    bench.file("e.toml", &experiment());
    bench.file("m.toml", &format!("title = \"Known costs\"\nexperiments = [\"e.toml\"]\nreplicates = {replicates}\n"));
    bench
}

/// Runs one task, which must end with `expected`; its output.
fn task(bench: &Bench, index: &str, expected: i32) -> String {
    let output = bench.tithe(&["matrix", "run", "m.toml", "--task", index, "--into", "all", "--quiet"]);
    assert_eq!(status(&output), expected, "{}", err(&output));
    format!("{}{}", out(&output), err(&output))
}

fn gathered(bench: &Bench) -> Value {
    let output = bench.tithe(&["matrix", "gather", "m.toml", "all", "--to", "g.json"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    read(&bench.path("g.json"))
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

#[test]
fn a_matrix_is_planned_run_on_one_host_and_reported() {
    let bench = bench("matrix", 3);
    let planned = bench.tithe(&["matrix", "plan", "m.toml"]);
    assert_eq!(status(&planned), 0, "{}", err(&planned));
    assert!(out(&planned).contains("3 tasks") && out(&planned).contains("0–2"), "{}", out(&planned));

    // As a script does it: a number as input, a status as result.
    let script = bench.tithe(&["matrix", "script", "m.toml", "--for", "shell", "--into", "all"]);
    bench.file("all.sh", &out(&script));
    let program = Path::new(env!("CARGO_BIN_EXE_tithe")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let mut shell = Command::new("sh");
    shell.arg("all.sh").current_dir(bench.path(".")).env("TITHE_SIMULATED", "1").env("PATH", path);
    let shell = shell.output().expect("a shell");
    assert_eq!(status(&shell), 0, "{}", err(&shell));
    assert_eq!(status(&bench.tithe(&["matrix", "status", "m.toml", "all"])), 0);

    // All of them on this host, a second time: nothing is repeated.
    let again = bench.tithe(&["matrix", "run", "m.toml", "--into", "all", "--quiet"]);
    assert_eq!((status(&again), out(&again)), (0, String::new()), "{}", err(&again));

    let document = gathered(&bench);
    let figure = &document["figures"][0];
    // Three times in one boot: one host, and no interval over hosts.
    assert_eq!(figure["hosts"].as_array().map(Vec::len), Some(1), "{figure}");
    assert_eq!((&figure["answer"]["of"], &figure["answer"]["count"]), (&json!("repeats"), &json!(3)));
    assert_eq!((&figure["answer"]["another"], &figure["hosts"][0]["counts"]), (&Value::Null, &json!(true)));
    for format in ["text", "short", "markdown", "pull-request", "html", "json", "csv"] {
        let output = bench.tithe(&["report", "g.json", "--format", format]);
        assert_eq!(status(&output), 0, "{format}: {}", err(&output));
        assert!(out(&output).contains("sealed"), "{format}: {}", out(&output));
    }
    assert!(out(&bench.tithe(&["report", "g.json"])).contains("3 repeats on this host"));
    let kept = std::fs::read_to_string(bench.path("g.json")).expect("text");
    assert_eq!(out(&bench.tithe(&["report", "g.json", "--format", "json"])), kept);
    let refused = bench.tithe(&["report", "g.json", "--format", "benchstat"]);
    assert!(status(&refused) == 2 && err(&refused).contains("is for a single run"), "{}", err(&refused));
    // A task's folder is a run folder.
    assert_eq!(status(&bench.tithe(&["report", "all/task-00001"])), 0);
}

#[test]
fn a_task_that_is_done_is_left_alone_and_one_that_was_killed_is_measured_anew() {
    let bench = bench("task-killed", 2);
    bench.file("e.toml", &endless());
    let task_1 = ["matrix", "run", "m.toml", "--task", "1", "--into", "all", "--quiet"];
    let mut child = Process::unheard(&mut bench.command(&task_1));
    let begun = bench.path("all/task-00001.part/frames.jsonl");
    wait_until(|| std::fs::metadata(&begun).is_ok_and(|file| file.len() > 0));
    assert_eq!(child.kill().signal(), Some(9), "it was killed on its way");
    let told = bench.tithe(&["matrix", "status", "m.toml", "all"]);
    assert_eq!(status(&told), 4);
    assert!(out(&told).contains("task 1: it ended early"), "{}", out(&told));
    assert!(out(&told).contains("task 0: no folder"), "{}", out(&told));

    bench.file("e.toml", &experiment());
    assert!(task(&bench, "1", 0).contains("task 1 is done"));
    assert_eq!(names(&bench.path("all")), ["task-00001"]);
    let outcome = bench.path("all/task-00001/task.json");
    let changed = || std::fs::metadata(&outcome).and_then(|it| it.modified()).expect("a time");
    let before = changed();
    assert!(task(&bench, "1", 0).contains("was done before"));
    assert_eq!(changed(), before);
}

/// When task `index` began, s since 1970.
fn began(bench: &Bench, index: usize) -> u64 {
    let outcome = read(&bench.path(&format!("all/task-{index:05}/task.json")));
    outcome["started_unix_s"].as_u64().expect("a time")
}

#[test]
fn replicates_of_one_host_begin_apart_whatever_was_done_before() {
    let bench = bench("every", 2);
    let matrix = |every: &str| {
        let text = "title = \"Hours\"\nexperiments = [\"e.toml\"]\nreplicates = 2\n";
        bench.file("m.toml", &format!("{text}every = \"{every}\"\n"));
    };
    let all = || bench.tithe(&["matrix", "run", "m.toml", "--into", "all", "--quiet"]);
    matrix("2 s");
    assert_eq!(status(&all()), 0);
    assert!(began(&bench, 1) >= began(&bench, 0) + 2);
    // The first one was measured by an earlier call, and the hour is over.
    std::fs::remove_dir_all(bench.path("all")).expect("removed");
    matrix("1 h");
    task(&bench, "0", 0);
    let path = bench.path("all/task-00000/task.json");
    let mut outcome = read(&path);
    outcome["started_unix_s"] = json!(began(&bench, 0) - 3600);
    std::fs::write(&path, outcome.to_string()).expect("written");
    assert_eq!(status(&all()), 0);
    assert_eq!(names(&bench.path("all")), ["task-00000", "task-00001"]);
}

/// A run that adds a host finds the earlier ones: existing records stay valid for the extended matrix.
#[test]
fn hosts_that_are_kept_are_read_with_the_matrix_that_they_are_of() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kept = root.join("docs/reports/hosts/tasks");
    let bench = Bench::new("kept-hosts");
    let status = bench.tithe(&[
        "matrix",
        "status",
        &root.join("experiments/hosts/matrix.toml").display().to_string(),
        &kept.display().to_string(),
    ]);
    let tasks = names(&kept).len();
    assert!(
        tasks >= 6 && out(&status).contains(&format!(": {tasks} of 36 tasks whole")),
        "{}{}",
        out(&status),
        err(&status)
    );
}

/// The names of a folder's entries.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_run_on_a_disk_of_the_host_moves_when_it_is_whole_and_what_fails_leaves_its_reason() {
    let bench = bench("local", 2);
    bench.file("no-folder", "");
    let run = |local: &str| {
        bench.tithe(&["matrix", "run", "m.toml", "--task", "0", "--into", "all", "--quiet", "--local", local])
    };
    let failed = run("no-folder");
    assert_eq!(status(&failed), 1, "{}", err(&failed));
    let rows = &gathered(&bench)["tithe_matrix"]["tasks"];
    let reason = rows[0]["state"]["failed"].as_str().expect("a reason");
    assert!(reason.starts_with("exit status 1: ") && reason.contains("no-folder"), "{reason}");
    assert_eq!(rows[1]["state"], "missing");
    std::fs::create_dir(bench.path("disk")).expect("a folder");
    let ran = run("disk");
    assert_eq!(status(&ran), 0, "{}", err(&ran));
    assert_eq!(names(&bench.path("disk")), [] as [&str; 0]);
    assert_eq!(names(&bench.path("all")), ["task-00000"]);
    assert_eq!(status(&bench.tithe(&["report", "all/task-00000"])), 0);
}

#[test]
fn two_folders_of_one_plan_do_not_meet_on_a_disk_of_the_host() {
    let bench = bench("local-twice", 2);
    bench.file("e.toml", &endless());
    std::fs::create_dir(bench.path("disk")).expect("a folder");
    let local = ["matrix", "run", "m.toml", "--task", "0", "--quiet", "--local", "disk", "--into"];
    let first = Process::unheard(&mut bench.command(&[&local[..], &["one"]].concat()));
    let frames = || -> usize {
        let files = names(&bench.path("disk")).into_iter().map(|name| format!("disk/{name}/frames.jsonl"));
        let texts = files.filter_map(|file| std::fs::read_to_string(bench.path(&file)).ok());
        texts.map(|text| text.lines().count()).sum()
    };
    wait_until(|| frames() > 0);
    // It lives, but does nothing.
    first.signal(Signal::STOP);
    let refused = bench.tithe(&[&local[..], &["other"]].concat());
    assert_eq!(status(&refused), 1, "{}", err(&refused));
    assert!(err(&refused).contains("another tithe measures this task at"), "{}", err(&refused));
    // Its records are still there, and it continues.
    let before = frames();
    first.signal(Signal::CONT);
    wait_until(|| frames() > before);
    assert!(frames() > before && before > 0, "{before} frames");
}

#[test]
fn a_thousand_tasks_are_gathered_and_what_is_none_is_named() {
    let bench = bench("thousand", 1000);
    task(&bench, "0", 0);
    let one = read(&bench.path("all/task-00000/task.json"));
    for index in 0..1000 {
        let folder = bench.path(&format!("all/task-{index:05}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut outcome = one.clone();
        outcome["task"] = json!(index);
        // Every host measures twice.
        outcome["machine"]["boot"] = json!(format!("{:016x}", index / 2));
        let effect = &mut outcome["cells"][0]["arms"][0]["effect"];
        for end in ["estimate", "low", "high"] {
            effect[end] = json!(effect[end].as_f64().expect("a number") + 0.01 * ((index / 2) % 7) as f64);
        }
        std::fs::write(folder.join("task.json"), outcome.to_string()).expect("written");
    }
    let file = |index: usize| bench.path(&format!("all/task-{index:05}/task.json"));
    let text = std::fs::read_to_string(file(10)).expect("text");
    std::fs::write(file(10), &text[..text.len() / 2]).expect("written");
    std::fs::remove_file(file(11)).expect("removed");
    std::fs::write(file(12), &text).expect("written");
    std::fs::write(file(13), text.replacen("\"plan\":\"", "\"plan\":\"0", 1)).expect("written");
    std::fs::remove_dir_all(bench.path("all/task-00014")).expect("removed");
    std::fs::create_dir(bench.path("all/2026-11-23T02-09-46-sqlite")).expect("a folder");
    std::fs::create_dir(bench.path("all/task-01000")).expect("a folder");

    let document = gathered(&bench);
    let rows = document["tithe_matrix"]["tasks"].as_array().expect("rows");
    assert_eq!(rows.len(), 1000);
    let told = |index: usize, words: &str| {
        let state = rows[index]["state"].to_string();
        assert!(state.contains(words), "{index}: {state}");
    };
    told(10, "damaged");
    told(11, "cannot be read");
    told(12, "it is a copy of task 10");
    told(13, "to another plan");
    told(14, "missing");
    let strays = document["tithe_matrix"]["strays"].to_string();
    assert!(strays.contains("2026-11-23T02-09-46-sqlite") && strays.contains("no task 1000"), "{strays}");
    // Two tasks per host: 500 hosts. The host of tasks 10 and 11, and that of 12 and 13, have no results.
    let figure = &document["figures"][0];
    assert_eq!((&figure["answer"]["of"], &figure["answer"]["count"]), (&json!("hosts"), &json!(498)));
    let spread = figure["answer"]["spread"]["estimate"].as_f64().expect("a spread");
    assert!((0.01..0.03).contains(&spread), "{spread}");
    assert!(figure["answer"]["another"]["low"].is_number());
    let compared = bench.tithe(&["compare", "one=g.json", "other=h.json", "--threshold", "1%"]);
    assert_eq!(status(&compared), 2, "h.json is not there: {}", err(&compared));
    std::fs::copy(bench.path("g.json"), bench.path("h.json")).expect("copied");
    let compared = bench.tithe(&["compare", "one=g.json", "other=h.json", "--threshold", "1%"]);
    assert_eq!(status(&compared), 4, "tasks are missing: {}", err(&compared));
    let told = err(&compared);
    assert!(told.contains("tithe: other: task 14: no folder") && !told.contains("tithe: one: "), "{told}");
    // In a matrix without these tasks, nothing is missing.
    let mut whole = document.clone();
    let tasks = whole["tithe_matrix"]["tasks"].as_array_mut().expect("rows");
    tasks.retain(|row| row["state"]["whole"].is_object());
    std::fs::write(bench.path("h.json"), whole.to_string()).expect("written");
    let compared = bench.tithe(&["compare", "one=g.json", "other=h.json", "--threshold", "1%"]);
    assert_eq!(status(&compared), 0, "{}", err(&compared));
    assert!(out(&compared).contains("No difference found between"), "{}", out(&compared));
    // One host of hundreds on which a protection was disproven.
    let disproven = r#""proof":{"proof":"disproven","because":["nothing was encrypted"]}"#;
    let text = whole.to_string().replacen(r#""proof":{"proof":"proven"}"#, disproven, 1);
    assert!(text.contains("nothing was encrypted"));
    std::fs::write(bench.path("h.json"), text).expect("written");
    let compared = bench.tithe(&["compare", "one=g.json", "other=h.json", "--threshold", "1%"]);
    assert_eq!(status(&compared), 5, "{}", err(&compared));
    assert!(err(&compared).contains("other: ") && err(&compared).contains("disproven"), "{}", err(&compared));
    let run = bench.tithe(&["compare", "g.json", "all/task-00000"]);
    assert!(status(&run) == 2 && err(&run).contains("is not a gathered matrix"), "{}", err(&run));
    // Another folder in a task's place is not overwritten.
    assert!(task(&bench, "13", 2).contains("move it away"));
}

/// Eight invented hosts: one is measured on invented time, where the protection costs 5 %. The others differ from it by
/// the values below, with a standard deviation of 2 %. Their page is docs/reports/hosts/simulated.html.
#[test]
fn hosts_of_a_known_spread_are_found_again() {
    /// Differences from the mean of their kind, natural-log ratios: normal scores of eight, times 0.02.
    const DIFFERENCES: [f64; 8] = [0.0095, -0.0285, 0.0030, 0.0171, -0.0095, 0.0285, -0.0171, -0.0030];
    let bench = bench("simulated-hosts", 8);
    task(&bench, "0", 0);
    let measured = read(&bench.path("all/task-00000/task.json"));
    for (index, difference) in DIFFERENCES.iter().enumerate() {
        let mut outcome = measured.clone();
        outcome["task"] = json!(index);
        outcome["started_unix_s"] = json!(1_795_000_000 + 3600 * index);
        let processor = if *difference > 0.0 { "Model B" } else { "Model A" };
        outcome["machine"] = json!({
            "processor": processor, "processors": 2, "memory_bytes": 8_589_934_592_u64, "kernel": "6.1.0", "system": "",
            "crypto_flags": ["aes"], "kernel_crypto": [], "clock": "tsc", "file_system": "ext4", "swap": "none",
            "virtualised": true, "boot": format!("{index:016x}"),
        });
        let cell = &mut outcome["cells"][0];
        cell["host"] =
            json!({ "load": 0.5, "cpu_pressure": null, "io_pressure": null, "steal": null, "throttled": null });
        let effect = &mut cell["arms"][0]["effect"];
        for end in ["estimate", "low", "high"] {
            effect[end] = json!(effect[end].as_f64().expect("a number") + difference);
        }
        let folder = bench.path(&format!("all/task-{index:05}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("task.json"), outcome.to_string()).expect("written");
    }
    let document = gathered(&bench);
    let answer = &document["figures"][0]["answer"];
    let end = |of: &str, end: &str| answer[of][end].as_f64().expect("a number");
    let holds = |of: &str, truth: f64| end(of, "low") <= truth && truth <= end(of, "high");
    assert_eq!((&answer["of"], &answer["count"]), (&json!("hosts"), &json!(8)));
    assert!(holds("effect", 1.05_f64.ln()) && holds("spread", 0.02), "{answer}");
    assert!(
        end("another", "low") < 1.05_f64.ln() - 0.0285 && end("another", "high") > 1.05_f64.ln() + 0.0285,
        "{answer}"
    );
}

#[test]
fn what_is_wrong_is_told_before_anything_starts() {
    let bench = bench("wrong-matrix", 2);
    assert!(task(&bench, "2", 2).contains("there is no task 2: the matrix has tasks 0 to 1"));
    let machines = "[[machine]]\nname = \"a\"\n[[machine]]\nname = \"b\"\n";
    bench.file("n.toml", &format!("title = \"x\"\nexperiments = [\"e.toml\", \"gone.toml\"]\n{machines}"));
    let lost = bench.tithe(&["matrix", "plan", "n.toml"]);
    assert_eq!(status(&lost), 2);
    let told = err(&lost);
    assert!(told.contains("there is no experiment file gone.toml") && told.contains("n.toml:2:"), "{told}");
    bench.file("gone.toml", &experiment().replace("records = 500", "records = \"many\""));
    let wrong = bench.tithe(&["matrix", "plan", "n.toml"]);
    assert!(status(&wrong) == 2 && err(&wrong).contains("1 problem in gone.toml"), "{}", err(&wrong));
    bench.file("gone.toml", &experiment().replace("[measure]", "[load]\nagents = 2\n[measure]"));
    let agents = bench.tithe(&["matrix", "plan", "n.toml"]);
    let told = err(&agents);
    assert!(
        status(&agents) == 2 && told.contains("gone.toml: a task of a matrix is measured by its host alone"),
        "{told}"
    );
    bench.file("gone.toml", &experiment());
    for (arguments, words) in [
        (&["matrix", "run", "n.toml"][..], "which kind of machine is this host? add --machine NAME, one of: a, b"),
        (&["matrix", "run", "n.toml", "--machine", "c"], "the matrix has no machine \"c\""),
        (&["matrix", "gather", "m.toml", "nowhere"], "nowhere is not a folder"),
        (&["matrix", "plan", "nothing.toml"], "cannot read the matrix nothing.toml"),
    ] {
        let output = bench.tithe(arguments);
        assert_eq!((status(&output), out(&output)), (2, String::new()), "{arguments:?}");
        assert!(err(&output).contains(words), "{arguments:?}: {}", err(&output));
    }
    assert_eq!(names(&bench.path(".")), ["e.toml", "gone.toml", "m.toml", "n.toml"]);
}
