//! The sides of a switched server: their length, their pairs, and their commands in the outline.

use std::collections::BTreeSet;

use expect_test::expect;
use tithe_model::{
    experiment::{Design, ProviderSwitch},
    plan::{Cell, Plan, outline},
    record::Frame,
};

use super::{check_outline, planned, switched};
use crate::{SHORT, catalogue, read_experiment};

#[test]
fn sides_of_a_switched_server_are_told_with_their_switches() {
    check_outline(
        &switched("budget = \"11 min\"", ""),
        expect![[r#"
            TLS
            PostgreSQL, 1,000 records, YCSB's printable values, seed 1

            Arms
              plain  plain, the baseline, attached to postgres://user:***@host/name
              audit  pgaudit (catalogue = false, log = all), attached to postgres://user:***@host/name, switched by its provider

            Cells
              cell  clients  load         slot  frame  frames  starts
              c     1        closed loop  1 s   2 s    300     the provider's

            A cell ends with its last pair of sides, for time per operation; a pair is one value of the interval.
            Sides             5 pairs of sides of 60 s each, the order of each pair drawn
            Switches          8 by the provider, two more if the server is found on
                a command may take 10 min, and then the server as long until it is ready
                on:    aws rds on
                off:   aws rds off
                ready: SELECT true
            Measured load     at most 10 min
            Everything else   roughly 4 min: starting, loading, warming up, evidence; the switches come on top
            Disk              roughly 5.0 MB at a time
        "#]],
    );
}

#[test]
fn a_pair_of_sides_is_whole_with_all_its_frames() {
    let plain = planned(SHORT).cells.remove(0);
    let cell = Cell { design: Design::Switched { frames_a_side: 2 }, ..plain.clone() };
    let frames: Vec<Frame> = [(0, 4), (1, 3), (2, 5), (4, 4)]
        .into_iter()
        .flat_map(|(start, count)| vec![Frame { start, ..Frame::default() }; count])
        .collect();
    assert_eq!(cell.whole_pairs(&frames), BTreeSet::from([0, 4]));
    assert!(cell.whole_pairs(&[]).is_empty() && plain.whole_pairs(&frames).is_empty());
}

#[test]
fn a_command_may_say_whether_the_server_is_on() {
    let text = switched("", ", side = \"10 s\"");
    let text = text.replace("ready = \"SELECT true\"", "ready = [\"nodetool\", \"getauditlog\"]");
    let outline = outline(&planned(&text), &catalogue::catalogue());
    assert!(outline.contains("    ready: nodetool getauditlog\n"), "{outline}");
}

#[test]
fn a_side_has_frames_of_its_own_length_and_pairs_are_whole() {
    let cell = |measure: &str, switch: &str| {
        let cell = planned(&switched(measure, switch)).cells.remove(0);
        (cell.design, cell.slot_ns / 1_000_000, cell.frames_max, cell.pairs(), cell.after_start)
    };
    let cells = [
        cell("budget = \"11 min\"", ""),
        cell("budget = \"6 s\"", ", side = \"1 s\""),
        cell("budget = \"40 min\"\nslot = \"500 ms\"\nwarmup = \"0 s\"", ", side = \"5 min\""),
    ];
    expect![[r#"
        (Switched { frames_a_side: 30 }, 1000, 300, 5, Fixed { ns: 6000000000 })
        (Switched { frames_a_side: 5 }, 100, 30, 3, Fixed { ns: 100000000 })
        (Switched { frames_a_side: 300 }, 500, 2400, 4, Fixed { ns: 0 })"#]]
    .assert_eq(&cells.map(|cell| format!("{cell:?}")).join("\n"));
    let plan = planned(&switched("budget = \"11 min\"", ""));
    // Frames of a pair that is not whole are not measured: their arm would be another one than that of their side.
    let odd = Cell { frames_max: 100, design: Design::Switched { frames_a_side: 30 }, ..plan.cells[0].clone() };
    let sides = |cell: &Cell| (cell.frames_a_side(), cell.pairs());
    assert_eq!([sides(&plan.cells[0]), sides(&odd), sides(&planned(SHORT).cells[0])], [(30, 5), (30, 1), (0, 0)]);
    assert_eq!(plan.experiment.measure.primary, tithe_model::experiment::Metric::Time);
    assert_eq!(plan.flaws(), Vec::<String>::new());
    let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).expect("JSON")).expect("a plan");
    assert_eq!(again.cells, plan.cells);
    let flaws = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        changed.flaws()
    };
    let nothing = ["cells[0].design: there is nothing to switch"];
    assert_eq!(flaws(&|plan| plan.experiment.arms[1].switch = None), nothing);
    assert_eq!(flaws(&|plan| plan.cells[0].frames_max = 0), nothing, "not even one pair");
    let third = |plan: &mut Plan| {
        let plain = plan.experiment.arms[0].clone();
        plan.experiment.arms.push(plain);
    };
    assert_eq!(flaws(&third), nothing, "two sides are two arms");
    let switch = |change: &dyn Fn(&mut ProviderSwitch)| {
        flaws(&|plan| change(plan.experiment.arms[1].switch.as_mut().expect("it is switched")))
    };
    let unnamed = ["experiment.arms: a `switch` without `on`, `off` or `ready`"];
    assert_eq!(switch(&|switch| switch.on.clear()), unnamed);
    assert_eq!(switch(&|switch| switch.off.clear()), unnamed);
    assert_eq!(switch(&|switch| switch.ready.clear()), unnamed);
    let long = ["experiment.arms: a `switch` with a longer time than allowed"];
    assert_eq!(switch(&|switch| switch.side_s = 86_401.0), long);
    assert_eq!(switch(&|switch| switch.timeout_s = -1.0), long);
    assert_eq!(switch(&|switch| switch.timeout_s = 86_400.0), [""; 0]);
}

#[test]
fn a_side_holds_three_frames() {
    let is_read = |side: &str| {
        let text = switched("budget = \"20 min\"\nslot = \"2 s\"", &format!(", side = \"{side}\""));
        read_experiment(&text).is_ok()
    };
    assert_eq!(["11.9 s", "12 s", "13 s"].map(is_read), [false, true, true], "a frame of two arms takes 4 s");
}
