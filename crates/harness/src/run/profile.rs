//! The profiled frames of a cell, after the measured ones and of the same form.

use tithe_machine::{fault::Fault, perf};
use tithe_model::{
    plan::Starts,
    profile::{PROFILED_PAIRS, PROFILED_STARTS, ProfiledFrame},
};

use super::{ChildProcesses, EventLog, Run, end_process};
use crate::load::frame::CellRunner;

/// Starts the servers of a cell for the time of that number.
pub(super) type StartAnew<'a> = dyn FnMut(u32, &mut CellRunner<'_>, &mut EventLog<'_>) -> Result<(), Fault> + 'a;

/// Profiles cell `number` by its `runner`, in the process of its own that the database has, where it has one. The first
/// profiled frame has the number `first` and is on the last start of the measured ones; where the cell has several
/// starts, the frames have [`PROFILED_STARTS`]. Where profiling is not possible, the run says why and goes on.
///
/// # Errors
/// When a frame cannot be measured, servers cannot be started, or the run folder cannot be written.
pub(super) fn profile(
    run: &Run<'_>,
    number: usize,
    (first, (epoch, last_start)): (u32, (u32, u32)),
    (runner, child_process): (&mut CellRunner<'_>, &mut Option<ChildProcesses<'_>>),
    start_anew: &mut StartAnew<'_>,
    event_log: &mut EventLog<'_>,
) -> Result<(), Fault> {
    let cell = &run.plan.cells[number];
    if let Some(why) = why_not(run, number, runner) {
        return event_log.warn(format!("cell {} is not profiled: {why}", cell.id));
    }
    let starts = if cell.starts == Starts::Once { 1 } else { PROFILED_STARTS };
    for profiled in 0..2 * PROFILED_PAIRS {
        if run.cancelled() {
            return Ok(());
        }
        let (frame, start) = (first + profiled, last_start + profiled * starts / (2 * PROFILED_PAIRS));
        if profiled > 0 && profiled * starts % (2 * PROFILED_PAIRS) == 0 {
            end_process(child_process, event_log)?;
            start_anew(start, runner, event_log)?;
        }
        // The sampled frame of a pair is the first of it, then the second, so that a drift does not count.
        if matches!(profiled % 4, 0 | 3) {
            runner.profile_next();
        }
        let Some((measured, slots)) = (match child_process {
            Some(child_process) => child_process.frame(runner, frame, (epoch, start), false)?,
            None => runner.frame(frame, (epoch, start), false, run.cancelled)?,
        }) else {
            return Ok(());
        };
        let without = || ProfiledFrame::without_samples((number as u32, frame), measured.arms.len(), &slots);
        let mut profiled = runner.take_profile().unwrap_or_else(without);
        profiled.start = start;
        profiled.invalid = profiled.invalid.or_else(|| measured.invalid.as_ref().map(ToString::to_string));
        event_log.folder.profiled(&profiled)?;
    }
    Ok(())
}

/// Why cell `number` cannot be profiled; `None` where it can.
fn why_not(run: &Run<'_>, number: usize, runner: &CellRunner<'_>) -> Option<String> {
    if run.plan.cells[number].program {
        return Some("another program offers its load, whose slots are too long to compare samples in".to_owned());
    }
    if run.team.is_some() {
        return Some("its load or its servers are on other machines, and samples are taken on this one".to_owned());
    }
    if runner.time_is_virtual() {
        return None;
    }
    perf::refused().map(|refused| refused.to_string())
}
