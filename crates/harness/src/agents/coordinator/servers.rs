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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use tithe_machine::{clock::Clock, launch::Server};
    use tithe_model::{
        experiment::{Arrivals, Design},
        record::ArmFrame,
    };
    use tithe_plugin::simulated::test_bench::Bench;

    use super::*;
    use crate::{
        agents::query::SlotUsage,
        load::frame::{
            machines::{ArmPart, PartRequest},
            tests::cell,
        },
    };

    #[test]
    fn servers_are_read_here_if_all_of_them_are_here() {
        let read = |processes: [Option<i32>; 2]| {
            let bench = Bench::plain();
            let arms = processes.map(|process| StartedArm {
                server: Server { process, remote: None, ..bench.server.clone() },
                data: 0,
                shares_server: false,
                setup: bench.setup.clone(),
                on: Vec::new(),
                off: Vec::new(),
            });
            let (cell, cancelled) = (cell(Design::Interleaved, Arrivals::Closed), AtomicBool::new(false));
            let frame =
                PartRequest { cell, number: 0, free: false, warmup_ns: 0, lag: Vec::new(), fresh: false, cold: false };
            let asked = PartsRequest { cell_index: 0, frame, arms: &arms, lanes: 1, cancelled: &cancelled };
            let watch = watch(&asked, &[], (7, Clock::Real.now()), &[]).expect("nobody refuses");
            let is_here = matches!(watch, Watch::Here(_));
            assert_eq!(watch.finish(true).expect("it ends").is_some(), is_here);
            is_here
        };
        let here = Some(std::process::id() as i32);
        let seen = [[here, here], [here, None], [None, here], [None, None]].map(read);
        assert_eq!(seen, [true, false, false, false], "a server that is not seen is compared with none that is");
    }

    /// A frame of one lane with so many blocks of two arms; the usage was read in the slots `read`, by block and arm.
    fn charged(blocks: u32, read: &[(u32, u32)]) -> Result<PartResult, Invalid> {
        let slot = |(block, arm): (u32, u32)| Slot {
            cell: 3,
            frame: 5,
            lane: 1,
            block,
            arm,
            operations: 10,
            wall_ns: 100,
            client_cpu_ns: 40,
            wait_ns: 7,
            ..Slot::default()
        };
        let slots = (0..blocks).flat_map(|block| [(block, 0), (block, 1)]).map(slot).collect();
        let record = ArmFrame { operations: 10 * u64::from(blocks), ..ArmFrame::default() };
        let arm = || {
            let record = record.clone();
            ArmPart { record, warmed_up: 0, profiles: Vec::new(), first_failure: None, invalid: None }
        };
        let mut parts = [PartResult { slots, arms: vec![arm(), arm()], states: Vec::new(), invented_ns: None }];
        let usage = |(block, arm): &(u32, u32)| {
            let (lane, block, arm) = (1, *block, *arm as usize);
            SlotUsage { lane, block, arm, cpu_ns: 500, wait_ns: 3 }
        };
        let mut figures = Figures::default();
        figures.add(read.iter().map(usage).collect());
        charge(&mut parts, &figures)?;
        let [part] = parts;
        Ok(part)
    }

    #[test]
    fn slots_are_charged_with_their_server_and_a_block_that_was_not_read_is_left_out() {
        let all: Vec<(u32, u32)> = (0..4).flat_map(|block| [(block, 0), (block, 1)]).collect();
        let seen = |read: &[(u32, u32)]| {
            let part = charged(4, read).expect("enough was read");
            let slots = part.slots.iter().map(|it| (it.operations, it.client_cpu_ns, it.server_cpu_ns, it.wait_ns));
            let counts = part.arms.iter().map(|it| (it.record.operations, it.record.operations_lead_in));
            (slots.collect::<Vec<_>>(), counts.collect::<Vec<_>>())
        };
        assert_eq!(seen(&all), (vec![(10, 40, 500, 10); 8], vec![(40, 0); 2]));
        assert_eq!(seen(&[]), (vec![(10, 40, 0, 7); 8], vec![(40, 0); 2]), "servers that nobody sees");
        // One of both slots of the third block is missing.
        let (slots, counts) = seen(&[&all[..5], &all[6..]].concat());
        let charged_slots = [vec![(10, 40, 500, 10); 4], vec![(0, 0, 0, 0); 2], vec![(10, 40, 500, 10); 2]].concat();
        assert_eq!((slots, counts), (charged_slots, vec![(30, 10); 2]));
        let part = charged(4, &all[..7]).expect("enough was read");
        let last = part.slots[7];
        assert_eq!((last.cell, last.frame, last.lane, last.block, last.arm), (3, 5, 1, 3, 1), "it stays in its place");
    }

    #[test]
    fn a_frame_of_which_less_than_half_was_read_is_not_used() {
        let half: Vec<(u32, u32)> = (0..2).flat_map(|block| [(block, 0), (block, 1)]).collect();
        assert!(charged(4, &half).is_ok());
        let unread = |count: usize| charged(4, &half[..count]).err();
        assert_eq!(unread(2), Some(Invalid::NotRead("3 of 4 blocks".to_owned())));
        assert_eq!(unread(1), Some(Invalid::NotRead("4 of 4 blocks".to_owned())));
    }
}
