//! Starts: which ones count, how much they differ, and what changes from the first to the last.

use expect_test::expect;
use tithe_analysis::{Flag, Outcome, assess::assess};
use tithe_model::{
    plan::{Starts, WarmUp},
    profile::{ProfiledArm, ProfiledFrame},
    records::Records,
    start_spread::{self, CostSpread},
    steady::Steadiness,
};

use super::estimate;
use crate::synthetic::{Invented, warmed_up};

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
