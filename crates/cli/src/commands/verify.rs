//! `tithe verify`: every arm once, with its evidence; nothing is timed.

use tithe_harness::{folder::RunFolder, run::Ending, run::Observer, run::Run, watch::host};
use tithe_model::{
    experiment::Limits,
    record::{Event, Frame, Role, Slot, Verdict},
};

use crate::{
    ExperimentArgs,
    exit::{self, Stop},
    interrupt,
    prepare::{self, Prepared},
};

/// Records at the most: enough to look at, quick to load.
const RECORDS: u64 = 1000;

/// Runs the command; returns the exit status.
pub fn verify(arguments: &ExperimentArgs) -> Result<i32, Stop> {
    let prepared = prepare::prepare(arguments)?;
    let prepared = small(prepared, arguments)?;
    let machine = host::machine(&arguments.runs);
    std::fs::create_dir_all(&arguments.runs)
        .map_err(|error| Stop::new(exit::MACHINE, format!("cannot make {}: {error}", arguments.runs.display())))?;
    let path = arguments.runs.join(format!("verify-{}", std::process::id()));
    let mut folder = RunFolder::create(&path, &prepared.text, &prepared.plan, &machine)?;
    let mut verifier = Verifier { prepared: &prepared, bad: 0, cell: 0 };
    let cancelled = interrupt::listen();
    let Prepared { plan, database, install, workloads, .. } = &prepared;
    let run = Run { database: *database, install: install.clone(), plan, workloads, cancelled };
    let ending = run.carry_out(&mut folder, None, &mut verifier);
    let bad = verifier.bad;
    drop(folder);
    // Nothing was measured, so there is nothing to keep.
    let _ = std::fs::remove_dir_all(&path);
    match ending? {
        Ending::Interrupted => Ok(exit::INTERRUPTED),
        Ending::Failed => Ok(exit::FAILED),
        Ending::Complete if bad > 0 => {
            anstream::println!("\n{bad} claims do not hold");
            Ok(exit::UNPROVEN)
        }
        Ending::Complete => {
            anstream::println!("\nevery claim holds and every answer was right; nothing was timed");
            Ok(exit::OK)
        }
    }
}

/// The same experiment with little data and one short frame a cell.
fn small(prepared: Prepared, arguments: &ExperimentArgs) -> Result<Prepared, Stop> {
    let mut plan = prepared.plan;
    // Another program's data come in sizes of its own.
    if !plan.cells.iter().any(|cell| cell.program) {
        plan.experiment.data.records = plan.experiment.data.records.min(RECORDS);
    }
    // So little data would be kept to next to no memory.
    plan.experiment.resources.iter_mut().for_each(|resources| resources.limits = Limits::default());
    for cell in &mut plan.cells {
        (cell.blocks, cell.frames_max, cell.epochs) = (2, 1, 1);
    }
    prepare::of_plan(prepared.text, plan, arguments)
}

/// Prints findings as they come.
struct Verifier<'a> {
    prepared: &'a Prepared,
    bad: u32,
    cell: usize,
}

impl Observer for Verifier<'_> {
    fn event(&mut self, event: &Event) {
        let experiment = &self.prepared.plan.experiment;
        match event {
            Event::CellStarted { cell } => {
                self.cell = *cell as usize;
                anstream::println!("{}", self.prepared.plan.cells[self.cell].id);
            }
            Event::Evidence(finding) => {
                let sign = match (finding.role, finding.verdict) {
                    (Role::Disclosure, _) => "i",
                    (Role::Claim, Verdict::Holds) => "✓",
                    (Role::Claim, Verdict::Fails) => "✗",
                    (Role::Claim, Verdict::CannotTell) => "?",
                };
                self.bad += u32::from(finding.role == Role::Claim && finding.verdict != Verdict::Holds);
                let arm = &experiment.arms[finding.arm as usize].name;
                anstream::println!(
                    "  {sign} {arm}: {}\n      guarded: {}\n      control: {}",
                    finding.claim,
                    finding.guarded,
                    finding.control
                );
            }
            Event::FrameDone { spoiled: Some(reason), .. } => {
                self.bad += 1;
                anstream::println!("  ✗ {reason}");
            }
            Event::Warning { message } => anstream::println!("  warning: {message}"),
            _ => {}
        }
    }

    fn frame(&mut self, _frame: &Frame, _slots: &[Slot]) -> bool {
        true
    }
}
