//! What is promised of plans holds of every product and of every experiment that is kept, whether or not the product is
//! installed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use expect_test::expect;
use tithe_model::{
    catalogue::Catalogue,
    parse::parse,
    plan::{Cell, FRAMES_MIN, Plan, plan, starting_share},
};

fn catalogue() -> Catalogue {
    let workloads = tithe_workloads::KINDS.iter().map(|kind| (kind.entry)()).collect();
    tithe_harness::catalogue::catalogue(tithe_databases::all(), workloads)
}

/// The plan of two arms of `database` under one workload.
fn planned(catalogue: &Catalogue, database: &str, ycsb: &str, budget_s: u32) -> Plan {
    let text = format!(
        "title = \"Starts\"\ndatabase = \"{database}\"\n[data]\nrecords = 100_000\n[load]\nclients = 2\n\
         [measure]\nbudget = \"{budget_s} s\"\n[[workload]]\nycsb = \"{ycsb}\"\n[[arm]]\nname = \"plain\"\n\
         [[arm]]\nname = \"again\"\n"
    );
    let nothing = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    let experiment = parse(&text, catalogue, &nothing).unwrap_or_else(|them| panic!("{them:?}"));
    plan(experiment, catalogue).expect("what was parsed can be planned")
}

/// Starts that a cell has at least.
fn starts(cell: &Cell) -> u32 {
    cell.planned_starts().unwrap_or(FRAMES_MIN)
}

#[test]
fn a_cell_of_launched_servers_has_eight_starts_in_five_minutes_and_six_in_fifteen_of_those_that_compile() {
    let catalogue = catalogue();
    let launched = catalogue.databases.iter().filter(|offered| !offered.entry.embedded && !offered.entry.simulated);
    let mut told = String::new();
    for entry in launched.map(|offered| offered.entry) {
        let (least, budget_s) = if entry.compiles { (6, 900) } else { (8, 300) };
        for ycsb in ["a", "c"] {
            let plan = planned(&catalogue, entry.id, ycsb, budget_s);
            let starts = starts(&plan.cells[0]);
            assert!(starts >= least, "{} under {ycsb}: {starts} starts in {budget_s} s", entry.id);
            let share = starting_share(&plan, &catalogue, &plan.cells[0]);
            told += &format!("{} {ycsb}: {starts} in {budget_s} s, {:.0}% of the time\n", entry.id, 100.0 * share);
        }
    }
    // Where starting takes more than two fifths of the time `tithe plan` says so.
    expect![[r#"
        postgres a: 24 in 300 s, 22% of the time
        postgres c: 15 in 300 s, 29% of the time
        mariadb a: 24 in 300 s, 25% of the time
        mariadb c: 125 in 300 s, 40% of the time
        mysql a: 24 in 300 s, 32% of the time
        mysql c: 62 in 300 s, 40% of the time
        redis a: 24 in 300 s, 21% of the time
        redis c: 24 in 300 s, 5% of the time
        cassandra a: 6 in 900 s, 38% of the time
        cassandra c: 6 in 900 s, 38% of the time
        mongodb a: 8 in 300 s, 50% of the time
        mongodb c: 8 in 300 s, 48% of the time
    "#]]
    .assert_eq(&told);
}

/// All files of experiments below `folder`; a matrix of hosts names experiments and is none.
fn experiments(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.is_dir() { experiments(&path) } else { vec![path] };
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.flat_map(|entry| below(entry.path())).filter(|path| !path.ends_with("matrix.toml")).collect()
}

#[test]
fn every_experiment_that_is_kept_can_be_planned() {
    let (home, catalogue) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments"), catalogue());
    let all = experiments(&home);
    let is_offered = |text: &str| {
        let database = text.lines().find_map(|line| line.strip_prefix("database = \"")?.split('"').next());
        catalogue.database(database.expect("a database")).is_some()
    };
    let mut planned = 0;
    for path in &all {
        let text = fs::read_to_string(path).expect("an experiment");
        if !is_offered(&text) {
            continue;
        }
        let beside = |name: &str| fs::read_to_string(path.with_file_name(name));
        let experiment = parse(&text, &catalogue, &beside);
        let experiment = experiment.unwrap_or_else(|them| panic!("{}: {them:?}", path.display()));
        plan(experiment, &catalogue).expect("what was parsed can be planned");
        planned += 1;
    }
    assert!(all.len() > 30 && planned > 25, "{planned} of {}", all.len());
}
