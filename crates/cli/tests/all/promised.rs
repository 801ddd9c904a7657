//! Guarantees about plans hold for every product, whether or not it is installed.

use std::io;

use expect_test::expect;
use tithe_model::{
    catalogue::Catalogue,
    parse::parse,
    plan::{Cell, FRAMES_MIN, Plan, plan, starting_share},
};

fn catalogue() -> Catalogue {
    tithe_harness::catalogue::catalogue(tithe_databases::all())
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

/// Minimum starts of a cell.
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
    // If starting takes more than two fifths of the time, `tithe plan` reports it.
    expect![[r#"
        postgres a: 24 in 300 s, 14% of the time
        postgres c: 15 in 300 s, 17% of the time
        mariadb a: 23 in 300 s, 20% of the time
        mariadb c: 125 in 300 s, 40% of the time
        mysql a: 15 in 300 s, 19% of the time
        mysql c: 62 in 300 s, 40% of the time
        redis a: 24 in 300 s, 15% of the time
        redis c: 24 in 300 s, 5% of the time
        memcached a: 8 in 300 s, 47% of the time
        memcached c: 8 in 300 s, 45% of the time
        etcd a: 20 in 300 s, 19% of the time
        etcd c: 24 in 300 s, 14% of the time
        cassandra a: 6 in 900 s, 38% of the time
        cassandra c: 6 in 900 s, 38% of the time
        opensearch a: 6 in 900 s, 35% of the time
        opensearch c: 6 in 900 s, 35% of the time
        mongodb a: 8 in 300 s, 50% of the time
        mongodb c: 8 in 300 s, 48% of the time
    "#]]
    .assert_eq(&told);
}
