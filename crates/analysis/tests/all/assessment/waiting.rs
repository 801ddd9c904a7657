//! Figures that include waiting: where they decide, and when waiting alone is no saving.

use tithe_analysis::{Flag, Outcome, assess::assess};
use tithe_model::{experiment::Metric, fact::Fact, histogram::Histogram, invalid::Invalid};

use super::estimate;
use crate::synthetic::Invented;

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
