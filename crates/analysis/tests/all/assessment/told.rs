//! What is flagged or told beside the figures, so that nobody takes them for more than they are.

use tithe_model::{experiment::Metric, plan::Starts};

use super::*;

#[test]
fn net_time_needs_neighbours_that_are_seen() {
    let records = Invented { clients: 8, ..Invented::default() }.records();
    let analysis = assess(&records);
    expect!["c: nobody looked, so net time per op cannot be told; CPU per op decides instead."]
        .assert_eq(&analysis.warnings.join("\n"));
    let names = names(&records, 1);
    assert_eq!(names[0], "cpu");
    assert!(!names.contains(&"net".to_owned()));
    assert!(estimate(&records, 1, "cpu").primary);
}

#[test]
fn an_unseen_server_is_flagged_and_an_embedded_database_is_not() {
    let mut records = Invented { primary: Metric::ServerCpu, ..Invented::default() }.records();
    records.slots.iter_mut().for_each(|slot| slot.server_cpu_ns = 0);
    assert_eq!(estimate(&records, 1, "cpu").flags, [Flag::ServerUnseen]);
    assert!(!names(&records, 1).contains(&"server_cpu".to_owned()));
    expect!["c: the server's processes could not be seen; CPU per op decides instead."]
        .assert_eq(&assess(&records).warnings.join("\n"));

    for slot in &mut records.slots {
        slot.client_cpu_ns = slot.wall_ns * 95 / 100;
    }
    assert!(estimate(&records, 1, "time").flags.contains(&Flag::ClientSaturated));
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        (arm.counters.sent_bytes, arm.counters.received_bytes) = (Some(0), Some(0));
    }
    assert_eq!(estimate(&records, 1, "cpu").flags, []);
    assert!(!estimate(&records, 1, "time").flags.contains(&Flag::ClientSaturated));
}

#[test]
fn rare_stalls_of_one_arm_are_flagged() {
    let mut records = Invented::default().records();
    // One slot in twenty of arm 2 takes four times as long; the midmean hardly moves, the sum does.
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 2 && slot.block == 0 && slot.lane == 0) {
        slot.latency_sum_ns *= 4;
    }
    let time = estimate(&records, 2, "time");
    assert_eq!(time.flags, [Flag::TailDriven]);
    assert!(time.effect.high < 0.02, "{:?}", time.effect);
    assert!(time.total.expect("has a total").low > 0.1);
    assert_eq!(estimate(&records, 1, "time").flags, []);
}

#[test]
fn an_effect_that_moves_is_flagged() {
    let mut records = Invented::default().records();
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
        slot.client_cpu_ns += slot.client_cpu_ns * u64::from(slot.frame) / 100;
    }
    assert!(estimate(&records, 1, "client_cpu").flags.contains(&Flag::Drift));
    assert!(!estimate(&records, 2, "client_cpu").flags.contains(&Flag::Drift));
}

#[test]
fn neighbours_are_flagged_in_the_tail_only() {
    let records = Invented { wait: 0.3, ..Invented::default() }.records();
    assert!(estimate(&records, 1, "latency_p99_READ").flags.contains(&Flag::NeighboursInTail));
    assert!(!estimate(&records, 1, "latency_p95_READ").flags.contains(&Flag::NeighboursInTail));
}

#[test]
fn failed_operations_are_told() {
    let mut records = Invented { frames: 2, ..Invented::default() }.records();
    records.frames[1].arms[2].failed = 7;
    expect!["c: 7 of 43364 operations of arm `protected 2` failed and are left out."]
        .assert_eq(&assess(&records).warnings.join("\n"));
}

#[test]
fn the_luck_of_one_start_is_told() {
    let mut records = Invented { frames: 2, ..Invented::default() }.records();
    records.plan.cells[0].starts = Starts::Once;
    records.frames.iter_mut().for_each(|frame| frame.start = 0);
    expect![""].assert_eq(&assess(&records).warnings.join("\n"));
    records.frames[1].start = 1;
    assert_eq!(assess(&records).warnings, Vec::<String>::new());
}

#[test]
fn slots_that_are_too_short_are_told() {
    let mut records = Invented { frames: 2, ..Invented::default() }.records();
    records.slots.iter_mut().for_each(|slot| slot.operations = 19);
    expect!["c: no slot holds 20 operations: make the slots longer (`slot_ms`)."]
        .assert_eq(&assess(&records).warnings.join("\n"));
}

#[test]
fn a_second_baseline_that_differs_is_told() {
    let asymmetric = |effect: f64| {
        let mut records = Invented { effects: vec![0.0, effect], ..Invented::default() }.records();
        records.plan.experiment.arms[1].protections.clear();
        records.plan.experiment.arms[1].aa = true;
        assess(&records).warnings.join("\n")
    };
    assert_eq!(asymmetric(0.0), "");
    expect!["c: arm `protected 1` protects nothing and still differs from the baseline: the set-up is not symmetric."]
        .assert_eq(&asymmetric(0.03));
}

/// Four starts of frames whose log per operation falls by `times` from the first to the last.
fn falling(frames_each: u32, times: f64) -> Records {
    let mut records = Invented { frames: 4 * frames_each, ..Invented::default() }.records();
    records.plan.cells[0].starts = Starts::Several(4);
    for frame in &mut records.frames {
        frame.start = frame.frame / frames_each;
        let share = f64::from(frame.frame % frames_each) / f64::from(frames_each - 1);
        for arm in &mut frame.arms {
            arm.counters.wal_bytes = Some((arm.operations as f64 * 1000.0 * times.powf(-share)) as u64);
        }
    }
    records
}

#[test]
fn the_log_over_a_start_is_told_where_it_changes_by_more_than_a_tenth() {
    let told = |records: &Records| {
        let analysis = assess(records);
        let course = &analysis.cells[0].log_over_start;
        let row = |at: &tithe_analysis::LogAt| format!("{}: {:.0}\n", at.place, at.arms[1].expect("seen"));
        let warnings = analysis.warnings.iter().filter(|warning| warning.contains("the log per operation"));
        course.iter().map(row).chain(warnings.cloned()).collect::<String>()
    };
    expect![[r#"
        first frame: 1000
        a quarter: 673
        half way: 500
        three quarters: 336
        last frame: 250
        c: the log per operation of arm `protected 2` fell from 1000 bytes in the first frame of each start to 250 in the last: the figures are a mean over that; all arms had done as many operations since their start."#]].assert_eq(&told(&falling(15, 4.0)));
    expect![[r#"
        first frame: 1000
        last frame: 2000
        c: the log per operation of arm `protected 2` rose from 1000 bytes in the first frame of each start to 2000 in the last: the figures are a mean over that; all arms had done as many operations since their start."#]].assert_eq(&told(&falling(4, 0.5)));
    assert_eq!(told(&falling(15, 1.05)), "");
    // Nothing is told where starts have one frame each, or no log is seen.
    let mut records = falling(15, 4.0);
    records.frames.iter_mut().for_each(|frame| frame.start = frame.frame);
    assert_eq!(told(&records), "");
    let mut records = falling(15, 4.0);
    let arms = records.frames.iter_mut().flat_map(|frame| &mut frame.arms);
    arms.for_each(|arm| arm.counters.wal_bytes = None);
    assert_eq!(told(&records), "");
}
