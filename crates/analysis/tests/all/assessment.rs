//! Records in, analysis out: a synthetic run of known cost, and what each rule makes of odd records.

mod frames;
mod proofs;
mod told;

use expect_test::{Expect, expect};
use tithe_analysis::{Analysis, Estimate, Figure, Flag, Interval, Outcome, assess::assess};
use tithe_model::{experiment::Arrivals, records::Records};

use crate::synthetic::Invented;

/// Every figure of an analysis, one a line.
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
              * net: Costs, costs 5.4% [4.9, 6.0] (n=60/1 19.21 -> 20.14 µs/op) []
              - time: Costs, costs 5.4% [4.9, 6.0] (n=60/1 20.23 -> 21.20 µs) []
              - cpu: Costs, costs 5.4% [4.9, 6.0] (n=60/1 15.37 -> 16.11 µs/op) []
              - client_cpu: Costs, costs 5.4% [4.9, 6.0] (n=60/1 5.76 -> 6.04 µs/op) []
              - server_cpu: Costs, costs 5.4% [4.9, 6.0] (n=60/1 9.61 -> 10.07 µs/op) []
              - throughput: Costs, 5.1% fewer operations [4.7, 5.6] (n=60/1 98893.35 -> 94350.61 op/s) []
              - latency_p50_READ: Costs, costs 5.5% [4.9, 6.0] (n=60/1 17.14 -> 17.91 µs) []
              - latency_p90_READ: Costs, costs 5.3% [4.6, 6.0] (n=60/1 33.48 -> 35.16 µs) []
              - latency_p95_READ: Costs, costs 5.4% [4.7, 6.1] (n=60/1 40.61 -> 42.41 µs) []
              - latency_p99_READ: Costs, costs 5.2% [4.4, 6.1] (n=60/1 56.82 -> 59.46 µs) []
              - latency_p99.9_READ: Costs, costs 5.2% [3.2, 7.6] (n=18/1 90.08 -> 96.51 µs) []
              - server_tree_cpu: Costs, costs 5.5% [5.1, 6.0] (n=60/1 10.57 -> 11.08 µs/op) []
              - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=60/1 0.00 -> 156.00 bytes/op) []
              - sent_bytes: Costs, costs 0.01% [0.01, 0.01] (below your margin) (n=60/1 40.05 -> 40.05 bytes/op) []
              - received_bytes: Costs, costs 2.0% [2.0, 2.0] (below your margin) (n=60/1 1000.00 -> 1020.00 bytes/op) []
              - memory_bytes: Costs, 5.0% more at the end, between 5.0% and 5.0% over the frames (n=60/1 100.03 -> 105.03 MB) []
              - connect: Costs, costs 65% [65, 65] (n=60/1 2002.00 -> 3299.44 µs) []
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
              * net: NoneFound, no cost found, at most 0.78% (n=60/1 19.21 -> 19.28 µs/op) []
              - time: NoneFound, no cost found, at most 0.78% (n=60/1 20.23 -> 20.30 µs) []
              - cpu: NoneFound, no cost found, at most 0.78% (n=60/1 15.37 -> 15.42 µs/op) []
              - client_cpu: NoneFound, no cost found, at most 0.78% (n=60/1 5.76 -> 5.78 µs/op) []
              - server_cpu: NoneFound, no cost found, at most 0.78% (n=60/1 9.61 -> 9.64 µs/op) []
              - throughput: NoneFound, no loss found, at most 0.78% (n=60/1 98893.35 -> 98546.38 op/s) []
              - latency_p50_READ: NoneFound, no cost found, at most 0.62% (n=60/1 17.14 -> 17.21 µs) []
              - latency_p90_READ: NoneFound, no cost found, at most 0.64% (n=60/1 33.48 -> 33.67 µs) []
              - latency_p95_READ: NoneFound, no cost found, at most 0.66% (n=60/1 40.61 -> 41.01 µs) []
              - latency_p99_READ: NoneFound, no cost found, at most 0.91% (n=60/1 56.82 -> 57.79 µs) []
              - latency_p99.9_READ: NoneFound, no cost found, at most 2.4% (n=18/1 90.08 -> 93.04 µs) []
              - server_tree_cpu: NoneFound, no cost found, at most 0.71% (n=60/1 10.57 -> 10.60 µs/op) []
              - log_bytes: Costs, 156 bytes per op, none on the plain arm (n=60/1 0.00 -> 156.00 bytes/op) []
              - sent_bytes: NoneFound, no cost found, at most 0.00% (n=60/1 40.05 -> 40.05 bytes/op) []
              - received_bytes: Costs, costs 2.0% [2.0, 2.0] (below your margin) (n=60/1 1000.00 -> 1020.00 bytes/op) []
              - memory_bytes: Costs, 10.0% more at the end, between 10.0% and 10.0% over the frames (n=60/1 100.03 -> 110.03 MB) []
              - connect: NoneFound, no cost found, at most 0.00% (n=60/1 2002.00 -> 2002.00 µs) []
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
fn an_open_loop_counts_from_the_intended_start_and_says_what_it_did() {
    let mut records = Invented { arrivals: Arrivals::Poisson(2000.0), ..Invented::default() }.records();
    for frame in &mut records.frames {
        frame.arms[1].unfinished = frame.arms[1].operations / 20;
    }
    let (slow, fine) = (estimate(&records, 1, "throughput"), estimate(&records, 2, "throughput"));
    expect![[r#"
        - throughput: Costs, 95.2% of the intended operations done, 100.0% on the plain arm (n=60/1 100.00 -> 95.24 % of intended) [NotAtRate]
        - throughput: NoneFound, 100.0% of the intended operations done, 100.0% on the plain arm (n=60/1 100.00 -> 100.00 % of intended) []
    "#]].assert_eq(&(line(&slow) + &line(&fine)));
    let p99 = estimate(&records, 1, "intended_p99_READ");
    assert_eq!(p99.flags, [Flag::NotAtRate]);
    assert!(names(&records, 1).iter().all(|name| !name.starts_with("latency")));
}

#[test]
fn a_difference_is_that_of_its_figure() {
    // The machine does not drift here, so that 5 % of 20 µs of net time are 1.025 µs in every frame.
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
fn operations_are_told_by_their_share() {
    let mut records = Invented { frames: 16, ..Invented::default() }.records();
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        let read = arm.latency["READ"].clone();
        let part = |share: u64| {
            let mut histogram = tithe_model::histogram::Histogram::default();
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
    let options = tithe_analysis::report::terminal::Options::default();
    let page = tithe_analysis::report::terminal::render(&analysis, options);
    assert!(page.contains("READ p50") && page.contains("UPDATE p50") && !page.contains("INSERT p50"), "{page}");
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
