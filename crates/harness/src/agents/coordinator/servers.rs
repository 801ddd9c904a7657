//! What servers on the coordinator's machine use in each slot of their clients elsewhere.

use std::collections::BTreeSet;

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

/// Writes into the slots of `parts` what servers have `used` in them. Where that is not known of some slot, nothing of
/// its lane counts in its block, as where a lane comes too late for its turn: an operation that is counted with its
/// server costs more than one that is counted without.
///
/// # Errors
/// Where less than half of the blocks are left.
pub(super) fn charge(parts: &mut [PartMeasured], used: &Figures) -> Result<(), String> {
    let of = |slot: &Slot| used.slot(slot.lane as usize, slot.block, slot.arm as usize);
    let slots = || parts.iter().flat_map(|part| &part.slots);
    if slots().all(|slot| of(slot).is_none()) {
        return Ok(());
    }
    let unseen: BTreeSet<(u32, u32)> =
        slots().filter(|slot| of(slot).is_none()).map(|slot| (slot.lane, slot.block)).collect();
    let all: BTreeSet<(u32, u32)> = slots().map(|slot| (slot.lane, slot.block)).collect();
    if 2 * unseen.len() > all.len() {
        let (unseen, all) = (unseen.len(), all.len());
        return Err(format!("what servers used was not read in time in {unseen} of {all} blocks"));
    }
    for PartMeasured { slots, arms, .. } in parts {
        for slot in slots {
            match of(slot) {
                Some(usage) if !unseen.contains(&(slot.lane, slot.block)) => {
                    slot.server_cpu_ns = usage.cpu_ns;
                    slot.wait_ns += usage.wait_ns;
                }
                _ => {
                    let Slot { cell, frame, block, lane, arm, operations, .. } = *slot;
                    *slot = Slot { cell, frame, block, lane, arm, ..Slot::default() };
                    // They were done, and the counters are of them as well.
                    if let Some(arm) = arms.get_mut(arm as usize) {
                        arm.record.operations -= operations;
                        arm.record.operations_lead_in += operations;
                    }
                }
            }
        }
    }
    Ok(())
}
