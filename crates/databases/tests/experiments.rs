//! Every experiment file that comes with Tithe makes a plan in this build.

#![allow(clippy::print_stderr, reason = "a test says what it left out")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_harness::{catalogue, workload};
use tithe_model::{experiment, plan};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_experiment_makes_a_plan() {
    let kinds = workload::KINDS.iter().map(|kind| (kind.entry)()).collect();
    let catalogue = catalogue::catalogue(tithe_databases::all(), kinds);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files: Vec<PathBuf> =
        files(&folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    assert!(files.len() > 10, "{files:?}");
    for path in files {
        let text = fs::read_to_string(&path).expect("a file");
        let read = |name: &str| fs::read_to_string(path.with_file_name(name));
        let experiment = match experiment::parse(&text, &catalogue, &read) {
            Err(complaints) if complaints.iter().any(|it| it.problem.starts_with("there is no database")) => {
                eprintln!("LEFT OUT, its database is not in this build: {}", path.display());
                continue;
            }
            outcome => outcome.unwrap_or_else(|complaints| panic!("{}: {complaints:?}", path.display())),
        };
        for described in &experiment.workloads {
            workload::make(described, &experiment.data, experiment.measure.seed)
                .unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
        }
        plan::plan(experiment, &catalogue).unwrap_or_else(|complaints| panic!("{}: {complaints:?}", path.display()));
    }
}
