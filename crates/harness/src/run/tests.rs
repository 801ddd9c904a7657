//! Whole runs of the simulated database, on invented time.

mod switching;

use std::path::PathBuf;

use tithe_model::record::{Machine, Verdict};
use tithe_plugin::{evidence::OWN_CONTROL, simulated::Simulated};

use super::*;
use crate::catalogue::tests::planned;

const EXPERIMENT: &str = "title = \"Proof\"\ndatabase = \"simulated\"\n[settings]\nservice_us = 1000\nSETTINGS\n\
    [data]\nrecords = 500\n[load]\nclients = 2\n\
    [measure]\nbudget = \"60 s\"\nslot = \"20 ms\"\nprecision = \"0.01%\"\naa_arm = false\n\
    [[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n\
    [[arm]]\nname = \"sealed\"\nprotections = [{ use = \"seal\" }]\n\
    [[arm]]\nname = \"audited\"\nprotections = [{ use = \"audit\", lose = 0.5 }, { use = \"placebo\" }]\n";

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is cancelled before it begins.
    Begin,
    /// It is cancelled when its first check begins.
    Check,
    /// It is cancelled after this number of frames.
    Frames(u32),
    /// Its listener has enough after two frames.
    Enough,
}

struct Listener {
    end: End,
    cancelled: Arc<AtomicBool>,
    frames: u32,
}

impl Listener {
    fn until(end: End) -> Self {
        Self { end, cancelled: Arc::new(AtomicBool::new(end == End::Begin)), frames: 0 }
    }

    fn cancel_at(&self, end: End) {
        if self.end == end {
            self.cancelled.store(true, Ordering::SeqCst);
        }
    }
}

impl EventListener for Listener {
    fn event(&mut self, event: &Event) {
        if let Event::Looking { .. } = event {
            self.cancel_at(End::Check);
        }
    }

    fn frame(&mut self, _frame: &Frame, _slots: &[Slot]) -> Advice {
        self.frames += 1;
        self.cancel_at(End::Frames(self.frames));
        Advice { enough: self.end == End::Enough && self.frames >= 2, starts: None }
    }
}

/// A plan, its workload, and the place of its run folder.
struct Planned {
    folder: tempfile::TempDir,
    plan: Plan,
    workloads: Vec<Box<dyn Workload>>,
}

impl Planned {
    /// One epoch and one start of the experiment, with these `settings` of its database.
    fn with(settings: &str) -> Self {
        let mut plan = planned(&EXPERIMENT.replace("SETTINGS", settings));
        (plan.cells[0].epochs, plan.cells[0].starts) = (1, Starts::Once);
        let described = &plan.experiment.workloads[0];
        let made = tithe_workloads::make(described, &plan.experiment.data, plan.experiment.measure.seed);
        let workloads = vec![made.expect("a workload")];
        Self { folder: tempfile::tempdir().expect("a folder"), plan, workloads }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// Carries out the plan, or continues the run that was begun; how that ended, and all records so far.
    fn measured(&self, end: End) -> (Ending, Records) {
        let path = self.path();
        let begun = path.exists().then(|| RunFolder::resume(&path).expect("resumed"));
        let (mut folder, before) = match begun {
            Some((folder, before)) => (folder, Some(before)),
            None => {
                let made = RunFolder::create(&path, EXPERIMENT, &self.plan, &Machine::default());
                (made.expect("a run folder"), None)
            }
        };
        let mut listener = Listener::until(end);
        let cancelled = Arc::clone(&listener.cancelled);
        let installs = vec![Install::default(); self.plan.experiment.resources.len()];
        let run = Run::new(&Simulated, installs, &self.plan, &self.workloads, &cancelled).expect("a run");
        let ending = run.carry_out(&mut folder, before.as_ref(), &mut listener).expect("carried out");
        drop(folder);
        (ending, crate::folder::read(&path).expect("records"))
    }
}

/// The verdict of each check of this `phase`, with its arm.
fn verdicts(records: &Records, phase: Phase) -> Vec<(u32, &str, Verdict)> {
    let of_phase = records.findings.iter().filter(|finding| finding.phase == phase);
    of_phase.map(|finding| (finding.arm, finding.check.as_str(), finding.verdict)).collect()
}

/// Half of the records of the audit log are lost.
const ALL: [(u32, &str, Verdict); 3] =
    [(1, "disk-canary", Verdict::Holds), (2, "audit-complete", Verdict::Fails), (2, "placebo-taken", Verdict::Holds)];

#[test]
fn every_claim_of_every_protected_arm_is_checked_before_and_after_the_load() {
    let planned = Planned::with("");
    let (ending, records) = planned.measured(End::Enough);
    assert_eq!((ending, records.cells[0].ending.clone()), (Ending::Complete, Some(CellEnding::Precision)));
    assert_eq!([Phase::Before, Phase::After].map(|phase| verdicts(&records, phase)), [ALL.to_vec(), ALL.to_vec()]);
    for finding in &records.findings {
        // The plain arm is the control of a claim that it can show the opposite of.
        let of_itself = finding.check == "placebo-taken";
        assert_eq!(finding.control == OWN_CONTROL, of_itself, "{}: {}", finding.check, finding.control);
    }
    assert_eq!(records.frames.iter().map(|frame| frame.frame).collect::<Vec<_>>(), [0, 1]);
    for arm in 0..3 {
        assert!(records.slots.iter().any(|slot| slot.arm == arm && slot.operations > 0), "arm {arm}");
    }
}

#[test]
fn a_run_that_is_cancelled_keeps_what_it_has_and_proves_it() {
    let (ending, records) = Planned::with("").measured(End::Begin);
    assert_eq!((ending, records.frames.len(), records.findings.len()), (Ending::Interrupted, 0, 0));
    // The check that has begun ends, and no other one begins.
    let (ending, records) = Planned::with("").measured(End::Check);
    assert_eq!((ending, records.frames.len()), (Ending::Interrupted, 0));
    assert_eq!(verdicts(&records, Phase::Before), ALL[..1]);
    let (ending, records) = Planned::with("").measured(End::Frames(1));
    assert_eq!((ending, records.frames.len()), (Ending::Interrupted, 1));
    assert_eq!([Phase::Before, Phase::After].map(|phase| verdicts(&records, phase)), [ALL.to_vec(), ALL.to_vec()]);
    assert_eq!(records.cells[0].ending, None, "it can be continued");
}

#[test]
fn a_run_is_continued_after_its_last_frame_with_another_epoch() {
    let planned = Planned::with("");
    planned.measured(End::Frames(1));
    let (ending, records) = planned.measured(End::Enough);
    assert_eq!((ending, records.cells[0].ending.clone()), (Ending::Complete, Some(CellEnding::Precision)));
    let frames: Vec<_> = records.frames.iter().map(|frame| (frame.frame, frame.epoch, frame.start)).collect();
    assert_eq!(frames, [(0, 0, 0), (1, 1, 1), (2, 1, 1)]);
    assert_eq!(verdicts(&records, Phase::After), [ALL, ALL].concat());
    // A cell that was measured to its end is left as it is.
    let (ending, again) = planned.measured(End::Enough);
    assert_eq!((ending, again.frames.len()), (Ending::Complete, 3));
}

/// Time is invented, so each frame takes the load that was planned.
#[test]
fn a_run_that_was_interrupted_measures_as_many_frames_as_one_that_was_not() {
    let measured = |epochs: u32, interruptions: &[u32]| {
        let mut planned = Planned::with("");
        (planned.plan.cells[0].frames_max, planned.plan.cells[0].epochs) = (18, epochs);
        for frames in interruptions {
            assert_eq!(planned.measured(End::Frames(*frames)).0, Ending::Interrupted);
        }
        let (ending, records) = planned.measured(End::Frames(u32::MAX));
        assert_eq!((ending, records.cells[0].ending.clone()), (Ending::Complete, Some(CellEnding::Budget)));
        let numbers: Vec<u32> = records.frames.iter().map(|frame| frame.frame).collect();
        assert_eq!(numbers, (0..18).collect::<Vec<_>>(), "{interruptions:?}");
        records.frames.iter().map(|frame| frame.epoch).collect::<Vec<_>>()
    };
    assert_eq!(measured(1, &[]), [0; 18]);
    assert_eq!(measured(2, &[]), [[0; 9], [1; 9]].concat());
    assert_eq!(measured(1, &[5]), [vec![0; 5], vec![1; 13]].concat());
    assert_eq!(measured(1, &[5, 1]), [vec![0; 5], vec![1; 1], vec![2; 12]].concat());
}

#[test]
fn every_epoch_but_the_last_is_measured_to_its_end_and_free_frames_follow_all_others() {
    let measured = |end: End| {
        let mut planned = Planned::with("");
        let cell = &mut planned.plan.cells[0];
        (cell.frames_max, cell.epochs, cell.free_frames) = (18, 2, 2);
        let (ending, records) = planned.measured(end);
        assert_eq!(ending, Ending::Complete);
        let numbers: Vec<u32> = records.frames.iter().map(|frame| frame.frame).collect();
        assert_eq!(numbers, (0..records.frames.len() as u32).collect::<Vec<_>>());
        let epochs = |free: bool| {
            let frames = records.frames.iter().filter(|frame| frame.free == free);
            frames.map(|frame| frame.epoch).collect::<Vec<_>>()
        };
        (epochs(false), epochs(true), records.cells[0].ending.clone())
    };
    // The listener has had enough since the second frame.
    let first = vec![0; 9];
    assert_eq!(measured(End::Enough), ([&first[..], &[1]].concat(), vec![1; 2], Some(CellEnding::Precision)));
    let all = [first, vec![1; 9]].concat();
    assert_eq!(measured(End::Frames(u32::MAX)), (all, vec![1; 2], Some(CellEnding::Budget)));
}

#[test]
fn a_run_until_it_is_decided_ends_as_decided() {
    let mut planned = Planned::with("");
    planned.plan.experiment.measure.until_decided = true;
    let (ending, records) = planned.measured(End::Enough);
    assert_eq!((ending, records.cells[0].ending.clone()), (Ending::Complete, Some(CellEnding::Decided)));
}

#[test]
fn a_cell_has_the_planned_load_or_that_of_the_least_frames_and_a_rate_that_can_be_kept() {
    let mut planned = Planned::with("");
    planned.plan.cells[0].frames_max = 2 * FRAMES_MIN;
    let below = Cell { arrivals: Arrivals::OfSaturation(0.5), ..planned.plan.cells[0].clone() };
    planned.plan.cells.push(below);
    let cancelled = AtomicBool::new(false);
    let run = Run::new(&Simulated, vec![Install::default()], &planned.plan, &planned.workloads, &cancelled);
    let (run, cell) = (run.expect("a run"), &planned.plan.cells[0]);
    // By how much longer the slots of its frames are than those of the plan.
    let budget = |times: u64| run.budget_ns(0, &Cell { slot_ns: times * cell.slot_ns, ..cell.clone() });
    assert_eq!([budget(1), budget(2)], [cell.budget_ns(3); 2]);
    assert_eq!(budget(3) * 2, cell.budget_ns(3) * 3, "the least frames of that length");

    let rate = |number: usize, operations: u64| {
        let mut served = Served::default();
        let slots = [Slot { operations, wall_ns: 1_000_000_000, ..Slot::default() }];
        served.add(&[Frame::default()], &slots[..usize::from(operations > 0)]);
        run.with_rate(number, &served).ok().map(|cell| cell.arrivals)
    };
    assert_eq!([rate(0, 0), rate(1, 0)], [Some(Arrivals::Closed), None], "nothing was measured before");
    assert_eq!([rate(0, 300), rate(1, 300)], [Some(Arrivals::Closed), Some(Arrivals::Poisson(150.0))]);
    assert_eq!(rate(1, 1), Some(Arrivals::Poisson(1.0)), "one a second at least");
}

#[test]
fn a_cell_that_failed_is_measured_again_after_its_last_frame_and_says_so() {
    let planned = Planned::with("fail_every = 10");
    for times in 1..=2 {
        let (ending, records) = planned.measured(End::Frames(u32::MAX));
        let frames: Vec<u32> = records.frames.iter().map(|frame| frame.frame).collect();
        assert_eq!((ending, frames), (Ending::Failed, (0..3 * times).collect()));
        let warnings = records.warnings();
        let again = warnings.iter().filter(|words| words.contains("is measured again after it failed")).count();
        assert_eq!(again as u32, times - 1, "{warnings:?}");
    }
}

#[test]
fn a_cell_that_cannot_be_measured_ends_with_the_reason() {
    for (settings, words, frames) in
        [("refuses_to_start = true", "told to refuse", 0), ("fail_every = 10", "3 frames in a row were invalid", 3)]
    {
        let (ending, records) = Planned::with(settings).measured(End::Frames(u32::MAX));
        assert_eq!((ending, records.frames.len()), (Ending::Failed, frames), "{settings}");
        let why = match &records.cells[0].ending {
            Some(CellEnding::Failed(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(why.contains(words), "{why}");
    }
}
