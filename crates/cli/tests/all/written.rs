//! FORMAT.md and the files that a run writes contain the same names.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::support::{Bench, err, out, status};

const FORMAT: &str = include_str!("../../../../FORMAT.md");

/// An experiment with nearly every field of a plan that the simulated database supports.
const EXPERIMENT: &str = r#"title = "Everything that is written"
database = "simulated"
[settings]
noise = 0.1
[data]
records = 500
values = "incompressible"
[load]
clients = 2
rate = 500
arrivals = "poisson"
[measure]
budget = "400 s"
warmup = "1 s"
aa_arm = true
[[resources]]
name = "usual"
[[resources]]
name = "other"
settings = { drift = 0 }
clients = 1
reconnect_every = 50
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
[[arm]]
name = "sealed"
protections = [{ use = "seal", cost = 0.05 }]
[[published]]
source = "an invented report"
arm = "sealed"
figure = "time"
plain = 32.4
protected = 40.9
unit = "µs"
[[published]]
source = "another one"
arm = "sealed"
figure = "throughput"
change = ["-5%", "-20%"]
"#;

/// Maps whose keys are names of the user's, the database's or the workload's own.
const OPEN: [&str; 6] = ["settings", "properties", "options", "facts", "latency", "intended"];

/// The part of FORMAT.md below `heading`, up to the next heading.
fn section(heading: &str) -> &'static str {
    let rest = FORMAT.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    rest.split("\n#").next().unwrap_or_default()
}

/// The rows of the tables in `text`: the names in the first column, and the whole row.
fn rows(text: &str) -> impl Iterator<Item = (Vec<&str>, &str)> {
    text.lines().filter_map(|row| {
        let names = row.strip_prefix("| `")?.split(" | ").next()?;
        Some((names.split("`, `").map(|name| name.trim_end_matches('`')).collect(), row))
    })
}

/// Every word in `text` that is marked as code.
fn words(text: &str) -> BTreeSet<&str> {
    let code = text.split('`').skip(1).step_by(2);
    code.flat_map(|code| code.split(|letter: char| !letter.is_alphanumeric() && !"_-".contains(letter))).collect()
}

/// The keys of all objects in `value`.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.keys().cloned());
            fields.iter().filter(|(key, _)| !OPEN.contains(&key.as_str())).for_each(|(_, value)| keys(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// The values of a file, one, or one per line, without the checksums that every file has.
fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = path.extension().is_some_and(|extension| extension == "jsonl");
    let parts: Vec<&str> = if lines { text.lines().collect() } else { vec![text.as_str()] };
    let value = |part| {
        let mut value: Value = serde_json::from_str(part).expect("JSON");
        let objects = match &mut value {
            Value::Array(objects) => objects.as_mut_slice(),
            object => std::slice::from_mut(object),
        };
        for object in objects {
            let checksum = object.as_object_mut().and_then(|members| members.remove("crc32"));
            assert!(checksum.is_some(), "{object} in {} has no checksum", path.display());
        }
        value
    };
    parts.into_iter().map(value).collect()
}

fn keys_of(path: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    values(path).iter().for_each(|value| keys(value, &mut found));
    found
}

/// The files and folders below `folder`, as paths from there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |entry: fs::DirEntry| match entry.path() {
        path if path.is_dir() => [vec![path.clone()], files(&path)].concat(),
        path => vec![path],
    };
    fs::read_dir(folder).expect("a folder").flatten().flat_map(below).collect()
}

fn run() -> (Bench, PathBuf) {
    let bench = Bench::new("written");
    bench.file("e.toml", EXPERIMENT);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let folder = bench.run_folder();
    (bench, folder)
}

/// True when the `row` of FORMAT.md, which may end in `/` or contain a `*`, names the file at `path`.
fn names(row: &str, path: &str) -> bool {
    match (row.strip_suffix('/'), row.split_once('*')) {
        (Some(folder), _) => path == folder || path.starts_with(row),
        (None, Some((start, end))) => path.starts_with(start) && path.ends_with(end),
        (None, None) => path == row,
    }
}

#[test]
fn a_run_writes_what_format_md_names() {
    let (_bench, folder) = run();
    every_file_is_named(&folder);
    assert!(words(section("## The run folder")).contains("crc32"), "FORMAT.md does not name the checksums");
    for file in ["machine.json", "cells/*.json", "frames.jsonl", "evidence.jsonl"] {
        every_key_is_named(&folder.join(file.replace('*', "0")), file);
    }
    every_key_of_the_plan_is_named(&folder);
    every_event_has_its_row(&folder);
    every_column_is_named(&folder);
}

fn every_file_is_named(folder: &Path) {
    let table: Vec<&str> = rows(section("## The run folder")).flat_map(|(names, _)| names).collect();
    assert!(table.len() > 10, "{table:?}");
    let relative = |path: PathBuf| path.strip_prefix(folder).expect("below it").display().to_string();
    let written: Vec<String> = files(folder).into_iter().map(relative).collect();
    for path in &written {
        let of_folder = table.iter().any(|row| row.starts_with(&format!("{path}/")));
        assert!(of_folder || table.iter().any(|row| names(row, path)), "FORMAT.md does not name {path}");
    }
    for row in table {
        // Only runs with --profile write it.
        let is_written = row == "profile.jsonl" || written.iter().any(|path| names(row, path));
        assert!(is_written, "FORMAT.md names {row}, which no run writes");
    }
}

/// Every key of `path` is in the section of FORMAT.md on `file`, and every row there belongs to a key.
fn every_key_is_named(path: &Path, file: &str) {
    let (text, found) = (section(&format!("### {file}")), keys_of(path));
    for key in &found {
        assert!(words(text).contains(key.as_str()), "FORMAT.md does not name {key} of {file}");
    }
    for (names, row) in rows(text) {
        let missing = names.iter().find(|name| !found.contains(**name));
        // Not every run watches idle servers, or warms up.
        let of_idle = ["duration_ns", "cpu_ns", "written_bytes", "memory_bytes"].iter().any(|key| names.contains(key));
        let of_warm_up = file == "cells/*.json"
            && ["start", "windows", "ended", "quantity", "arm", "change"].iter().any(|key| names.contains(key));
        let optional = of_idle || of_warm_up || row.contains("absent") || row.contains("left out");
        assert!(missing.is_none() || optional, "FORMAT.md names {names:?} of {file}, which is not written: {found:?}");
    }
}

fn every_key_of_the_plan_is_named(folder: &Path) {
    let experiment_file = FORMAT.split_once("\n## The experiment file\n").expect("its part").1;
    let experiment_file = experiment_file.split("\n## ").next().expect("a part");
    let of_file: BTreeSet<&str> = rows(experiment_file).flat_map(|(names, _)| names).collect();
    let of_plan = words(section("### plan.json"));
    for key in keys_of(&folder.join("plan.json")) {
        let named = of_plan.contains(key.as_str()) || of_file.contains(key.as_str());
        assert!(named, "FORMAT.md does not name {key} of plan.json");
    }
}

fn every_event_has_its_row(folder: &Path) {
    let of_finding = words(section("### evidence.jsonl"));
    let events = values(&folder.join("events.jsonl"));
    let mut seen = BTreeSet::new();
    for event in &events {
        let name = event["event"].as_str().expect("an event has a name");
        let row = rows(section("### events.jsonl")).find(|(names, _)| names.contains(&name));
        let (_, row) = row.unwrap_or_else(|| panic!("FORMAT.md has no row for {name}"));
        for key in event.as_object().expect("an object").keys().filter(|key| *key != "event") {
            let named = words(row).contains(key.as_str()) || (name == "evidence" && of_finding.contains(key.as_str()));
            assert!(named, "FORMAT.md does not name {key} of {name}");
        }
        seen.insert(name);
    }
    for name in ["run-started", "cell-started", "arm-started", "evidence", "frame-done", "cell-done", "run-done"] {
        assert!(seen.contains(name), "{name} was not written: {seen:?}");
    }
}

fn every_column_is_named(folder: &Path) {
    let columns = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).expect("a table");
        text.lines().next().expect("a header").split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let slots: Vec<&str> = rows(section("### slots.csv")).flat_map(|(names, _)| names).collect();
    assert_eq!(columns("slots.csv"), slots);
    let report: Vec<&str> = rows(section("### report.csv")).flat_map(|(names, _)| names).collect();
    assert_eq!(columns("report.csv"), report);
}
