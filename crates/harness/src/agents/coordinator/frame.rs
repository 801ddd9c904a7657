//! One frame, once every agent has its order: when it begins, what each agent has measured, and why it cannot be used.

use std::{sync::atomic::Ordering, time::Duration};

use tithe_machine::{clock::Clock, fault::Fault};
use tithe_model::{
    invalid::Invalid,
    plan::Cell,
    record::{AgentFrame, ClientTimes, Slot},
};

use super::{
    POLL_INTERVAL, Team, exchange,
    membership::Member,
    servers::{self, Watch},
};
use crate::{
    agents::{
        link::{Delivery, PROMPT, tells_time},
        message::{Hello, Order, Reply, Report, Said, read},
        offset::{self, Offset},
    },
    load::frame::machines::{ArmPart, LaneRange, PartResult, Parts, PartsRequest, Serving},
};

/// Time that lanes may need to connect and warm up, in addition to the warm-up that was ordered, ns.
const READY_WITHIN_NS: u64 = 60_000_000_000;

/// Time that an agent may need to hand in its part after the last slot, ns.
const REPORT_WITHIN_NS: u64 = 30_000_000_000;

/// How far ahead the first slot begins at most, ns.
const START_AHEAD_MAX_NS: u64 = 2_000_000_000;

/// Why a frame came to nothing.
pub(super) enum Stop {
    /// The user has asked for it.
    Cancelled,
    /// An agent or observer was lost or late: the frame is measured again.
    Invalid(Invalid),
    /// The cell cannot go on.
    Failed(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

/// The frame is invalid for this reason.
fn invalid(why: impl ToString) -> Stop {
    Stop::Invalid(Invalid::Other(why.to_string()))
}

impl Stop {
    /// The result of the frame; `None` when cancelled.
    ///
    /// # Errors
    /// When the cell cannot go on.
    pub fn outcome(self) -> Result<Option<Parts>, Fault> {
        match self {
            Self::Cancelled => Ok(None),
            Self::Invalid(why) => Ok(Some(Parts { parts: Vec::new(), agents: Vec::new(), invalid: Some(why) })),
            Self::Failed(fault) => Err(fault),
        }
    }
}

/// A frame that agents have the order to measure.
pub(super) struct OrderedFrame<'f, 't, 'a> {
    pub team: &'f Team<'t>,
    pub ticket: u64,
    pub asked: &'f PartsRequest<'a>,
}

impl OrderedFrame<'_, '_, '_> {
    /// Measures it; calls `count` when every agent is ready, to read the counters of the servers.
    ///
    /// # Errors
    /// Why it failed.
    pub fn measure(&self, members: &mut [Member], count: &mut dyn FnMut()) -> Result<Parts, Stop> {
        let serving = self.ready(members)?;
        let before = self.offsets(members, exchange::BEFORE)?;
        count();
        let start_ns = self.go(members, &before)?;
        let watch = self.watch(&serving, start_ns, &before[members.len()..])?;
        let parts = self.parts(members, start_ns, watch)?;
        let after = self.offsets(members, exchange::AFTER)?;
        self.with_clocks(members, parts, (&before, &after))
    }

    /// How long it lasts on real clocks, ns.
    fn length_ns(&self) -> u64 {
        if self.asked.time_is_real() { self.asked.frame.cell.frame_ns(self.asked.arms.len()) } else { 0 }
    }

    /// Waits until the lanes of every agent are connected and warm; returns the tasks that serve them.
    fn ready(&self, members: &[Member]) -> Result<Vec<Serving>, Stop> {
        let within_ns =
            READY_WITHIN_NS + self.asked.arms.len() as u64 * (self.asked.frame.warmup_ns + self.length_ns());
        let ready = |said| match said {
            Said::Ready(serving) => Some(Ok(serving)),
            Said::Failed(words) => Some(Err(Fault::Connection(words))),
            Said::Measured(_) => None,
        };
        Ok(self.told(members, (0, Clock::Real.now() + within_ns), &ready)?.concat())
    }

    /// Sends the start of the first slot to every agent, whose clock is ahead as `before` has it; returns that time on
    /// this clock, ns.
    fn go(&self, members: &[Member], before: &[Offset]) -> Result<u64, Stop> {
        let longest_ns = before.iter().map(|offset| offset.delay_ns).max().unwrap_or(0);
        let start_ns = Clock::Real.now() + self.team.ahead_ns.load(Ordering::Relaxed) + 3 * longest_ns;
        for (member, offset) in members.iter().zip(before) {
            let name = &member.hello.name;
            let Some(there_ns) = offset.there(start_ns) else {
                return Err(invalid(format_args!("the frame would begin before the clock of agent {name} does")));
            };
            match self.team.order(member, &Order::Go { ticket: self.ticket, start_ns: there_ns }, PROMPT) {
                Ok(Some(Reply::Accepted)) => {}
                Ok(_) => return Err(invalid(format_args!("agent {name} was lost"))),
                Err(fault) => return Err(invalid(fault)),
            }
        }
        Ok(start_ns)
    }

    /// Begins to read what servers use from `start_ns` on; the observers' clocks are `ahead`. If that was too late, the
    /// next frame begins later after its orders.
    fn watch(&self, serving: &[Serving], start_ns: u64, ahead: &[Offset]) -> Result<Watch<'_>, Stop> {
        let observers = self.team.observers.iter().map(|observer| &**observer);
        let observers: Vec<_> = observers.zip(ahead.iter().copied()).collect();
        let watch = servers::watch(self.asked, serving, (self.ticket, start_ns), &observers).map_err(invalid)?;
        if self.asked.time_is_real() && Clock::Real.now() > start_ns {
            let twice = |ahead_ns: u64| Some((2 * ahead_ns).min(START_AHEAD_MAX_NS));
            let _ = self.team.ahead_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, twice);
            // No reading may go on during the next frame. What it has read until now belongs to no frame.
            drop(watch.finish(true));
            return Err(Stop::Invalid(Invalid::ToldTooLate));
        }
        Ok(watch)
    }

    /// What every agent has measured from `start_ns` on, with what the servers used meanwhile according to `watch`; and
    /// how long the clients of each waited.
    fn parts(
        &self,
        members: &[Member],
        start_ns: u64,
        watch: Watch<'_>,
    ) -> Result<(Vec<PartResult>, Vec<ClientTimes>), Stop> {
        let end_ns = start_ns + self.length_ns();
        let measured = |said| match said {
            Said::Measured(part) => Some(Ok(*part)),
            Said::Failed(words) => Some(Err(Fault::Connection(words))),
            Said::Ready(_) => None,
        };
        let parts = self.told(members, (end_ns, end_ns + REPORT_WITHIN_NS), &measured);
        let used = watch.finish(parts.is_err());
        let mut parts = parts?;
        let place = (self.asked.cell_index, self.asked.frame.number);
        let arms = self.asked.arms.len();
        let fits = |(part, member): &(&PartResult, &Member)| fits(part, place, arms, member.lanes);
        if let Some((_, member)) = parts.iter().zip(members).find(|both| !fits(both)) {
            return Err(invalid(format_args!("{} sent something other than its part", member.hello)));
        }
        // Until servers are charged, the slots have only what clients waited.
        let clients = parts.iter().map(client_times).collect();
        if let Some(used) = used.map_err(Stop::Invalid)? {
            servers::charge(&mut parts, &used).map_err(Stop::Invalid)?;
        }
        Ok((parts, clients))
    }

    /// By how much the clock of each agent and observer is ahead.
    fn offsets(&self, members: &[Member], exchanges: usize) -> Result<Vec<Offset>, Stop> {
        let enough_ns = self.cell().slot_ns / offset::SLOT_PER_BOUND;
        let of = |hello: &Hello| {
            let offset = exchange::offset_within(self.team.link, hello, exchanges, enough_ns).map_err(invalid)?;
            offset.ok_or_else(|| invalid(format_args!("{hello} was lost")))
        };
        self.team.everybody(members).map(of).collect()
    }

    fn cell(&self) -> &Cell {
        &self.asked.frame.cell
    }

    /// The `parts` with the times of their `clients` and the clock offsets `before` and `after` the frame; the clients'
    /// states continue from those that the agents have handed in.
    fn with_clocks(
        &self,
        members: &mut [Member],
        (parts, clients): (Vec<PartResult>, Vec<ClientTimes>),
        (before, after): (&[Offset], &[Offset]),
    ) -> Result<Parts, Stop> {
        let most_ns = self.cell().slot_ns / offset::SLOT_PER_BOUND;
        let lanes = members.iter().map(|member| member.lanes.count as u32);
        // Observers have neither lanes nor clients.
        let load = lanes.zip(clients.into_iter().map(Some)).chain(std::iter::repeat((0, None)));
        let offsets = before.iter().zip(after);
        let mut agents = Vec::new();
        for ((hello, (lanes, clients)), (before, after)) in self.team.everybody(members).zip(load).zip(offsets) {
            let bound_ns = before.bound_until(after);
            if self.asked.time_is_real() {
                known_enough(hello, bound_ns, most_ns).map_err(Stop::Invalid)?;
            }
            agents.push(AgentFrame {
                name: hello.name.clone(),
                lanes,
                clock_offset_ns: before.offset_ns,
                clock_bound_ns: bound_ns,
                clients,
            });
        }
        for (member, part) in members.iter_mut().zip(&parts) {
            member.states = Some(part.states.clone());
        }
        Ok(Parts { parts, agents, invalid: None })
    }

    /// Waits until `take` has got its message from each of `members`. Until `quiet_until_ns` no member is asked whether
    /// it is there.
    fn told<T>(
        &self,
        members: &[Member],
        (quiet_until_ns, deadline_ns): (u64, u64),
        take: &dyn Fn(Said) -> Option<Result<T, Fault>>,
    ) -> Result<Vec<T>, Stop> {
        let mut told: Vec<Option<T>> = members.iter().map(|_| None).collect();
        let mut reports = self.team.reports();
        while told.iter().any(Option::is_none) {
            if self.team.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            let pause = Duration::from_nanos(quiet_until_ns.saturating_sub(Clock::Real.now()))
                .clamp(POLL_INTERVAL, 4 * POLL_INTERVAL);
            if let Some(delivery) = reports.next(pause).map_err(invalid)? {
                self.team.acknowledge(&delivery);
                let Some((number, said)) = self.of_this_frame(&delivery, members) else { continue };
                match take(said) {
                    Some(Ok(one)) => told[number] = told[number].take().or(Some(one)),
                    Some(Err(fault)) => {
                        return Err(fault.of(format_args!("agent {}", members[number].hello.name)).into());
                    }
                    None => {}
                }
                continue;
            }
            let now_ns = Clock::Real.now();
            if now_ns >= quiet_until_ns {
                let missing = members.iter().zip(&told).filter(|(_, told)| told.is_none()).map(|(member, _)| member);
                self.are_there(missing, now_ns >= deadline_ns)?;
            }
        }
        Ok(told.into_iter().flatten().collect())
    }

    /// The message of `delivery` about this frame, with the number of the member that sent it.
    fn of_this_frame(&self, delivery: &Delivery, members: &[Member]) -> Option<(usize, Said)> {
        let Report { agent, ticket, said } = read(&delivery.body)?;
        let number = members.iter().position(|member| member.hello.id == agent && ticket == self.ticket)?;
        Some((number, said))
    }

    /// Checks that none of the `missing` members was lost, and none is there but `late`.
    fn are_there<'m>(&self, missing: impl Iterator<Item = &'m Member>, late: bool) -> Result<(), Stop> {
        for member in missing {
            let name = &member.hello.name;
            match tells_time(self.team.link, &member.hello.clock()).map_err(invalid)? {
                true if late => return Err(invalid(format_args!("agent {name} is there and does not report"))),
                true => {}
                false => return Err(invalid(format_args!("agent {name} was lost"))),
            }
        }
        Ok(())
    }
}

/// Checks that the clock of `hello` was known exactly enough in a frame, by its `bound_ns`.
///
/// # Errors
/// If `bound_ns` is more than `most_ns`: the round trips were too long, or the clock has jumped or drifted meanwhile.
fn known_enough(hello: &Hello, bound_ns: u64, most_ns: u64) -> Result<(), Invalid> {
    let us = |ns: u64| (ns as f64 / 1e3).round_ties_even() as u64;
    match bound_ns {
        known if known <= most_ns => Ok(()),
        known => Err(Invalid::ClockUnsure { whose: hello.to_string(), known_us: us(known), most_us: us(most_ns) }),
    }
}

/// How long the clients of `part` waited in all of its slots.
fn client_times(part: &PartResult) -> ClientTimes {
    let add = |sum: ClientTimes, slot: &Slot| ClientTimes {
        wait_ns: sum.wait_ns.saturating_add(slot.wait_ns),
        wall_ns: sum.wall_ns.saturating_add(slot.wall_ns),
    };
    part.slots.iter().fold(ClientTimes::default(), add)
}

/// True if `part` is what was ordered: slots of these `arms` and `lanes`, of this `cell` and `frame`, each once, and as
/// many operations of each arm as its slots have.
fn fits(part: &PartResult, (cell, frame): (u32, u32), arms: usize, lanes: LaneRange) -> bool {
    let is_here = |lane: u32| (lanes.first..lanes.first + lanes.count).contains(&(lane as usize));
    let mut places: Vec<(u32, u32, u32)> = part.slots.iter().map(|slot| (slot.lane, slot.block, slot.arm)).collect();
    places.sort_unstable();
    let each_once = places.windows(2).all(|pair| pair[0] != pair[1]);
    let belongs = part
        .slots
        .iter()
        .all(|slot| (slot.cell, slot.frame) == (cell, frame) && is_here(slot.lane) && (slot.arm as usize) < arms);
    let operations = |arm: usize| {
        let mut of_arm = part.slots.iter().filter(|slot| slot.arm as usize == arm);
        of_arm.try_fold(0u64, |sum, slot| sum.checked_add(slot.operations))
    };
    let agree = |(arm, told): (usize, &ArmPart)| operations(arm) == Some(told.record.operations);
    part.arms.len() == arms && each_once && belongs && part.arms.iter().enumerate().all(agree)
}

#[cfg(test)]
mod tests {
    use tithe_model::record::ArmFrame;

    use super::*;
    use crate::agents::tests::hello;

    #[test]
    fn a_clock_that_jumps_or_drifts_within_a_frame_spoils_it_by_its_name() {
        let offset = |offset_ns, bound_ns| Offset { offset_ns, bound_ns, delay_ns: 2 * bound_ns };
        let after_a_frame = |later: Offset| {
            let bound_ns = offset(5_000_000, 100_000).bound_until(&later);
            known_enough(&hello("rack7"), bound_ns, 250_000).map_err(|why| why.to_string())
        };
        assert_eq!(after_a_frame(offset(5_000_000, 100_000)), Ok(()));
        assert_eq!(after_a_frame(offset(5_300_000, 100_000)), Ok(()), "a drift that may be none");
        let jumped = "the clock of agent rack7 is known within 800900 µs, and 250 µs is the most".to_owned();
        assert_eq!(after_a_frame(offset(806_000_000, 100_000)), Err(jumped.clone()));
        assert_eq!(after_a_frame(offset(-796_000_000, 100_000)), Err(jumped), "back");
        let drifted = "the clock of agent rack7 is known within 300 µs, and 250 µs is the most".to_owned();
        assert_eq!(after_a_frame(offset(5_400_000, 100_000)), Err(drifted));
    }

    #[test]
    fn a_part_whose_counts_contradict_each_other_is_none() {
        let slot = |lane, block, operations| Slot { frame: 7, lane, block, operations, ..Slot::default() };
        let arm = |operations| {
            let record = ArmFrame { operations, ..ArmFrame::default() };
            ArmPart { record, warmed_up: 0, profiles: Vec::new(), first_failure: None, invalid: None }
        };
        let fits = |slots: &[Slot], told: u64| {
            let part =
                PartResult { slots: slots.to_vec(), arms: vec![arm(told)], states: Vec::new(), invented_ns: None };
            super::fits(&part, (0, 7), 1, LaneRange { first: 1, count: 1, of: 2 })
        };
        assert!(fits(&[slot(1, 0, 3), slot(1, 1, 4)], 7));
        assert!(!fits(&[slot(1, 0, 3), slot(1, 1, 4)], 6), "fewer than its slots have");
        assert!(!fits(&[slot(1, 0, u64::MAX), slot(1, 1, 1)], 0), "more than can be counted");
        assert!(!fits(&[slot(1, 0, 3), slot(1, 0, 4)], 7), "a slot twice");
        assert!(!fits(&[slot(0, 0, 7)], 7), "another agent's lane");
        assert!(!fits(&[Slot { arm: 1, ..slot(1, 0, 7) }], 0), "no such arm");
        assert!(!fits(&[Slot { cell: 1, ..slot(1, 0, 7) }], 7) && !fits(&[Slot { frame: 8, ..slot(1, 0, 7) }], 7));
    }
}
