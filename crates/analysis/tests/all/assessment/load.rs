//! Load from agents, and load at intended starts.

use expect_test::expect;
use tithe_analysis::{Figure, Flag, assess::assess};
use tithe_model::{
    experiment::Arrivals,
    histogram::Histogram,
    record::{AgentFrame, ClientTimes, Slot},
    records::Records,
};

use super::{estimate, line, names};
use crate::synthetic::Invented;

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
