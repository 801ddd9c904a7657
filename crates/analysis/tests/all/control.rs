//! The A/A arm as the negative control, and headlines judged over all cells of a run.

use tithe_analysis::{
    Analysis, Estimate, Flag, Outcome,
    assess::assess,
    compare,
    report::{html, terminal},
};
use tithe_model::{
    record::{Counters, Frame},
    records::Records,
};

use crate::synthetic::{Invented, Noise};

/// Arms with the costs `effects`; the last is the A/A arm.
fn controlled(effects: &[f64]) -> Records {
    let mut records = Invented { effects: effects.to_vec(), ..Invented::default() }.records();
    make_aa(&mut records);
    records
}

/// The last arm is Tithe's own second instance of the baseline.
fn make_aa(records: &mut Records) {
    let last = records.plan.experiment.arms.last_mut().expect("arms");
    (last.aa, last.name) = (true, "A/A".to_owned());
    last.protections.clear();
}

fn net(records: &Records, arm: usize) -> Estimate {
    let analysis = assess(records);
    analysis.cells[0].arms[arm].estimates.iter().find(|estimate| estimate.primary).expect("a figure").clone()
}

#[test]
fn a_saving_that_the_plain_arm_shows_as_well_is_not_called_one() {
    // Both are 2 % below the plain arm, whose start was slower.
    let records = controlled(&[0.0, -0.02, 0.05, -0.02]);
    let found = net(&records, 1);
    assert!(found.effect.high < 0.0, "{found:?}");
    assert_eq!(found.verdict, Outcome::TooNoisy);
    assert!(found.flags.contains(&Flag::WithinControl));
    assert!(found.text.starts_with("no more than the plain arm differs from itself: A/A −2."), "{}", found.text);
    let throughput = assess(&records).cells[0].arms[1].estimates.iter().find(|it| it.title == "throughput").cloned();
    let throughput = throughput.expect("a closed loop");
    assert_eq!(throughput.verdict, Outcome::TooNoisy);
    // Less time means more operations.
    assert!(
        throughput.text.starts_with("no more than the plain arm differs from itself: A/A 2."),
        "{}",
        throughput.text
    );
    // Without the A/A arm it is reported as a saving.
    let alone = Invented { effects: vec![0.0, -0.02, 0.05, -0.02], ..Invented::default() }.records();
    assert_eq!(net(&alone, 1).verdict, Outcome::Gains);
}

#[test]
fn a_true_saving_is_called_one_and_a_cost_stands() {
    let records = controlled(&[0.0, -0.06, 0.05, 0.0]);
    assert_eq!(net(&records, 1).verdict, Outcome::Gains);
    let cost = net(&records, 2);
    assert_eq!((cost.verdict, cost.flags.contains(&Flag::WithinControl)), (Outcome::Costs, false));
}

/// Records of `cells` equal cells without any cost: three arms, and the A/A arm.
fn of_cells(seed: u64, cells: u32, effects: &[f64], like: &Records) -> Records {
    let invented = Invented { frames: like.frames.len() as u32, effects: effects.to_vec(), ..Invented::default() };
    let mut noise = Noise::new(seed);
    let mut records = Records { slots: Vec::new(), frames: Vec::new(), ..like.clone() };
    let cell = records.plan.cells[0].clone();
    records.plan.cells =
        (0..cells).map(|number| tithe_model::plan::Cell { id: format!("c{number}"), ..cell.clone() }).collect();
    records.cells = vec![like.cells[0].clone(); cells as usize];
    for cell in 0..cells {
        records.frames.extend(like.frames.iter().map(|frame| Frame { cell, ..frame.clone() }));
        let slots = (0..like.frames.len() as u32).flat_map(|frame| invented.slots(frame, &mut noise));
        records.slots.extend(slots.map(|slot| tithe_model::record::Slot { cell, ..slot }));
    }
    records
}

/// One cell without histograms and counters, which these tests do not need.
fn bare(effects: &[f64], frames: u32) -> Records {
    let mut records = Invented { effects: effects.to_vec(), frames, ..Invented::default() }.records();
    make_aa(&mut records);
    for arm in records.frames.iter_mut().flat_map(|frame| &mut frame.arms) {
        arm.latency.clear();
        arm.counters = Counters::default();
    }
    records
}

/// True if `verdict` is a cost or a saving for some arm of some cell.
fn names(analysis: &Analysis, verdict: fn(&Estimate) -> Outcome) -> bool {
    let arms = analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| !arm.aa);
    let mut deciding = arms.flat_map(|arm| &arm.estimates).filter(|estimate| estimate.primary);
    deciding.any(|estimate| matches!(verdict(estimate), Outcome::Costs | Outcome::Gains))
}

#[test]
fn headlines_of_many_cells_name_a_cost_or_a_saving_in_five_of_a_hundred_runs_at_most() {
    const RUNS: u64 = 200;
    let effects = [0.0; 5];
    let like = bare(&effects, 15);
    let (mut headlines, mut single) = (0, 0);
    for run in 0..RUNS {
        let analysis = assess(&of_cells(1000 + run, 6, &effects, &like));
        headlines += u32::from(names(&analysis, |estimate| estimate.headline().verdict));
        single += u32::from(names(&analysis, |estimate| estimate.verdict));
    }
    // Of 200 runs at 5 % each, more than 20 false reports happen once in a thousand times.
    assert!(headlines <= 20, "{headlines} of {RUNS} runs");
    assert!(single > 20, "single figures are not adjusted, and {single} of {RUNS} runs would be named by them");
}

#[test]
fn a_headline_names_what_is_there_by_the_interval_over_all_cells() {
    let effects = [0.0, 0.05, 0.0, 0.0, 0.0];
    let records = of_cells(7, 6, &effects, &bare(&effects, 20));
    let analysis = assess(&records);
    for cell in &analysis.cells {
        let found = &cell.arms[1].estimates[0];
        let over_run = found.over_run.expect("six cells");
        assert_eq!((found.verdict, over_run.verdict), (Outcome::Costs, Outcome::Costs));
        assert!(over_run.effect.low < found.effect.low && over_run.effect.high > found.effect.high, "{found:?}");
        assert_eq!(over_run.effect.estimate, found.effect.estimate);
        let (difference, over_run) = (found.difference.expect("µs"), over_run.difference.expect("µs"));
        assert!(over_run.low < difference.low && over_run.high > difference.high);
    }
    let text = terminal::render(&analysis, terminal::Options::default());
    let last = text.split("All cells together").nth(1).expect("the last lines");
    let words = last.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("hold together, 95 times in 100, for every arm of every cell"), "{words}");
    assert!(words.contains("The plain arm differs from itself by"), "{words}");
    let page = html::render(&analysis, &html::PageData::default());
    assert_eq!(page.matches("hold together, 95 times in 100").count(), 1);
}

#[test]
fn a_headline_names_no_cost_of_an_arm_with_too_few_frames() {
    let effects = [0.0, 0.05, 0.05, 0.0, 0.0];
    let mut records = of_cells(7, 2, &effects, &bare(&effects, 20));
    records.slots.iter_mut().filter(|it| it.arm == 1 && it.frame >= 9).for_each(|slot| slot.operations = 19);
    let analysis = assess(&records);
    let [few, enough] = [1, 2].map(|arm: usize| &analysis.cells[0].arms[arm].estimates[0]);
    assert_eq!((few.over_run, few.headline().verdict), (None, Outcome::TooNoisy));
    assert_eq!(enough.headline().verdict, Outcome::Costs);
}

#[test]
fn a_headline_over_many_cells_has_an_interval_and_so_has_a_threshold() {
    // Correlated noise of the machine reduces 22 frames to 11 values. For these, ranks give no error below 2/2¹¹ =
    // 0.00098; 0.05 over 80 comparisons is less.
    let effects = [0.0, 0.4, 0.0, 0.0, 0.0, 0.0];
    let mut records = of_cells(7, 16, &effects, &bare(&effects, 22));
    let later = records.slots.iter_mut().filter(|slot| slot.arm == 1 && slot.frame >= 11);
    later.for_each(|slot| slot.wall_ns += slot.wall_ns / 10);
    let mut analysis = assess(&records);
    for arm in analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
        arm.proof = tithe_analysis::Proof::Proven;
    }
    let costs = analysis.cells.iter().map(|cell| &cell.arms[1].estimates[0]);
    for cost in costs.clone() {
        assert_eq!((cost.batch, cost.headline().verdict), (2, Outcome::Costs), "{:?}", cost.over_run);
    }
    let compared = compare::compare(std::slice::from_ref(&analysis), &[]).expect("a run alone");
    let beyond = compared.matches.iter().flat_map(|it| it.changes()).filter(|change| change.beyond(0.3)).count();
    assert_eq!(beyond, costs.count());
}

#[test]
fn a_single_cell_is_the_whole_run() {
    let effects = [0.0, 0.05, 0.0, 0.0, 0.0];
    let analysis = assess(&of_cells(7, 1, &effects, &bare(&effects, 20)));
    let found = &analysis.cells[0].arms[1].estimates[0];
    assert_eq!((found.over_run, found.headline().effect), (None, found.effect));
    assert!(!terminal::render(&analysis, terminal::Options::default()).contains("All cells together"));
}

#[test]
fn a_threshold_is_held_against_the_interval_over_all_cells() {
    let effects = [0.0, 0.05, 0.0, 0.0, 0.0];
    let mut analysis = assess(&of_cells(7, 2, &effects, &bare(&effects, 20)));
    let beyond = |analysis: &Analysis| {
        let compared = compare::compare(std::slice::from_ref(analysis), &[]).expect("a run alone");
        compared.matches.iter().flat_map(|matched| matched.changes()).filter(|change| change.beyond(0.01)).count()
    };
    for arm in analysis.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
        arm.proof =
            if arm.name == "plain" || arm.aa { tithe_analysis::Proof::Baseline } else { tithe_analysis::Proof::Proven };
    }
    assert_eq!(beyond(&analysis), 2);
    // One cost that is certain alone but not over all cells.
    let doubtful = &mut analysis.cells[0].arms[1].estimates[0];
    doubtful.over_run.as_mut().expect("two cells").effect.low = -0.001;
    assert!(doubtful.effect.low > 0.0);
    assert_eq!(beyond(&analysis), 1);
    let notes = compare::compare(std::slice::from_ref(&analysis), &[]).expect("a run alone").notes;
    assert!(notes.iter().any(|note| note.contains("judged over all cells")), "{notes:?}");
}
