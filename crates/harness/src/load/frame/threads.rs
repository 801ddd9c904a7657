//! One frame of a load that Tithe's own clients offer: all lanes at the same time, each on its processor.

use std::{
    any::Any,
    num::NonZeroU64,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::thread::{gettid, set_current_timer_slack};
use tithe_machine::{clock::Clock, fault::Fault, threads, watch::process};
use tithe_model::{
    experiment::Arrivals,
    invalid::Invalid,
    profile::ProfiledFrame,
    record::{AgentFrame, Counters, Slot, Stalls},
};

use super::{
    context::CellContext,
    lanes::Lanes,
    machines::Serving,
    measured::{ArmMeasured, FrameRequest, Measured},
    profile::Profiler,
    record::{self, LaneRecord, Traffic},
    watch::{FrameConditions, Watch},
};
use crate::load::{Schedule, barrier::Barrier, pause_gate::PauseGate, placement::Placement};

/// How far ahead the first slot begins once all lanes are ready: enough for every lane to be there in time, ns.
const START_AHEAD_NS: u64 = 500_000;

/// The results of the lanes of a frame, on any machine.
pub(super) struct LanesMeasured {
    pub slots: Vec<Slot>,
    /// In the experiment's order, with the counters of clients.
    pub arms: Vec<ArmMeasured>,
    pub stalls: Stalls,
    /// The load machines, if there are some.
    pub agents: Vec<AgentFrame>,
    /// Why nothing of it must be used.
    pub invalid: Option<Invalid>,
    /// Invented time when the frame began and ended, ns, if other processes invent it.
    pub invented_ns: Option<(u64, u64)>,
    /// What the processors ran, if that was asked for.
    pub profile: Option<ProfiledFrame>,
}

/// What the threads of one frame share.
struct Shared<'a> {
    asked: &'a FrameRequest<'a>,
    /// Additional operations of each lane on each arm during warm-up, so that arms that did fewer catch up.
    lag: Vec<u64>,
    barrier: &'a Barrier,
    /// When the first slot begins, ns; known when all threads have met twice.
    start_ns: &'a AtomicU64,
    pause_gate: &'a PauseGate,
    /// The tasks that serve the connections that were opened, as the servers number them.
    serving: Mutex<Vec<Serving>>,
}

impl Lanes<'_> {
    /// One frame; `None` when it was cancelled.
    ///
    /// # Errors
    /// When a lane cannot connect or panics; when a load machine cannot measure.
    pub fn measure(
        &self,
        context: &CellContext<'_>,
        watch: &Watch<'_>,
        asked: &FrameRequest<'_>,
    ) -> Result<Option<Measured>, Fault> {
        let pause_gate = context.pause_gate()?;
        let mut before = None;
        let mut count = || before = Some(watch.count(&pause_gate));
        let lag = lag(context, asked.done);
        // The sessions of this process stay open until the counters were read: when a backend has ended with its
        // session, the kernel no longer reports all of its usage.
        let mut lanes = Vec::new();
        let measured = match self.machines {
            Some(machines) => self.measure_remotely(context, (asked, lag), machines, &mut count)?,
            None => {
                let mut profiler = None;
                let mut start = |_| {
                    count();
                    profiler = asked.profiled.then(|| Profiler::begin(context));
                    Some(Clock::Real.now() + START_AHEAD_NS)
                };
                let ended = self.lanes_here(context, asked, lag, &pause_gate, &mut start)?;
                ended.map(|ended| {
                    lanes = ended;
                    let profile = profiler.map(|profiler| profiler.end(context, asked.number, &lanes));
                    LanesMeasured { profile, ..LanesMeasured::of(context, asked, &lanes) }
                })
            }
        };
        let Some(mut measured) = measured.filter(|_| !asked.cancelled.load(Ordering::SeqCst)) else { return Ok(None) };
        // In a frame that was invalid before its first slot, nothing was counted.
        let before = before.unwrap_or_else(|| watch.count(&pause_gate));
        let (mut counters, grown) = watch.grown_since(before, pause_gate);
        if let Some(lane) = lanes.first_mut() {
            measured.invalid = measured.invalid.or_else(|| lane.opened.lane.lasting_change());
        }
        if self.machines.is_some() || context.cell.reconnect_every.is_some() {
            // Sessions have ended, and their backends' counters with them.
            counters.iter_mut().for_each(|counters| counters.switches = None);
        }
        Ok(Some(measured.with((counters, grown))))
    }

    /// One frame of the lanes that are in this process. `start` is called with the tasks that serve them when all are
    /// connected and warm, and returns when the first slot begins, ns. `None` if it returns nothing, and when the frame
    /// was cancelled.
    ///
    /// # Errors
    /// When a lane cannot connect or panics.
    pub fn measure_here(
        &self,
        context: &CellContext<'_>,
        asked: &FrameRequest<'_>,
        lag: Vec<u64>,
        pause_gate: &PauseGate,
        start: &mut dyn FnMut(Vec<Serving>) -> Option<u64>,
    ) -> Result<Option<LanesMeasured>, Fault> {
        let ended = self.lanes_here(context, asked, lag, pause_gate, start)?;
        Ok(ended.map(|lanes| LanesMeasured::of(context, asked, &lanes)))
    }

    /// As [`measure_here`](Self::measure_here); returns the lanes at their end, with their sessions open.
    fn lanes_here<'s>(
        &'s self,
        context: &'s CellContext<'s>,
        asked: &FrameRequest<'_>,
        lag: Vec<u64>,
        pause_gate: &PauseGate,
        start: &mut dyn FnMut(Vec<Serving>) -> Option<u64>,
    ) -> Result<Option<Vec<LaneRecord<'s>>>, Fault> {
        let here = context.lanes_here;
        let (barrier, start_ns) = (Barrier::of(here.count + 1), AtomicU64::new(0));
        let serving = Mutex::default();
        let shared = Shared { asked, lag, barrier: &barrier, start_ns: &start_ns, pause_gate, serving };
        let seen = std::thread::scope(|scope| {
            let shared = &shared;
            let lane = |number| {
                let placement = Placement::drawn(context.cell.seed, asked.number, number);
                threads::within(scope, move || placement.within(|| self.run(context, number, shared)))
            };
            let threads: Vec<_> = (here.first..here.first + here.count).map(lane).collect();
            if threads.iter().any(Result::is_err) {
                // The barrier breaks, so that no thread waits for a lane that does not come.
                drop(barrier.participate());
            }
            begin(shared, start);
            let ended = threads.into_iter().map(|thread| thread?.join().unwrap_or_else(|words| Err(panicked(&*words))));
            ended.collect::<Vec<Result<Option<LaneRecord<'s>>, Fault>>>()
        });
        // If a lane could not connect or panicked, the others have no results, and its error is the one to report.
        let seen = seen.into_iter().collect::<Result<Vec<Option<LaneRecord<'s>>>, Fault>>()?;
        let seen = seen.into_iter().collect::<Option<Vec<LaneRecord<'s>>>>();
        Ok(seen.filter(|_| !asked.cancelled.load(Ordering::SeqCst)))
    }

    /// One lane's part of a frame; `None` if another lane has failed.
    fn run<'s>(
        &'s self,
        context: &'s CellContext<'s>,
        number: usize,
        shared: &Shared<'_>,
    ) -> Result<Option<LaneRecord<'s>>, Fault> {
        // If this thread ends from here on, for any reason, no other thread waits for it.
        let participant = shared.barrier.participate();
        let FrameRequest { number: frame, free, warmup_ns, cancelled, .. } = *shared.asked;
        let pinned = context.cell.pinned && !free;
        let bound = prepare_thread(pinned.then(|| context.processor(number)));
        let mut schedule = Schedule::new(&context.cell, frame, context.arms.len(), 0);
        if number == context.lanes_here.first {
            context.bind_servers(frame, pinned);
        }
        let mut opened = self.open(context, number, frame, pinned)?;
        shared.serving.lock().unwrap_or_else(PoisonError::into_inner).append(&mut opened.serving);
        let lane = &mut opened.lane;
        if number == context.lanes_here.first {
            lane.lasting_change();
        }
        let warmed_up = lane.warm_up(&schedule, warmup_ns, &shared.lag, context.cell.frame_ns(context.arms.len()));
        if let Err(reason) = bound {
            lane.arms.iter_mut().for_each(|arm| arm.recorder.invalidate(reason.clone()));
        }
        if participant.wait().and_then(|()| participant.wait()).is_err() {
            return Ok(None);
        }
        participant.leave();
        schedule.start_ns = match &lane.clock {
            Clock::Real => shared.start_ns.load(Ordering::SeqCst),
            Clock::Virtual(_) => lane.clock.now(),
        };
        let before = Traffic::of(lane);
        let slots = lane.run(&schedule, shared.pause_gate, &|| cancelled.load(Ordering::Relaxed));
        let traffic = Traffic::of(lane).into_iter().zip(before).map(|(after, before)| after.since(before)).collect();
        let thread = gettid().as_raw_nonzero().get();
        Ok(Some(LaneRecord { opened, thread, slots, traffic, warmed_up }))
    }
}

/// How many operations a lane is behind at each arm of a writing workload, after `done` of each arm. Servers that have
/// written the same amount are equally far from their last checkpoint, and their tables have grown alike.
fn lag(context: &CellContext<'_>, done: &[u64]) -> Vec<u64> {
    let even = context.workload.writes()
        && !context.embedded
        && context.cell.arrivals == Arrivals::Closed
        && !context.cell.design.has_one_arm_a_frame();
    let furthest = done.iter().copied().max().unwrap_or(0);
    done.iter().map(|done| if even { (furthest - done).div_ceil(context.lanes() as u64) } else { 0 }).collect()
}

/// Starts the slots of all lanes at the time that `start` returns, once each is connected and warm. If a lane cannot
/// be, or `start` returns nothing, no thread waits any more.
fn begin(shared: &Shared<'_>, start: &mut dyn FnMut(Vec<Serving>) -> Option<u64>) {
    let participant = shared.barrier.participate();
    if participant.wait().is_err() {
        return;
    }
    let serving = std::mem::take(&mut *shared.serving.lock().unwrap_or_else(PoisonError::into_inner));
    let Some(start_ns) = start(serving) else { return };
    shared.start_ns.store(start_ns, Ordering::SeqCst);
    if participant.wait().is_ok() {
        participant.leave();
    }
}

impl LanesMeasured {
    /// The results of the lanes of this process in the frame that was `asked` for.
    fn of(context: &CellContext<'_>, asked: &FrameRequest<'_>, lanes: &[LaneRecord<'_>]) -> Self {
        let schedule = Schedule::new(&context.cell, asked.number, context.arms.len(), 0);
        let arm = |arm| record::measured(context, arm, schedule.has(arm), lanes);
        let mut slots: Vec<Slot> = lanes.iter().flat_map(|lane| lane.slots.iter().copied()).collect();
        let by_lane: Vec<&Stalls> = lanes.iter().map(|lane| &lane.opened.stalls).collect();
        Self {
            stalls: stalls_of_all(&by_lane, &mut slots),
            slots,
            arms: (0..context.arms.len()).map(arm).collect(),
            agents: Vec::new(),
            invalid: None,
            invented_ns: None,
            profile: None,
        }
    }

    /// The same with the counters of each arm's server and of the machine.
    fn with(self, (counters, grown): (Vec<Counters>, FrameConditions)) -> Measured {
        let Self { slots, mut arms, stalls, agents, invalid, invented_ns, profile } = self;
        for (arm, of_server) in arms.iter_mut().zip(counters) {
            arm.record.counters = record::counted(arm.record.counters, of_server);
        }
        Measured { slots, arms, stalls, agents, invalid, invented_ns, profile, grown }
    }
}

/// How lanes see the time that other programs take of their `slots`. If one lane does not see what delays it, the net
/// time of the others is not that of all.
fn stalls_of_all(by_lane: &[&Stalls], slots: &mut [Slot]) -> Stalls {
    let unseen = by_lane.iter().find(|stalls| matches!(stalls, Stalls::Unseen(_)));
    if unseen.is_some() {
        slots.iter_mut().for_each(|slot| slot.stalled_ns = None);
    }
    unseen.or(by_lane.first()).map(|stalls| (*stalls).clone()).unwrap_or_default()
}

/// Pins the calling thread to `processor`, or unpins it, and lets its sleeps end on time.
fn prepare_thread(processor: Option<usize>) -> Result<(), String> {
    // Without this feature of the kernel, every sleep ends slightly later.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
    match processor {
        Some(processor) if !process::pin(0, processor) => {
            Err(format!("a client thread could not be bound to processor {processor}"))
        }
        _ => Ok(()),
    }
}

/// The fault of a lane that panicked with `words`.
fn panicked(words: &(dyn Any + Send)) -> Fault {
    let text = words.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| words.downcast_ref::<&str>().copied()).unwrap_or("it does not say why");
    Fault::Machine(format!("a client thread panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::Design;
    use tithe_plugin::simulated::test_bench::Bench;

    use super::{
        super::{
            machines::LaneRange,
            tests::{Idle, cell, context},
        },
        *,
    };

    #[test]
    fn what_one_lane_does_not_see_is_not_seen() {
        let unseen = |why: &str| Stalls::Unseen(why.to_owned());
        let seen = |by_lane: &[Stalls]| {
            let mut slots = [Slot { stalled_ns: Some(5), ..Slot::default() }; 2];
            let stalls = stalls_of_all(&by_lane.iter().collect::<Vec<_>>(), &mut slots);
            (stalls, slots.map(|slot| slot.stalled_ns))
        };
        assert_eq!(seen(&[Stalls::Pressure, Stalls::Pressure]), (Stalls::Pressure, [Some(5); 2]));
        assert_eq!(seen(&[Stalls::Waits, Stalls::Pressure]), (Stalls::Waits, [Some(5); 2]), "the first one's");
        for by_lane in [[Stalls::Pressure, unseen("a")], [unseen("a"), Stalls::Waits], [unseen("a"), unseen("b")]] {
            assert_eq!(seen(&by_lane), (unseen("a"), [None; 2]), "{by_lane:?}");
        }
        assert_eq!(seen(&[]), (Stalls::default(), [Some(5); 2]));
    }

    #[test]
    fn a_thread_that_panics_is_told_by_its_words() {
        let told = |words: &(dyn Any + Send)| panicked(words).to_string();
        assert_eq!(told(&"some words"), "a client thread panicked: some words");
        assert_eq!(told(&"other words".to_owned()), "a client thread panicked: other words");
        assert_eq!(told(&5), "a client thread panicked: it does not say why");
    }

    #[test]
    fn arms_catch_up_where_servers_are_written_to_in_turn_and_nowhere_else() {
        let bench = Bench::plain();
        let behind = |writes: bool, design: Design, arrivals: Arrivals, embedded: bool| {
            let idle = Idle { writes };
            let mut at = context(&idle, &cell(design, arrivals), &bench);
            at.embedded = embedded;
            at.divide(LaneRange { first: 0, count: 1, of: 3 });
            lag(&at, &[10, 3, 10])
        };
        let (closed, in_turn) = (Arrivals::Closed, Design::Interleaved);
        // Seven operations are divided among three lanes.
        assert_eq!(behind(true, in_turn, closed, false), [0, 3, 0]);
        assert_eq!(behind(false, in_turn, closed, false), [0; 3], "reads");
        assert_eq!(behind(true, in_turn, closed, true), [0; 3], "no server");
        assert_eq!(behind(true, in_turn, Arrivals::Even(9.0), false), [0; 3], "as many as are intended");
        assert_eq!(behind(true, Design::Sequential, closed, false), [0; 3]);
    }
}
