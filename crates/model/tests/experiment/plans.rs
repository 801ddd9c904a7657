//! What will be done about an experiment.

use expect_test::{Expect, expect};
use tithe_model::plan::{Plan, outline, plan};

use crate::{FULL, SHORT, catalogue, read_experiment, render};

fn planned(text: &str) -> Plan {
    let experiment = read_experiment(text).unwrap_or_else(|complaints| panic!("{}", render(text, &complaints)));
    plan(experiment, &catalogue::catalogue()).expect("what was parsed can be planned")
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&serde_json::to_string_pretty(&planned(text).cells).expect("cells are JSON"));
}

fn check_outline(text: &str, expected: Expect) {
    expected.assert_eq(&outline(&planned(text), &catalogue::catalogue()));
}

#[test]
fn cells_of_everything() {
    check(FULL, expect![[]]);
}

#[test]
fn reads_of_one_client() {
    check(SHORT, expect![[]]);
}

/// Slots, blocks and guard follow from the workload, the database and the load.
#[test]
fn slots() {
    let rows = [
        ("reads", SHORT.to_owned()),
        ("writes of a server", SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"")),
        ("writes of two clients", SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"\n[load]\nclients = 2")),
        (
            "writes of an embedded database",
            SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"").replace("postgres", "sqlite").replace("\"tls\" }", "\"columns\" }"),
        ),
        ("open loop", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[load]\nrate = 1000")),
        ("slow open loop", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[load]\nrate = 50")),
        ("chosen slot", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[measure]\nslot = \"5 ms\"")),
        ("three epochs", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[measure]\nepochs = 7")),
    ];
    let line = |(name, text): &(&str, String)| {
        let cell = &planned(text).cells[0];
        let (slot, guard) = (cell.slot_ns as f64 / 1e6, cell.guard_ns as f64 / 1e6);
        format!("{name}: slot {slot} ms, guard {guard} ms, {} blocks, {} frames\n", cell.blocks, cell.frames_max)
    };
    expect![[]].assert_eq(&rows.iter().map(line).collect::<String>());
}

#[test]
fn names_that_look_alike_stay_apart() {
    let text = SHORT.replace(
        "ycsb = \"c\"",
        "ycsb = \"c\"\nname = \"C: reads\"\n[[workload]]\nycsb = \"c\"\nname = \"c reads\"\n[[workload]]\nycsb = \"c\"\nname = \"読\"\n\
         [[workload]]\nycsb = \"c\"\nname = \"../c\"",
    );
    let ids: Vec<String> = planned(&text).cells.into_iter().map(|cell| cell.id).collect();
    expect![[]].assert_debug_eq(&ids);
}

#[test]
fn more_arms_share_the_warm_up() {
    let arms: String = (0..18).map(|index| format!("[[arm]]\nname = \"copy {index}\"\n")).collect();
    let cell = &planned(&format!("{SHORT}{arms}")).cells[0];
    assert_eq!((cell.warmup_ns, cell.frames_max), (50_000_000, 30));
}

#[test]
fn outline_of_everything() {
    check_outline(FULL, expect![[]]);
}

#[test]
fn outline_of_attached_arms() {
    check_outline(
        &SHORT
            .replace("name = \"plain\"", "name = \"plain\"\nurl = \"postgres://u:hunter2@h/db\"")
            .replace("name = \"tls\"", "name = \"tls\"\nurl = \"postgres://u:hunter2@h/db\""),
        expect![[]],
    );
}
