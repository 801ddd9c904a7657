//! What servers use in each slot of clients on other machines: read here, or by an observer on the server's machine.

use std::collections::BTreeSet;

use tithe_machine::remote::ServerMachine;
use tithe_model::{invalid::Invalid, record::Slot};

use super::observers::ServerObserver;
use crate::{
    agents::{
        offset::Offset,
        query::Watched,
        server_watch::{Figures, ServerWatch, served},
    },
    load::{
        Schedule,
        frame::{
            StartedArm,
            machines::{PartResult, PartsRequest, Serving},
        },
    },
};

/// Reads what the servers of one frame use in its slots.
pub(super) enum Watch<'o> {
    /// A thread here, if all servers are on this machine.
    Here(ServerWatch),
    /// Observers, if all servers are on other machines, by the ticket of the frame.
    There(u64, Vec<&'o ServerObserver>),
    /// Nothing is read, because some server is not seen.
    Nobody,
}

/// Begins to read the servers of the frame that is `asked` for, with the `ticket`, whose first slot begins at
/// `start_ns` on the clock of this machine. Each of `observers` comes with how far its clock is ahead.
///
/// # Errors
/// When an observer does not begin.
pub(super) fn watch<'o>(
    asked: &PartsRequest<'_>,
    serving: &[Serving],
    (ticket, start_ns): (u64, u64),
    observers: &[(&'o ServerObserver, Offset)],
) -> Result<Watch<'o>, String> {
    let (arms, lanes) = (asked.arms, asked.lanes);
    let schedule = |start_ns| Schedule::new(&asked.frame.cell, asked.frame.number, arms.len(), start_ns);
    if arms.iter().all(|arm| arm.server.process.is_some()) {
        let mains: Vec<Option<i32>> = arms.iter().map(|arm| arm.server.process).collect();
        return Ok(Watch::Here(ServerWatch::start(schedule(start_ns), &served(lanes, &mains, serving))));
    }
    if arms.iter().any(|arm| arm.server.remote.is_none()) {
        return Ok(Watch::Nobody);
    }
    let mut watching = Vec::new();
    for (observer, offset) in observers {
        let seen = |arm: &StartedArm| {
            arm.server.remote.as_ref().filter(|server| server.by.name() == observer.name()).map(|server| server.process)
        };
        let mains: Vec<Option<i32>> = arms.iter().map(seen).collect();
        let there_ns = offset.there(start_ns);
        let there_ns = there_ns
            .ok_or_else(|| format!("the frame would begin before the clock of observer {} does", observer.name()))?;
        let watched = Watched { ticket, schedule: schedule(there_ns), lanes, mains, serving: serving.to_vec() };
        observer.watch(watched).map_err(|fault| fault.to_string())?;
        watching.push(*observer);
    }
    Ok(Watch::There(ticket, watching))
}

impl Watch<'_> {
    /// Ends with the frame, or at once if it is `invalid`; returns what was used in its slots, `None` if nothing was
    /// read.
    ///
    /// # Errors
    /// When an observer does not report.
    pub fn finish(self, invalid: bool) -> Result<Option<Figures>, Invalid> {
        match self {
            Self::Here(watch) => watch.finish(invalid).map(Some),
            Self::Nobody => Ok(None),
            Self::There(ticket, observers) => {
                let mut figures = Figures::default();
                for observer in observers {
                    figures.add(observer.used(ticket, invalid)?);
                }
                Ok(Some(figures))
            }
        }
    }
}

/// Writes into the slots of `parts` what servers have `used` in them. If that is unknown for some slot, the whole block
/// of its lane is left out, as when a lane comes too late for its turn: an operation that is counted with its server
/// costs more than one that is counted without.
///
/// # Errors
/// If less than half of the blocks are left.
pub(super) fn charge(parts: &mut [PartResult], used: &Figures) -> Result<(), Invalid> {
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
        return Err(Invalid::NotRead(format!("{unseen} of {all} blocks")));
    }
    for PartResult { slots, arms, .. } in parts {
        for slot in slots {
            match of(slot) {
                Some(usage) if !unseen.contains(&(slot.lane, slot.block)) => {
                    slot.server_cpu_ns = usage.cpu_ns;
                    slot.wait_ns += usage.wait_ns;
                }
                _ => {
                    let Slot { cell, frame, block, lane, arm, operations, .. } = *slot;
                    *slot = Slot { cell, frame, block, lane, arm, ..Slot::default() };
                    // These operations were done, so they stay in the counters.
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
