//! The coordinator's side: finds the agents, sends each its orders for a frame, and handles agents that go away.
//!
//! A frame works like this. Every agent is ordered to measure its part, and reports when its lanes are connected and
//! warm. Its clock is read, then the counters of the servers. Each agent gets the start of the first slot, on its own
//! clock. Then no message is sent until the last slot has ended. Each agent hands in its part, and its clock is read
//! again.
//!
//! An agent that goes away meanwhile makes the frame invalid, and the reason names it. Before the next frame all agents
//! are asked again. An agent that came back is enlisted again under its old name. If one stays away longer than the
//! waiting time, the cell ends with that reason. A report for a frame that was given up carries the old ticket and is
//! thrown away, so nothing counts twice.

mod exchange;
mod frame;
mod load_machines;
mod membership;
mod observers;
mod servers;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, secret::Secret};
use tithe_model::{
    experiment::{Arm, Design, Experiment},
    plan::{Cell, Plan},
};
use tithe_plugin::database::Database;

use self::{
    exchange::{Pems, keys, targets},
    membership::{Member, patiently},
};
pub use self::{
    membership::{Peer, roll_call},
    observers::{ServerObserver, gather as gather_observers},
};
use super::{
    link::{Answer, Delivery, Link, PROMPT, Subscription, tells_time},
    message::{
        Enlistment, Expected, FrameOrder, Hello, Order, PROTOCOL, Reply, coordinator, coordinator_clock, read, write,
    },
    offset::{self, Offset},
};
use crate::load::frame::machines::PartsRequest;

/// Longest wait for reports: ctrl-C, or the news that an agent is gone, is noticed after at most this time.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How far ahead the first slot begins, in addition to three times the longest round trip to an agent, ns. It is
/// doubled each time that it was too little, as on a busy machine.
const START_AHEAD_NS: u64 = 50_000_000;

/// The same for each observer, which reads processes before it begins, ns.
const OBSERVER_AHEAD_NS: u64 = 50_000_000;

/// How long an agent may take to try the servers of a run.
const ENLISTED_WITHIN: Duration = Duration::from_secs(30);

/// The part of an experiment that agents cannot do, as text; `None` if they can offer its load.
pub fn refused(database: &dyn Database, experiment: &Experiment, plan: &Plan) -> Option<String> {
    if database.embedded() && !database.simulated() {
        let title = database.title();
        return Some(format!("{title} runs inside its clients, so its load cannot come from other machines"));
    }
    if experiment.measure.design != Design::Interleaved {
        return Some("agents offer interleaved slots only: leave `design` out".to_owned());
    }
    if plan.cells.iter().any(|cell| cell.design.is_switched()) {
        return Some(
            "agents offer interleaved slots only, and a server that is switched is at one side at a time".to_owned(),
        );
    }
    let program = plan.cells.iter().find(|cell| cell.program);
    program.map(|cell| format!("another program offers the load of cell {}, which agents do not run", cell.id))
}

/// The agents of one run.
pub struct Team<'a> {
    link: &'a dyn Link,
    /// Identity of the run, drawn.
    run: String,
    /// The plan as it is sent to agents.
    plan: String,
    /// The servers that they will connect to.
    servers: Vec<Expected>,
    /// Slots have the length that the experiment asked for.
    slot_fixed: bool,
    /// How long to wait for an agent or observer that went away.
    wait: Duration,
    cancelled: &'a AtomicBool,
    members: Mutex<Vec<Member>>,
    /// The observers of servers on other machines.
    observers: Vec<Arc<ServerObserver>>,
    reports: Mutex<Box<dyn Subscription>>,
    tickets: AtomicU64,
    /// How far ahead the first slot begins, ns.
    ahead_ns: AtomicU64,
    /// Parts that were given out for inserts so far: an agent that came back never gets its earlier part again.
    parts: AtomicU64,
    // Agents see by it that the run goes on.
    _clock: Box<dyn Send + Sync>,
}

impl<'a> Team<'a> {
    /// Gathers `expected` agents for `plan` over `link`, waiting for at most `wait`.
    ///
    /// # Errors
    /// When they do not come, with those that have; when two have one name, or one runs another version.
    pub fn gather(
        link: &'a dyn Link,
        plan: &Plan,
        (expected, wait): (usize, Duration),
        cancelled: &'a AtomicBool,
    ) -> Result<Self, Fault> {
        let run = Secret::random(8).expose_hex();
        let until = (Instant::now() + wait, cancelled);
        let clock = patiently(until, || link.tell_time(&coordinator_clock(&run)))?;
        let reports = patiently(until, || link.subscribe(&coordinator(&run)))?;
        let hellos = membership::expect(link, (expected, wait), cancelled)?;
        let members = hellos.into_iter().map(Member::new).collect();
        let text = write(plan)?;
        let team = Self {
            link,
            run,
            plan: String::from_utf8_lossy(&text).into_owned(),
            servers: expected_servers(&plan.experiment),
            slot_fixed: plan.experiment.measure.slot_ms.is_some(),
            wait,
            cancelled,
            members: Mutex::new(members),
            observers: Vec::new(),
            reports: Mutex::new(reports),
            tickets: AtomicU64::new(first_ticket()),
            ahead_ns: AtomicU64::new(START_AHEAD_NS),
            parts: AtomicU64::new(0),
            _clock: clock,
        };
        team.members().iter_mut().try_for_each(|member| patiently(until, || team.enlist(member)))?;
        Ok(team)
    }

    /// The same, with `observers` of servers on other machines.
    #[must_use]
    pub fn seen_by(mut self, observers: Vec<Arc<ServerObserver>>) -> Self {
        self.ahead_ns = AtomicU64::new(START_AHEAD_NS + OBSERVER_AHEAD_NS * observers.len() as u64);
        self.observers = observers;
        self
    }

    /// The observer of this `name`.
    pub fn observer(&self, name: &str) -> Option<&Arc<ServerObserver>> {
        self.observers.iter().find(|observer| observer.hello().name == name)
    }

    /// `cell` with slots as long as the agents' clocks need.
    ///
    /// # Errors
    /// When a clock is not known exactly enough, or an agent that went away does not come back.
    pub fn suited(&self, cell: &Cell) -> Result<Cell, Fault> {
        let deadline = self.deadline();
        let mut offsets = Vec::new();
        for member in self.members().iter_mut() {
            let Some(offset) = self.offset(member, deadline)? else { return Ok(cell.clone()) };
            offsets.push((member.hello.to_string(), offset));
        }
        for observer in &self.observers {
            let name = observer.hello().to_string();
            let offset = || exchange::offset(self.link, observer.hello(), exchange::BEFORE);
            let Some(offset) = self.insist(&name, deadline, offset)? else { return Ok(cell.clone()) };
            offsets.push((name, offset));
        }
        let mut longest_ns = cell.slot_ns;
        for (name, offset) in offsets {
            let slot_ns = offset::slot_ns(cell.slot_ns, self.slot_fixed, offset.bound_ns);
            longest_ns = longest_ns.max(slot_ns.map_err(|why| Fault::Refused(format!("{name}: {why}")))?);
        }
        Ok(with_slots(cell, longest_ns))
    }

    /// The state is consistent even if a thread panicked: nothing that can panic happens under the lock.
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Sends the plan to `member`.
    fn enlist(&self, member: &mut Member) -> Result<(), Fault> {
        let enlistment = Enlistment {
            run: self.run.clone(),
            tithe: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            plan: self.plan.clone(),
            servers: self.servers.clone(),
        };
        self.forget(member);
        let name = &member.hello.name;
        match self.order(member, &Order::Enlist(Box::new(enlistment)), ENLISTED_WITHIN)? {
            Some(Reply::Accepted) => Ok(()),
            Some(Reply::Busy(run)) => {
                Err(Fault::Refused(format!("agent {name} works for run {run}: wait until it has ended")))
            }
            Some(Reply::Refused(why)) => Err(Fault::Refused(format!("agent {name}: {why}"))),
            Some(Reply::NotEnlisted) | None => Err(Fault::Connection(format!("agent {name} does not answer"))),
        }
    }

    /// Gives `member` a part of the inserts that no agent had before: what it inserted in a frame that was not handed
    /// in is unknown.
    fn forget(&self, member: &mut Member) {
        member.part = self.parts.fetch_add(1, Ordering::Relaxed);
        member.states = None;
    }

    /// The reply of `member` to `order` within that time; `None` if there is none.
    fn order(&self, member: &Member, order: &Order, within: Duration) -> Result<Option<Reply>, Fault> {
        match self.link.request(&member.hello.orders(), &write(order)?, within)? {
            Answer::Reply(reply) => Ok(read(&reply)),
            Answer::NoResponders | Answer::TimedOut => Ok(None),
        }
    }

    /// Agents in the order of their lanes, then observers: all whose clocks a frame uses.
    fn everybody<'m>(&'m self, members: &'m [Member]) -> impl Iterator<Item = &'m Hello> {
        let observers = self.observers.iter().map(|observer| observer.hello());
        members.iter().map(|member| &member.hello).chain(observers)
    }

    /// The latest time to wait for an agent or observer that is missing now.
    fn deadline(&self) -> Instant {
        Instant::now() + self.wait.max(PROMPT)
    }

    /// Pauses before `name` is asked again, unless the `deadline` is over.
    ///
    /// # Errors
    /// When it is over: how long the run waited, and `why` it does not go on.
    fn wait_for(&self, name: &str, deadline: Instant, why: &str) -> Result<(), Fault> {
        if Instant::now() > deadline {
            let wait_s = self.wait.as_secs();
            return Err(Fault::Connection(format!("{name} was lost and did not come back within {wait_s} s: {why}")));
        }
        std::thread::sleep(POLL_INTERVAL);
        Ok(())
    }

    /// The result of `attempt`, which is repeated while there is no answer, until the `deadline`; `name` is the agent
    /// or observer that should answer. `None` when cancelled.
    fn insist<T>(
        &self,
        name: &str,
        deadline: Instant,
        mut attempt: impl FnMut() -> Result<Option<T>, Fault>,
    ) -> Result<Option<T>, Fault> {
        while !self.is_cancelled() {
            let why = match attempt() {
                Ok(Some(outcome)) => return Ok(Some(outcome)),
                Ok(None) => "it does not report the time".to_owned(),
                Err(fault) => fault.to_string(),
            };
            self.wait_for(name, deadline, &why)?;
        }
        Ok(None)
    }

    /// By how much the clock of `member` is ahead, once it is there, even as another process. `None` when cancelled.
    fn offset(&self, member: &mut Member, deadline: Instant) -> Result<Option<Offset>, Fault> {
        self.insist(&member.hello.to_string(), deadline, || {
            let offset = exchange::offset(self.link, &member.hello, exchange::BEFORE)?;
            if offset.is_none() {
                membership::find_again(self.link, member);
            }
            Ok(offset)
        })
    }

    /// Waits until the link is there, and discards messages about earlier frames: a lost link invalidates only the
    /// frame in which it was lost. `None` when cancelled.
    fn listen_anew(&self, deadline: Instant) -> Result<Option<()>, Fault> {
        let mut reports = self.reports();
        while !self.is_cancelled() {
            match reports.next(Duration::ZERO) {
                Ok(Some(delivery)) => self.acknowledge(&delivery),
                Ok(None) => return Ok(Some(())),
                Err(fault) => self.wait_for("the broker", deadline, &fault.to_string())?,
            }
        }
        Ok(None)
    }

    /// Confirms `delivery` to its sender, so that it stops sending it. Late deliveries are confirmed too.
    fn acknowledge(&self, delivery: &Delivery) {
        if let Some(reply_to) = &delivery.reply_to {
            let _ = self.link.publish(reply_to, b"{}");
        }
    }

    fn reports(&self) -> MutexGuard<'_, Box<dyn Subscription>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all members are there and have the order to measure the frame of `ticket`. `None` when cancelled.
    ///
    /// # Errors
    /// When one stays away, or refuses.
    fn order_frame(&self, ticket: u64, asked: &PartsRequest<'_>, members: &mut [Member]) -> Result<Option<()>, Fault> {
        let keys = keys(asked.arms)?;
        let deadline = self.deadline();
        if self.listen_anew(deadline)?.is_none() {
            return Ok(None);
        }
        for observer in &self.observers {
            // Its clock is read when the agents are ready.
            let is_there = || Ok(tells_time(self.link, &observer.hello().clock())?.then_some(()));
            if self.insist(&observer.hello().to_string(), deadline, is_there)?.is_none() {
                return Ok(None);
            }
        }
        for member in members {
            if self.order_part((ticket, deadline), asked, &keys, member)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Waits until `member` is there and has the order, until `deadline`. `None` when cancelled.
    fn order_part(
        &self,
        (ticket, deadline): (u64, Instant),
        asked: &PartsRequest<'_>,
        keys: &Pems,
        member: &mut Member,
    ) -> Result<Option<()>, Fault> {
        while !self.is_cancelled() {
            let order = Order::Measure(Box::new(self.frame_order(ticket, asked, member, keys)?));
            let why = match self.order(member, &order, PROMPT) {
                Ok(Some(Reply::Accepted)) => return Ok(Some(())),
                Ok(Some(Reply::Refused(why))) => {
                    return Err(Fault::Refused(format!("agent {}: {why}", member.hello.name)));
                }
                Ok(Some(Reply::NotEnlisted)) => match self.enlist(member) {
                    Ok(()) => continue,
                    Err(fault) => fault.to_string(),
                },
                Ok(Some(Reply::Busy(_))) => "it is still busy with a frame that was given up".to_owned(),
                Ok(None) => {
                    // It may be back as another process.
                    membership::find_again(self.link, member);
                    "it does not answer".to_owned()
                }
                Err(fault) => fault.to_string(),
            };
            self.wait_for(&member.hello.to_string(), deadline, &why)?;
        }
        Ok(None)
    }

    fn frame_order(
        &self,
        ticket: u64,
        asked: &PartsRequest<'_>,
        member: &Member,
        keys: &Pems,
    ) -> Result<FrameOrder, Fault> {
        // More parts than are ever given out: each agent of each failed frame gets a new one. Numbers of records have
        // 63 bits.
        const PARTS: u64 = 1 << 20;
        Ok(FrameOrder {
            run: self.run.clone(),
            ticket,
            cell_index: asked.cell_index,
            lanes: member.lanes,
            frame: asked.frame.clone(),
            arms: targets(asked.arms)?,
            keys: keys.with(asked.arms),
            states: member.states.clone(),
            part: (member.part % PARTS, PARTS),
        })
    }

    /// Tells every member that the frame of `ticket` is cancelled.
    fn abort(&self, ticket: u64, members: &[Member]) {
        for member in members {
            // An agent that does not get it gives up by itself.
            let _ = write(&Order::Abort { ticket }).and_then(|order| self.link.publish(&member.hello.orders(), &order));
        }
    }
}

/// `cell` with slots of at least `slot_ns`. A frame keeps its length, as far as whole blocks allow.
fn with_slots(cell: &Cell, slot_ns: u64) -> Cell {
    if slot_ns <= cell.slot_ns {
        return cell.clone();
    }
    let frame_ns = cell.slot_ns * u64::from(cell.blocks);
    Cell { slot_ns, blocks: frame_ns.div_ceil(slot_ns).max(4) as u32, ..cell.clone() }
}

/// The servers that the clients of `experiment` will connect to, each once.
fn expected_servers(experiment: &Experiment) -> Vec<Expected> {
    let server = |arm: &Arm| match &arm.url {
        Some(url) => Expected::Running(url.expose().to_owned()),
        None => Expected::Launched { host: experiment.load.address().to_string() },
    };
    experiment.arms.iter().map(server).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Random, so that a coordinator that was cut off for a while never uses the ticket of one that came after it.
fn first_ticket() -> u64 {
    let drawn = Secret::random(8);
    u64::from_be_bytes(drawn.expose().first_chunk::<8>().copied().unwrap_or_default()) >> 1
}

impl Drop for Team<'_> {
    fn drop(&mut self) {
        for member in self.members().iter() {
            let release = Order::Release { run: self.run.clone() };
            // An agent that does not get it notices that no coordinator answers clock requests any more.
            let _ = write(&release).and_then(|order| self.link.publish(&member.hello.orders(), &order));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tithe_model::experiment::Url;
    use tithe_plugin::simulated::{Simulated, Spinning};

    use super::*;
    use crate::agents::tests::{WAIT, frames, plan, with_agents};

    #[test]
    fn tickets_are_drawn_and_can_be_counted_on_for_ever() {
        let drawn: BTreeSet<u64> = (0..64).map(|_| first_ticket()).collect();
        assert!(drawn.len() == 64 && drawn.iter().all(|ticket| *ticket <= u64::MAX / 2), "{drawn:?}");
    }

    #[test]
    fn a_frame_of_longer_slots_is_as_long_as_before_or_has_four_blocks() {
        let cell = Cell { slot_ns: 20, blocks: 25, ..plan("c").cells.remove(0) };
        let with = |slot_ns: u64| {
            let with = with_slots(&cell, slot_ns);
            assert_eq!(Cell { slot_ns: 20, blocks: 25, ..with.clone() }, cell, "nothing else is changed");
            (with.slot_ns, with.blocks)
        };
        assert_eq!([10, 20, 21, 50].map(with), [(20, 25), (20, 25), (21, 24), (50, 10)]);
        assert_eq!([125, 126, 1000].map(with), [(125, 4), (126, 4), (1000, 4)]);
    }

    #[test]
    fn each_server_is_expected_once() {
        let told = |experiment: &Experiment| {
            let word = |server: &Expected| match server {
                Expected::Launched { host } => format!("launched on {host}"),
                Expected::Running(url) => url.clone(),
            };
            expected_servers(experiment).iter().map(word).collect::<Vec<_>>().join(", ")
        };
        let mut experiment = plan("c").experiment;
        assert_eq!(told(&experiment), "launched on 127.0.0.1");
        experiment.load.listen = Some(IpAddr::from([10, 0, 0, 5]));
        assert_eq!(told(&experiment), "launched on 10.0.0.5");
        experiment.arms[1].url = Some(Url::new("x://u:word@a"));
        assert_eq!(told(&experiment), "launched on 10.0.0.5, x://u:word@a");
        experiment.arms[0].url = experiment.arms[1].url.clone();
        assert_eq!(told(&experiment), "x://u:word@a");
    }

    #[test]
    fn agents_offer_no_load_that_is_inside_of_its_database_or_another_programs() {
        let mut plan = plan("c");
        assert_eq!(refused(&Simulated, &plan.experiment, &plan), None);
        let inside = refused(&Spinning, &plan.experiment, &plan).unwrap_or_default();
        assert!(inside.ends_with("runs inside its clients, so its load cannot come from other machines"), "{inside}");
        plan.cells[0].program = true;
        let program = refused(&Simulated, &plan.experiment, &plan).unwrap_or_default();
        assert_eq!(program, "another program offers the load of cell c, which agents do not run");
    }

    /// What was inserted in such a frame is unknown.
    #[test]
    fn after_a_frame_that_does_not_count_each_agent_has_another_part_and_loaded_data() {
        let plan = plan("d");
        with_agents(&[1, 1], |hub, cancelled| {
            let link = hub.link(0);
            let team = Team::gather(&link, &plan, (2, WAIT), cancelled).expect("a team");
            let parts = || team.members().iter().map(|member| member.part).collect::<Vec<_>>();
            let reached = || team.members().iter().map(|member| member.states.is_some()).collect::<Vec<_>>();
            let before = parts();
            assert!(before[0] != before[1] && reached() == [false, false], "{before:?}");
            assert!(frames(&plan, Some(&team), 2).iter().all(|(frame, _)| frame.invalid.is_none()));
            assert_eq!((parts(), reached()), (before.clone(), vec![true, true]));
            hub.deafen_reports_of("a1", true);
            assert!(frames(&plan, Some(&team), 1)[0].0.invalid.is_some());
            let after = parts();
            assert!(after[0] != after[1] && after.iter().all(|part| !before.contains(part)), "{before:?} {after:?}");
            assert_eq!(reached(), [false, false]);
        });
    }
}
