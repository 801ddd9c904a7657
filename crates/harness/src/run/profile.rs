//! The profiled frames of a cell. They have the same form as the measured ones and are spread between them, so that
//! both see the machine at the same speed: a slower machine slows some parts of an operation more than others. If each
//! measured frame begins with cold caches, each profiled one does.

use tithe_machine::{fault::Fault, perf};
use tithe_model::{
    plan::Starts,
    profile::{PAIRS_OF_START, PROFILED_FROM, PROFILED_PAIRS, ProfiledFrame},
};

use super::{ChildProcesses, EventLog, Run, end_process};
use crate::load::frame::{CONNECTIONS_END, CellRunner};

/// Starts the servers of a cell for the start of that number.
pub(super) type StartAnew<'a> = dyn FnMut(u32, &mut CellRunner<'_>, &mut EventLog<'_>) -> Result<(), Fault> + 'a;

/// The pairs of profiled frames of one cell.
pub(super) struct Profiling {
    /// Index of the cell.
    number: usize,
    starts: Starts,
    /// Each frame has a start of its own, with empty caches.
    cold: bool,
    /// Pairs that the earlier run measured, which this one continues.
    before: u32,
    /// Pairs that were measured.
    done: u32,
}

impl Profiling {
    /// For cell `number`, with `before` pairs measured earlier; `None` if profiling is not asked for, or is impossible,
    /// which the run reports.
    ///
    /// # Errors
    /// When the run folder cannot be written.
    pub fn of(
        run: &Run<'_>,
        number: usize,
        before: u32,
        runner: &CellRunner<'_>,
        event_log: &mut EventLog<'_>,
    ) -> Result<Option<Self>, Fault> {
        let cell = &run.plan.cells[number];
        if !run.plan.experiment.measure.profile {
            return Ok(None);
        }
        if let Some(why) = why_not(run, number, runner) {
            event_log.warn(format!("cell {} is not profiled: {why}", cell.id))?;
            return Ok(None);
        }
        let cold = run.plan.experiment.resources[cell.resources].limits.cold && cell.starts == Starts::EveryFrame;
        Ok(Some(Self { number, starts: cell.starts, cold, before, done: before }))
    }

    /// True if pairs follow single frames, because servers are not restarted between them.
    pub fn follows_frames(&self) -> bool {
        self.starts == Starts::Once
    }

    /// Pairs that are due when `spent_ns` of the cell's `load_ns` are measured.
    pub fn due(&self, spent_ns: u64, load_ns: u64) -> u32 {
        let left = u64::from(PROFILED_PAIRS.saturating_sub(self.before));
        let so_far = (left * spent_ns / load_ns.max(1)).min(left) as u32;
        let due = (self.before + so_far).saturating_sub(self.done);
        if self.follows_frames() { due } else { due.min(PAIRS_OF_START) }
    }

    /// Measures `pairs` in the database's own process, if it has one.
    ///
    /// # Errors
    /// When a frame cannot be measured, or the run folder cannot be written; when servers cannot be started.
    pub fn measure(
        &mut self,
        run: &Run<'_>,
        pairs: u32,
        number_of: (u32, u32),
        (runner, child_process): (&mut CellRunner<'_>, &mut Option<ChildProcesses<'_>>),
        start_anew: &mut StartAnew<'_>,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        for _ in 0..pairs {
            for place in 0..2 {
                if self.cold {
                    end_process(child_process, event_log)?;
                    start_anew(number_of.1, runner, event_log)?;
                }
                // The sampled frame of a pair is alternately its first and its second, so that drift cancels out.
                if (self.done + place).is_multiple_of(2) {
                    runner.profile_next();
                }
                let frame = PROFILED_FROM + 2 * self.done + place;
                let place = (&mut *runner, &mut *child_process);
                let Some((measured, slots)) = run.frame(place, frame, number_of, false)? else { return Ok(()) };
                let without =
                    || ProfiledFrame::without_samples((self.number as u32, frame), measured.arms.len(), &slots);
                let mut profiled = runner.take_profile().unwrap_or_else(without);
                profiled.start = number_of.1;
                profiled.invalid = profiled.invalid.or_else(|| measured.invalid.as_ref().map(ToString::to_string));
                event_log.folder.profiled(&profiled)?;
                if profiled.invalid.as_deref() == Some(CONNECTIONS_END) {
                    let id = &run.plan.cells[self.number].id;
                    event_log.warn(format!("cell {id} is not profiled: {CONNECTIONS_END}"))?;
                    self.done = PROFILED_PAIRS;
                    return Ok(());
                }
            }
            self.done += 1;
        }
        Ok(())
    }

    /// Measures the remaining pairs after the measured frames, on further starts if the cell has several.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn finish(
        &mut self,
        run: &Run<'_>,
        (epoch, last_start): (u32, u32),
        (runner, child_process): (&mut CellRunner<'_>, &mut Option<ChildProcesses<'_>>),
        start_anew: &mut StartAnew<'_>,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let mut start = last_start;
        while self.done < PROFILED_PAIRS && !run.cancelled() {
            let left = PROFILED_PAIRS - self.done;
            let pairs = if self.follows_frames() { left } else { left.min(PAIRS_OF_START) };
            self.measure(run, pairs, (epoch, start), (runner, child_process), start_anew, event_log)?;
            if self.done < PROFILED_PAIRS && !run.cancelled() {
                end_process(child_process, event_log)?;
                start += 1;
                start_anew(start, runner, event_log)?;
            }
        }
        Ok(())
    }
}

/// Pairs of `profiled` frames that cell `number` has, including an unfinished one.
pub(super) fn pairs_done(profiled: &[ProfiledFrame], number: u32) -> u32 {
    let of_cell = profiled.iter().filter(|frame| frame.cell == number);
    of_cell.map(|frame| (frame.frame + 1).saturating_sub(PROFILED_FROM).div_ceil(2)).max().unwrap_or(0)
}

/// Why cell `number` cannot be profiled; `None` if it can.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs after each start, or frame, of `count` equal ones.
    fn spread(starts: Starts, before: u32, count: u64) -> Vec<u32> {
        let mut profiling = Profiling { number: 0, starts, cold: false, before, done: before };
        let after = |spent_ns| {
            let due = profiling.due(spent_ns, count);
            profiling.done += due;
            due
        };
        (1..=count).map(after).collect()
    }

    #[test]
    fn a_pair_that_was_begun_counts_and_those_of_other_cells_do_not() {
        let done = |frames: &[(u32, u32)]| {
            let frame =
                |(cell, number): &(u32, u32)| ProfiledFrame::without_samples((*cell, PROFILED_FROM + number), 2, &[]);
            pairs_done(&frames.iter().map(frame).collect::<Vec<_>>(), 1)
        };
        assert_eq!([done(&[]), done(&[(0, 7)]), done(&[(1, 0)]), done(&[(1, 0), (1, 1)])], [0, 0, 1, 1]);
        assert_eq!([done(&[(1, 0), (1, 1), (1, 2)]), done(&[(1, 3), (0, 9)])], [2, 2]);
    }

    #[test]
    fn pairs_are_spread_over_the_load() {
        assert_eq!(spread(Starts::Several(10), 0, 10), [2; 10]);
        assert_eq!(spread(Starts::Several(4), 0, 4), [2; 4], "more are measured on starts of their own");
        assert_eq!(spread(Starts::Once, 0, 8), [2, 3, 2, 3, 2, 3, 2, 3]);
        assert_eq!(spread(Starts::Several(40), 0, 40).iter().sum::<u32>(), PROFILED_PAIRS);
        assert_eq!(spread(Starts::Once, 17, 3), [1, 1, 1], "of a run that is taken up again");
        assert_eq!(spread(Starts::Once, 20, 3), [0; 3]);
    }
}
