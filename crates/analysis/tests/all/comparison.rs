//! Runs against each other: identical ones do not differ, however much their starts vary.

use tithe_analysis::{Analysis, Proof, assess::assess, compare};
use tithe_model::record::{Counters, Slot};

use crate::synthetic::{Invented, Noise};

/// Frames that share a start of the servers.
const FRAMES_A_START: u32 = 5;

/// A run of one proven arm that costs 10 %, with start-to-start variation of 1 % of an operation.
fn run(seed: u64, starts: u32, effect: f64) -> Analysis {
    let frames = starts * FRAMES_A_START;
    let effects = vec![0.0, effect];
    let mut records = Invented { seed, frames, effects, latencies: false, ..Invented::default() }.records();
    let mut noise = Noise::new(seed + 1_000_000);
    let luck: Vec<f64> = (0..starts).map(|_| (0.01 * noise.normal()).exp()).collect();
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
        slower(slot, luck[(slot.frame / FRAMES_A_START) as usize]);
    }
    for frame in &mut records.frames {
        frame.start = frame.frame / FRAMES_A_START;
        for arm in &mut frame.arms {
            arm.latency.clear();
            arm.counters = Counters::default();
        }
    }
    let mut analysis = assess(&records);
    analysis.run = format!("run {seed}");
    analysis.cells[0].arms[1].proof = Proof::Proven;
    analysis
}

/// Multiplies every time of `slot` by `factor`.
fn slower(slot: &mut Slot, factor: f64) {
    let times = [&mut slot.wall_ns, &mut slot.latency_sum_ns, &mut slot.client_cpu_ns, &mut slot.server_cpu_ns];
    times.into_iter().for_each(|ns| *ns = (*ns as f64 * factor) as u64);
}

fn compared(one: &Analysis, other: &Analysis) -> compare::Match {
    let compared = compare::compare(&[one.clone(), other.clone()], &[]).expect("runs alike");
    compared.matches.into_iter().next().expect("an arm")
}

#[test]
fn identical_runs_differ_in_five_of_a_hundred_pairs_at_most() {
    const PAIRS: u64 = 200;
    let (mut differ, mut beyond) = (0, 0);
    for pair in 0..PAIRS {
        let matched = compared(&run(1 + 2 * pair, 6, 0.1), &run(2 + 2 * pair, 6, 0.1));
        assert_eq!(matched.sides[0].estimate.starts, 6);
        differ += u32::from(matched.least().is_some());
        beyond += u32::from(matched.changes()[0].beyond(0.0));
    }
    // At 5 % each, more than 20 of 200 differ once in a thousand times; half of the differences are growth.
    assert!(differ <= 20, "{differ} of {PAIRS} pairs differ");
    assert!(beyond <= 13, "{beyond} of {PAIRS} pairs grew");
}

#[test]
fn a_cost_that_grew_is_found_and_told_in_points() {
    let matched = compared(&run(1, 6, 0.1), &run(2, 6, 0.25));
    assert_eq!(matched.least(), Some(0));
    let change = matched.changes()[0];
    let grew = 0.25_f64.exp() - 0.1_f64.exp();
    assert!(change.points.holds(grew) && change.ratio.holds(0.15), "{change:?}");
    assert!(change.beyond(0.1) && !change.beyond(grew), "{change:?}");
}
