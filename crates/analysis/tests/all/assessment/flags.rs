//! When an estimate has a flag, when a run has a warning, and when neither is there.

use expect_test::expect;
use tithe_analysis::{
    Flag,
    assess::assess,
    report::{markdown, view::Form},
};
use tithe_model::{
    ending::CellEnding,
    experiment::{Arrivals, Metric},
    plan::Starts,
    records::Records,
    start_spread::{self, CostSpread},
};

use super::{estimate, names};
use crate::synthetic::Invented;

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

#[test]
fn failed_operations_are_told() {
    let mut records = Invented { frames: 2, ..Invented::default() }.records();
    records.frames[1].arms[2].failed = 7;
    expect!["c: 7 of 43364 operations of arm `protected 2` failed and are left out."]
        .assert_eq(&assess(&records).warnings.join("\n"));
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
