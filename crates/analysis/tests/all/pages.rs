//! Results that are made from records, not from the analysis: the page's curves and timeline, YCSB's lines.

use tithe_analysis::{
    assess::assess,
    report::{
        html::{self, PageData},
        ycsb,
    },
};
use tithe_model::{
    experiment::Arrivals,
    record::{Frame, Slot},
    records::Records,
    steady::Steadiness,
};

use crate::{
    designs::{SIDE, switched},
    synthetic::{Invented, hour, warmed_up},
};

#[test]
fn the_page_data_are_small_and_whole() {
    let records = hour();
    let page_data = PageData::of(records, "title = \"an hour\"");
    assert!(page_data.moments.len() <= 400, "{} moments", page_data.moments.len());
    let invalid = records.frames.iter().filter(|frame| frame.invalid.is_some()).count();
    assert_eq!(page_data.moments.iter().map(|moment| moment.invalid as usize).sum::<usize>(), invalid);
    assert!(page_data.moments.windows(2).all(|pair| pair[0].start_s <= pair[1].start_s));
    assert_eq!(page_data.curves.len(), 3, "one curve an arm for the only operation");
    for curve in &page_data.curves {
        assert!(curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{curve:?}");
    }
    let page = html::render(&assess(records), &page_data);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("class=\"panel\"") && page.contains("class=\"time\"") && page.contains("an hour"));
}

#[test]
fn the_page_is_the_same_whenever_it_is_made() {
    let page = |records: &Records| html::render(&assess(records), &PageData::of(records, ""));
    let records = Invented::default().records();
    assert_eq!(page(&records), page(&records));
}

#[test]
fn ycsb_lines_are_read_as_those_of_ycsb() {
    let records = Invented::default().records();
    let text = ycsb::render(&records);
    let blocks = text.split("# cell ").filter(|block| !block.is_empty()).count();
    assert_eq!(blocks, records.plan.cells.len() * records.plan.experiment.arms.len());
    let mut operations = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(", ").collect();
        let [section, name, value] = parts.as_slice() else { panic!("{line}") };
        assert!(section.starts_with('[') && section.ends_with(']') && !name.is_empty(), "{line}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(value >= 0.0, "{line}");
        operations += if *name == "Operations" { value as u64 } else { 0 };
    }
    let usable = records.frames.iter().filter(|frame| frame.invalid.is_none());
    let seen = usable.flat_map(|frame| &frame.arms).flat_map(|arm| arm.latency.values());
    assert_eq!(operations, seen.map(|histogram| histogram.total()).sum::<u64>());
}

#[test]
fn frames_that_bind_nothing_are_in_no_lines_and_no_curve() {
    let mut records = Invented::default().records();
    let made = |records: &Records| (ycsb::render(records), PageData::of(records, "").curves);
    let before = made(&records);
    let (number, first) = (records.frames.len() as u32, records.frames[0].clone());
    let slots: Vec<_> = records.slots.iter().filter(|slot| slot.frame == first.frame).copied().collect();
    records.slots.extend(slots.into_iter().map(|slot| Slot { frame: number, ..slot }));
    records.frames.push(Frame { frame: number, free: true, ..first });
    assert_eq!(made(&records), before);
    // The control: frames with binding count.
    records.frames.last_mut().expect("a frame").free = false;
    assert_ne!(made(&records), before);
}

#[test]
fn starts_that_were_not_steady_are_in_no_lines_and_no_curve() {
    let mut records = Invented::default().records();
    let made = |records: &Records| (ycsb::render(records), PageData::of(records, "").curves);
    let of_all = made(&records);
    let ended = |start: u32| if start == 1 { Steadiness::Changing } else { Steadiness::Steady };
    let starts = 0..records.frames.len() as u32;
    records.cells[0].warm_ups = starts.map(|start| warmed_up(start, ended(start))).collect();
    assert_eq!(assess(&records).cells[0].frames, records.frames.len() - 1);
    let of_steady = made(&records);
    assert!(of_steady.0 != of_all.0 && of_steady.1 != of_all.1);
    records.frames.retain(|frame| frame.start != 1);
    assert_eq!(made(&records), of_steady);
}

#[test]
fn a_pair_of_sides_that_was_cut_short_is_in_no_lines_and_no_curve() {
    let mut records = switched(3, 0.05);
    let made = |records: &Records| (ycsb::render(records), PageData::of(records, "").curves);
    let last_of_second = 4 * SIDE - 1;
    records.frames.retain(|frame| frame.frame != last_of_second);
    let of_whole = made(&records);
    assert_eq!(assess(&records).cells[0].frames, 4 * SIDE as usize);
    records.frames.retain(|frame| frame.start != 1);
    assert_eq!(made(&records), of_whole);
}

#[test]
fn the_lines_of_an_open_loop_have_the_rate_at_which_operations_were_due() {
    let mut records = Invented { arrivals: Arrivals::Even(5000.0), ..Invented::default() }.records();
    // In 16 of the 20 ms of a slot are 40 operations of each lane due, the last after 15.6 ms.
    for slot in &mut records.slots {
        (slot.operations, slot.counted, slot.wall_ns) = (40, 38, 15_700_000);
    }
    let text = ycsb::render(&records);
    assert!(text.contains("[OVERALL], Throughput(ops/sec), 5000\n"), "{text}");
}
