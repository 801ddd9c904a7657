//! The whole program on the simulated database, whose costs are known: plan, run, records, report.

use crate::support;

use std::{process::Stdio, time::Duration};

use serde_json::Value;
use support::{Bench, err, out, status};

/// An experiment on the simulated database; `more` goes into `[settings]`.
fn experiment(more: &str, arms: &str, budget: &str) -> String {
    format!(
        r#"title = "Known costs"
database = "simulated"
[settings]
{more}
[data]
records = 500
[measure]
budget = "{budget}"
precision = "0.2%"
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
{arms}"#
    )
}

/// A setting for runs of which a test wants anything but many operations: a fifth of them, which on invented time are
/// what a run costs.
const FEW_OPERATIONS: &str = "service_us = 100";

const ARMS: &str = r#"
[[arm]]
name = "sealed"
protections = [{ use = "seal", cost = 0.05 }]
[[arm]]
name = "audited"
protections = [{ use = "audit", cost = 0.2 }]
[[arm]]
name = "placebo"
protections = [{ use = "placebo" }]
"#;

/// The estimate `name` of arm `arm` in the first cell.
fn estimate<'a>(report: &'a Value, arm: usize, name: &str) -> &'a Value {
    let estimates = report["cells"][0]["arms"][arm]["estimates"].as_array().expect("estimates");
    estimates.iter().find(|estimate| estimate["name"] == name).unwrap_or_else(|| panic!("no estimate {name}"))
}

fn report_of(bench: &Bench) -> Value {
    let text = std::fs::read_to_string(bench.run_folder().join("report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    report["tithe_report"].clone()
}

#[test]
fn known_costs_are_recovered_and_none_is_found_where_there_is_none() {
    let bench = Bench::new("known");
    bench.file("e.toml", &experiment("", ARMS, "60 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = report_of(&bench);
    for (arm, truth) in [(1, 1.05f64), (2, 1.2), (3, 1.0)] {
        for name in ["net", "time", "cpu"] {
            let effect = &estimate(&report, arm, name)["effect"];
            let (low, high) = (effect["low"].as_f64().expect("low"), effect["high"].as_f64().expect("high"));
            assert!(low <= truth.ln() && truth.ln() <= high, "arm {arm} {name}: {effect} does not hold {}", truth.ln());
            assert!(high - low < 0.04, "arm {arm} {name}: {effect} says little");
        }
        assert_eq!(report["cells"][0]["arms"][arm]["proof"]["proof"], "proven", "arm {arm}");
    }
    assert_eq!(estimate(&report, 3, "net")["verdict"], "NONE_FOUND");
    assert_eq!(estimate(&report, 1, "net")["verdict"], "COSTS");
}

#[test]
fn known_costs_are_recovered_in_microseconds_too() {
    let bench = Bench::new("micros");
    bench.file("e.toml", &experiment("noise = 0\ndrift = 0", ARMS, "60 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = report_of(&bench);
    // An operation takes 20 µs: 5 % of them, 20 % of them, nothing.
    for (arm, truth) in [(1, 1.0), (2, 4.0), (3, 0.0)] {
        for name in ["net", "time", "cpu", "latency_p50_READ"] {
            let difference = &estimate(&report, arm, name)["difference"];
            let found = difference["estimate"].as_f64().expect("a difference");
            let tolerance = if name.starts_with("latency") { 0.15 } else { 0.01 };
            assert!((found - truth).abs() < tolerance, "arm {arm} {name}: {difference} is not {truth}");
        }
    }
    let told = words(&out(&output));
    // Invented times are whole nanoseconds.
    assert!(told.contains("+20.0% [20.0, 20.0]") && told.contains("costs 20.0% +3.999 µs [3.999, 3.999]"), "{told}");

    let bench = Bench::new("micros");
    bench.file("e.toml", &experiment("", ARMS, "60 s"));
    bench.tithe(&["run", "e.toml", "--quiet"]);
    let report = report_of(&bench);
    for (arm, share) in [(1, 0.05), (2, 0.2), (3, 0.0)] {
        let net = estimate(&report, arm, "net");
        let truth = share * net["levels"][0].as_f64().expect("the plain level");
        let (low, high) = (net["difference"]["low"].as_f64(), net["difference"]["high"].as_f64());
        let (low, high) = (low.expect("low"), high.expect("high"));
        assert!(low <= truth && truth <= high && high - low < 0.8, "arm {arm}: {} and {truth}", net["difference"]);
    }
    let csv = std::fs::read_to_string(bench.run_folder().join("report.csv")).expect("the CSV");
    assert!(csv.lines().next().is_some_and(|head| head.ends_with("difference,difference_low,difference_high")));
}

/// `text` with single blanks, so that what stands in tables can be looked for.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_last_line_of_a_cell_says_what_the_table_says() {
    let bench = Bench::new("lines");
    bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s").replace("0.2%", "0.01%"));
    let output = bench.tithe(&["run", "e.toml"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    // `  sealed +5.1% [4.2, 6.0], audited +20.1% [19.0, 21.2], …` below the line on the evidence.
    let (told, shown) = (words(&err(&output)), words(&out(&output)));
    let (_, last) = told.rsplit_once("the budget was used up ").expect("the cell's end");
    for arm in ["sealed", "audited"] {
        let figure = last.split_once(arm).and_then(|(_, rest)| rest.split_once(']')).expect("a figure").0;
        assert!(shown.contains(&format!("{arm} proven{figure}]")), "{arm}{figure}] is not in {shown}");
    }
}

#[test]
fn below_fifteen_frames_nothing_is_answered() {
    let bench = Bench::new("few");
    bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s"));
    bench.tithe(&["run", "e.toml", "--quiet"]);
    let frames = bench.run_folder().join("frames.jsonl");
    let text = std::fs::read_to_string(&frames).expect("frames");
    std::fs::write(&frames, text.split_inclusive('\n').take(6).collect::<String>()).expect("six frames");
    let shown = bench.tithe(&["report", &bench.run_folder().display().to_string(), "--format", "short"]);
    let shown = words(&out(&shown));
    assert!(shown.contains("NOT_ENOUGH_FRAMES"), "{shown}");
    assert!(shown.contains("~ not enough data") && !shown.contains("costs 20"), "{shown}");
    let long = bench.tithe(&["report", &bench.run_folder().display().to_string(), "--format", "json"]);
    assert!(out(&long).contains("not enough frames: 6 of 15"), "{}", out(&long));
}

/// Load of all frames of the only cell, s, and their number.
fn load_s(bench: &Bench, arms: f64) -> (f64, usize) {
    let folder = bench.run_folder();
    let slots = std::fs::read_to_string(folder.join("slots.csv")).expect("slots");
    let mut rows = slots.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a head");
    let place = |name: &str| head.iter().position(|column| *column == name).expect("a column");
    let (frame, block) = (place("frame"), place("block"));
    let mut blocks = std::collections::BTreeMap::<u64, u64>::new();
    for row in rows {
        let number = |place: usize| row[place].parse::<u64>().expect("a number");
        let most = blocks.entry(number(frame)).or_default();
        *most = (*most).max(number(block) + 1);
    }
    let frames = std::fs::read_to_string(folder.join("frames.jsonl")).expect("frames");
    let frames: Vec<Value> = frames.lines().map(|line| serde_json::from_str(line).expect("a frame")).collect();
    let load = |frame: &Value| {
        let blocks = blocks[&frame["frame"].as_u64().expect("a number")] as f64;
        frame["slot_ns"].as_f64().expect("a length") * blocks * arms / 1e9
    };
    (frames.iter().map(load).sum(), frames.len())
}

#[test]
fn slots_that_grow_keep_the_budget() {
    // Operations of 8 ms: a slot must grow to 640 ms to hold enough of them, and a frame with it.
    for (budget_s, fewest) in [(60.0, 15), (90.0, 15), (240.0, 20)] {
        let bench = Bench::new("grown");
        let text = experiment("service_us = 8000", ARMS, &format!("{budget_s} s")).replace("0.2%", "0.01%");
        bench.file("e.toml", &text);
        let output = bench.tithe(&["run", "e.toml", "--quiet"]);
        assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
        let report = report_of(&bench);
        assert!(report["cells"][0]["slot_ms"].as_f64().is_some_and(|slot| slot >= 320.0), "{}", report["cells"][0]);
        let (load_s, frames) = load_s(&bench, 4.0);
        assert!(load_s <= 1.1 * budget_s, "{load_s} s of load for a budget of {budget_s} s");
        assert!(load_s >= 0.8 * budget_s, "{load_s} s of load for a budget of {budget_s} s");
        assert!(frames >= fewest, "{frames} frames of {load_s} s");
        assert_eq!(estimate(&report, 2, "net")["verdict"], "COSTS");
    }
}

#[test]
fn a_budget_on_the_command_line_is_held_to_the_files_limits() {
    let bench = Bench::new("budget");
    bench.file("e.toml", &experiment("", ARMS, "60 s"));
    let told = |arguments: &[&str]| {
        let output = bench.tithe(arguments);
        (status(&output), words(&err(&output)))
    };
    for budget in ["9999 h", "10", "0.5 s", "much"] {
        let (status, told) = told(&["plan", "e.toml", "--budget", budget]);
        assert_eq!(status, 2, "{budget}: {told}");
        let wanted =
            format!("--budget must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `{budget}`");
        assert!(told.contains(&wanted), "{budget}: {told}");
    }
    assert_eq!(told(&["plan", "e.toml", "--budget", "720 h"]).0, 0);
    // The built-in experiment can be made shorter or longer, too; a run that is taken up again cannot.
    let (status, told_of) = told(&["plan", "--budget", "20 min"]);
    assert_eq!(status, 0, "{told_of}");
    assert_eq!(told(&["run", "--resume", "somewhere", "--budget", "20 min"]).0, 2);
}

#[test]
fn too_much_noise_is_not_called_the_same() {
    let bench = Bench::new("calibrate");
    bench.file("e.toml", &experiment("", ARMS, "60 s").replace("precision", "margin = \"0.01%\"\nprecision"));
    let output = bench.tithe(&["calibrate", "e.toml", "--seconds", "30", "--quiet"]);
    let told = out(&output);
    assert!(told.contains("Too noisy to say"), "{told}");
    assert!(!told.contains("finds no difference"), "{told}");
    assert_eq!(status(&output), 5, "{told}");
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let bench = Bench::new("bytes");
    bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s"));
    bench.tithe(&["run", "e.toml", "--quiet"]);
    let run = bench.run_folder().display().to_string();
    for format in ["text", "short", "html", "markdown", "pull-request", "json", "csv", "benchstat", "ycsb"] {
        let once = bench.tithe(&["report", &run, "--format", format]);
        let twice = bench.tithe(&["report", &run, "--format", format]);
        assert_eq!(status(&once), 0, "{}", err(&once));
        assert!(!once.stdout.is_empty());
        assert_eq!(once.stdout, twice.stdout, "{format}");
    }
}

#[test]
fn runs_are_compared_and_a_threshold_gives_a_status() {
    let bench = Bench::new("compare");
    let run = |cost: &str, folder: &str| {
        let arm = format!("[[arm]]\nname = \"sealed\"\nprotections = [{{ use = \"seal\", cost = {cost} }}]\n");
        bench.file("e.toml", &experiment(FEW_OPERATIONS, &arm, "30 s"));
        let output = bench.tithe(&["run", "e.toml", "--quiet", "--runs", folder]);
        assert_eq!(status(&output), 0, "{}", err(&output));
        let mut runs = std::fs::read_dir(bench.path(folder)).expect("run folders").flatten();
        runs.next().expect("a run").path().display().to_string()
    };
    let (cheap, dear) = (run("0.05", "before"), run("0.3", "after"));
    let output = bench.tithe(&["compare", &cheap, &dear, "--threshold", "5%"]);
    assert_eq!(status(&output), 6, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("loses less"), "{}", out(&output));
    assert!(err(&output).contains("grew by"), "{}", err(&output));
    let same = bench.tithe(&["compare", &dear, &cheap, "--threshold", "5%"]);
    assert_eq!(status(&same), 0, "{}", err(&same));
    let alone = bench.tithe(&["compare", &dear, "--threshold", "5 %"]);
    assert_eq!(status(&alone), 6, "{}", err(&alone));
    let itself = bench.tithe(&["compare", &dear, &dear]);
    assert_eq!(status(&itself), 2);
    assert!(err(&itself).contains("does not differ from itself"), "{}", err(&itself));
    let page = bench.tithe(&["compare", &cheap, &dear, "--format", "html"]);
    assert!(out(&page).starts_with("<!DOCTYPE html>"), "{}", err(&page));
    assert_eq!(status(&bench.tithe(&["compare", &cheap])), 2);
    assert_eq!(status(&bench.tithe(&["compare", &cheap, &dear, "--threshold", "much"])), 2);
}

#[test]
fn the_manual_and_completions_name_every_command() {
    let bench = Bench::new("manual");
    for arguments in [&["manual"][..], &["manual", "bash"], &["manual", "zsh"], &["manual", "fish"]] {
        let output = bench.tithe(arguments);
        assert_eq!(status(&output), 0, "{}", err(&output));
        for command in ["run", "plan", "verify", "report", "compare", "doctor"] {
            assert!(out(&output).contains(command), "{arguments:?} does not name {command}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (one, two) = (Bench::new("seed"), Bench::new("seed"));
    for bench in [&one, &two] {
        bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s"));
        bench.tithe(&["run", "e.toml", "--quiet"]);
    }
    let slots = |bench: &Bench| std::fs::read_to_string(bench.run_folder().join("slots.csv")).expect("slots");
    assert_eq!(slots(&one), slots(&two));
    assert!(slots(&one).lines().count() > 100);
}

#[test]
fn a_killed_run_continues_after_its_last_complete_frame() {
    let bench = Bench::new("killed");
    // So precise that it does not end by itself, however late this test looks.
    bench.file("e.toml", &experiment("", ARMS, "1 h").replace("0.2%", "0.01%"));
    let mut child = bench
        .command(&["run", "e.toml", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tithe starts");
    let frames = |bench: &Bench| {
        let runs = std::fs::read_dir(bench.path("tithe-runs")).into_iter().flatten().flatten();
        let texts = runs.filter_map(|run| std::fs::read_to_string(run.path().join("frames.jsonl")).ok());
        texts.map(|text| text.lines().count()).sum::<usize>()
    };
    while frames(&bench) < 5 {
        assert!(child.try_wait().expect("a state").is_none(), "the run ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("kill -9");
    child.wait().expect("the child ends");
    let run = bench.run_folder();
    let kept = std::fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    let complete: Vec<&str> = kept.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();

    // Nothing of the killed run blocks the next one. It is long, so it is asked to end once it has gone on.
    let mut resumed = bench
        .command(&["run", "--resume", &run.display().to_string(), "--quiet"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("tithe starts");
    while frames(&bench) < complete.len() + 5 {
        assert!(resumed.try_wait().expect("a state").is_none(), "the resumed run ended by itself");
        std::thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: the child is running; SIGINT asks it to end and keep what it has.
    unsafe { libc::kill(resumed.id() as i32, libc::SIGINT) };
    let output = resumed.wait_with_output().expect("the child ends");
    assert_eq!(status(&output), 130, "{}", err(&output));
    assert!(out(&output).contains("tithe run --resume"), "{}", out(&output));

    let after = std::fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    assert!(after.starts_with(&complete.concat()), "complete frames are kept as they were");
    let numbers: Vec<u64> = after
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a frame")["frame"].as_u64().expect("a number"))
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no frame twice, none left out");
    let sandboxes = std::fs::read_dir(&run).expect("the folder").flatten();
    assert_eq!(sandboxes.filter(|entry| entry.file_name().to_string_lossy().starts_with("tithe-sandbox")).count(), 0);
}

#[test]
fn five_mistakes_give_five_messages_and_nothing_is_started() {
    let bench = Bench::new("mistakes");
    let text = experiment("", ARMS, "60 s")
        .replace("precision = \"0.2%\"", "precison = \"0.2%\"")
        .replace("cost = 0.05", "cost = 50")
        .replace("use = \"audit\"", "use = \"tls\"")
        .replace("records = 500", "records = \"many\"")
        .replace("ycsb = \"a\"", "ycsb = \"z\"");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml"]);
    assert_eq!(status(&output), 2);
    let told = err(&output);
    assert!(told.contains("5 problems in e.toml"), "{told}");
    for word in ["precison", "cost", "tls", "records", "\"z\""] {
        assert!(told.contains(word), "{word} is not in: {told}");
    }
    assert!(!bench.path("tithe-runs").exists());
}

#[test]
fn faults_invalidate_frames_or_end_the_cell_and_never_give_a_number() {
    for (setting, words, expected) in [
        ("wrong_answer_every = 50", "wrong answer", 4),
        ("fail_every = 10", "of the operations failed", 4),
        ("dies_after_operations = 3000", "connection", 4),
        ("refuses_to_start = true", "told to refuse", 4),
    ] {
        let bench = Bench::new("faults");
        bench.file("e.toml", &experiment(setting, ARMS, "30 s"));
        let output = bench.tithe(&["run", "e.toml"]);
        let told = format!("{}{}", out(&output), err(&output));
        assert!(told.contains(words), "{setting}: {told}");
        let report = report_of(&bench);
        if setting.starts_with("dies") {
            // What was measured before it died is kept; what came after is invalid.
            assert_eq!(status(&output), expected, "{setting}: {told}");
            assert!(report["cells"][0]["invalid"].as_array().is_some_and(|invalid| !invalid.is_empty()), "{report}");
            continue;
        }
        assert_eq!(status(&output), expected, "{setting}: {told}");
        for arm in report["cells"][0]["arms"].as_array().expect("arms") {
            let estimates = arm["estimates"].as_array().expect("estimates");
            assert!(estimates.iter().all(|estimate| estimate["effect"]["low"].is_null()), "{setting}: {arm}");
        }
    }
}

/// The value in the only run folder's `cells.json` that says how the first cell ended.
fn ending(bench: &Bench) -> String {
    let cells = std::fs::read_to_string(bench.run_folder().join("cells.json")).expect("the cells");
    let cells: Value = serde_json::from_str(&cells).expect("JSON");
    cells[0]["ending"].as_str().expect("an ending").to_owned()
}

#[test]
fn a_threshold_hides_no_failure() {
    let threshold = |settings: &str, arms: &str| {
        let bench = Bench::new("gate");
        bench.file("e.toml", &experiment(settings, arms, "30 s"));
        let ran = status(&bench.tithe(&["run", "e.toml", "--quiet"]));
        let run = bench.run_folder().display().to_string();
        let compared = bench.tithe(&["compare", &run, "--threshold", "5%"]);
        (ran, status(&compared), err(&compared))
    };
    let dear = "[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\", cost = 0.3 }]\n";
    let lossy = "[[arm]]\nname = \"lossy\"\nprotections = [{ use = \"audit\", lose = 0.3 }]\n";
    let (ran, compared, told) = threshold("", &[dear, lossy].concat());
    assert_eq!((ran, compared), (5, 5), "{told}");
    assert!(told.contains("sealed: the cost in") && told.contains("lossy: disproven"), "{told}");
    let (ran, compared, told) = threshold("fail_every = 10", dear);
    assert_eq!((ran, compared), (4, 4), "{told}");
    assert!(told.contains("was not measured"), "{told}");
}

/// Why each frame of the only run folder is invalid.
fn invalid(bench: &Bench) -> Vec<Option<String>> {
    let frames = std::fs::read_to_string(bench.run_folder().join("frames.jsonl")).expect("frames");
    let reason = |line| serde_json::from_str::<Value>(line).expect("a frame")["invalid"].as_str().map(str::to_owned);
    frames.lines().map(reason).collect()
}

#[test]
fn a_cell_ends_after_three_frames_invalid_for_one_reason() {
    let bench = Bench::new("hopeless");
    // Ten minutes of load: none of it is worth anything.
    bench.file("e.toml", &experiment("fail_every = 10", ARMS, "10 min"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 4, "{}", err(&output));
    assert_eq!(invalid(&bench).len(), 3);
    let ending = ending(&bench);
    assert!(ending.starts_with("failed: 3 frames in a row were invalid for the same reason: "), "{ending}");
    assert!(ending.contains("of the operations failed"), "{ending}");
    assert!(out(&output).contains("3 frames in a row were invalid"), "{}", out(&output));
}

#[test]
fn a_failed_cell_is_taken_up_again_where_it_was_left_and_says_so_when_it_fails_again() {
    let bench = Bench::new("again");
    // Each start of the servers lasts for some frames.
    bench.file("e.toml", &experiment("dies_after_operations = 150000", ARMS, "10 min"));
    let first = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&first), 4, "{}", err(&first));
    let before = invalid(&bench);
    let good = before.iter().filter(|reason| reason.is_none()).count();
    assert!(good >= 3 && before[good..].iter().all(Option::is_some), "{before:?}");
    let run = bench.run_folder().display().to_string();

    let second = bench.tithe(&["run", "--resume", &run, "--quiet"]);
    assert_eq!(status(&second), 4, "{}", err(&second));
    let after = invalid(&bench);
    assert!(after.starts_with(&before), "what was measured is kept");
    assert!(after.len() >= before.len() + good && after[before.len()].is_none(), "nothing was measured: {after:?}");
    assert!(ending(&bench).starts_with("failed: 3 frames in a row"), "{}", ending(&bench));
    assert!(out(&second).contains("taken up again, which had failed: 3 frames in a row"), "{}", out(&second));
    let frames = std::fs::read_to_string(bench.run_folder().join("frames.jsonl")).expect("frames");
    let epochs = frames.lines().map(|line| serde_json::from_str::<Value>(line).expect("a frame")["epoch"].clone());
    let epochs: Vec<Value> = epochs.collect();
    assert_eq!((&epochs[before.len() - 1], &epochs[before.len()]), (&Value::from(0), &Value::from(1)));
}

#[test]
fn a_plan_of_another_build_is_fitted_or_refused_and_never_a_panic() {
    let bench = Bench::new("fitted");
    bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    let folder = bench.run_folder();
    let plan_text = std::fs::read_to_string(folder.join("plan.json")).expect("the plan");
    let cells = std::fs::read_to_string(folder.join("cells.json")).expect("the cells");
    // As if it had been interrupted: there is something to go on with.
    let cells: Value = serde_json::from_str(&cells).expect("JSON");
    let open = serde_json::to_string(&cells).expect("JSON").replace(cells[0]["ending"].as_str().expect("text"), "");
    let resumed = |change: &dyn Fn(&mut Value)| {
        let mut plan: Value = serde_json::from_str(&plan_text).expect("JSON");
        change(&mut plan);
        std::fs::write(folder.join("plan.json"), plan.to_string()).expect("written");
        std::fs::write(folder.join("cells.json"), &open).expect("written");
        bench.tithe(&["run", "--resume", &folder.display().to_string(), "--quiet"])
    };
    let protections = |plan: &mut Value, arm: usize| plan["experiment"]["arms"][arm]["protections"][0].take();

    let filled = resumed(&|plan| {
        let mut seal = protections(plan, 1);
        seal["options"] = Value::Object(Default::default());
        plan["experiment"]["arms"][1]["protections"][0] = seal;
    });
    assert_eq!(status(&filled), 0, "{}", err(&filled));
    let told =
        "plan.json does not say experiment.arms[1].protections[0].options.cost: taken as its default, Number(0.05)";
    assert!(err(&filled).contains(told), "{}", err(&filled));
    let events = std::fs::read_to_string(folder.join("events.jsonl")).expect("events");
    assert!(events.contains("taken as its default"), "{events}");

    let slots = std::fs::read(folder.join("slots.csv")).expect("slots");
    for (words, change) in [
        (
            "no protection \"shield\"",
            &(|plan: &mut Value| {
                plan["experiment"]["arms"][1]["protections"][0]["id"] = Value::from("shield");
            }) as &dyn Fn(&mut Value),
        ),
        ("options.colour: `seal` has no such option", &|plan| {
            plan["experiment"]["arms"][1]["protections"][0]["options"]["colour"] = serde_json::json!({"text": "red"});
        }),
        ("cells[0].workload: there is no such workload", &|plan| plan["cells"][0]["workload"] = Value::from(3)),
        ("this build has no database \"oracle\"", &|plan| plan["experiment"]["database"] = Value::from("oracle")),
    ] {
        let refused = resumed(change);
        assert!([1, 2].contains(&status(&refused)), "{words}: {} {}", status(&refused), err(&refused));
        for words in [words, "plan.json", "experiment.toml"] {
            assert!(err(&refused).contains(words), "{words}: {}", err(&refused));
        }
        assert_eq!(std::fs::read(folder.join("slots.csv")).expect("slots"), slots, "nothing was changed");
    }
    std::fs::write(folder.join("plan.json"), &plan_text).expect("written");
    std::fs::write(folder.join("cells.json"), "[]").expect("written");
    let refused = bench.tithe(&["report", &folder.display().to_string()]);
    assert_eq!(status(&refused), 2);
    assert!(err(&refused).contains("cells.json has 0 cells, plan.json 1"), "{}", err(&refused));
}

#[test]
fn damaged_slots_are_told_by_file_and_line_and_their_frames_are_left_out() {
    let bench = Bench::new("damaged");
    bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s"));
    bench.tithe(&["run", "e.toml", "--quiet"]);
    let folder = bench.run_folder();
    let run = folder.display().to_string();
    let whole = std::fs::read_to_string(folder.join("slots.csv")).expect("slots");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let frames = invalid(&bench).len();
    let with = |number: usize, line: &str| {
        let mut lines = lines.clone();
        lines[number - 1] = line;
        lines.concat()
    };
    let negative = lines[20].replacen(&lines[20].split(',').nth(7).expect("a field").to_owned(), "-1", 1);
    for (text, words, left_out) in [
        (String::new(), "line 1 of slots.csv does not name its columns", frames),
        (lines[0].to_owned(), "slots.csv has no row of this frame", frames),
        (with(1, "cell,frame,block\n"), "line 1 of slots.csv does not name its columns", frames),
        (with(21, &negative), "line 21 of slots.csv is damaged: \"-1", 1),
        (with(21, "0,0,1\n"), "line 21 of slots.csv is damaged: it has 3 of", 1),
        (with(21, "what was this\n"), "line 21 of slots.csv is damaged, and ", 1),
        (with(21, ""), "slots.csv lacks rows or has foreign ones", 1),
        (whole[..whole.len() - 2].to_owned(), "is damaged: it is cut short", 1),
        (lines[..lines.len() - 1].concat(), "slots.csv lacks rows or has foreign ones", 1),
    ] {
        std::fs::write(folder.join("slots.csv"), text).expect("written");
        for format in ["text", "json", "ycsb"] {
            let output = bench.tithe(&["report", &run, "--format", format]);
            assert_eq!(status(&output), 1, "{words} {format}: {}", err(&output));
            assert!(err(&output).contains(words), "{words} {format}: {}", err(&output));
            let count = if left_out == 1 { "1 frame is".to_owned() } else { format!("{left_out} frames are") };
            assert!(err(&output).contains(&format!("{count} left out of the figures")), "{words}: {}", err(&output));
        }
        let report = bench.tithe(&["report", &run]);
        assert!(out(&report).contains("slots.csv"), "{words}: {}", out(&report));
    }
    // What a killed run leaves of a frame that did not complete is no damage.
    std::fs::write(folder.join("slots.csv"), format!("{whole}0,{frames},0,0,0,9,9,9,9,9,9,9\n0,{frames},0,0,1,"))
        .expect("written");
    let output = bench.tithe(&["report", &run]);
    assert_eq!((status(&output), err(&output)), (0, String::new()));
}

#[test]
fn an_audit_log_that_loses_records_is_not_proven() {
    let bench = Bench::new("lossy");
    bench.file(
        "e.toml",
        &experiment("", "[[arm]]\nname = \"lossy\"\nprotections = [{ use = \"audit\", lose = 0.3 }]\n", "30 s"),
    );
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 5, "{}", err(&output));
    assert_eq!(report_of(&bench)["cells"][0]["arms"][1]["proof"]["proof"], "disproven");
    assert!(out(&output).contains("DISPROVEN"), "{}", out(&output));
    let verified = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&verified), 5, "{}", err(&verified));
    assert!(out(&verified).ends_with("\n1 claim does not hold\n"), "{}", out(&verified));
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_from_the_intended_start() {
    let bench = Bench::new("open");
    let text =
        experiment("", ARMS, "150 s").replace("[measure]", "[load]\nrate = 500\narrivals = \"poisson\"\n[measure]");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = report_of(&bench);
    estimate(&report, 1, "intended_p50_READ");
}

#[test]
fn a_sweep_finds_saturation_and_measures_below_it() {
    let bench = Bench::new("sweep");
    let arms = "[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\", cost = 0.1 }]\n";
    let text = experiment(FEW_OPERATIONS, arms, "240 s").replace("[measure]", "[load]\nclients = [1, 2, 4]\n[measure]");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = report_of(&bench);
    let cells = report["cells"].as_array().expect("cells");
    let names: Vec<&str> = cells.iter().filter_map(|cell| cell["id"].as_str()).collect();
    assert_eq!(names, ["a.clients-1", "a.clients-2", "a.clients-4", "a.70-of-saturation"]);
    let rate = cells[3]["notes"].as_array().expect("notes").iter().find(|note| note[0] == "rate").expect("a rate");
    let rate: f64 = rate[1].as_str().and_then(|text| text.trim_end_matches("/s").parse().ok()).expect("a number");
    let sweep = &report["sweeps"][0]["arms"];
    let most = |arm: usize| sweep[arm]["most"].as_f64().expect("a rate");
    // The sealed arm is the slower one, and the rate is 70 % of what it did at most.
    assert!(most(1) < most(0));
    assert!((rate / most(1) - 0.7).abs() < 0.05, "{rate} of {}", most(1));
    assert!(sweep[1]["costs"].as_array().is_some_and(|costs| costs.len() >= 2), "{sweep}");
    assert!(out(&output).contains("saturated at"), "{}", out(&output));
}

#[test]
fn the_same_twice_is_found_to_be_the_same() {
    let bench = Bench::new("calibrate");
    bench.file("e.toml", &experiment("", ARMS, "60 s"));
    let output = bench.tithe(&["calibrate", "e.toml", "--seconds", "30", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("finds no difference where there is none"), "{}", out(&output));
}

#[test]
fn an_aa_arm_joins_and_an_answer_can_be_waited_for() {
    let bench = Bench::new("a-a");
    let arms = "[[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\", cost = 0.1 }]\n";
    bench.file("e.toml", &experiment("", arms, "60 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--aa-arm", "--until-decided"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = report_of(&bench);
    assert_eq!(report["cells"][0]["ending"], "decided");
    assert_eq!(report["cells"][0]["arms"][2]["name"], "A/A");
    assert_eq!(report["cells"][0]["arms"][2]["proof"]["proof"], "baseline");
    assert_eq!(estimate(&report, 1, "net")["verdict"], "COSTS");
}

#[test]
fn every_design_recovers_a_known_cost_where_nothing_drifts() {
    for design in ["duet", "slices", "sequential"] {
        let bench = Bench::new("design");
        bench.file("e.toml", &experiment(&format!("drift = 0\n{FEW_OPERATIONS}"), ARMS, "150 s"));
        let output = bench.tithe(&["run", "e.toml", "--quiet", "--design", design]);
        assert_eq!(status(&output), 0, "{design}: {}{}", out(&output), err(&output));
        let report = report_of(&bench);
        assert!(report["cells"][0]["mode"].as_str().is_some_and(|mode| mode.contains(design)), "{design}");
        let effect = &estimate(&report, 2, "cpu")["effect"];
        let found = effect["estimate"].as_f64().expect("an estimate");
        assert!((found - 1.2_f64.ln()).abs() < 0.01, "{design}: {effect}");
    }
}

#[test]
fn verify_looks_at_everything_and_times_nothing() {
    let bench = Bench::new("verify");
    bench.file("e.toml", &experiment("", ARMS, "60 s"));
    let output = bench.tithe(&["verify", "e.toml"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("every claim holds"), "{}", out(&output));
    let left = std::fs::read_dir(bench.path("tithe-runs")).expect("the folder").count();
    assert_eq!(left, 0, "nothing is kept");
}

#[test]
fn the_run_folder_is_complete_and_other_tools_read_its_histograms() {
    use hdrhistogram::serialization::{Deserializer, interval_log};
    let bench = Bench::new("folder");
    bench.file("e.toml", &experiment(FEW_OPERATIONS, ARMS, "30 s"));
    bench.tithe(&["run", "e.toml", "--quiet"]);
    let run = bench.run_folder();
    for name in [
        "experiment.toml",
        "plan.json",
        "machine.json",
        "cells.json",
        "events.jsonl",
        "frames.jsonl",
        "slots.csv",
        "evidence.jsonl",
        "report.html",
        "report.md",
        "report.json",
        "report.csv",
    ] {
        assert!(run.join(name).metadata().is_ok_and(|metadata| metadata.len() > 0), "{name}");
    }
    let log = std::fs::read(run.join("histograms").join("a--sealed.hlog")).expect("the log");
    let mut operations = 0;
    for entry in interval_log::IntervalLogIterator::new(&log) {
        if let interval_log::LogEntry::Interval(interval) = entry.expect("a line of the log") {
            use std::io::Read;
            let mut decoded = Vec::new();
            base64_reader(interval.encoded_histogram()).read_to_end(&mut decoded).expect("base64");
            let histogram: hdrhistogram::Histogram<u64> =
                Deserializer::new().deserialize(&mut decoded.as_slice()).expect("a histogram");
            operations += histogram.len();
        }
    }
    let frames = std::fs::read_to_string(run.join("frames.jsonl")).expect("frames");
    let counted: u64 = frames
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a frame"))
        .flat_map(|frame| frame["arms"][1]["latency"].as_object().expect("latencies").clone())
        .flat_map(|(_, buckets)| buckets.as_array().expect("buckets").clone())
        .map(|bucket| bucket[1].as_u64().expect("a count"))
        .sum();
    assert_eq!(operations, counted);
}

/// Decodes the base64 of a histogram log.
fn base64_reader(text: &str) -> impl std::io::Read {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = ALPHABET.iter().position(|known| *known == letter).expect("a base64 letter") as u32;
        (bits, count) = ((bits << 6) | value, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    std::io::Cursor::new(bytes)
}

/// On a terminal of 80 columns some lines are drawn over each other; they keep to their room.
#[test]
fn a_terminal_shows_the_state_of_the_run() {
    let bench = Bench::new("terminal");
    let text = experiment("", ARMS, "80 s")
        .replace("[[arm]]\nname = \"plain\"", "[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"");
    bench.file("e.toml", &text);
    // script(1) of every Linux gives the program a terminal.
    let command = format!("stty cols 80 rows 24; exec {} run e.toml", env!("CARGO_BIN_EXE_tithe"));
    let output = std::process::Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(bench.path(""))
        .env("TITHE_SIMULATED", "1")
        .env("TERM", "xterm")
        .output()
        .expect("script(1) starts");
    assert_eq!(status(&output), 0, "{}", out(&output));
    let shown = without_escapes(&out(&output));
    let wide = shown.split(['\n', '\r']).find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    for wanted in ["[1/2] a  ━", "━●━", "✓ evidence so far: ", "client busy ", " left", "to come: c", "[2/2] c"]
    {
        assert!(shown.contains(wanted), "no {wanted:?} in {shown}");
    }
    // What is drawn over is taken away in the end: the report stands alone.
    let report = shown.rfind("Known costs").expect("the report");
    assert!(!shown[report..].contains(" left"), "{}", &shown[report..]);
}

/// `text` without what moves the cursor or colours.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(|end: char| end.is_ascii_alphabetic()).map_or("", |it| it.1))
}
