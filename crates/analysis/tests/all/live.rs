//! The decision to stop, frame by frame.

use std::collections::BTreeMap;

use expect_test::expect;
use tithe_analysis::{Estimate, Figure, Flag, Outcome, assess::assess, report::live::Pace, stopping::Live};
use tithe_model::{
    ending::CellEnding,
    experiment::{Arrivals, Metric},
    fact::Fact,
    histogram::Histogram,
    plan::Starts,
    record::Slot,
    records::Records,
    start_spread,
    steady::Steadiness,
};

use crate::synthetic::{Invented, warmed_up};

fn live(records: &Records) -> Live {
    let plan = &records.plan;
    Live::new(plan, 0)
}

fn frames(records: &Records) -> impl Iterator<Item = &[Slot]> {
    records.slots.chunk_by(|a, b| a.frame == b.frame)
}

#[test]
fn stops_at_a_look_and_the_analysis_says_the_same() {
    let mut records = Invented { frames: 60, ..Invented::default() }.records();
    let mut live = live(&records);
    let mut page_data = String::new();
    let mut decision = live.decide();
    for slots in frames(&records) {
        live.push(slots[0].frame, slots);
        decision = live.decide();
        if live.frames().is_multiple_of(6) || decision.enough {
            let widest = decision.arms[decision.widest - 1];
            let more = decision.more_s.map_or("?".to_owned(), |more_s| format!("{more_s:.1}"));
            page_data += &format!(
                "{} frames: arm {} +-{:.4}, {more} s more, enough: {}\n",
                live.frames(),
                decision.widest,
                widest.half_width(),
                decision.enough
            );
        }
        if decision.enough {
            break;
        }
    }
    expect![[r#"
        6 frames: arm 2 +-0.0227, 17.4 s more, enough: false
        12 frames: arm 1 +-0.0132, 6.6 s more, enough: false
        18 frames: arm 1 +-0.0113, 6.6 s more, enough: false
        24 frames: arm 1 +-0.0140, 15.6 s more, enough: false
        30 frames: arm 1 +-0.0114, 10.8 s more, enough: false
        36 frames: arm 1 +-0.0091, 0.0 s more, enough: false
        40 frames: arm 1 +-0.0081, 0.0 s more, enough: true
    "#]]
    .assert_eq(&page_data);

    let frames = live.frames() as u32;
    records.frames.retain(|frame| frame.frame < frames);
    records.slots.retain(|slot| slot.frame < frames);
    records.cells[0].ending = Some(CellEnding::Precision);
    let analysis = assess(&records);
    let effects: Vec<_> = analysis.cells[0].arms[1..].iter().map(|arm| arm.estimates[0].effect).collect();
    assert_eq!(effects, decision.arms);
}

#[test]
fn the_last_line_of_a_cell_and_its_table_are_one_computation() {
    let by_width = [CellEnding::Budget, CellEnding::Precision, CellEnding::Interrupted].map(|ending| (ending, false));
    let by_answer = [CellEnding::Budget, CellEnding::Decided, CellEnding::Interrupted].map(|ending| (ending, true));
    for (ending, until_decided) in by_width.into_iter().chain(by_answer) {
        let mut records = Invented { frames: 17, ..Invented::default() }.records();
        records.plan.experiment.measure.until_decided = until_decided;
        // An interrupted run has not ended its cell.
        records.cells[0].ending = Some(ending.clone()).filter(|ending| *ending != CellEnding::Interrupted);
        let mut live = live(&records);
        frames(&records).for_each(|slots| live.push(slots[0].frame, slots));
        let told = live.ended(&ending).expect("enough frames");
        let tabled: Vec<_> = assess(&records).cells[0].arms[1..].iter().map(|arm| arm.estimates[0].effect).collect();
        assert_eq!(told, tabled, "{ending}");
    }
    // An arm whose slots have enough operations in three frames only.
    let mut records = Invented { frames: 17, ..Invented::default() }.records();
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.frame >= 3).for_each(|slot| slot.operations = 19);
    let mut few = live(&records);
    frames(&records).for_each(|slots| few.push(slots[0].frame, slots));
    let told = few.ended(&CellEnding::Budget).expect("enough frames of the other arm");
    let tabled: Vec<_> = assess(&records).cells[0].arms[1..].iter().map(|arm| arm.estimates[0].effect).collect();
    assert_eq!(told, tabled);
    assert!(told[0].half_width().is_infinite() && told[1].half_width().is_finite());
    let ended = |count: u32| {
        let records = Invented { frames: count, ..Invented::default() }.records();
        let mut live = live(&records);
        frames(&records).for_each(|slots| live.push(slots[0].frame, slots));
        let tabled = assess(&records).cells.remove(0).arms.into_iter().skip(1).map(|arm| arm.estimates[0].effect);
        (live.ended(&CellEnding::Budget), tabled.collect::<Vec<_>>())
    };
    assert_eq!(ended(14).0, None, "14 frames make no interval, live as in the table");
    let (told, tabled) = ended(15);
    assert_eq!(told.as_ref(), Some(&tabled));
    assert!(tabled.iter().all(|effect| effect.half_width().is_finite()), "{tabled:?}");
}

#[test]
fn starts_that_were_not_steady_count_neither_live_nor_in_the_table() {
    let mut records = Invented { frames: 40, ..Invented::default() }.records();
    records.plan.experiment.measure.precision = 1.0;
    records.plan.cells[0].starts = Starts::Several(8);
    records.frames.iter_mut().for_each(|frame| frame.start = frame.frame / 5);
    let ended = |start: u32| if start == 2 { Steadiness::Changing } else { Steadiness::Steady };
    records.cells[0].warm_ups = (0..8).map(|start| warmed_up(start, ended(start))).collect();
    let [mut steady, mut all] = [live(&records), live(&records)];
    for slots in frames(&records) {
        let start = slots[0].frame / 5;
        if slots[0].frame.is_multiple_of(5) {
            steady.warmed_up(records.cells[0].warm_ups[start as usize].clone());
        }
        steady.push(start, slots);
        all.push(start, slots);
    }
    let told = steady.ended(&CellEnding::Budget).expect("enough frames");
    let tabled: Vec<_> = assess(&records).cells[0].arms[1..].iter().map(|arm| arm.estimates[0].effect).collect();
    assert_eq!(told, tabled);
    assert_eq!((steady.frames(), all.frames()), (35, 40));
    // Seven steady starts are fewer than planned.
    assert_eq!((steady.decide().enough, all.decide().enough), (false, true));
}

#[test]
fn never_stops_before_fifteen_frames_or_between_looks() {
    let records = Invented { frames: 40, spread: 0.001, ..Invented::default() }.records();
    let mut live = live(&records);
    let mut enough = Vec::new();
    for slots in frames(&records) {
        live.push(slots[0].frame, slots);
        if live.decide().enough {
            enough.push(live.frames());
        }
    }
    assert_eq!(enough, [15, 18, 22, 27, 33, 40]);
}

#[test]
fn the_result_of_a_long_cell_is_computed_at_every_check_and_with_each_percent_of_frames() {
    let records = Invented { frames: 400, spread: 0.001, ..Invented::default() }.records();
    let (mut live, mut never_asked) = (live(&records), live(&records));
    let (mut enough, mut checks, mut computed, mut last) = (Vec::new(), Vec::new(), 0, Vec::new());
    for slots in frames(&records) {
        live.push(slots[0].frame, slots);
        never_asked.push(slots[0].frame, slots);
        // It has not been asked before, so it knows no other result than that of all frames.
        let now = never_asked.clone().decide();
        let decision = live.decide();
        enough.extend(decision.enough.then(|| live.frames()));
        checks.extend(now.enough.then(|| live.frames()));
        if now.enough || live.frames() < 200 {
            assert_eq!(decision, now, "{} frames", live.frames());
        }
        computed += usize::from(live.frames() > 300 && decision.arms != last);
        last = decision.arms;
    }
    assert_eq!(enough, checks);
    // In the last hundred frames: after every third or fourth, and at the checks.
    assert!((25..40).contains(&computed), "{computed}");
}

#[test]
fn where_neighbours_are_not_seen_processor_time_decides() {
    let records = Invented { frames: 1, clients: 8, ..Invented::default() }.records();
    let mut live = live(&records);
    assert_eq!((live.metric(), live.decide().enough), (None, false));
    frames(&records).for_each(|slots| live.push(slots[0].frame, slots));
    assert_eq!(live.metric(), Some(Metric::Cpu));
    // One frame gives an estimate and no interval.
    let decision = live.decide();
    assert!(decision.arms.iter().all(|arm| arm.estimate.is_finite() && arm.high.is_infinite()));
    assert_eq!((decision.more_s, decision.bought), (None, None));
}

#[test]
fn load_is_divided_among_starts_by_what_they_show_and_cost() {
    let mut records = Invented { frames: 48, ..Invented::default() }.records();
    records.plan.cells[0].starts = Starts::Several(12);
    let starts_of = |records: &Records, took_s: Option<f64>| {
        let mut live = live(records);
        live.expect(1.0, 48);
        took_s.into_iter().for_each(|took_s| live.started_anew(took_s));
        // Four frames per start.
        frames(records).for_each(|slots| live.push(slots[0].frame / 4, slots));
        let decision = live.decide();
        (decision.starts, decision.starting_s)
    };
    // First without a known cost of a start; then with an expensive and a cheap one. These starts do not differ.
    assert_eq!(starts_of(&records, None), (None, 0.0));
    assert_eq!(starts_of(&records, Some(0.0)), (None, 0.0));
    assert_eq!(starts_of(&records, Some(10.0)), (Some(8), 0.0));
    // The experiment's number of starts is kept.
    records.plan.experiment.measure.starts = Some(12);
    assert_eq!(starts_of(&records, Some(10.0)), (None, 0.0));
    // Too few to estimate whether they differ: starts that the load does not allow are left out.
    records.plan.experiment.measure.starts = None;
    records.slots.retain(|slot| slot.frame < 8);
    assert_eq!(starts_of(&records, Some(1.0)), (Some(12), 10.0));
    assert_eq!(starts_of(&records, Some(3.2)), (Some(10), 8.0 * 3.2));
    assert_eq!(starts_of(&records, Some(100.0)), (Some(8), 600.0));
    // A long warm-up of the first servers leaves less time for the others.
    let starts_after = |first_s: f64| {
        let mut live = live(&records);
        live.expect(1.0, 48);
        live.warming_up(first_s);
        live.started_anew(3.2);
        live.warming_up(100.0);
        frames(&records).for_each(|slots| live.push(slots[0].frame / 4, slots));
        live.decide().starts
    };
    assert_eq!((starts_after(3.2), starts_after(6.3)), (Some(10), Some(9)));
    // If frames, warm-up and restarts all take as many times as long, there are as many starts.
    let starts_slower = |times: f64| {
        let mut live = live(&records);
        live.expect(times, 48);
        live.warming_up(6.3 * times);
        live.started_anew(3.2 * times);
        frames(&records).for_each(|slots| live.push(slots[0].frame / 4, slots));
        live.decide().starts
    };
    assert_eq!([0.5, 1.0, 4.0].map(starts_slower), [Some(9); 3]);
    // Two of eight starts in two epochs, and eight of 48 frames.
    (records.plan.cells[0].starts, records.plan.cells[0].epochs) = (Starts::Several(8), 2);
    assert_eq!(starts_of(&records, Some(1.0)).1, 6.0);
    (records.plan.cells[0].starts, records.plan.cells[0].epochs) = (Starts::EveryFrame, 1);
    let mut live = live(&records);
    live.expect(1.0, 48);
    live.started_anew(0.5);
    frames(&records).for_each(|slots| live.push(slots[0].frame, slots));
    assert_eq!(live.decide().starting_s, 20.0);
}

/// The known spread of other starts does not reduce the number of planned starts. Of many, eight are enough.
#[test]
fn no_width_ends_a_cell_before_its_epochs_have_begun() {
    let mut records = Invented { frames: 60, ..Invented::default() }.records();
    records.plan.start_spread = start_spread::built_in("postgres");
    records.plan.experiment.measure.precision = 0.2;
    let mut enough_from = |starts: Starts, epochs: u32| {
        (records.plan.cells[0].starts, records.plan.cells[0].epochs) = (starts, epochs);
        let planned = records.plan.cells[0].planned_starts().expect("not one for each frame");
        let mut live = live(&records);
        frames(&records).find_map(|slots| {
            live.push(slots[0].frame * planned / 60, slots);
            live.decide().enough.then(|| live.frames())
        })
    };
    let once = enough_from(Starts::Once, 1);
    assert!(once.is_some_and(|frames| frames < 30), "{once:?}");
    assert_eq!(enough_from(Starts::Once, 4), Some(46));
    assert_eq!([12, 24].map(|planned| enough_from(Starts::Several(planned), 1)), [Some(36), Some(19)]);
}

#[test]
fn the_pace_of_an_open_loop_has_the_latency_of_its_report() {
    let invented = Invented { frames: 1, arrivals: Arrivals::Even(5000.0), latencies: false, ..Invented::default() };
    let mut records = invented.records();
    let of = |ns: u64| -> BTreeMap<String, Histogram> {
        let mut latency = Histogram::default();
        (0..100).for_each(|_| latency.record(ns));
        [("READ".to_owned(), latency)].into()
    };
    let arm = &mut records.frames[0].arms[0];
    (arm.latency, arm.intended) = (of(20_000), of(900_000));
    let p99_us = |records: &Records| {
        let pace = Pace::of(&records.plan.cells[0], &records.frames[0], &records.slots, 0);
        pace.and_then(|pace| pace.latency_p99_us).expect("operations").round()
    };
    let open = p99_us(&records);
    assert!((850.0..950.0).contains(&open), "{open}");
    // A closed loop intends nothing.
    records.frames[0].arms[0].intended.clear();
    let closed = p99_us(&records);
    assert!((19.0..21.0).contains(&closed), "{closed}");
}

/// They are known to differ less from start to start than servers of their own.
#[test]
fn arms_that_share_a_server_have_its_spread_live_as_in_the_table() {
    let mut records = Invented { frames: 20, ..Invented::default() }.records();
    records.plan.start_spread = start_spread::built_in("postgres");
    records.plan.one_server_spread = Some(start_spread::on_one_server("postgres"));
    records.plan.cells[0].starts = Starts::Once;
    records.frames.iter_mut().for_each(|frame| frame.start = 0);
    let widths = [false, true].map(|shared| {
        records.cells[0].shares_starts = shared;
        let mut live = live(&records);
        if shared {
            live.starts_shared(&records.plan);
        }
        frames(&records).for_each(|slots| live.push(0, slots));
        let told = live.ended(&CellEnding::Budget).expect("enough frames");
        let tabled: Vec<_> = assess(&records).cells[0].arms[1..].iter().map(|arm| arm.estimates[0].effect).collect();
        assert_eq!(told, tabled, "shared: {shared}");
        told[0].half_width()
    });
    assert!(widths[1] < widths[0], "{widths:?}");
}

/// Is the cell decided after its frames, and what does the report of a cell that ended so say about the first protected
/// arm?
fn decided(records: &mut Records) -> (bool, Estimate) {
    records.plan.experiment.measure.until_decided = true;
    records.cells[0].ending = Some(CellEnding::Decided);
    let mut live = live(records);
    records.cells[0].warm_ups.iter().cloned().for_each(|warm_up| live.warmed_up(warm_up));
    for (frame, slots) in records.frames.iter().zip(frames(records)) {
        live.push(frame.start, slots);
    }
    (live.decide().enough, assess(records).cells[0].arms[1].primary().expect("a figure").clone())
}

/// A run whose first protected arm costs as many times as `times` says of a frame.
fn moving(frames: u32, times: impl Fn(u32) -> f64) -> Records {
    let effects = vec![0.0, 0.0];
    let mut records = Invented { frames, effects, spread: 0.001, latencies: false, ..Invented::default() }.records();
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
        let more = |ns: &mut u64| *ns = (*ns as f64 * times(slot.frame)) as u64;
        [&mut slot.wall_ns, &mut slot.latency_sum_ns, &mut slot.client_cpu_ns, &mut slot.server_cpu_ns]
            .into_iter()
            .for_each(more);
    }
    records
}

#[test]
fn a_cost_that_moved_too_far_is_not_decided() {
    let (enough, cost) = decided(&mut moving(15, |_| 2.0));
    assert_eq!((enough, cost.verdict), (true, Outcome::Costs));
    let (enough, cost) = decided(&mut moving(15, |frame| 1.0 + 4.0 * (-f64::from(frame) / 4.0).exp()));
    assert_eq!((enough, cost.flags.contains(&Flag::Moved)), (false, true));
}

#[test]
fn an_answer_that_is_within_what_unsteady_starts_moved_is_not_decided() {
    let on_starts = |ended: Steadiness| {
        let mut records = moving(40, |frame| if frame % 5 < 2 { 1.035 } else { 1.01 });
        records.plan.cells[0].starts = Starts::Several(8);
        records.frames.iter_mut().for_each(|frame| frame.start = frame.frame / 5);
        records.cells[0].warm_ups = (0..8).map(|start| warmed_up(start, ended)).collect();
        let (enough, cost) = decided(&mut records);
        (enough, cost.verdict, cost.flags.contains(&Flag::NotSteady))
    };
    assert_eq!(on_starts(Steadiness::Steady), (true, Outcome::Costs, false));
    assert_eq!(on_starts(Steadiness::Changing), (false, Outcome::TooNoisy, true));
}

#[test]
fn waiting_decides_nothing_where_an_arm_without_a_protection_waits_differently() {
    let waits = |of_second: u64| {
        let invented = Invented { frames: 15, effects: vec![0.0; 3], spread: 0.2, ..Invented::default() };
        let mut records = Invented { latencies: false, ..invented }.records();
        records.plan.experiment.arms[2].protections.clear();
        for slot in &mut records.slots {
            let tenths = [10, 16, of_second][slot.arm as usize];
            (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns * tenths / 10, slot.latency_sum_ns * tenths / 10);
        }
        let (enough, cost) = decided(&mut records);
        (enough, cost.name.to_string(), cost.verdict)
    };
    assert_eq!(waits(15), (false, "cpu".to_owned(), Outcome::TooNoisy));
}

/// An arm that protects nothing waits for half as long again, and uses as much processor time.
#[test]
fn processor_time_decides_live_as_in_the_table_except_on_volumes() {
    let decides = |protection: &str| {
        let invented = Invented { frames: 15, effects: vec![0.0, 0.2, 0.0], latencies: false, ..Invented::default() };
        let mut records = invented.records();
        protection.clone_into(&mut records.plan.experiment.arms[1].protections[0].id);
        records.plan.experiment.arms[2].protections.clear();
        for slot in records.slots.iter_mut().filter(|slot| slot.arm == 2) {
            (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns * 3 / 2, slot.latency_sum_ns * 3 / 2);
        }
        if protection == "volume-luks2" {
            records.cells[0].arms[1].set(Fact::Volume, "an encrypted image".to_owned());
        }
        let mut live = live(&records);
        frames(&records).for_each(|slots| live.push(slots[0].frame, slots));
        let analysis = assess(&records);
        let arms = &analysis.cells[0].arms[1..];
        let tabled: Vec<_> = arms.iter().map(|arm| arm.primary().expect("a figure").effect).collect();
        assert_eq!(live.ended(&CellEnding::Budget), Some(tabled), "{protection}");
        let decides = arms[0].primary().expect("a figure").name.to_string();
        (live.metric().map(|metric| Figure::Metric(metric).to_string()), decides)
    };
    let both = |name: &str| (Some(name.to_owned()), name.to_owned());
    assert_eq!([decides("audit"), decides("volume-luks2")], [both("cpu"), both("net")]);
}

#[test]
fn nothing_is_decided_where_the_plain_arm_differs_from_itself() {
    let of_aa = |effect: f64| {
        let invented = Invented { frames: 40, effects: vec![0.0, 0.5, effect], spread: 0.01, ..Invented::default() };
        let mut records = Invented { latencies: false, ..invented }.records();
        records.plan.experiment.arms[2].protections.clear();
        records.plan.experiment.arms[2].aa = true;
        let (enough, cost) = decided(&mut records);
        (enough, cost.is_symmetric())
    };
    assert_eq!([of_aa(0.0), of_aa(0.05)], [(true, true), (false, false)]);
}

#[test]
fn no_width_of_net_time_ends_a_cell_that_processor_time_decides() {
    let enough = |of_second: u64| {
        let invented = Invented { frames: 15, effects: vec![0.0; 3], latencies: false, ..Invented::default() };
        let mut records = invented.records();
        records.plan.experiment.measure.precision = 0.1;
        records.plan.experiment.arms[2].protections.clear();
        for slot in &mut records.slots {
            let tenths = [10, 10, of_second][slot.arm as usize];
            (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns * tenths / 10, slot.latency_sum_ns * tenths / 10);
            if slot.arm == 1 && slot.frame % 2 == 1 {
                slot.server_cpu_ns *= 3;
            }
        }
        let mut live = live(&records);
        frames(&records).for_each(|slots| live.push(slots[0].frame, slots));
        let decides = assess(&records).cells[0].arms[1].primary().expect("a figure").name.to_string();
        (live.decide().enough, decides)
    };
    assert_eq!([enough(10), enough(15)], [(true, "net".to_owned()), (false, "cpu".to_owned())]);
}
