//! The figures of an arm by kind: differences, sizes, operations by share, connecting, and counters.

use expect_test::expect;
use tithe_analysis::{Figure, Interval, Outcome, assess::assess, report::terminal};
use tithe_model::{
    connecting::{ConnectPart, Connecting},
    histogram::Histogram,
    record::Slot,
    records::Records,
    start_spread,
};
use tithe_statistics::verdict::{digits, percent};

use super::{estimate, line, names};
use crate::synthetic::Invented;

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
