//! Records in, analysis out: a synthetic run of known cost, and the effect of each rule on odd records.

mod figures;
mod flags;
mod intervals;
mod load;
mod starts;
mod sweeps;
mod waiting;

use expect_test::{Expect, expect};
use tithe_analysis::{
    Analysis, Estimate, Outcome,
    assess::assess,
    report::{html, terminal},
};
use tithe_model::{invalid::Invalid, record::Host, records::Records};

use crate::synthetic::Invented;

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
