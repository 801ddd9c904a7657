//! What the servers of a cell use without clients.

use std::time::Duration;

use tithe_machine::fault::Fault;
use tithe_model::{idle, record::Event};

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
        let length_s = idle::length_s(self.plan, part.cell);
        let entry = self.product.entry();
        let is_last = part.epoch + 1 >= part.cell.epochs;
        if length_s == 0.0 || entry.embedded || entry.simulated || !is_last || self.cancelled() {
            return Ok(());
        }
        self.quiesce(runner.arms(), self.workloads[part.cell.workload].as_ref())?;
        event_log.listener.event(&Event::Idle { cell: part.number as u32, length_s });
        let windows = runner.idle(Duration::from_secs_f64(length_s), self.cancelled);
        event_log.folder.cell(part.number, |facts| facts.idle = windows)
    }
}
