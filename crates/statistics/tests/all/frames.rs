//! Slots to effects: which slots count, for which cost, and the effect of exchanging the arms.

use tithe_model::{experiment::Metric, record::Slot};
use tithe_statistics::pairing::{
    MIN_OPERATIONS, Spent, fewest_pairs, frame_difference, frame_effect, frame_spent, ratio_effect, slot_cost, spent,
    total_difference,
};

const METRICS: [Metric; 5] = [Metric::Time, Metric::Net, Metric::Cpu, Metric::ClientCpu, Metric::ServerCpu];

/// A slot whose figures are all different.
fn slot() -> Slot {
    Slot {
        operations: 40,
        counted: 30,
        wall_ns: 1000,
        latency_sum_ns: 600,
        client_cpu_ns: 70,
        server_cpu_ns: 500,
        wait_ns: 11,
        stalled_ns: Some(13),
        ..Slot::default()
    }
}

#[test]
fn each_metric_has_its_figures() {
    let of = |slot: &Slot| METRICS.map(|metric| spent(slot, metric).map(|it| (it.cost, it.operations)));
    let others = [Some((570.0, 40.0)), Some((70.0, 40.0)), Some((500.0, 40.0))];
    let expected = |net| [Some((600.0, 30.0)), net, others[0], others[1], others[2]];
    assert_eq!(of(&slot()), expected(Some((987.0, 40.0))));
    assert_eq!(of(&Slot { stalled_ns: None, ..slot() }), expected(None));
}

#[test]
fn a_slot_that_says_too_little_has_no_cost() {
    assert_eq!(METRICS.map(|metric| slot_cost(&slot(), metric)), [20.0, 24.675, 14.25, 1.75, 12.5].map(Some));
    let none = |slot: Slot| METRICS.iter().all(|metric| slot_cost(&slot, *metric).is_none());
    assert!(none(Slot { operations: MIN_OPERATIONS - 1, ..slot() }));
    assert!(!none(Slot { operations: MIN_OPERATIONS, ..slot() }));
    assert!(none(Slot { counted: 0, ..slot() }));
    assert!(!none(Slot { counted: 1, ..slot() }));
    // A cost of zero or less is no cost.
    assert_eq!(slot_cost(&Slot { client_cpu_ns: 0, ..slot() }, Metric::ClientCpu), None);
    for stalled_ns in [1000, 1001] {
        assert_eq!(slot_cost(&Slot { stalled_ns: Some(stalled_ns), ..slot() }, Metric::Net), None);
    }
}

#[test]
fn three_quarters_of_the_pairs_of_a_frame_are_enough_and_eight_always_are() {
    let frame = |blocks: u32| (0..blocks).map(|block| Slot { block, ..slot() }).collect::<Vec<Slot>>();
    let fewest = |blocks: u32, lanes: usize| fewest_pairs(&frame(blocks), lanes);
    assert_eq!(
        [
            fewest(0, 4),
            fewest(1, 1),
            fewest(3, 1),
            fewest(4, 1),
            fewest(3, 2),
            fewest(4, 2),
            fewest(9, 1),
            fewest(5, 2)
        ],
        [1, 1, 3, 3, 5, 6, 7, 8]
    );
    assert_eq!((fewest(5, 0), fewest(100, 64)), (1, 8));
}

/// Costs of pairs, ns per operation, in slots of fifty operations on two lanes.
fn pairs(costs: &[(u64, u64)]) -> Vec<Slot> {
    let slot = |place: usize, arm: u32, cost: u64| Slot {
        block: place as u32 / 2,
        lane: place as u32 % 2,
        arm,
        operations: 50,
        counted: 50,
        wall_ns: 50 * cost,
        stalled_ns: Some(0),
        ..Slot::default()
    };
    let both = |(place, (plain, protected)): (usize, &(u64, u64))| [slot(place, 3, *plain), slot(place, 1, *protected)];
    costs.iter().enumerate().flat_map(both).collect()
}

const COSTS: [(u64, u64); 10] =
    [(100, 110), (200, 205), (90, 95), (130, 137), (400, 444), (70, 71), (100, 107), (100, 300), (210, 230), (95, 96)];

fn effects(slots: &[Slot]) -> [Option<f64>; 2] {
    [frame_effect, frame_difference].map(|of| of(slots, 3, 1, Metric::Net, 8))
}

#[test]
fn pairs_are_of_one_block_and_lane_in_any_order() {
    let slots = pairs(&COSTS);
    let [effect, difference] = effects(&slots);
    // By hand, from ten pairs without the two smallest and the two largest. Costs: 5, 5, 7, 7, 10, 20. Logarithms:
    // those of 205/200, 137/130, 95/90, 107/100, 230/210, 110/100.
    let logarithms: f64 = [205.0 / 200.0, 137.0 / 130.0, 95.0 / 90.0, 107.0 / 100.0, 230.0 / 210.0, 1.1_f64]
        .iter()
        .map(|it| it.ln())
        .sum();
    assert!((effect.expect("an effect") - logarithms / 6.0).abs() < 1e-12, "{effect:?}");
    assert_eq!(difference, Some(9.0));
    let mut turned: Vec<Slot> = slots.iter().rev().copied().collect();
    turned.swap(3, 11);
    assert_eq!(effects(&turned), [effect, difference]);
    // Exchanging the arms changes the sign, and another unit scales the difference.
    assert_eq!(frame_difference(&slots, 1, 3, Metric::Net, 8), Some(-9.0));
    let other = frame_effect(&slots, 1, 3, Metric::Net, 8).expect("an effect");
    assert!((other + effect.expect("an effect")).abs() < 1e-15);
    let longer: Vec<Slot> = slots.iter().map(|it| Slot { wall_ns: 8 * it.wall_ns, ..*it }).collect();
    let scaled = effects(&longer);
    assert!((scaled[0].expect("an effect") - effect.expect("an effect")).abs() < 1e-12 && scaled[1] == Some(72.0));
    // Half a pair and other arms are ignored.
    let more = [Slot { block: 77, arm: 1, ..slots[0] }, Slot { block: 78, arm: 3, ..slots[0] }];
    let third = slots.iter().map(|it| Slot { arm: 2, wall_ns: 5, ..*it });
    let more: Vec<Slot> = slots.iter().copied().chain(more).chain(third).collect();
    assert_eq!(effects(&more), [effect, difference]);
}

#[test]
fn a_frame_has_so_many_pairs_or_none() {
    assert_eq!(effects(&pairs(&COSTS[..7])), [None, None]);
    assert!(effects(&pairs(&COSTS[..8])).iter().all(Option::is_some));
}

#[test]
fn a_tenth_of_the_slots_may_show_no_cost() {
    // Of 20 slots two may be lost. A slot with too few operations is not lost, and slots of other arms do not count.
    let lost = |count: usize, lose: fn(&mut Slot)| {
        let mut slots = pairs(&COSTS);
        slots.iter_mut().step_by(2).take(count).for_each(lose);
        frame_effect(&slots, 3, 1, Metric::Net, 1).is_some()
    };
    let no_cost: fn(&mut Slot) = |slot| slot.stalled_ns = Some(slot.wall_ns);
    assert_eq!([1, 2, 3, 4].map(|count| lost(count, no_cost)), [true, true, false, false]);
    let few: fn(&mut Slot) = |slot| (slot.operations, slot.stalled_ns) = (MIN_OPERATIONS - 1, None);
    let late: fn(&mut Slot) = |slot| (slot.counted, slot.stalled_ns) = (0, None);
    let other: fn(&mut Slot) = |slot| (slot.arm, slot.stalled_ns) = (2, None);
    for lose in [few, late, other] {
        assert!(lost(4, lose));
    }
    let just_enough: fn(&mut Slot) =
        |slot| (slot.operations, slot.counted, slot.stalled_ns) = (MIN_OPERATIONS, 1, None);
    assert!(!lost(4, just_enough));
    let protected = |count: usize| {
        let mut slots = pairs(&COSTS);
        slots.iter_mut().skip(1).step_by(2).take(count).for_each(no_cost);
        frame_effect(&slots, 3, 1, Metric::Net, 1).is_some()
    };
    assert_eq!([2, 3].map(protected), [true, false]);
}

#[test]
fn sums_are_of_one_arm_and_of_all_its_slots() {
    let slots = [slot(), Slot { wall_ns: 5, stalled_ns: None, ..slot() }, Slot { arm: 1, ..slot() }];
    let spent = |arm: u32, metric: Metric| frame_spent(&slots, arm, metric).map(|it| (it.cost, it.operations));
    assert_eq!(spent(0, Metric::Net), Some((987.0, 40.0)));
    assert_eq!(spent(0, Metric::Cpu), Some((1140.0, 80.0)));
    assert_eq!(spent(1, Metric::Cpu), Some((570.0, 40.0)));
    assert_eq!(spent(2, Metric::Cpu), None);
    let frames = [slot(), Slot { client_cpu_ns: 3, operations: 60, ..slot() }];
    let sum: Spent = frames.iter().filter_map(|slot| tithe_statistics::pairing::spent(slot, Metric::ClientCpu)).sum();
    assert_eq!(sum, Spent { cost: 73.0, operations: 100.0 });
}

#[test]
fn what_cannot_be_left_out_has_no_ends() {
    let frame = (Spent { cost: 4.0, operations: 2.0 }, Spent { cost: 6.0, operations: 2.0 });
    let none = (Spent::default(), Spent::default());
    for frames in [vec![frame], vec![frame, none]] {
        let found = total_difference(&frames, 0.05);
        assert_eq!((found.estimate, found.low, found.high), (1.0, f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(ratio_effect(&frames, 0.05).low, f64::NEG_INFINITY);
    }
    for none in [ratio_effect(&[], 0.05), total_difference(&[], 0.05)] {
        assert!(none.estimate.is_nan());
        assert_eq!((none.low, none.high), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
