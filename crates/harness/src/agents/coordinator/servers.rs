//! What servers on the coordinator's machine use in each slot of their clients elsewhere.

use tithe_machine::proc::ServerTask;
use tithe_model::record::Slot;

use crate::{
    agents::server_watch::{Figures, Served, ServerWatch},
    load::{
        Schedule,
        frame::part::{PartMeasured, PartsAsked, Serving},
    },
};

/// Begins to read what serves the frame that is `asked` for, whose first slot begins at `start_ns`; `None` where some
/// server is not this machine's.
pub(super) fn watch(asked: &PartsAsked<'_>, serving: &[Serving], start_ns: u64) -> Option<ServerWatch> {
    let mains: Vec<i32> = asked.arms.iter().map(|arm| arm.server.process).collect::<Option<_>>()?;
    let served = |lane: usize, arm: usize| {
        let of = serving.iter().filter(|serving| (serving.lane, serving.arm) == (lane, arm));
        let tasks: Vec<ServerTask> = of.map(|serving| ServerTask::Process(serving.process)).collect();
        // Servers that do not say who serves a connection are read as a whole.
        if tasks.is_empty() { Served::Whole(mains[arm]) } else { Served::Tasks(tasks) }
    };
    let of_lane = |lane| (0..mains.len()).map(|arm| served(lane, arm)).collect();
    let served: Vec<Vec<Served>> = (0..asked.lanes).map(of_lane).collect();
    Some(ServerWatch::start(Schedule::new(&asked.frame.cell, asked.frame.number, mains.len(), start_ns), &served))
}

/// Writes into the slots of `parts` what servers have `used` in them.
///
/// # Errors
/// Where that is known of some slots and not of all: an operation that is counted with its server costs more than one
/// that is counted without.
pub(super) fn charge(parts: &mut [PartMeasured], used: &Figures) -> Result<(), String> {
    let slots = || parts.iter().flat_map(|part| &part.slots);
    let of = |slot: &Slot| used.slot(slot.lane as usize, slot.block, slot.arm as usize);
    let seen = slots().filter(|slot| of(slot).is_some()).count();
    let all = slots().count();
    if seen == 0 {
        return Ok(());
    }
    if seen < all {
        let missed = all - seen;
        return Err(format!("what servers used in {missed} of {all} slots was not read in time"));
    }
    for slot in parts.iter_mut().flat_map(|part| &mut part.slots) {
        if let Some(usage) = used.slot(slot.lane as usize, slot.block, slot.arm as usize) {
            slot.server_cpu_ns = usage.cpu_ns;
            slot.wait_ns += usage.wait_ns;
        }
    }
    Ok(())
}
