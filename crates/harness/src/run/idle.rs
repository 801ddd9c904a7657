//! What the servers of a cell use without clients.

use std::time::Duration;

use tithe_machine::fault::Fault;
use tithe_model::{catalogue::DatabaseEntry, plan::idle_s, record::Event};

use super::{EpochPlan, EventLog, Run};
use crate::load::frame::CellRunner;

impl Run<'_> {
    /// Watches the servers over an idle period, once in a cell whose plan has one. This is after its frames, when the
    /// work that the load has left is done.
    pub(super) fn watch_idle(
        &self,
        part: &EpochPlan<'_>,
        runner: &CellRunner<'_>,
        event_log: &mut EventLog<'_>,
    ) -> Result<(), Fault> {
        let length_s = idle_s(self.plan, part.cell);
        if !is_due(length_s, self.product.entry(), (part.epoch, part.cell.epochs), self.cancelled()) {
            return Ok(());
        }
        self.quiesce(runner.arms(), self.workloads[part.cell.workload].as_ref())?;
        event_log.listener.event(&Event::Idle { cell: part.number as u32, length_s });
        let windows = runner.idle(Duration::from_secs_f64(length_s), self.cancelled);
        event_log.folder.cell(part.number, |facts| facts.idle = windows)
    }
}

/// True if the servers of `entry` are watched after this `epoch` of all: the plan has a length for it, they are
/// processes of their own, and no further epoch follows.
fn is_due(length_s: f64, entry: &DatabaseEntry, (epoch, epochs): (u32, u32), cancelled: bool) -> bool {
    length_s > 0.0 && !entry.embedded && !entry.simulated && epoch + 1 >= epochs && !cancelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_watched_once_and_only_if_they_have_processes_of_their_own() {
        for number in 0..32_u32 {
            let [none, embedded, simulated, early, cancelled] = [1, 2, 4, 8, 16].map(|bit| number & bit != 0);
            let entry = DatabaseEntry { embedded, simulated, ..DatabaseEntry::BARE };
            let (length_s, epoch) = (if none { 0.0 } else { 60.0 }, if early { 0 } else { 2 });
            assert_eq!(is_due(length_s, &entry, (epoch, 3), cancelled), number == 0, "{number:05b}");
        }
        let in_epoch = |epoch: u32, epochs: u32| is_due(60.0, &DatabaseEntry::BARE, (epoch, epochs), false);
        assert_eq!([in_epoch(0, 1), in_epoch(1, 3), in_epoch(2, 3), in_epoch(4, 3)], [true, false, true, true]);
    }
}
