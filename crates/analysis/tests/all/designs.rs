//! The A/A arm, sequential practice, frames that bind nothing, carry-over, and answers that are looked at all the
//! time.

use tithe_analysis::{Estimate, Figure, Flag, Outcome, Proof, assess::assess, stopping::Live};
use tithe_model::{
    ending::CellEnding,
    experiment::Design,
    record::{PHASES_NS, Slot},
    records::Records,
};

use crate::synthetic::Invented;

fn estimate(records: &Records, arm: usize, name: &str) -> Estimate {
    let analysis = assess(records);
    let estimates = &analysis.cells[0].arms[arm].estimates;
    estimates.iter().find(|estimate| estimate.name.to_string() == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

/// Three arms, the last of which is a second instance of the baseline that costs `effect`.
fn with_aa_arm(effect: f64) -> Records {
    let mut records = Invented { effects: vec![0.0, 0.05, effect], ..Invented::default() }.records();
    records.plan.experiment.arms[2].protections.clear();
    records.plan.experiment.arms[2].aa = true;
    records
}

#[test]
fn an_aa_arm_that_differs_takes_every_answer_back() {
    let records = with_aa_arm(0.03);
    assert!(estimate(&records, 1, "net").flags.contains(&Flag::Asymmetric));
    let analysis = assess(&records);
    assert_eq!(analysis.cells[0].arms[2].proof, Proof::Baseline);
    assert!(analysis.warnings.iter().any(|warning| warning.contains("not symmetric")), "{:?}", analysis.warnings);

    let records = with_aa_arm(0.0);
    assert!(!estimate(&records, 1, "net").flags.contains(&Flag::Asymmetric));
    assert_eq!(estimate(&records, 1, "net").verdict, Outcome::Costs);
}

#[test]
fn an_arm_of_the_experiments_that_protects_nothing_says_nothing_about_the_others() {
    // The second arm is a true twin; the third has no protections and is dearer for a reason of the user's.
    let mut records = Invented { effects: vec![0.0, 0.0, 0.05], ..Invented::default() }.records();
    records.plan.experiment.arms[1..].iter_mut().for_each(|arm| arm.protections.clear());
    assert_eq!(estimate(&records, 2, "net").verdict, Outcome::Costs);
    let flagged = |arm: usize| estimate(&records, arm, "net").flags.contains(&Flag::Asymmetric);
    assert!(!flagged(1) && !flagged(2), "nobody asked for an A/A arm");
    records.plan.experiment.arms[1].aa = true;
    assert!(!estimate(&records, 2, "net").flags.contains(&Flag::Asymmetric), "the A/A arm does not differ");
}

/// The same records as if `arm` had not been measured.
fn without(mut records: Records, arm: usize) -> Records {
    records.plan.experiment.arms.remove(arm);
    records.cells[0].arms.remove(arm);
    records.frames.iter_mut().for_each(|frame| drop(frame.arms.remove(arm)));
    records.findings.retain(|finding| finding.arm as usize != arm);
    records.slots.retain(|slot| slot.arm as usize != arm);
    let renumber = |number: &mut u32| *number -= u32::from(*number as usize > arm);
    records.findings.iter_mut().for_each(|finding| renumber(&mut finding.arm));
    records.slots.iter_mut().for_each(|slot| renumber(&mut slot.arm));
    records
}

#[test]
fn p_is_adjusted_over_the_arms() {
    let records = || Invented { effects: vec![0.0, 0.004, 0.0], frames: 30, ..Invented::default() }.records();
    let p = |records: &Records, arm: usize| estimate(records, arm, "net").p.expect("a series of frames");
    let alone = [2, 1].map(|other| p(&without(records(), other), 1));
    let together = [1, 2].map(|arm| p(&records(), arm));
    // Of two, the smaller one counts twice, and the larger one is at least that (Holm 1979).
    let least = (2.0 * alone[0].min(alone[1])).min(1.0);
    assert!(least > alone[0].min(alone[1]), "nothing to adjust: {alone:?}");
    for (alone, together) in alone.into_iter().zip(together) {
        assert!((together - alone.max(least)).abs() < 1e-12, "{alone} alone and {together} of two");
    }
}

#[test]
fn sequential_practice_takes_the_drift_for_a_cost() {
    let mut records = Invented { effects: vec![0.0, 0.0], frames: 60, ..Invented::default() }.records();
    records.plan.cells[0].design = Design::Sequential;
    // One arm a frame, the second half 30 % slower for everyone.
    records.slots.retain(|slot| (slot.arm == 1) == (slot.frame >= 30));
    for slot in records.slots.iter_mut().filter(|slot| slot.frame >= 30) {
        let slower = |ns: &mut u64| *ns = *ns * 13 / 10;
        [&mut slot.wall_ns, &mut slot.latency_sum_ns, &mut slot.client_cpu_ns, &mut slot.server_cpu_ns]
            .into_iter()
            .for_each(slower);
    }
    let time = estimate(&records, 1, "time");
    assert!((time.effect.estimate - 1.3_f64.ln()).abs() < 0.2, "{time:?}");
    let warnings = assess(&records).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("one after the other")), "{warnings:?}");
}

#[test]
fn frames_that_bind_nothing_stand_beside() {
    let mut records = Invented { frames: 40, ..Invented::default() }.records();
    let bound = estimate(&records, 1, "cpu");
    assert!(
        assess(&records).cells[0].arms[1].estimates.iter().all(|estimate| !matches!(estimate.name, Figure::Free(_)))
    );
    records.frames.iter_mut().filter(|frame| frame.frame >= 35).for_each(|frame| frame.free = true);
    let free = estimate(&records, 1, "free_cpu");
    assert_eq!(free.count, 5);
    assert_eq!(assess(&records).cells[0].frames, 35);
    assert!(free.effect.half_width() > bound.effect.half_width());
}

#[test]
fn carry_over_is_flagged_where_it_moves_a_figure() {
    let mut records = Invented { frames: 20, ..Invented::default() }.records();
    let mut flagged = |baseline: f64, protected: f64| {
        for frame in &mut records.frames {
            frame.settling_ns = 1_000_000;
            for (arm, early) in frame.arms.iter_mut().zip([baseline, protected]) {
                // The phase from 1 to 2 ms holds a fifth of the operations that count.
                arm.phases = vec![(500, 10.0); PHASES_NS.len()];
                arm.phases[3].1 += early + f64::from(frame.frame % 3) * 0.001;
            }
        }
        estimate(&records, 1, "time").flags.contains(&Flag::CarryOver)
    };
    assert!(!flagged(0.0, 0.0));
    assert!(flagged(0.0, 0.05));
    assert!(flagged(0.05, 0.0), "it hides a cost as well as it makes one");
    assert!(!flagged(0.05, 0.05), "what every arm finds moves no ratio");
    assert!(!flagged(0.0, 0.01), "a fifth of 1 % is less than anybody asks for");
}

#[test]
fn an_answer_may_be_looked_at_after_every_frame() {
    let mut records = Invented { effects: vec![0.0, 0.08], frames: 60, ..Invented::default() }.records();
    records.plan.experiment.measure.until_decided = true;
    let mut live = Live::new(&records.plan, 0);
    let frames: Vec<&[Slot]> = records.slots.chunk_by(|a, b| a.frame == b.frame).collect();
    let last = frames.iter().find_map(|slots| {
        live.push(slots[0].frame, slots);
        let decision = live.decide();
        decision.enough.then_some(decision)
    });
    let decision = last.expect("a cost of 8 % is certain within 60 frames");
    assert!(live.frames() >= 10 && decision.arms[0].low > 0.0, "{decision:?}");
    let until = live.frames() as u32;
    records.frames.retain(|frame| frame.frame < until);
    records.slots.retain(|slot| slot.frame < until);
    records.cells[0].ending = Some(CellEnding::Decided);
    assert_eq!(estimate(&records, 1, "net").effect, decision.arms[0], "the report says what the run went by");
}

#[test]
fn the_width_that_the_budget_buys_falls_with_the_root_of_the_frames() {
    let records = Invented { frames: 80, ..Invented::default() }.records();
    let mut live = Live::new(&records.plan, 0);
    records.slots.chunk_by(|a, b| a.frame == b.frame).take(20).for_each(|slots| live.push(slots[0].frame, slots));
    let decision = live.decide();
    let now = decision.arms[decision.widest - 1].half_width();
    assert_eq!(decision.bought, Some(now / 2.0), "four times the frames");
}

#[test]
fn a_quota_and_a_hypervisor_are_told() {
    let mut records = Invented { frames: 20, ..Invented::default() }.records();
    for frame in &mut records.frames {
        (frame.host.throttled, frame.host.steal) = (Some(0.2), Some(0.1));
    }
    let flags = estimate(&records, 1, "net").flags;
    assert!(flags.contains(&Flag::Throttled) && flags.contains(&Flag::Stolen), "{flags:?}");
}
