//! How many frames an interval needs, how wide it is, and how long a narrower one would take.

use expect_test::expect;
use tithe_analysis::{Estimate, Flag, Outcome, assess::resolution::resolutions};
use tithe_model::{histogram::Histogram, plan::Starts, start_spread};

use super::{estimate, line};
use crate::synthetic::Invented;

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
