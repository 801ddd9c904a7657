//! The A/A arm, sequential practice, frames without binding, carry-over, and answers that are checked repeatedly.

use tithe_analysis::{Estimate, Figure, Flag, Outcome, Proof, assess::assess, stopping::Live};
use tithe_model::{
    ending::CellEnding,
    experiment::{Design, Metric, ProviderSwitch},
    invalid::Invalid,
    plan::Starts,
    record::{ArmFrame, Finding, PHASES_NS, Phase, Role, Slot, TOLD_BY_PROVIDER, Verdict},
    records::Records,
    schedule::{first_of_pair, side_of},
    start_spread,
};

use crate::synthetic::{Invented, finding};

fn estimate(records: &Records, arm: usize, name: &str) -> Estimate {
    let analysis = assess(records);
    let estimates = &analysis.cells[0].arms[arm].estimates;
    estimates.iter().find(|estimate| estimate.name.to_string() == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

/// Three arms; the last is a second instance of the baseline that costs `effect`.
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
fn few_frames_of_an_aa_arm_take_no_answer_back() {
    let mut records = with_aa_arm(0.05);
    assert!(estimate(&records, 1, "cpu").flags.contains(&Flag::Asymmetric));
    // Only nine frames have enough operations in these slots. That its waiting differs is tested over starts.
    records.slots.iter_mut().filter(|it| it.arm == 2 && it.frame >= 9).for_each(|slot| slot.operations = 19);
    assert!(!estimate(&records, 1, "cpu").flags.contains(&Flag::Asymmetric));
}

#[test]
fn an_arm_of_the_experiments_that_protects_nothing_says_nothing_about_the_others() {
    // The second arm is a true twin; the third has no protections and is more expensive for a reason that only the user
    // knows.
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
    // Of two p values, the smaller one counts twice, and the larger one is at least that (Holm 1979).
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
    // One arm per frame; the second half is 30 % slower for all.
    records.slots.retain(|slot| (slot.arm == 1) == (slot.frame >= 30));
    for slot in records.slots.iter_mut().filter(|slot| slot.frame >= 30) {
        let slower = |ns: &mut u64| *ns = *ns * 13 / 10;
        [&mut slot.wall_ns, &mut slot.latency_sum_ns, &mut slot.client_cpu_ns, &mut slot.server_cpu_ns]
            .into_iter()
            .for_each(slower);
    }
    let time = estimate(&records, 1, "time");
    assert!((time.effect.estimate - 1.3_f64.ln()).abs() < 0.2, "{time:?}");
    // A frame of 0.4 s has one arm, so for twice as many of an arm the run has to be twice as long.
    let times = (time.effect.half_width() / records.plan.experiment.measure.precision).powi(2);
    let more_s = time.more_s.expect("it is not precise");
    assert!((more_s / ((times - 1.0) * 60.0 * 0.4) - 1.0).abs() < 1e-9, "{more_s}");
    let warnings = assess(&records).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("one after the other")), "{warnings:?}");
    // What limits a figure of any other design limits these, too.
    assert!(time.flags.is_empty(), "{time:?}");
    records.frames.iter_mut().for_each(|frame| frame.host.steal = Some(0.1));
    assert_eq!(estimate(&records, 1, "time").flags, [Flag::Stolen]);
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
    // A longer run has no more of them.
    assert!(free.more_s.is_none() && !free.text.contains("would resolve"), "{free:?}");
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
fn a_cost_that_changes_within_frames_is_flagged() {
    let flags = |first: f64| {
        let mut records = Invented { frames: 20, latencies: false, ..Invented::default() }.records();
        let blocks = records.slots.iter().map(|slot| slot.block + 1).max().unwrap();
        for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1 && 2 * slot.block < blocks) {
            slot.client_cpu_ns = (slot.client_cpu_ns as f64 * first) as u64;
        }
        ["cpu", "client_cpu"].map(|figure| estimate(&records, 1, figure).flags.contains(&Flag::ChangesInFrame))
    };
    assert_eq!(flags(1.0), [false; 2]);
    assert_eq!(flags(1.03), [false; 2]);
    assert!(flags(1.5)[1]);
    assert!(flags(0.5)[1]);
}

/// As for copies of tables that share a running server's cache, in which one of them was at first.
#[test]
fn a_cost_that_falls_by_most_of_itself_is_no_answer() {
    let found = |falls: f64| {
        let invented = Invented { frames: 36, primary: Metric::Cpu, latencies: false, ..Invented::default() };
        let mut records = invented.records();
        records.frames.iter_mut().for_each(|frame| frame.start = 0);
        for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
            let factor = (0.9 + falls * (0.5 - f64::from(slot.frame) / 35.0)).exp();
            slot.client_cpu_ns = (slot.client_cpu_ns as f64 * factor) as u64;
            slot.server_cpu_ns = (slot.server_cpu_ns as f64 * factor) as u64;
        }
        let cpu = estimate(&records, 1, "cpu");
        (cpu.verdict, cpu.flags.contains(&Flag::Drift), cpu.batch, cpu.text)
    };
    let (verdict, drift, batch, text) = found(1.4);
    // So many are averaged that fewer than ten values are left, in which the trend must still be seen.
    assert_eq!((verdict, drift, batch), (Outcome::TooNoisy, true, 4), "{text}");
    assert!(text.starts_with("moved from 3") && text.ends_with(" % while it was measured"), "{text}");
    // e^(0.95 + 1.4 · (0.5 − 5.5 / 35)) − 1 over the first twelve frames, and e^(0.95 + 1.4 · (0.5 − 29.5 / 35)) − 1
    // over the last.
    let ends: Vec<f64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!((ends[0] - 318.0).abs() < 10.0 && (ends[1] - 60.0).abs() < 5.0, "{text}");
    assert_eq!(found(0.2).0, Outcome::Costs);
    assert_eq!((found(0.0).0, found(0.0).1), (Outcome::Costs, false));
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

/// Number of frames until all answers of the first cell of `records` are certain, with `frames_a_start` on each start.
fn frames_until_certain(records: &Records, frames_a_start: u32) -> Option<usize> {
    let mut live = Live::new(&records.plan, 0);
    records.slots.chunk_by(|a, b| a.frame == b.frame).find_map(|slots| {
        live.push(slots[0].frame / frames_a_start, slots);
        live.decide().enough.then(|| live.frames())
    })
}

/// By the rules of the run's headline and status.
#[test]
fn an_answer_is_certain_over_all_cells_of_a_run() {
    let mut records = Invented { effects: vec![0.0, 0.012], spread: 0.1, ..Invented::default() }.records();
    records.plan.experiment.measure.until_decided = true;
    records.plan.experiment.measure.margin = 0.003;
    let alone = frames_until_certain(&records, 1).expect("a cost of 1.2 % is seen");
    records.plan.cells.resize(12, records.plan.cells[0].clone());
    let among_twelve = frames_until_certain(&records, 1);
    assert!(among_twelve.is_none_or(|frames| frames > alone), "{alone} {among_twelve:?}");
}

/// The known spread of other starts is valid for one check; four starts are enough to estimate their own.
#[test]
fn no_answer_is_certain_before_starts_tell_their_own_spread() {
    let mut records = Invented { effects: vec![0.0, 0.08], frames: 80, ..Invented::default() }.records();
    records.plan.experiment.measure.until_decided = true;
    assert_eq!(frames_until_certain(&records, 20), Some(15));
    records.plan.cells[0].starts = Starts::Several(8);
    assert!(frames_until_certain(&records, 20).is_none_or(|frames| frames > 60));
    // Only two starts are planned.
    records.plan.cells[0].starts = Starts::Several(2);
    assert_eq!(frames_until_certain(&records, 20), Some(21));
}

/// The report rejects a saving that the plain arm shows as well.
#[test]
fn a_saving_is_certain_where_the_aa_arm_shows_none() {
    let certain = |of_aa: f64| {
        let mut records = Invented { effects: vec![0.0, -0.06, of_aa], ..Invented::default() }.records();
        records.plan.experiment.measure.until_decided = true;
        records.plan.experiment.arms[2].aa = true;
        frames_until_certain(&records, 1).is_some()
    };
    assert_eq!((certain(0.0), certain(-0.06)), (true, false));
}

/// The report rejects a saving of waiting alone, except over several loads of the data.
#[test]
fn a_saving_of_waiting_alone_is_certain_over_four_loads_of_the_data_and_not_over_one() {
    let invented = Invented { effects: vec![0.0, 0.02], latencies: false, ..Invented::default() };
    let mut records = invented.records();
    records.plan.experiment.measure.until_decided = true;
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
        (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns * 9 / 10, slot.latency_sum_ns * 9 / 10);
    }
    let mut certain = |epochs: u32| {
        records.plan.cells[0].epochs = epochs;
        let mut live = Live::new(&records.plan, 0);
        records.slots.chunk_by(|a, b| a.frame == b.frame).find_map(|slots| {
            live.on_data_of(slots[0].frame * epochs / 60);
            live.push(slots[0].frame, slots);
            live.decide().enough.then(|| live.frames())
        })
    };
    assert_eq!([certain(1), certain(3)], [None, None]);
    // Planned loads count once they are measured: the fourth begins with frame 45.
    assert!(certain(4).is_some_and(|frames| frames > 45), "{:?}", certain(4));
}

/// Half of the error was used for the checks that brought no answer.
#[test]
fn an_answer_that_was_waited_for_in_vain_has_what_is_left_of_the_error() {
    let mut records = Invented { effects: vec![0.0, 0.0], ..Invented::default() }.records();
    let mut half_width = |until_decided: bool, ending: CellEnding| {
        records.plan.experiment.measure.until_decided = until_decided;
        records.cells[0].ending = Some(ending);
        estimate(&records, 1, "net").effect.half_width()
    };
    let (in_vain, at_once) = (half_width(true, CellEnding::Budget), half_width(false, CellEnding::Budget));
    // The quantiles 2.24 and 1.96 of the normal distribution.
    assert!((1.05..1.25).contains(&(in_vain / at_once)), "{in_vain} {at_once}");
    assert!(half_width(true, CellEnding::Decided) > 1.1 * in_vain, "a confidence sequence is wider");
}

#[test]
fn the_width_that_the_budget_buys_falls_with_the_root_of_the_frames() {
    let mut records = Invented { frames: 80, ..Invented::default() }.records();
    let decided = |records: &Records, starts: u32| {
        let mut live = Live::new(&records.plan, 0);
        let frames = records.slots.chunk_by(|a, b| a.frame == b.frame).take(20);
        frames.for_each(|slots| live.push(slots[0].frame % starts, slots));
        live.decide()
    };
    let decision = decided(&records, 20);
    let now = decision.arms[decision.widest - 1].half_width();
    assert_eq!(decision.bought, Some(now / 2.0), "four times the frames");
    // Further frames of this start do not narrow the part from the known spread of other starts.
    records.plan.start_spread = start_spread::built_in("postgres");
    records.plan.cells[0].starts = Starts::Once;
    let decision = decided(&records, 1);
    assert!(decision.bought.is_none() && decision.arms[0].half_width().is_finite(), "{decision:?}");
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

/// Frames of a side in these tests.
pub const SIDE: u32 = 6;

/// `pairs` pairs of sides of a server that costs `effect` more while its provider has the protection on; the machine's
/// speed differs between pairs.
pub fn switched(pairs: u32, effect: f64) -> Records {
    let frames = pairs * 2 * SIDE;
    let invented = Invented { effects: vec![0.0, effect], frames, primary: Metric::Time, ..Invented::default() };
    let mut records = invented.records();
    let seed = records.plan.cells[0].seed;
    records.plan.cells[0].design = Design::Switched { frames_a_side: SIDE };
    records.plan.experiment.arms[1].switch = Some(ProviderSwitch {
        on: vec!["on".to_owned()],
        off: vec!["off".to_owned()],
        ready: "SELECT true".to_owned(),
        ready_command: Vec::new(),
        side_s: 60.0,
        timeout_s: 600.0,
    });
    let side = |frame: u32| side_of(seed, frame, SIDE);
    records.slots.retain(|slot| side(slot.frame).1 == slot.arm as usize);
    for slot in &mut records.slots {
        let mood = 10 + u64::from(side(slot.frame).0 % 4);
        [&mut slot.wall_ns, &mut slot.latency_sum_ns].into_iter().for_each(|ns| *ns = *ns * mood / 10);
    }
    for frame in &mut records.frames {
        let (pair, arm) = side(frame.frame);
        (frame.epoch, frame.start) = (pair, pair);
        frame.arms[1 - arm] = ArmFrame::default();
    }
    let told = |phase| Finding {
        protection: "switch".to_owned(),
        check: TOLD_BY_PROVIDER.to_owned(),
        role: Role::Strengthens,
        ..finding(1, phase)
    };
    let looks = |epoch| {
        let of_phase = move |phase| [finding(1, phase), told(phase)].map(|it| Finding { epoch, ..it });
        [Phase::Before, Phase::After].into_iter().flat_map(of_phase)
    };
    records.findings = (0..pairs).flat_map(looks).collect();
    records
}

/// Where files lie explains no difference between two sides of one server.
#[test]
fn less_waiting_of_a_switched_server_is_a_saving() {
    let mut records = switched(3, 0.0);
    for slot in records.slots.iter_mut().filter(|slot| slot.arm == 1) {
        (slot.wall_ns, slot.latency_sum_ns) = (slot.wall_ns / 20, slot.latency_sum_ns / 20);
    }
    let time = estimate(&records, 1, "time");
    assert_eq!((time.verdict, time.flags.contains(&Flag::WaitingAlone)), (Outcome::Gains, false), "{time:?}");
}

#[test]
fn a_pair_of_sides_is_one_value_of_students_interval() {
    let records = switched(5, 0.05);
    let analysis = assess(&records);
    let cell = &analysis.cells[0];
    assert_eq!((cell.pairs, cell.starts, cell.epochs, cell.frames), (5, 1, 1, 60));
    let time = estimate(&records, 1, "time");
    assert!(time.primary && time.count == 5 && !time.widened, "{time:?}");
    assert_eq!(cell.arms[1].proof, Proof::Proven);
    // The mean of five values with Student's quantile for four degrees of freedom (R 4.3: qt(0.975, 4)).
    let cost = |arm: u32, pair: u32| {
        let of_side = |slot: &&Slot| (slot.arm, slot.frame / (2 * SIDE)) == (arm, pair);
        let mut frames = vec![(0, 0); 2 * SIDE as usize];
        for slot in records.slots.iter().filter(of_side) {
            let frame = &mut frames[(slot.frame % (2 * SIDE)) as usize];
            *frame = (frame.0 + slot.latency_sum_ns, frame.1 + slot.counted);
        }
        let mut costs: Vec<f64> =
            frames.iter().filter(|it| it.1 > 0).map(|(sum, count)| (*sum as f64 / *count as f64).ln()).collect();
        costs.sort_unstable_by(f64::total_cmp);
        // A quarter of six, rounded down, is dropped at either end.
        costs[1..costs.len() - 1].iter().sum::<f64>() / (costs.len() - 2) as f64
    };
    let effects: Vec<f64> = (0..5).map(|pair| cost(1, pair) - cost(0, pair)).collect();
    let mean = effects.iter().sum::<f64>() / 5.0;
    let error = (effects.iter().map(|effect| (effect - mean).powi(2)).sum::<f64>() / 4.0 / 5.0).sqrt();
    assert!((time.effect.estimate - mean).abs() < 1e-9, "{time:?} {effects:?}");
    assert!((time.effect.half_width() - 2.776_445_105 * error).abs() < 1e-6, "{time:?} {error}");
    let order: Vec<usize> = (0..50).map(|pair| first_of_pair(records.plan.cells[0].seed, pair)).collect();
    assert!(order.contains(&0) && order.contains(&1), "{order:?}");
}

#[test]
fn a_pair_of_sides_counts_if_both_were_measured_to_their_end() {
    const OF_PAIR: usize = 2 * SIDE as usize;
    let counted = |change: &dyn Fn(&mut Records)| {
        let mut records = switched(5, 0.05);
        change(&mut records);
        let analysis = assess(&records);
        let cell = &analysis.cells[0];
        let why = "the other side of its pair was not measured to its end";
        assert!(cell.invalid.iter().all(|(_, told)| told == why), "{:?}", cell.invalid);
        (cell.pairs, cell.frames, cell.invalid.len())
    };
    assert_eq!(counted(&|_| ()), (5, 5 * OF_PAIR, 0));
    // The run ended within a side, or before the second one.
    for missing in [1, SIDE as usize, OF_PAIR - 1] {
        let ended = |records: &mut Records| records.frames.truncate(5 * OF_PAIR - missing);
        assert_eq!(counted(&ended), (4, 4 * OF_PAIR, OF_PAIR - missing), "{missing} frames are missing");
        let resumed = |records: &mut Records| drop(records.frames.drain(2 * OF_PAIR - missing..2 * OF_PAIR));
        assert_eq!(counted(&resumed), (4, 4 * OF_PAIR, OF_PAIR - missing), "{missing} frames of the second pair");
    }
    // Nothing was done on one side.
    for arm in [0, 1] {
        let idle = |records: &mut Records| {
            let of_pair = records.frames.iter_mut().filter(|frame| frame.start == 2);
            of_pair.for_each(|frame| frame.arms[arm] = ArmFrame::default());
        };
        assert_eq!(counted(&idle), (4, 4 * OF_PAIR, OF_PAIR), "arm {arm}");
    }
}

/// An operation takes 20 µs, of which 16 are processor time; on arm 1 a fifth more.
fn exact(records: &mut Records) {
    for slot in &mut records.slots {
        let cost = if slot.arm == 1 { 24_000 } else { 20_000 };
        (slot.operations, slot.counted) = (1000, 950);
        (slot.wall_ns, slot.latency_sum_ns) = (cost * 1000, cost * 950);
        (slot.client_cpu_ns, slot.server_cpu_ns) = (cost * 300, cost * 500);
        (slot.wait_ns, slot.stalled_ns) = (0, Some(0));
    }
}

#[test]
fn a_difference_is_in_microseconds_where_a_frame_has_one_arm() {
    let invented = Invented { effects: vec![0.0, 0.0], latencies: false, ..Invented::default() };
    let mut one_after_the_other = invented.records();
    one_after_the_other.plan.cells[0].design = Design::Sequential;
    one_after_the_other.slots.retain(|slot| (slot.arm == 1) == (slot.frame >= 30));
    let mut in_turns = switched(5, 0.0);
    for records in [&mut one_after_the_other, &mut in_turns] {
        exact(records);
        for (name, truth) in [("time", 4.0), ("cpu", 3.2)] {
            let found = estimate(records, 1, name);
            let difference = found.difference.expect("an amount per operation");
            let ends = [difference.estimate, difference.low, difference.high];
            assert!(ends.iter().all(|end| (end - truth).abs() < 1e-6), "{name}: {difference:?}");
            assert!((found.effect.estimate - 1.2_f64.ln()).abs() < 1e-9, "{name}: {found:?}");
        }
    }
    for (name, truth) in [("time", 4.0), ("cpu", 3.2)] {
        let found = estimate(&in_turns, 1, name);
        let (total, difference) = found.total.zip(found.total_difference).expect("with every stall");
        assert!(
            (total.estimate - 1.2_f64.ln()).abs() < 1e-9 && (difference.estimate - truth).abs() < 1e-6,
            "{found:?}"
        );
    }
    assert_eq!(estimate(&in_turns, 1, "throughput").effect, estimate(&in_turns, 1, "time").effect);
}

#[test]
fn a_longer_answer_costs_clients_that_pause_little_throughput() {
    let invented = Invented { effects: vec![0.0, 0.0], latencies: false, ..Invented::default() };
    for mut records in [invented.records(), switched(5, 0.0)] {
        exact(&mut records);
        records.slots.iter_mut().for_each(|slot| slot.wall_ns += 180_000 * slot.operations);
        let busy = estimate(&records, 1, "throughput").effect;
        assert!((busy.estimate - 1.2_f64.ln()).abs() < 1e-9, "{busy:?}");
        records.plan.cells[0].gaps = true;
        // With its pause an operation takes 204 µs instead of 200.
        let pausing = estimate(&records, 1, "throughput").effect;
        assert!((pausing.estimate - 1.02_f64.ln()).abs() < 1e-9, "{pausing:?}");
        assert!((estimate(&records, 1, "time").effect.estimate - 1.2_f64.ln()).abs() < 1e-9);
    }
}

#[test]
fn live_says_of_sides_what_the_report_says() {
    let records = switched(4, 0.05);
    let mut live = Live::new(&records.plan, 0);
    let frames: Vec<&[Slot]> = records.slots.chunk_by(|a, b| a.frame == b.frame).collect();
    let mut bounded = 0;
    for slots in frames {
        live.push(slots[0].frame / (2 * SIDE), slots);
        let decision = live.decide();
        assert!(!decision.enough, "every pair is measured");
        bounded += u32::from(decision.arms[0].half_width().is_finite());
    }
    assert_eq!(bounded, 2 * 2 * SIDE + 1, "from the last frame of the second pair on");
    assert_eq!(live.ended(&CellEnding::Budget).expect("enough frames")[0], estimate(&records, 1, "time").effect);
}

#[test]
fn live_and_the_report_leave_out_a_frame_in_which_nothing_was_spent() {
    let mut records = switched(4, 0.05);
    records.slots.iter_mut().filter(|slot| slot.frame == 3).for_each(|slot| slot.latency_sum_ns = 0);
    let mut live = Live::new(&records.plan, 0);
    let frames = records.slots.chunk_by(|a, b| a.frame == b.frame);
    frames.for_each(|slots| live.push(slots[0].frame / (2 * SIDE), slots));
    let told = live.ended(&CellEnding::Budget).expect("enough frames")[0];
    assert_eq!(told, estimate(&records, 1, "time").effect);
    assert!(told.half_width().is_finite(), "{told:?}");
}

/// One side alone is no value.
#[test]
fn live_tells_the_load_that_is_still_needed_in_whole_pairs_of_sides() {
    let mut records = switched(5, 0.05);
    let more_s = |precision: f64| {
        records.plan.experiment.measure.precision = precision;
        let mut live = Live::new(&records.plan, 0);
        live.expect(1.0, 5 * 2 * SIDE);
        let frames = records.slots.chunk_by(|a, b| a.frame == b.frame);
        frames.for_each(|slots| live.push(slots[0].frame / (2 * SIDE), slots));
        live.decide().more_s.expect("the pairs scatter")
    };
    let told = [0.05, 0.04, 0.03, 0.02, 0.015].map(more_s);
    let pair_s = f64::from(2 * SIDE);
    assert!(told.iter().all(|more_s| *more_s >= pair_s && more_s % pair_s == 0.0), "{told:?}");
    assert!(told.is_sorted() && told[0] < told[4], "{told:?}");
}

/// Both sides of the pair are complete.
#[test]
fn live_counts_a_last_pair_of_which_a_frame_is_invalid_as_the_report_does() {
    let mut records = switched(4, 0.05);
    let mut live = Live::new(&records.plan, 0);
    let last = 4 * 2 * SIDE - 1;
    let frames = records.slots.chunk_by(|a, b| a.frame == b.frame).filter(|slots| slots[0].frame != last);
    frames.for_each(|slots| live.push(slots[0].frame / (2 * SIDE), slots));
    records.frames.last_mut().expect("frames").invalid = Some(Invalid::Other("the machine was busy".to_owned()));
    let reported = estimate(&records, 1, "time");
    assert_eq!(reported.count, 4);
    assert_eq!(live.ended(&CellEnding::Budget).expect("enough frames")[0], reported.effect);
    // If it was interrupted there, it is unknown whether more frames were to come.
    let stopped = live.ended(&CellEnding::Interrupted).expect("enough frames")[0];
    assert!(stopped.half_width() > reported.effect.half_width(), "{stopped:?}");
}

#[test]
fn half_a_pair_does_not_count() {
    let mut records = switched(4, 0.05);
    // Stopped in the second side of the last pair, before its last frame was recorded.
    let last = 4 * 2 * SIDE - 2;
    records.frames.retain(|frame| frame.frame < last);
    records.slots.retain(|slot| slot.frame < last);
    records.findings.retain(|finding| finding.epoch < 3);
    records.cells[0].ending = None;
    let analysis = assess(&records);
    assert_eq!((analysis.cells[0].pairs, analysis.cells[0].invalid.len()), (3, 2 * SIDE as usize - 2));
    assert_eq!(analysis.cells[0].arms[1].proof, Proof::Proven);
    assert_eq!(estimate(&records, 1, "time").count, 3);
}

#[test]
fn a_providers_word_is_named_and_is_no_proof() {
    let mut records = switched(3, 0.05);
    let proof = |records: &Records| assess(records).cells[0].arms[1].proof.clone();
    for finding in records.findings.iter_mut().filter(|finding| finding.role == Role::Claim) {
        finding.verdict = Verdict::OutOfReach;
    }
    assert!(matches!(proof(&records), Proof::ToldByProvider(open) if open.len() == 6), "{:?}", proof(&records));
    let mut unsaid = switched(3, 0.05);
    unsaid.findings.retain(|finding| finding.role != Role::Claim);
    unsaid.plan.experiment.arms[1].protections.clear();
    assert!(matches!(proof(&unsaid), Proof::ToldByProvider(open) if open[0].contains("names no protection")));
    unsaid.findings[3].verdict = Verdict::CannotTell;
    assert!(matches!(proof(&unsaid), Proof::Unproven(_)), "once it did not say so");
    records.findings[1].verdict = Verdict::Fails;
    assert!(matches!(proof(&records), Proof::Disproven(_)), "the server said the opposite");
}
