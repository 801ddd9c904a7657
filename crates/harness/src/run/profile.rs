//! The profiled frames of a cell, after the measured ones and of the same form.

use tithe_machine::{fault::Fault, perf};
use tithe_model::profile::{PROFILED_PAIRS, ProfiledFrame};

use super::{ChildProcesses, EventLog, Run};
use crate::load::frame::CellRunner;

/// Profiles cell `number` by the `runner` of its last start, in the process of its own that the database has, where it
/// has one. `first` is the number of the first profiled frame. Where profiling is not possible, the run says why and
/// goes on.
///
/// # Errors
/// When a frame cannot be measured, or the run folder cannot be written.
pub(super) fn profile(
    run: &Run<'_>,
    number: usize,
    (first, start): (u32, (u32, u32)),
    (runner, child_process): (&mut CellRunner<'_>, &mut Option<ChildProcesses<'_>>),
    event_log: &mut EventLog<'_>,
) -> Result<(), Fault> {
    let id = &run.plan.cells[number].id;
    if let Some(why) = why_not(run, number, runner) {
        return event_log.warn(format!("cell {id} is not profiled: {why}"));
    }
    for frame in first..first + 2 * PROFILED_PAIRS {
        // The sampled frame of a pair is the first of it, then the second, so that a drift does not count.
        let is_sampled = matches!((frame - first) % 4, 0 | 3);
        if run.cancelled() {
            return Ok(());
        }
        if is_sampled {
            runner.profile_next();
        }
        let Some((measured, slots)) = (match child_process {
            Some(child_process) => child_process.frame(runner, frame, start, false)?,
            None => runner.frame(frame, start, false, run.cancelled)?,
        }) else {
            return Ok(());
        };
        let without = || ProfiledFrame::without_samples((number as u32, frame), measured.arms.len(), &slots);
        let mut profiled = runner.take_profile().unwrap_or_else(without);
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
