//! Records in, analysis out: a synthetic run of known cost, and the effect of each rule on odd records.

use expect_test::{Expect, expect};
use tithe_analysis::{
    Analysis, ArmAnalysis, Estimate, Figure, Flag, Interval, Outcome, SweepArm,
    assess::{assess, resolution::resolutions},
    report::{html, markdown, terminal, view::Form},
};
use tithe_model::{
    connecting::{ConnectPart, Connecting},
    ending::CellEnding,
    experiment::{Arrivals, Metric, Published, PublishedFigure, PublishedValue, Workload},
    fact::Fact,
    histogram::Histogram,
    invalid::Invalid,
    plan::{Cell, Starts, WarmUp},
    profile::{ProfiledArm, ProfiledFrame},
    record::{AgentFrame, ClientTimes, Frame, Host, Slot},
    records::Records,
    start_spread::{self, CostSpread},
    steady::Steadiness,
};
use tithe_statistics::verdict::{digits, percent};

use crate::synthetic::{Invented, warmed_up};

/// Every figure of an analysis, one per line.
fn summary(analysis: &Analysis) -> String {
    let mut text = String::new();
    for warning in &analysis.warnings {
        text += &format!("! {warning}\n");
    }
    for cell in &analysis.cells {
        text += &format!(
            "{}: {}, {}, {} frames, {} invalid, wait {:.2}\n",
            cell.id,
            cell.arrivals,
            cell.mode,
            cell.frames,
            cell.invalid.len(),
            cell.wait_share
        );
        for arm in &cell.arms {
            text += &format!("{}: {:?} {:?}\n", arm.name, arm.proof, arm.difference);
            for level in &arm.levels {
                text += &format!(
                    "    {} {:.2} [{:.2}, {:.2}] {} n={}\n",
                    level.name, level.value, level.low, level.high, level.unit, level.count
                );
            }
            for estimate in &arm.estimates {
                text += &format!("  {}", line(estimate));
            }
        }
    }
    text
}

fn line(estimate: &Estimate) -> String {
    let Estimate { name, primary, count, batch, verdict, text, flags, .. } = estimate;
    let mark = if *primary { "*" } else { "-" };
    let levels = estimate.levels.map_or(String::new(), |(a, b)| format!(" {a:.2} -> {b:.2} {}", estimate.unit));
    format!("{mark} {name}: {verdict:?}, {text} (n={count}/{batch}{levels}) {flags:?}\n")
}

fn check(records: &Records, expect: Expect) {
    expect.assert_eq(&summary(&assess(records)));
}

/// The estimate called `name` of arm `arm` of the only cell.
#[track_caller]
fn estimate(records: &Records, arm: usize, name: &str) -> Estimate {
    let analysis = assess(records);
    let estimates = &analysis.cells[0].arms[arm].estimates;
    estimates.iter().find(|estimate| estimate.name.to_string() == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

fn names(records: &Records, arm: usize) -> Vec<String> {
    assess(records).cells[0].arms[arm].estimates.iter().map(|estimate| estimate.name.to_string()).collect()
}

#[test]
fn a_known_cost_is_found_and_a_second_baseline_is_not() {
    let records = Invented::default().records();
    for metric in ["net", "time", "cpu", "client_cpu", "server_cpu", "throughput", "latency_p50_READ"] {
        let (costs, none) = (estimate(&records, 1, metric), estimate(&records, 2, metric));
        assert_eq!((costs.verdict, none.verdict), (Outcome::Costs, Outcome::NoneFound), "{metric}");
        assert!(costs.effect.low <= 0.05 && 0.05 <= costs.effect.high, "{metric} {:?}", costs.effect);
        assert!(none.effect.low <= 0.0 && 0.0 <= none.effect.high, "{metric} {:?}", none.effect);
    }
    check(
        &records,
        expect![[r#"
            c: closed loop, twin, 60 frames, 0 invalid, wait 0.05
            plain: Baseline []
                throughput 98893.35 [86920.13, 108500.78] op/s n=60
                latency_mean 20.23 [18.43, 23.01] µs n=60
                net_per_op 19.21 [17.51, 21.86] µs/op n=60
                cpu_per_op 15.37 [14.01, 17.49] µs/op n=60
                client_cpu_per_op 5.76 [5.25, 6.56] µs/op n=60
                server_cpu_per_op 9.61 [8.76, 10.93] µs/op n=60
                latency_p50_READ 17.14 [15.52, 19.35] µs n=1140765
                latency_p90_READ 33.48 [30.46, 37.91] µs n=1140765
                latency_p95_READ 40.61 [36.85, 46.05] µs n=1140765
                latency_p99_READ 56.82 [52.25, 64.97] µs n=1140765
                latency_p99.9_READ 90.08 [81.04, 106.12] µs n=1140765
                server_tree_cpu_per_op 10.57 [9.63, 12.02] µs/op n=60
                wal_bytes_per_op 0.00 [0.00, 0.00] bytes/op n=60
                log_bytes_per_op 0.00 [0.00, 0.00] bytes/op n=60
                sent_bytes_per_op 40.05 [40.05, 40.06] bytes/op n=60
                received_bytes_per_op 1000.00 [1000.00, 1000.00] bytes/op n=60
                memory_bytes 100.03 [100.02, 100.04] MB n=60
                connect 2002.00 [2001.00, 2003.00] µs n=60
            protected 1: Proven ["-audit = off", "+audit = all"]
                throughput 94350.61 [83245.51, 103906.98] op/s n=60
                latency_mean 21.20 [19.25, 24.03] µs n=60
                net_per_op 20.14 [18.29, 22.82] µs/op n=60
                cpu_per_op 16.11 [14.63, 18.26] µs/op n=60
                client_cpu_per_op 6.04 [5.49, 6.85] µs/op n=60
                server_cpu_per_op 10.07 [9.14, 11.41] µs/op n=60
                latency_p50_READ 17.91 [16.30, 20.43] µs n=1080894
                latency_p90_READ 35.16 [31.85, 39.58] µs n=1080894
                latency_p95_READ 42.41 [38.35, 48.20] µs n=1080894
                latency_p99_READ 59.46 [54.32, 67.54] µs n=1080894
                latency_p99.9_READ 96.51 [87.76, 101.33] µs n=1080894
                server_tree_cpu_per_op 11.08 [10.06, 12.55] µs/op n=60
                wal_bytes_per_op 0.00 [0.00, 0.00] bytes/op n=60
                log_bytes_per_op 156.00 [156.00, 156.00] bytes/op n=60
                sent_bytes_per_op 40.05 [40.05, 40.06] bytes/op n=60
                received_bytes_per_op 1020.00 [1020.00, 1020.00] bytes/op n=60
                memory_bytes 105.03 [105.02, 105.04] MB n=60
                connect 3299.44 [3298.44, 3300.44] µs n=60
              * net: Costs, costs 5.4 % [4.9, 6.0] (n=60/1 19.21 -> 20.14 µs/op) []
              - time: Costs, costs 5.4 % [4.9, 6.0] (n=60/1 20.23 -> 21.20 µs) []
              - cpu: Costs, costs 5.4 % [4.9, 6.0] (n=60/1 15.37 -> 16.11 µs/op) []
              - client_cpu: Costs, costs 5.4 % [4.9, 6.0] (n=60/1 5.76 -> 6.04 µs/op) []
              - server_cpu: Costs, costs 5.4 % [4.9, 6.0] (n=60/1 9.61 -> 10.07 µs/op) []
              - throughput: Costs, 5.1 % fewer operations [4.7, 5.6] (n=60/1 98893.35 -> 94350.61 op/s) []
              - latency_p50_READ: Costs, costs 5.5 % [4.9, 6.0] (n=60/1 17.14 -> 17.91 µs) []
              - latency_p90_READ: Costs, costs 5.3 % [4.6, 6.0] (n=60/1 33.48 -> 35.16 µs) []
              - latency_p95_READ: Costs, costs 5.4 % [4.7, 6.1] (n=60/1 40.61 -> 42.41 µs) []
              - latency_p99_READ: Costs, costs 5.2 % [4.4, 6.1] (n=60/1 56.82 -> 59.46 µs) []
              - latency_p99.9_READ: Costs, costs 5.2 % [3.2, 7.6] (n=18/1 90.08 -> 96.51 µs) []
              - server_tree_cpu: Costs, costs 5.5 % [5.1, 6.0] (n=60/1 10.57 -> 11.08 µs/op) []
              - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=60/1 0.00 -> 156.00 bytes/op) []
              - sent_bytes: Costs, costs 0.01 % [0.01, 0.01] (below your margin) (n=60/1 40.05 -> 40.05 bytes/op) []
              - received_bytes: Costs, costs 2.0 % [2.0, 2.0] (below your margin) (n=60/1 1000.00 -> 1020.00 bytes/op) []
              - memory_bytes: Costs, 5.0 % more at the end, between 5.0 % and 5.0 % over the frames (n=60/1 100.03 -> 105.03 MB) []
              - connect: Costs, costs 65 % [65, 65] (n=60/1 2002.00 -> 3299.44 µs) []
            protected 2: Proven ["-audit = off", "+audit = all"]
                throughput 98546.38 [87139.06, 108861.97] op/s n=60
                latency_mean 20.30 [18.37, 22.95] µs n=60
                net_per_op 19.28 [17.45, 21.80] µs/op n=60
                cpu_per_op 15.42 [13.96, 17.44] µs/op n=60
                client_cpu_per_op 5.78 [5.24, 6.54] µs/op n=60
                server_cpu_per_op 9.64 [8.73, 10.90] µs/op n=60
                latency_p50_READ 17.21 [15.58, 19.53] µs n=1137175
                latency_p90_READ 33.67 [30.50, 38.30] µs n=1137175
                latency_p95_READ 41.01 [36.68, 46.63] µs n=1137175
                latency_p99_READ 57.79 [52.31, 64.72] µs n=1137175
                latency_p99.9_READ 93.04 [79.91, 101.07] µs n=1137175
                server_tree_cpu_per_op 10.60 [9.60, 11.99] µs/op n=60
                wal_bytes_per_op 0.00 [0.00, 0.00] bytes/op n=60
                log_bytes_per_op 156.00 [156.00, 156.00] bytes/op n=60
                sent_bytes_per_op 40.05 [40.05, 40.06] bytes/op n=60
                received_bytes_per_op 1020.00 [1020.00, 1020.00] bytes/op n=60
                memory_bytes 110.03 [110.02, 110.04] MB n=60
                connect 2002.00 [2001.00, 2003.00] µs n=60
              * net: NoneFound, no cost found, at most 0.78 % (n=60/1 19.21 -> 19.28 µs/op) []
              - time: NoneFound, no cost found, at most 0.78 % (n=60/1 20.23 -> 20.30 µs) []
              - cpu: NoneFound, no cost found, at most 0.78 % (n=60/1 15.37 -> 15.42 µs/op) []
              - client_cpu: NoneFound, no cost found, at most 0.78 % (n=60/1 5.76 -> 5.78 µs/op) []
              - server_cpu: NoneFound, no cost found, at most 0.78 % (n=60/1 9.61 -> 9.64 µs/op) []
              - throughput: NoneFound, no loss found, at most 0.78 % (n=60/1 98893.35 -> 98546.38 op/s) []
              - latency_p50_READ: NoneFound, no cost found, at most 0.62 % (n=60/1 17.14 -> 17.21 µs) []
              - latency_p90_READ: NoneFound, no cost found, at most 0.64 % (n=60/1 33.48 -> 33.67 µs) []
              - latency_p95_READ: NoneFound, no cost found, at most 0.66 % (n=60/1 40.61 -> 41.01 µs) []
              - latency_p99_READ: NoneFound, no cost found, at most 0.91 % (n=60/1 56.82 -> 57.79 µs) []
              - latency_p99.9_READ: NoneFound, no cost found, at most 2.4 % (n=18/1 90.08 -> 93.04 µs) []
              - server_tree_cpu: NoneFound, no cost found, at most 0.71 % (n=60/1 10.57 -> 10.60 µs/op) []
              - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=60/1 0.00 -> 156.00 bytes/op) []
              - sent_bytes: NoneFound, no cost found, at most 0.00 % (n=60/1 40.05 -> 40.05 bytes/op) []
              - received_bytes: Costs, costs 2.0 % [2.0, 2.0] (below your margin) (n=60/1 1000.00 -> 1020.00 bytes/op) []
              - memory_bytes: Costs, 10.0 % more at the end, between 10.0 % and 10.0 % over the frames (n=60/1 100.03 -> 110.03 MB) []
              - connect: NoneFound, no cost found, at most 0.00 % (n=60/1 2002.00 -> 2002.00 µs) []
        "#]],
    );
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let records = Invented { frames: 12, ..Invented::default() }.records();
    let json = || serde_json::to_string(&assess(&records)).expect("an analysis can be written");
    assert_eq!(json(), json());
}

#[test]
fn the_machine_is_told_by_its_mean_and_the_run_by_its_first_frame() {
    let mut records = Invented { frames: 4, latencies: false, ..Invented::default() }.records();
    for frame in &mut records.frames {
        (frame.host.load, frame.host.steal) = (f64::from(frame.frame), Some(0.25 * f64::from(frame.frame)));
        // Not every frame has it.
        frame.host.io_pressure = (frame.frame == 3).then_some(0.5);
    }
    let analysis = assess(&records);
    let Host { load, cpu_pressure, io_pressure, steal, throttled } = analysis.cells[0].host;
    assert_eq!((load, cpu_pressure, io_pressure), (1.5, Some(0.25), Some(0.5)));
    assert_eq!((steal, throttled), (Some(0.375), None));
    assert_eq!(analysis.began_unix_s, Some(1_700_000_000));
}

#[test]
fn too_few_frames_say_how_long_it_would_take() {
    let records = Invented { frames: 11, spread: 0.3, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    let text: String = assess(&records).cells[0].arms[1].estimates.iter().map(line).collect();
    expect![[r#"
        * net: TooNoisy, not enough frames: 11 of 15 (n=11/1 17.65 -> 21.16 µs/op) [NotEnoughFrames]
        - time: TooNoisy, not enough frames: 11 of 15 (n=11/1 18.58 -> 22.27 µs) [NotEnoughFrames]
        - cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 14.12 -> 16.93 µs/op) [NotEnoughFrames]
        - client_cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 5.30 -> 6.35 µs/op) [NotEnoughFrames]
        - server_cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 8.83 -> 10.58 µs/op) [NotEnoughFrames]
        - throughput: TooNoisy, not enough frames: 11 of 15 (n=11/1 107630.61 -> 89805.73 op/s) [NotEnoughFrames]
        - latency_p50_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 15.20 -> 18.61 µs) [NotEnoughFrames]
        - latency_p90_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 32.70 -> 37.47 µs) [NotEnoughFrames]
        - latency_p95_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 40.75 -> 46.40 µs) [NotEnoughFrames]
        - latency_p99_READ: TooNoisy, not enough frames: 11 of 15 (n=11/1 59.24 -> 67.77 µs) [NotEnoughFrames]
        - latency_p99.9_READ: TooNoisy, not enough frames: 11 of 15 (n=4/1 97.09 -> 102.04 µs) [NotEnoughFrames]
        - server_tree_cpu: TooNoisy, not enough frames: 11 of 15 (n=11/1 9.71 -> 11.64 µs/op) [NotEnoughFrames]
        - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=11/1 0.00 -> 156.00 bytes/op) []
        - sent_bytes: TooNoisy, not enough frames: 11 of 15 (n=11/1 40.05 -> 40.06 bytes/op) [NotEnoughFrames]
        - received_bytes: TooNoisy, not enough frames: 11 of 15 (n=11/1 1000.00 -> 1020.00 bytes/op) [NotEnoughFrames]
        - memory_bytes: Costs, 5.0 % more at the end, between 5.0 % and 5.0 % over the frames (n=11/1 100.00 -> 105.00 MB) []
        - connect: TooNoisy, not enough frames: 11 of 15 (n=11/1 2002.00 -> 2002.00 µs) [NotEnoughFrames]
    "#]].assert_eq(&text);
}

#[test]
fn a_run_without_frames_is_a_row_and_not_a_gap() {
    let records = Invented { frames: 0, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    check(
        &records,
        expect![[r#"
            c: closed loop, twin, 0 frames, 0 invalid, wait 0.00
            plain: Baseline []
            protected 1: Proven ["-audit = off", "+audit = all"]
        "#]],
    );
    let analysis = assess(&records);
    let page = terminal::render(&analysis, terminal::Options::default());
    assert!(page.contains("Nothing was measured here: there are no costs to report."), "{page}");
    let page = html::render(&analysis, &html::PageData::default());
    assert!(page.contains("Nothing was measured, so there is no answer."), "{page}");
    let one = Invented { frames: 1, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    expect![[r#"
        * net: TooNoisy, not enough frames: 1 of 15 (n=1/1 19.59 -> 20.09 µs/op) [NotEnoughFrames]
    "#]]
    .assert_eq(&line(&estimate(&one, 1, "net")));
}

#[test]
fn invalid_and_missing_frames_are_left_out_and_listed() {
    let mut records = Invented::default().records();
    let clean = {
        let mut records = records.clone();
        records.frames.retain(|frame| ![3, 7, 8].contains(&frame.frame));
        records.slots.retain(|slot| ![3, 7, 8].contains(&slot.frame));
        assess(&records)
    };
    records.frames[3].invalid = Some(Invalid::Other("the server was restarted".to_owned()));
    records.frames[3].arms[1].counters.sent_bytes = Some(1 << 40);
    records.slots.iter_mut().filter(|slot| slot.frame == 3 && slot.arm == 1).for_each(|slot| slot.wall_ns *= 9);
    records.frames[7].arms.pop();
    records.frames.remove(8);
    let analysis = assess(&records);
    expect![[r#"
        [
            (
                3,
                "the server was restarted",
            ),
            (
                7,
                "its record has 2 arms and not 3",
            ),
            (
                8,
                "its record is missing",
            ),
        ]"#]]
    .assert_eq(&format!("{:#?}", analysis.cells[0].invalid));
    assert_eq!(analysis.cells[0].arms, clean.cells[0].arms);
}

#[test]
fn a_run_of_invalid_frames_says_so() {
    let mut records = Invented { frames: 9, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    records.frames.drain(1..8);
    let jumped = Invalid::Other("the clock jumped".to_owned());
    records.frames.iter_mut().for_each(|frame| frame.invalid = Some(jumped.clone()));
    let analysis = assess(&records);
    assert_eq!(analysis.warnings, ["c: no frame can be used."]);
    let cell = &analysis.cells[0];
    assert_eq!((cell.frames, cell.arms[1].estimates.len()), (0, 0));
    expect![[
        r#"[(0, "the clock jumped"), (1, "the records of 7 frames from here on are missing"), (8, "the clock jumped")]"#
    ]]
    .assert_eq(&format!("{:?}", cell.invalid));
}

#[test]
fn net_time_needs_neighbours_that_are_seen() {
    let records = Invented { clients: 8, ..Invented::default() }.records();
    let analysis = assess(&records);
    expect!["c: nobody looked, so net time per op is unknown; CPU per op decides instead."]
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
    let bytes = |records: &mut Records, bytes: Option<u64>| {
        for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
            (arm.counters.sent_bytes, arm.counters.received_bytes) = (bytes, bytes);
        }
    };
    // The driver of MongoDB does not report what it sends.
    bytes(&mut records, Some(0));
    assert_eq!(estimate(&records, 1, "cpu").flags, [Flag::ServerUnseen]);
    assert!(estimate(&records, 1, "time").flags.contains(&Flag::ClientSaturated));

    bytes(&mut records, None);
    assert_eq!(estimate(&records, 1, "cpu").flags, []);
    assert!(!estimate(&records, 1, "time").flags.contains(&Flag::ClientSaturated));
}

#[test]
fn rare_stalls_of_one_arm_are_flagged() {
    let mut records = Invented::default().records();
    // One slot in twenty of arm 2 takes four times as long; the midmean hardly changes, the sum does.
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
fn rare_stalls_of_the_plain_arm_are_flagged_too() {
    let mut records = Invented::default().records();
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 0 && slot.block == 0 && slot.lane == 0) {
        slot.latency_sum_ns *= 4;
    }
    let time = estimate(&records, 2, "time");
    assert!(time.flags.contains(&Flag::TailDriven), "{:?}", time.flags);
    assert!(time.effect.low > -0.02 && time.total.expect("has a total").high < -0.1, "{time:?}");
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
fn frames_of_starts_that_were_not_steady_are_left_out_if_enough_others_remain() {
    let left_out = |starts: u32, unsteady: &[u32]| {
        let mut records = Invented { frames: 40, latencies: false, ..Invented::default() }.records();
        records.frames.iter_mut().for_each(|frame| frame.start = frame.frame * starts / 40);
        let ended = |start: u32| if unsteady.contains(&start) { Steadiness::Changing } else { Steadiness::Steady };
        records.cells[0].warm_ups = (0..starts).map(|start| warmed_up(start, ended(start))).collect();
        let of_unsteady = records.frames.iter().filter(|frame| unsteady.contains(&frame.start));
        let of_unsteady: Vec<u32> = of_unsteady.map(|frame| frame.frame).collect();
        let analysis = assess(&records);
        let cell = &analysis.cells[0];
        assert_eq!(cell.frames + cell.invalid.len(), 40);
        assert!(cell.invalid.iter().all(|(_, why)| why == "its servers were not steady yet"), "{:?}", cell.invalid);
        let numbers: Vec<u32> = cell.invalid.iter().map(|(number, _)| *number).collect();
        (numbers == of_unsteady, numbers.is_empty())
    };
    for unsteady in [&[2][..], &[0, 5], &[7, 3, 1, 0]] {
        assert_eq!(left_out(8, unsteady), (true, false), "{unsteady:?}");
    }
    // Fewer than four others do not show how much starts differ, so all count.
    assert_eq!([left_out(4, &[2]), left_out(8, &[0, 1, 2, 3, 4])], [(false, true); 2]);
    assert_eq!(left_out(8, &[]), (true, true));
}

/// A start that was only profiled, and one that was killed before its first frame and began again with its number.
#[test]
fn a_warm_up_without_frames_counts_for_nothing() {
    let left_out = |starts: u32, ended: &[(u32, Steadiness)]| {
        let mut records = Invented { frames: 40, latencies: false, ..Invented::default() }.records();
        records.frames.iter_mut().for_each(|frame| frame.start = frame.frame * starts / 40);
        records.plan.cells[0].after_start = WarmUp::UntilSteady { window_ns: 1, at_most_ns: 1_000_000_000 };
        records.cells[0].warm_ups = ended.iter().map(|(start, ended)| warmed_up(*start, *ended)).collect();
        let analysis = assess(&records);
        let told = analysis.warnings.iter().filter(|warning| warning.contains("were not steady")).count();
        (analysis.cells[0].invalid.len(), told)
    };
    let (changing, steady) = (Steadiness::Changing, Steadiness::Steady);
    let four = [(0, changing), (1, steady), (2, steady), (3, steady)];
    assert_eq!(left_out(4, &four), (0, 1), "three others are left");
    assert_eq!(left_out(4, &[&four[..], &[(4, steady), (5, steady)]].concat()), (0, 1));
    assert_eq!(left_out(5, &[&four[..], &[(4, steady)]].concat()), (8, 1));
    assert_eq!(left_out(5, &[&[(0, changing), (0, steady)][..], &four[1..], &[(4, steady)]].concat()), (0, 0));
    assert_eq!(left_out(4, &[&four[1..], &[(4, changing)]].concat()), (0, 0));
}

#[test]
fn a_profile_is_of_the_starts_that_its_costs_are_of() {
    let mut records = Invented { frames: 40, latencies: false, ..Invented::default() }.records();
    records.frames.iter_mut().for_each(|frame| frame.start = frame.frame / 5);
    let arm = ProfiledArm { operations: 1000, client_cpu_ns: 1_000_000, server_cpu_ns: 1_000_000 };
    let frame = |number: u32| ProfiledFrame {
        cell: 0,
        frame: number,
        start: number / 2,
        sampled: number.is_multiple_of(2),
        invalid: None,
        period_ns: 250_000,
        lost: 0,
        elsewhere: 0,
        arms: vec![arm; 3],
        functions: Vec::new(),
        stacks: Vec::new(),
    };
    records.profile = (0..16).map(frame).collect();
    let frames = |records: &Records| assess(records).cells[0].profile.as_ref().map(|profile| profile.frames);
    assert_eq!(frames(&records), Some(8));
    let ended = |start: u32| if start == 2 { Steadiness::Changing } else { Steadiness::Steady };
    records.cells[0].warm_ups = (0..8).map(|start| warmed_up(start, ended(start))).collect();
    assert_eq!(frames(&records), Some(7));
}

#[test]
fn where_starts_count_that_were_not_steady_an_answer_stands_only_beyond_what_the_cost_moved() {
    let invented = |effect: f64| {
        let invented = Invented { effects: vec![0.0, effect], frames: 40, latencies: false, ..Invented::default() };
        invented.records()
    };
    // On the first start, the cost is `first` and then that of the other starts.
    let found = |first: f64, then: f64, starts: u32, alike: bool| {
        let (before, mut records) = (invented(first), invented(then));
        let moved = |frame: u32| frame < 20 / starts;
        records.slots.iter_mut().zip(before.slots).filter(|(_, it)| moved(it.frame)).for_each(|(slot, it)| *slot = it);
        records.frames.iter_mut().for_each(|frame| frame.start = frame.frame * starts / 40);
        let ended = |start: u32| if start == 0 { Steadiness::Changing } else { Steadiness::Steady };
        records.cells[0].warm_ups = (0..starts).map(|start| warmed_up(start, ended(start))).collect();
        records.cells[0].warm_ups[1].as_before = alike;
        let net = estimate(&records, 1, "net");
        (net.verdict, net.flags.contains(&Flag::NotSteady))
    };
    // The first start still changed by 0.3 from the third quarter of its warm-up to the last.
    assert_eq!(found(0.4, 0.4, 2, false), (Outcome::Costs, false), "servers changed, and the cost did not");
    assert_eq!(found(1.2, 0.2, 2, false), (Outcome::TooNoisy, true));
    assert_eq!(found(0.4, 0.4, 2, true), (Outcome::Costs, false));
    assert_eq!(found(1.2, 0.2, 2, true), (Outcome::TooNoisy, true), "arms changed alike, and the cost moved");
    assert_eq!(found(0.4, 0.4, 8, false), (Outcome::Costs, false), "seven others are left");
}

#[test]
fn neighbours_are_flagged_in_the_tail_only() {
    let records = Invented { wait: 0.3, ..Invented::default() }.records();
    assert!(estimate(&records, 1, "latency_p99_READ").flags.contains(&Flag::NeighboursInTail));
    assert!(!estimate(&records, 1, "latency_p95_READ").flags.contains(&Flag::NeighboursInTail));
}

#[test]
fn a_flag_is_for_what_is_beyond_its_limit_and_not_at_it() {
    let flagged = |name: &str, flag: Flag, change: &dyn Fn(&mut Records)| {
        let mut records = Invented { arrivals: Arrivals::Even(2000.0), frames: 16, ..Invented::default() }.records();
        change(&mut records);
        estimate(&records, 1, name).flags.contains(&flag)
    };
    // Of a thousand operations so many were not finished in time.
    let unfinished = |count: u64| {
        move |records: &mut Records| {
            let arms = records.frames.iter_mut().map(|frame| &mut frame.arms[1]);
            arms.for_each(|arm| (arm.operations, arm.unfinished) = (1000 - count, count));
        }
    };
    let at_rate = [10, 11].map(|count| flagged("time", Flag::NotAtRate, &unfinished(count)));
    assert_eq!(at_rate, [false, true]);
    // Shares of the wall time in thousandths.
    let busy = |share: u64| {
        move |records: &mut Records| {
            let slots = records.slots.iter_mut();
            slots.for_each(|slot| (slot.wall_ns, slot.client_cpu_ns) = (20_000_000, 20_000 * share));
        }
    };
    let saturated = [900, 901].map(|share| flagged("time", Flag::ClientSaturated, &busy(share)));
    assert_eq!(saturated, [false, true]);
    let held_up = |share: u64| {
        move |records: &mut Records| {
            let slots = records.slots.iter_mut();
            slots.for_each(|slot| (slot.wall_ns, slot.stalled_ns) = (20_000_000, Some(20_000 * share)));
        }
    };
    let in_tail = [200, 201].map(|share| flagged("intended_p99_READ", Flag::NeighboursInTail, &held_up(share)));
    assert_eq!(in_tail, [false, true]);
    // Known of one frame alone: then the mean over the frames is that of the frame.
    let host = |throttled: f64, steal: f64| {
        move |records: &mut Records| {
            records.frames.iter_mut().for_each(|frame| (frame.host.throttled, frame.host.steal) = (None, None));
            let host = &mut records.frames[0].host;
            (host.throttled, host.steal) = (Some(throttled), Some(steal));
        }
    };
    let disturbed = |throttled: f64, steal: f64| {
        [Flag::Throttled, Flag::Stolen].map(|flag| flagged("time", flag, &host(throttled, steal)))
    };
    assert_eq!([disturbed(0.01, 0.02), disturbed(0.011, 0.021)], [[false; 2], [true; 2]]);
}

#[test]
fn servers_that_wait_for_each_other_are_no_background_load() {
    let mut records = Invented { clients: 8, frames: 20, ..Invented::default() }.records();
    // Three of the four servers of a lane wait while the fourth runs.
    records.slots.iter_mut().for_each(|slot| slot.wait_ns = 3 * slot.wall_ns);
    let analysis = assess(&records);
    assert!(analysis.cells[0].wait_share.is_nan(), "{}", analysis.cells[0].wait_share);
    assert!(!estimate(&records, 1, "latency_p99_READ").flags.contains(&Flag::NeighboursInTail));
    let told = markdown::render(&analysis, Form::Long);
    assert!(told.contains("how long clients waited for a processor is unknown"), "{told}");
    assert!(!told.contains("Background load makes operations slower"), "{told}");
    // Nothing that was seen to wait stays nothing, and with one connection a lane nobody waits for another server.
    records.slots.iter_mut().for_each(|slot| slot.wait_ns = 0);
    assert_eq!(assess(&records).cells[0].wait_share, 0.0);
    records.slots.iter_mut().for_each(|slot| slot.wait_ns = slot.wall_ns / 2);
    records.plan.cells[0].clients = 2;
    assert!((assess(&records).cells[0].wait_share - 0.5).abs() < 1e-3);
}

/// A load machine with one lane.
fn agent(name: &str, clock_bound_ns: u64) -> AgentFrame {
    AgentFrame { name: name.to_owned(), lanes: 1, clock_offset_ns: 7, clock_bound_ns, clients: None }
}

#[test]
fn each_agent_has_the_slots_of_its_lanes() {
    let mut records = Invented { frames: 3, latencies: false, ..Invented::default() }.records();
    for frame in &mut records.frames {
        frame.agents = vec![agent("one", 50), agent("two", if frame.frame == 1 { 160 } else { 60 })];
    }
    for slot in &mut records.slots {
        slot.wait_ns = if slot.lane == 1 { slot.wall_ns * 3 / 10 } else { 0 };
    }
    let analysis = assess(&records);
    let agents = &analysis.cells[0].agents;
    let done = |lane: u32| {
        let of_lane = records.slots.iter().filter(|slot| slot.lane == lane);
        of_lane.map(|slot| slot.operations).sum::<u64>()
    };
    let told: Vec<_> = agents.iter().map(|it| (it.name.as_str(), it.lanes, it.operations, it.clock_bound_ns)).collect();
    assert_eq!(told, [("one", 1, done(0), 50), ("two", 1, done(1), 160)]);
    let waits: Vec<f64> = agents.iter().map(|it| it.wait_share).collect();
    assert!(waits[0] == 0.0 && (waits[1] - 0.3).abs() < 1e-3, "{waits:?}");
    let warned: Vec<&String> = analysis.warnings.iter().filter(|it| it.contains("agent ")).collect();
    let words = "c: agent two waited for a processor in 30 %";
    assert!(warned.len() == 1 && warned[0].starts_with(words), "{warned:?}");
}

#[test]
fn an_agent_does_not_wait_where_its_servers_do() {
    let mut records = Invented { frames: 3, wait: 0.3, latencies: false, ..Invented::default() }.records();
    let waiting = |wait_ns| Some(ClientTimes { wait_ns, wall_ns: 1000 });
    for frame in &mut records.frames {
        let waited = |(name, ns)| AgentFrame { clients: waiting(ns), ..agent(name, 50) };
        frame.agents = [("one", 0), ("two", 10)].map(waited).into();
    }
    let waits = |records: &Records| {
        let analysis = assess(records);
        let warned = analysis.warnings.iter().filter(|it| it.contains("agent ")).count();
        let shares = analysis.cells[0].agents.iter().map(|it| (it.wait_share * 100.0).round());
        (shares.collect::<Vec<_>>(), warned)
    };
    assert_eq!(waits(&records), (vec![0.0, 1.0], 0));
    // A frame of an earlier version has the waits of clients and servers together.
    records.frames[1].agents[1].clients = None;
    assert_eq!(waits(&records), (vec![0.0, 30.0], 1));
}

#[test]
fn an_open_loop_counts_from_the_intended_start_and_says_what_it_did() {
    let mut records = Invented { arrivals: Arrivals::Poisson(2000.0), ..Invented::default() }.records();
    for frame in &mut records.frames {
        frame.arms[1].unfinished = frame.arms[1].operations / 20;
    }
    let (slow, fine) = (estimate(&records, 1, "throughput"), estimate(&records, 2, "throughput"));
    expect![[r#"
        - throughput: Costs, 95.2 % of the intended operations done, 100.0 % on the plain arm (n=60/1 100.00 -> 95.24 % of intended) [NotAtRate]
        - throughput: NoneFound, 100.0 % of the intended operations done, 100.0 % on the plain arm (n=60/1 100.00 -> 100.00 % of intended) []
    "#]].assert_eq(&(line(&slow) + &line(&fine)));
    let p99 = estimate(&records, 1, "intended_p99_READ");
    assert_eq!(p99.flags, [Flag::NotAtRate]);
    assert!(names(&records, 1).iter().all(|name| !name.starts_with("latency")));
}

#[test]
fn an_open_loop_does_as_many_operations_a_second_as_are_due() {
    let mut records = Invented { arrivals: Arrivals::Even(5000.0), frames: 16, ..Invented::default() }.records();
    // In 16 of the 20 ms of a slot are 40 operations of each lane due, the last after 15.6 ms, or 15.8.
    for slot in &mut records.slots {
        (slot.operations, slot.counted) = (40, 38);
        slot.wall_ns = if slot.lane == 0 { 15_700_000 } else { 15_900_000 };
    }
    let rate = |records: &Records| {
        let analysis = assess(records);
        let level = analysis.cells[0].arms[0].levels.iter().find(|level| level.name == Figure::Operations);
        level.expect("a level").value
    };
    assert!((rate(&records) - 5000.0).abs() < 1e-6, "{}", rate(&records));
    // A server that could not start all of them was busy for longer.
    records.frames.iter_mut().for_each(|frame| frame.arms[0].unfinished = 100);
    records.slots.iter_mut().for_each(|slot| slot.wall_ns = 25_000_000);
    assert!((rate(&records) - 3200.0).abs() < 1e-6, "{}", rate(&records));
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
fn words_on_one_start_and_on_two_say_so() {
    let mut records = Invented::default().records();
    records.plan.cells[0].starts = Starts::Once;
    records.plan.start_spread = start_spread::built_in("postgres");
    let mut told = |starts: u32| -> String {
        for (number, frame) in (0..).zip(&mut records.frames) {
            frame.start = number % starts;
        }
        let analysis = assess(&records);
        let texts = analysis.cells[0].arms[1].estimates.iter().map(|it| format!("{}: {}\n", it.name, it.text));
        analysis.warnings.iter().map(|warning| format!("{warning}\n")).chain(texts).collect()
    };
    expect![[r#"
        c: each server was started once, so start-to-start variation was not measured; intervals are widened by the known 1.5 % (two arms over 12 starts of 10 s, workload A, 50,000 records, 2 clients, 2 processors, 2026-11-26).
        net: costs 5.4 % [1.3, 9.7] on this start
        time: costs 5.4 % [1.2, 9.8] on this start
        cpu: costs 5.4 % [2.4, 8.5] on this start
        client_cpu: costs 5.4 % [2.5, 8.4] on this start
        server_cpu: costs 5.4 % [2.3, 8.6] on this start
        throughput: 5.1 % fewer operations [1.2, 8.9] on this start
        latency_p50_READ: costs 5.5 % [1.2, 9.9] on this start
        latency_p90_READ: costs 5.3 % [1.0, 9.7] on this start
        latency_p95_READ: costs 5.4 % [1.2, 9.8] on this start
        latency_p99_READ: costs 5.2 % [1.0, 9.7] on this start
        latency_p99.9_READ: costs 5.4 % [0.80, 10.3] on this start
        server_tree_cpu: costs 5.5 % [2.5, 8.6] on this start
        log_bytes: 156 bytes per op, none on the plain arm
        sent_bytes: costs 0.01 % [0.01, 0.01] (below your margin)
        received_bytes: costs 2.0 % [2.0, 2.0] (below your margin)
        memory_bytes: 5.0 % more at the end, between 5.0 % and 5.0 % over the frames
        connect: costs 65 % [58, 72] on this start
    "#]].assert_eq(&told(1));
    for name in ["net", "throughput", "latency_p50_READ", "server_tree_cpu"] {
        let says = |told: &str, words: &str| {
            told.lines().any(|line| line.starts_with(&format!("{name}: ")) && line.ends_with(words))
        };
        assert!(says(&told(2), " on these 2 starts"), "{name}: {}", told(2));
        assert!(!says(&told(4), " starts"), "four starts tell their own spread: {}", told(4));
    }
}

#[test]
fn an_estimate_that_is_widened_says_on_how_much_that_stands() {
    let mut records = Invented::default().records();
    records.plan.cells[0].starts = Starts::Once;
    records.plan.start_spread = start_spread::built_in("postgres");
    let mut degrees = |starts: u32| {
        for (number, frame) in (0..).zip(&mut records.frames) {
            frame.start = number % starts;
        }
        estimate(&records, 1, "net").known_degrees
    };
    // The product's line has 11 degrees of freedom, the known start-to-start variation of protections 8.
    assert!(degrees(1).is_some_and(|degrees| (8.0..=19.0).contains(&degrees)));
    assert_eq!(degrees(4), None);
}

/// Also with two starts, the second of which was cut short.
#[test]
fn the_luck_of_a_cost_is_in_counters_what_it_is_in_slots() {
    let mut records = Invented { effects: vec![0.0, 0.9], spread: 0.001, ..Invented::default() }.records();
    records.plan.cells[0].starts = Starts::Once;
    records.plan.start_spread = start_spread::built_in("postgres");
    records.plan.cost_spread = Some(CostSpread { share: 0.04, degrees: 8.0, source: "invented".to_owned() });
    for second in [60, 56] {
        records.frames.iter_mut().for_each(|frame| frame.start = u32::from(frame.frame >= second));
        let [slots, counter] = ["server_cpu", "server_tree_cpu"].map(|name| estimate(&records, 1, name).effect);
        let ratio = counter.half_width() / slots.half_width();
        assert!((ratio - 1.0).abs() < 0.05, "{counter:?} {slots:?}");
    }
}

#[test]
fn fifteen_frames_make_an_interval_and_fourteen_do_not() {
    let net = |frames: u32| estimate(&Invented { frames, ..Invented::default() }.records(), 1, "net");
    let (few, enough) = (net(14), net(15));
    assert_eq!((few.verdict, few.text.as_str()), (Outcome::TooNoisy, "not enough frames: 14 of 15"));
    assert!(few.effect.low.is_infinite() && few.difference.is_some_and(|it| it.high.is_infinite()) && few.p.is_none());
    assert!(few.flags.contains(&Flag::NotEnoughFrames) && few.more_s.is_some_and(|more_s| more_s >= 0.6));
    assert_eq!(enough.verdict, Outcome::Costs);
    assert!(!enough.flags.contains(&Flag::NotEnoughFrames));
}

#[test]
fn an_interval_stands_on_the_frames_that_have_an_effect() {
    let mut records = Invented { frames: 40, ..Invented::default() }.records();
    // An arm so slow that its slots have 19 operations in all but three frames.
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.frame >= 3).for_each(|slot| slot.operations = 19);
    let few = estimate(&records, 1, "net");
    assert_eq!((few.verdict, few.text.as_str()), (Outcome::TooNoisy, "not enough frames: 3 of 15"));
    assert!(few.effect.low.is_infinite() && few.flags.contains(&Flag::NotEnoughFrames) && few.p.is_none());
    // One frame in 13 counts, so twelve more counted ones take about 160 frames.
    assert!(few.more_s.is_some_and(|more_s| more_s >= 12.0 * 0.6 * 13.0), "{few:?}");
    assert!(!estimate(&records, 2, "net").flags.contains(&Flag::NotEnoughFrames));
    assert!(!estimate(&records, 1, "latency_p50_READ").flags.contains(&Flag::NotEnoughFrames));
    assert!(resolutions(&records)[0].metrics.is_empty());
    records.slots.iter_mut().filter(|it| it.arm == 1).for_each(|slot| slot.operations = 19);
    let none = estimate(&records, 1, "net");
    assert_eq!((none.text.as_str(), none.more_s), ("not enough frames: 0 of 15", None));
}

#[test]
fn no_other_metric_decides_a_calibration_whose_own_has_too_few_frames() {
    let mut records = Invented { frames: 40, ..Invented::default() }.records();
    assert_eq!(resolutions(&records)[0].metrics[0].title, "net time per op");
    records.slots.iter_mut().filter(|slot| slot.frame >= 9).for_each(|slot| slot.stalled_ns = None);
    assert!(resolutions(&records)[0].metrics.is_empty());
}

#[test]
fn a_minute_of_load_gives_the_width_that_was_seen_by_the_root_of_its_time() {
    let invented = Invented { frames: 40, effects: vec![0.0, 0.0], latencies: false, ..Invented::default() };
    let mut records = invented.records();
    let seen = resolutions(&records).remove(0);
    // Frames of two arms with ten slots of 20 ms each.
    assert!((seen.load_s - 16.0).abs() < 1e-9 && seen.frames == 40, "{seen:?}");
    let near = |one: f64, other: f64| (one - other).abs() < 1e-6 * other;
    let (net, width) = (&seen.metrics[0], seen.metrics[0].effect.half_width());
    assert!(near(net.frames_per_minute, width * (16.0_f64 / 60.0).sqrt()) && net.widening == 0.0, "{net:?}");
    // On one start the known spread of others comes on top, which load does not narrow.
    records.plan.cells[0].starts = Starts::Once;
    records.plan.start_spread = start_spread::built_in("postgres");
    records.frames.iter_mut().for_each(|frame| frame.start = 0);
    let widened = resolutions(&records).remove(0).metrics.remove(0);
    assert!(near(widened.frames_per_minute, net.frames_per_minute) && widened.widening > 0.0, "{widened:?}");
    assert!(near(widened.effect.half_width(), width.hypot(widened.widening)), "{widened:?}");
    let of = |frames: u32| {
        let records = Invented { frames, latencies: false, ..Invented::default() }.records();
        resolutions(&records).remove(0).metrics.len()
    };
    assert_eq!([14, 15].map(of), [0, 3]);
}

#[test]
fn frames_of_which_nobody_saw_the_neighbours_have_no_part_in_net_time() {
    let hidden = |frame: u32| frame.is_multiple_of(3);
    let mut unseen = Invented { frames: 30, ..Invented::default() }.records();
    let mut removed = unseen.clone();
    removed.frames.retain(|frame| !hidden(frame.frame));
    removed.slots.retain(|slot| !hidden(slot.frame));
    unseen.slots.iter_mut().filter(|slot| hidden(slot.frame)).for_each(|slot| slot.stalled_ns = None);
    let [unseen, removed] = [unseen, removed].map(|records| estimate(&records, 1, "net"));
    assert!(removed.total.is_some() && removed.total_difference.is_some());
    let figures = |it: Estimate| (it.effect, it.difference, it.total, it.total_difference, it.levels, it.count);
    assert_eq!(figures(unseen), figures(removed));
}

#[test]
fn too_much_noise_says_how_long_it_would_take() {
    let mut records = Invented { frames: 16, spread: 0.3, effects: vec![0.0, 0.0], ..Invented::default() }.records();
    let text: String =
        ["net", "throughput", "latency_p50_READ"].map(|name| line(&estimate(&records, 1, name))).concat();
    expect![[r#"
        * net: TooNoisy, too noisy to tell: between −3.5 % and 10.1 %; about 6 more minutes would resolve 1.01 % (n=16/1 15.49 -> 15.20 µs/op) []
        - throughput: TooNoisy, too noisy to tell: between −3.7 % and 9.1 % fewer operations; about 6 more minutes would resolve 1.01 % (n=16/1 122670.83 -> 125340.77 op/s) []
        - latency_p50_READ: TooNoisy, too noisy to tell: between −3.7 % and 11.7 %; about 7 more minutes would resolve 1.01 % (n=16/1 13.51 -> 13.25 µs) []
    "#]].assert_eq(&text);
    // As it was asked for.
    records.plan.experiment.measure.precision = 0.03_f64.ln_1p();
    let text = estimate(&records, 1, "net").text;
    assert!(text.ends_with(" would resolve 3 %"), "{text}");
}

#[test]
fn the_time_that_is_still_needed_is_told_for_every_kind_of_figure() {
    let near = |found: Option<f64>, right: f64| found.is_some_and(|found| (found - right).abs() < 1e-6 * right);
    // A ratio of sums: the width falls with the root of the time. Frames of two arms take 0.4 s.
    let noisy = Invented { frames: 16, spread: 0.3, effects: vec![0.0, 0.0], latencies: false, ..Invented::default() };
    let tree = estimate(&noisy.records(), 1, "server_tree_cpu");
    let times = (tree.effect.half_width() / 0.01).powi(2);
    assert!(times > 1.0 && near(tree.more_s, (times - 1.0) * 16.0 * 0.4), "{tree:?}");
    // Three of 40 frames of 0.6 s have an effect, so twelve more take 160 frames.
    let mut records = Invented { frames: 40, spread: 0.001, latencies: false, ..Invented::default() }.records();
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.frame >= 3).for_each(|slot| slot.operations = 19);
    let few = estimate(&records, 1, "net");
    assert!(near(few.more_s, 12.0 * 0.6 * 40.0 / 3.0), "{few:?}");
    // Ten samples of a frame are beyond it and a group needs fifty: eight groups of five frames are 24 frames more.
    let mut records = Invented { frames: 16, latencies: false, ..Invented::default() }.records();
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        let mut histogram = Histogram::default();
        (0..10_000).for_each(|i| histogram.record(20_000 + i));
        arm.latency = [("READ".to_owned(), histogram)].into();
    }
    let tail = estimate(&records, 1, "latency_p99.9_READ");
    assert_eq!(tail.text, "not enough data for p99.9: needs about 15 more seconds");
    assert!(near(tail.more_s, 24.0 * 0.6), "{tail:?}");
}

#[test]
fn a_difference_is_that_of_its_figure() {
    // This machine does not drift, so 5 % of 20 µs of net time are 1.025 µs in every frame.
    let mut records = Invented::default().records();
    for slot in &mut records.slots {
        let cost = 20_000.0 * if slot.arm == 1 { 1.05 } else { 1.0 } * (1.0 + f64::from(slot.block % 3) / 1000.0);
        (slot.operations, slot.counted) = (1000, 950);
        (slot.wall_ns, slot.latency_sum_ns, slot.wait_ns) =
            ((cost * 1100.0) as u64, (cost * 1045.0) as u64, (cost * 100.0) as u64);
        slot.stalled_ns = Some(slot.wait_ns);
        (slot.client_cpu_ns, slot.server_cpu_ns) = ((cost * 300.0) as u64, (cost * 500.0) as u64);
    }
    for (name, truth, unit) in [
        ("net", 1.001, "µs/op"),
        ("time", 1.1011, "µs"),
        ("cpu", 0.8008, "µs/op"),
        ("client_cpu", 0.3003, "µs/op"),
        ("server_cpu", 0.5005, "µs/op"),
    ] {
        let found = estimate(&records, 1, name);
        let Interval { estimate, low, high } = found.difference.expect("an amount per operation");
        assert!(
            (estimate - truth).abs() < 2e-3 && low <= estimate && estimate <= high,
            "{name}: {low} {estimate} {high}"
        );
        let total = found.total_difference.expect("beside the total").estimate;
        assert!((total - truth).abs() < 2e-3, "{name}: {total}");
        assert_eq!(found.unit, unit, "{name}");
    }
    assert_eq!(estimate(&records, 1, "throughput").difference, None);
    assert_eq!(estimate(&records, 1, "memory_bytes").difference, None);
    let bytes = |name: &str| estimate(&Invented::default().records(), 1, name).difference.expect("bytes per op");
    let (log, received) = (bytes("log_bytes"), bytes("received_bytes"));
    assert_eq!((log.estimate.round(), log.low.round(), log.high.round()), (156.0, 156.0, 156.0));
    assert!((received.estimate - 20.0).abs() < 1e-6, "{received:?}");
    let p50 = estimate(&Invented::default().records(), 1, "latency_p50_READ");
    let Interval { low, high, .. } = p50.difference.expect("a percentile is an amount");
    // 5 % of a median of some 17 µs.
    assert!(low < 0.05 * 17.5 && 0.05 * 17.5 < high && high - low < 0.5, "{low} {high}");
}

#[test]
fn a_saving_is_told_as_more_operations() {
    let records = Invented { effects: vec![0.0, -0.06], ..Invented::default() }.records();
    let found = estimate(&records, 1, "throughput");
    let change = found.change();
    let [middle, low, high] = [change.estimate, change.low, change.high].map(percent);
    assert!(low > 0.0 && (5.0..7.5).contains(&middle), "{found:?}");
    let words = format!("{} % more operations [{}, {}]", digits(middle), digits(low), digits(high));
    assert_eq!((found.verdict, found.text), (Outcome::Gains, words));
}

#[test]
fn sizes_and_connecting_are_told_with_their_direction() {
    let mut records = Invented { frames: 16, latencies: false, ..Invented::default() }.records();
    for frame in &mut records.frames {
        (frame.arms[0].counters.disk_bytes, frame.arms[1].counters.disk_bytes) = (Some(100_000_000), Some(90_000_000));
    }
    let words = "10.0 % less at the end, between −10.0 % and −10.0 % over the frames";
    assert_eq!(estimate(&records, 1, "disk_bytes").text, words);
    let connect = estimate(&records, 1, "connect").difference.expect("an amount");
    assert!((connect.estimate - 1297.442).abs() < 0.01, "{connect:?}");
}

#[test]
fn operations_are_told_by_their_share() {
    let mut records = Invented { frames: 16, ..Invented::default() }.records();
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        let read = arm.latency["READ"].clone();
        let part = |share: u64| {
            let mut histogram = Histogram::default();
            (0..read.total() * share / 100).for_each(|i| histogram.record(20_000 + i));
            histogram
        };
        arm.latency =
            [("INSERT", 10), ("READ", 70), ("UPDATE", 20)].map(|(name, share)| (name.to_owned(), part(share))).into();
    }
    let analysis = assess(&records);
    let p50 = |names: Vec<&Figure>| {
        let of = |name: &Figure| Some(name.to_string().strip_prefix("latency_p50_")?.to_owned());
        names.into_iter().filter_map(of).collect::<Vec<_>>().join(" ")
    };
    let arm = &analysis.cells[0].arms[1];
    assert_eq!(p50(arm.estimates.iter().map(|it| &it.name).collect()), "READ UPDATE INSERT");
    assert_eq!(p50(arm.levels.iter().map(|it| &it.name).collect()), "READ UPDATE INSERT");
    let page = terminal::render(&analysis, terminal::Options::default());
    assert!(page.contains("READ p50") && page.contains("UPDATE p50") && !page.contains("INSERT p50"), "{page}");
}

#[test]
fn new_orders_a_minute_are_their_share_of_all_operations() {
    let mut records = Invented { frames: 16, ..Invented::default() }.records();
    // Transactions that start again are parts of others.
    let others = [("PAYMENT", 43), ("ORDER-STATUS", 4), ("DELIVERY", 4), ("STOCK-LEVEL", 4), ("RETRY", 9)];
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        let all = arm.latency["READ"].total();
        let of = |percent: u64| {
            let mut histogram = Histogram::default();
            (0..all * percent / 100).for_each(|_| histogram.record(20_000));
            histogram
        };
        arm.latency = others.map(|(name, percent)| (name.to_owned(), of(percent))).into();
        arm.latency.insert(tithe_model::operation::NEW_ORDER.to_owned(), of(45));
    }
    let share = |records: &Records| {
        let analysis = assess(records);
        let levels = &analysis.cells[0].arms[1].levels;
        let level = |name: Figure| levels.iter().find(|level| level.name == name).expect("a level").value;
        level(Figure::NewOrders) / 60.0 / level(Figure::Throughput)
    };
    assert!((share(&records) - 0.45).abs() < 1e-3, "{}", share(&records));
    // Servers of two blocks of ten were not read: their slots are empty, and operations stay in the histograms.
    for slot in records.slots.iter_mut().filter(|slot| slot.block < 2) {
        let Slot { cell, frame, block, lane, arm, .. } = *slot;
        *slot = Slot { cell, frame, block, lane, arm, ..Slot::default() };
    }
    assert!((share(&records) - 0.45).abs() < 1e-3, "{}", share(&records));
}

#[test]
fn connecting_is_told_by_part_and_against_the_plain_arm() {
    let part = |us: u64| ConnectPart { time_ns: us * 1000, client_ns: us * 250 };
    let invented = Invented { frames: 5, effects: vec![0.0, 0.0], latencies: false, ..Invented::default() };
    let mut records = invented.records();
    for frame in &mut records.frames {
        // Two connections a frame, slower from frame to frame.
        let more = 10 * u64::from(frame.frame);
        for (arm, tls) in frame.arms.iter_mut().zip([0, 1800]) {
            arm.connecting =
                Connecting { connections: 2, tcp: part(120 + more), tls: part(tls), login: part(400 + more) };
        }
    }
    let told = |records: &Records, arm: usize| {
        let analysis = assess(records);
        let found = analysis.cells[0].arms[arm].connecting.clone()?;
        let parts = found.parts.iter().map(|it| {
            let more = it.more_us.map_or(String::new(), |more| format!(", {:.1} more", more.estimate));
            format!("{} {:.1}, client {:.1}{more}", it.part, it.us.estimate, it.client_us.estimate)
        });
        Some(format!("{}: {}", found.connections, parts.collect::<Vec<_>>().join("; ")))
    };
    let words = "10: TCP 70.0, client 17.5; login 210.0, client 52.5";
    assert_eq!(told(&records, 0).as_deref(), Some(words));
    let words = "10: TCP 70.0, client 17.5, 0.0 more; TLS 900.0, client 225.0, 900.0 more; \
                 login 210.0, client 52.5, 0.0 more";
    assert_eq!(told(&records, 1).as_deref(), Some(words));
    // Frames of one start do not show how much starts differ.
    let half_width = |records: &Records| {
        let found = assess(records).cells[0].arms[1].connecting.clone().expect("five frames");
        found.parts[1].more_us.expect("compared").half_width()
    };
    let mut on_one_start = records.clone();
    on_one_start.frames.iter_mut().for_each(|frame| frame.start = 0);
    assert_eq!(half_width(&on_one_start), 0.0);
    on_one_start.plan.start_spread = start_spread::built_in("postgres");
    assert!(half_width(&on_one_start) > 0.0);
    // Frames of which the plain arm says nothing have no partner.
    records.frames[0].arms[0].connecting = Connecting::default();
    assert!(told(&records, 1).is_some_and(|told| !told.contains("more")));
    records.frames.truncate(4);
    assert!(told(&records, 1).is_some());
    records.frames.truncate(3);
    assert_eq!(told(&records, 1), None, "three frames make no interval");
}

#[test]
fn slots_that_are_too_short_are_told() {
    let mut records = Invented { frames: 2, ..Invented::default() }.records();
    records.slots.iter_mut().for_each(|slot| slot.operations = 19);
    expect!["c: no slot holds 20 operations: make the slots longer (`slot`)."]
        .assert_eq(&assess(&records).warnings.join("\n"));
    // A statement that takes several slots has its lane pass over them.
    let told = |every: u32| {
        let mut records = Invented { frames: 20, ..Invented::default() }.records();
        let passed = records.slots.iter_mut().filter(|slot| slot.arm == 1 && slot.block % every == 0);
        passed.for_each(|slot| slot.operations = 0);
        assess(&records).warnings.join("\n")
    };
    assert!(!told(7).contains("hold fewer"));
    let told = told(3);
    assert!(told.contains("slots of arm `protected 1` hold fewer than 20 operations and do not count"), "{told}");
}

#[test]
fn slots_that_were_not_read_in_time_are_not_called_short() {
    let warnings = |share: u32| {
        let mut records = Invented { frames: 20, latencies: false, ..Invented::default() }.records();
        for frame in &mut records.frames {
            frame.agents = vec![agent("one", 50), agent("two", 50)];
        }
        // Of such a block nothing is kept.
        for slot in records.slots.iter_mut().filter(|slot| slot.block < share) {
            let Slot { cell, frame, block, lane, arm, .. } = *slot;
            *slot = Slot { cell, frame, block, lane, arm, ..Slot::default() };
        }
        assess(&records).warnings.join("\n")
    };
    let told = warnings(4);
    assert!(!told.contains("hold fewer"), "{told}");
    let words = "c: 40 % of the slots do not count, because what their servers used was not read in time.";
    assert!(told.contains(words), "{told}");
    assert!(!warnings(2).contains("read in time"));
}

#[test]
fn statements_of_an_open_loop_have_the_time_of_a_call() {
    let open = Invented { frames: 20, arrivals: Arrivals::Even(5000.0), latencies: false, ..Invented::default() };
    let mut records = open.records();
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        let mut latency = Histogram::default();
        (0..1000).for_each(|_| latency.record(20_000));
        arm.intended = [("app.sql".to_owned(), latency.clone())].into();
        arm.latency = [("app.sql".to_owned(), latency.clone()), ("app.sql:1".to_owned(), latency)].into();
    }
    let p50: Vec<String> = names(&records, 1).into_iter().filter(|name| name.contains("_p50_")).collect();
    assert_eq!(p50, ["intended_p50_app.sql", "latency_p50_app.sql:1"]);
}

#[test]
fn warnings_say_how_much() {
    let warnings = |records: &Records| assess(records).warnings.join("\n");
    let busy = Invented { wait: 0.3, frames: 16, latencies: false, ..Invented::default() }.records();
    assert_eq!(
        warnings(&busy),
        "c: clients may have slept for up to 20 % of net time because background load held up other clients, so net \
         time per op is unknown; CPU per op decides instead."
    );
    let mut records = Invented { frames: 20, latencies: false, ..Invented::default() }.records();
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.block % 3 == 0).for_each(|slot| slot.operations = 0);
    let words = "40 % of the slots of arm `protected 1` hold fewer than 20 operations and do not count: operations are \
                 long for slots of 20 ms: make the slots longer (`slot`)";
    assert!(warnings(&records).contains(words), "{}", warnings(&records));
    // A fifth of them may.
    let mut records = Invented { frames: 20, latencies: false, ..Invented::default() }.records();
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.block % 5 == 0).for_each(|slot| slot.operations = 0);
    assert!(!warnings(&records).contains("make the slots longer"), "{}", warnings(&records));
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.block == 1).take(1).for_each(|slot| slot.operations = 0);
    assert!(warnings(&records).contains("20 % of the slots of arm `protected 1` hold fewer"), "{}", warnings(&records));
    let mut records = Invented { frames: 16, latencies: false, ..Invented::default() }.records();
    records.plan.cells[0].starts = Starts::Once;
    records.plan.start_spread = start_spread::built_in("postgres");
    records.plan.cost_spread = Some(CostSpread { share: 0.04, degrees: 8.0, source: "invented".to_owned() });
    records.frames.iter_mut().for_each(|frame| frame.start = 0);
    assert!(warnings(&records).ends_with(", and by 4.0 % of the cost (invented)."), "{}", warnings(&records));
    // Three frames with a start each have no interval that could be wider.
    let mut records = Invented { frames: 3, latencies: false, ..Invented::default() }.records();
    records.plan.start_spread = start_spread::built_in("postgres");
    assert!(!warnings(&records).contains("widened"), "{}", warnings(&records));
}

#[test]
fn stopping_by_precision_widens_the_intervals() {
    let mut records = Invented::default().records();
    let by_budget = estimate(&records, 1, "net").effect;
    records.cells[0].ending = Some(CellEnding::Precision);
    let by_precision = estimate(&records, 1, "net").effect;
    assert!(by_precision.low < by_budget.low && by_budget.high < by_precision.high);
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
    expect![[r#"
        c: arm `protected 1` protects nothing and waits 0.129 µs per op longer than the plain arm over 60 starts (t = 13.3); CPU per op decides instead.
        c: arm `protected 1` protects nothing and still differs from the baseline: the set-up is not symmetric."#]]
        .assert_eq(&asymmetric(0.03));
}

/// The kernel does a volume's work, so processor time per operation would report that it costs nothing.
#[test]
fn processor_time_never_replaces_the_time_of_a_volume() {
    let deciding = |primary: Metric, volume: &str| {
        let mut records = Invented { effects: vec![0.0, 0.03, 0.0], primary, ..Invented::default() }.records();
        records.plan.experiment.arms[1].protections.clear();
        records.plan.experiment.arms[1].aa = true;
        for (facts, volume) in records.cells[0].arms.iter_mut().zip(["an image", "an image", volume]) {
            facts.set(Fact::Volume, volume.to_owned());
        }
        let analysis = assess(&records);
        let deciding = analysis.cells[0].arms[2].estimates.iter().find(|estimate| estimate.primary).unwrap();
        (deciding.name.to_string(), analysis.warnings[0].split(": ").last().unwrap().to_owned())
    };
    for (primary, name) in [(Metric::Time, "time"), (Metric::Net, "net")] {
        let (figure, ends) = deciding(primary, "an image");
        assert!(figure == "cpu" && ends.ends_with("CPU per op decides instead."), "{figure}, {ends}");
        let words = "figures that include waiting are wider by as much as it may differ.".to_owned();
        assert_eq!(deciding(primary, "an encrypted image"), (name.to_owned(), words));
    }
}

#[test]
fn the_time_of_a_volume_is_wider_by_what_an_arm_without_a_protection_may_differ() {
    let found = |effect: f64, has_volume: bool| {
        let invented = Invented { effects: vec![0.0, 0.03, effect], latencies: false, ..Invented::default() };
        let mut records = invented.records();
        records.plan.experiment.arms[1].protections.clear();
        if has_volume {
            records.cells[0].arms[2].set(Fact::Volume, "an encrypted image".to_owned());
        }
        [1, 2].map(|arm| estimate(&records, arm, "net"))
    };
    let ([control, narrow], [_, wide]) = (found(0.02, false), found(0.02, true));
    assert_eq!((narrow.verdict, wide.verdict), (Outcome::Costs, Outcome::TooNoisy));
    let more = wide.effect.high - narrow.effect.high;
    assert!((0.03..0.05).contains(&more), "{more}");
    assert!((narrow.effect.low - wide.effect.low - more).abs() < 1e-12);
    let [of_control, narrow_total, wide_total] = [&control, &narrow, &wide].map(|it| it.total.expect("every stall"));
    let more = of_control.low.abs().max(of_control.high.abs());
    assert!((wide_total.high - narrow_total.high - more).abs() < 1e-12, "{wide_total:?}");
    let [narrow, wide] = [narrow, wide].map(|it| it.difference.expect("an amount").half_width());
    assert!(wide > narrow + 0.4, "{narrow} {wide}");
    assert_eq!(found(0.2, true)[1].verdict, Outcome::Costs);
}

/// The A/A arm waits a tenth longer, and uses as much processor time.
#[test]
fn figures_that_include_waiting_are_taken_back_where_that_differs_between_identical_arms() {
    let flagged = |primary: Metric, is_aa: bool| {
        let mut records = Invented { effects: vec![0.0, 0.05, 0.0], primary, ..Invented::default() }.records();
        records.plan.experiment.arms[2].protections.clear();
        records.plan.experiment.arms[2].aa = is_aa;
        for slot in records.slots.iter_mut().filter(|slot| slot.arm == 2) {
            (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns * 11 / 10, slot.latency_sum_ns * 11 / 10);
        }
        let analysis = assess(&records);
        let waits = analysis.warnings.iter().any(|it| it.contains("protects nothing and waits"));
        let is_flagged = |name: &str| !estimate(&records, 1, name).is_symmetric();
        let deciding = analysis.cells[0].arms[1].primary().expect("a figure").name.to_string();
        (deciding, waits, ["net", "time", "throughput", "latency_p50_READ", "cpu"].map(is_flagged))
    };
    for primary in [Metric::Net, Metric::Cpu] {
        let expected = ("cpu".to_owned(), true, [true, true, true, true, false]);
        assert_eq!(flagged(primary, true), expected, "{primary:?}");
    }
    // An arm of the experiment that does the same shows nothing about the others.
    assert_eq!(flagged(Metric::Net, false).2, [false; 5]);
}

#[test]
fn less_waiting_alone_is_a_saving_over_four_loads_of_the_data_and_not_over_fewer() {
    let found = |epochs: u32, counted: u32| {
        let mut records = Invented { effects: vec![0.0, 0.02], latencies: false, ..Invented::default() }.records();
        for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
            (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns * 9 / 10, slot.latency_sum_ns * 9 / 10);
        }
        for frame in &mut records.frames {
            frame.epoch = frame.frame * epochs / 60;
            let late = || Invalid::Other("late".to_owned());
            frame.invalid = (frame.epoch >= counted).then(late);
            // Latencies are a tenth shorter, too, by a little more or less from frame to frame.
            for (arm, ns) in frame.arms.iter_mut().zip([20_000, 18_000 + u64::from(frame.frame % 3) * 500]) {
                let mut latency = Histogram::default();
                (0..1000).for_each(|_| latency.record(ns));
                arm.latency = [("READ".to_owned(), latency)].into();
            }
        }
        ["net", "time", "throughput", "latency_p50_READ"].map(|name| {
            let found = estimate(&records, 1, name);
            (found.verdict, found.flags.contains(&Flag::WaitingAlone))
        })
    };
    for epochs in [1, 3] {
        assert_eq!(found(epochs, epochs), [(Outcome::TooNoisy, true); 4], "{epochs}");
    }
    assert_eq!(found(4, 4), [(Outcome::Gains, false); 4]);
    // Four loads, and no frame of one of them counts.
    assert_eq!(found(4, 3), [(Outcome::TooNoisy, true); 4]);
}

#[test]
fn a_saving_of_which_no_processor_time_is_known_may_be_one_of_waiting_alone() {
    let mut records = Invented { effects: vec![0.0, -0.05], latencies: false, ..Invented::default() }.records();
    assert_eq!(estimate(&records, 1, "time").verdict, Outcome::Gains);
    records.plan.experiment.measure.primary = Metric::Time;
    records.slots.iter_mut().for_each(|slot| (slot.client_cpu_ns, slot.server_cpu_ns) = (0, 0));
    let found = estimate(&records, 1, "time");
    assert_eq!((found.verdict, found.flags.contains(&Flag::WaitingAlone)), (Outcome::TooNoisy, true));
    assert_eq!(found.text, "processor time is not known, and fewer than 4 loads of the data cannot show a saving");
}

#[test]
fn counters_that_only_one_arm_has() {
    let mut records = Invented { frames: 12, ..Invented::default() }.records();
    for frame in &mut records.frames {
        frame.arms[0].counters.read_bytes = Some(8192);
        frame.arms[1].counters.read_bytes = Some(0);
        frame.arms[1].counters.switches = Some(2 * frame.arms[1].operations);
    }
    let text: String =
        ["log_bytes", "read_bytes", "switches"].iter().map(|name| line(&estimate(&records, 1, name))).collect();
    expect![[r#"
        - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=12/1 0.00 -> 156.00 bytes/op) []
        - read_bytes: Gains, none, 0.39 bytes per op on the plain arm (n=12/1 0.41 -> 0.00 bytes/op) []
        - switches: TooNoisy, 2.00 context switches per op, not to be seen on the plain arm (n=12/1) []
    "#]]
    .assert_eq(&text);
    assert!(!names(&records, 1).contains(&"wal_bytes".to_owned()));
}

#[test]
fn a_counter_that_one_arm_has_by_accident_is_no_cost_and_no_saving() {
    let mut records = Invented { frames: 30, ..Invented::default() }.records();
    for frame in &mut records.frames {
        // The protected arm reads one page in one frame, and the plain arm writes one in another.
        let once = |at: u32| Some(if frame.frame == at { 4096 } else { 0 });
        (frame.arms[0].counters.read_bytes, frame.arms[1].counters.read_bytes) = (Some(0), once(7));
        (frame.arms[0].counters.written_bytes, frame.arms[1].counters.written_bytes) = (once(9), Some(0));
    }
    let found = ["read_bytes", "written_bytes"].map(|name| estimate(&records, 1, name));
    expect![[r#"
        - read_bytes: TooNoisy, too noisy to tell: 0.01 bytes per op, none on the plain arm (n=30/1 0.00 -> 0.00 bytes/op) []
        - written_bytes: TooNoisy, too noisy to tell: none, 0.01 bytes per op on the plain arm (n=30/1 0.00 -> 0.00 bytes/op) []
    "#]].assert_eq(&found.iter().map(line).collect::<String>());
    assert!(found.iter().all(|it| it.difference.expect("both are seen").holds(0.0)));
    assert!(found.iter().all(|it| it.effect.low == f64::NEG_INFINITY && it.effect.high == f64::INFINITY));
}

/// Four starts of frames in which the log per operation falls by a factor of `times` from the first to the last.
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
        c: the log per operation of arm `protected 2` fell from 1000 bytes in the first frame of each start to 250 in the last: figures are means over this; all arms had done the same number of operations since their start."#]].assert_eq(&told(&falling(15, 4.0)));
    expect![[r#"
        first frame: 1000
        last frame: 2000
        c: the log per operation of arm `protected 2` rose from 1000 bytes in the first frame of each start to 2000 in the last: figures are means over this; all arms had done the same number of operations since their start."#]].assert_eq(&told(&falling(4, 0.5)));
    assert_eq!(told(&falling(15, 1.05)), "");
    // Nothing is reported if starts have one frame each, or no log is known.
    let mut records = falling(15, 4.0);
    records.frames.iter_mut().for_each(|frame| frame.start = frame.frame);
    assert_eq!(told(&records), "");
    let mut records = falling(15, 4.0);
    let arms = records.frames.iter_mut().flat_map(|frame| &mut frame.arms);
    arms.for_each(|arm| arm.counters.wal_bytes = None);
    assert_eq!(told(&records), "");
}

#[test]
fn a_log_that_changes_by_a_fifth_is_told_over_four_starts_and_not_over_three() {
    let is_told = |starts: u32, times: f64| {
        let mut records = falling(15, times);
        records.frames.retain(|frame| frame.start < starts);
        records.slots.retain(|slot| slot.frame < 15 * starts);
        !assess(&records).cells[0].log_over_start.is_empty()
    };
    let told = [is_told(4, 1.05), is_told(4, 1.2), is_told(3, 1.2), is_told(3, 1.6)];
    assert_eq!(told, [false, true, false, true]);
}

/// Cells of workload c with 4, 1 and 2 clients, one at a share of saturation, and one cell of workload a. An operation
/// takes the given time and 10 ns more in each further frame, alike in all slots.
fn swept() -> Records {
    let mut records = Invented { frames: 20, latencies: false, ..Invented::default() }.records();
    let (cell, facts) = (records.plan.cells[0].clone(), records.cells[0].clone());
    let other = Workload { name: "a".to_owned(), ..records.plan.experiment.workloads[0].clone() };
    records.plan.experiment.workloads.push(other);
    let (frames, slots) = (std::mem::take(&mut records.frames), std::mem::take(&mut records.slots));
    let (closed, of_saturation) = (Arrivals::Closed, Arrivals::OfSaturation(0.7));
    let cells = [
        ("four", 0, 4, closed, [12_900, 14_000, 29_400]),
        ("one", 0, 1, closed, [20_000, 25_000, 30_000]),
        ("rated", 0, 4, of_saturation, [20_000, 25_000, 30_000]),
        ("two", 0, 2, closed, [13_000, 20_000, 29_500]),
        ("alone", 1, 2, closed, [20_000, 25_000, 30_000]),
    ];
    records.plan.cells.clear();
    records.cells = vec![facts; cells.len()];
    for (number, (id, workload, clients, arrivals, costs_ns)) in (0..).zip(cells) {
        records.plan.cells.push(Cell { id: id.to_owned(), workload, clients, arrivals, ..cell.clone() });
        records.frames.extend(frames.iter().map(|frame| Frame { cell: number, ..frame.clone() }));
        records.slots.extend(slots.iter().map(|slot| {
            let cost_ns = costs_ns[slot.arm as usize] + 10 * u64::from(slot.frame);
            Slot {
                cell: number,
                operations: 1000,
                counted: 950,
                wall_ns: cost_ns * 1000,
                latency_sum_ns: cost_ns * 950,
                client_cpu_ns: cost_ns * 300,
                server_cpu_ns: cost_ns * 500,
                wait_ns: 0,
                stalled_ns: Some(0),
                ..*slot
            }
        }));
    }
    records
}

#[test]
fn cells_that_differ_in_clients_show_where_each_arm_is_saturated_and_what_it_costs_there() {
    let analysis = assess(&swept());
    assert_eq!(analysis.sweeps.len(), 1, "workload a has one number of clients");
    let sweep = &analysis.sweeps[0];
    assert_eq!((sweep.workload.as_str(), sweep.resources.as_str()), ("c", ""));
    let of_arm = |arm: &SweepArm| {
        let cells: Vec<&str> = arm.costs.iter().map(|(cell, _)| cell.as_str()).collect();
        format!("{} {:?}: {}", arm.name, arm.saturated_at, cells.join(" "))
    };
    let told: Vec<String> = sweep.arms.iter().map(of_arm).collect();
    // With twice the clients the plain arm gains 54 % and 0.8 %, the first protected one 25 % and 43 %, the other 2 %.
    assert_eq!(told, ["plain Some(2): ", "protected 1 None: one four rated", "protected 2 Some(1): one rated"]);
    let primary = analysis.cells[1].arms[1].primary().expect("it is compared");
    assert_eq!(sweep.arms[1].costs[0].1, primary.text);
    // Two lanes, each busy with one operation at a time.
    let rate = |cost_ns: f64| 2e9 / cost_ns;
    for (arm, cost_ns) in sweep.arms.iter().zip([13_000.0, 14_000.0, 30_000.0]) {
        assert!(rate(cost_ns + 190.0) < arm.most && arm.most < rate(cost_ns), "{arm:?}");
    }
    let steps: Vec<_> = sweep.arms[1].steps.iter().map(|it| (it.cell.as_str(), it.clients, it.frames)).collect();
    assert_eq!(steps, [("one", 1, 20), ("two", 2, 20), ("four", 4, 20)]);
    // Of twenty values the sixth and the fifteenth enclose the median with 95.9 %: the rates of frames 14 and 5.
    let Interval { low, estimate, high } = sweep.arms[1].steps[0].throughput;
    let is = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
    assert!(is(low, rate(25_140.0)) && is(high, rate(25_050.0)), "{low} {high}");
    assert!(is(estimate, (rate(25_090.0) + rate(25_100.0)) / 2.0), "{estimate}");
}

#[test]
fn a_sweep_without_its_last_step_has_the_throughput_with_most_clients_that_were_measured() {
    let mut records = swept();
    let four = records.plan.cells.iter().position(|cell| cell.id == "four").expect("a cell") as u32;
    records.frames.retain(|frame| frame.cell != four);
    records.slots.retain(|slot| slot.cell != four);
    let arm = assess(&records).sweeps[0].arms[1].clone();
    let cells: Vec<&str> = arm.costs.iter().map(|(cell, _)| cell.as_str()).collect();
    assert_eq!((arm.saturated_at, cells), (None, vec!["one", "two", "rated"]));
    let two = arm.steps.last().expect("two steps");
    assert!(two.clients == 2 && (arm.most / two.throughput.estimate - 1.0).abs() < 0.01, "{arm:?}");
}

#[test]
fn what_others_published_stands_beside_the_arm_and_in_the_cells_that_it_is_about() {
    let mut records = swept();
    let quoted = |source: &str, arm: &str, workload: Option<&str>, resources: Option<&str>| Published {
        source: source.to_owned(),
        arm: arm.to_owned(),
        workload: workload.map(str::to_owned),
        resources: resources.map(str::to_owned),
        figure: PublishedFigure::Throughput,
        value: PublishedValue::Change { from: -0.2, to: -0.5 },
    };
    records.plan.experiment.published = vec![
        quoted("everywhere", "protected 1", None, None),
        quoted("in c", "protected 2", Some("c"), None),
        quoted("in a", "protected 1", Some("a"), None),
        quoted("elsewhere", "protected 1", None, Some("small")),
    ];
    let analysis = assess(&records);
    let sources = |cell: usize| {
        let of_arm =
            |arm: &ArmAnalysis| arm.published.iter().map(|it| it.source.as_str()).collect::<Vec<_>>().join(", ");
        analysis.cells[cell].arms.iter().map(of_arm).collect::<Vec<_>>()
    };
    assert_eq!(sources(0), ["", "everywhere", "in c"]);
    assert_eq!(sources(4), ["", "everywhere, in a", ""]);
    let cost = &analysis.cells[0].arms[1].published[0];
    assert_eq!(cost.estimate, Figure::Metric(Metric::Time));
    assert_eq!(cost.printed, "throughput −20 % to −50 %");
    // Of 0.8 and 0.5 times the operations, each takes 1.25 and 2 times as long.
    assert!((cost.low - 1.25_f64.ln()).abs() < 1e-12 && (cost.high - 2_f64.ln()).abs() < 1e-12, "{cost:?}");
}
