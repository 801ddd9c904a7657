//! One frame of a load that Tithe's own clients offer: all lanes at a time, each on its processor.

use std::{
    any::Any,
    sync::atomic::{AtomicU64, Ordering},
};

use tithe_machine::{clock::Clock, fault::Fault, watch::process};
use tithe_model::experiment::Arrivals;

use super::{
    Asked, Measured,
    context::CellContext,
    lanes::Lanes,
    record::{self, Seen, Traffic},
    watch::{Counted, Watch},
};
use crate::load::{
    Schedule,
    meeting::{Broken, Meeting},
    pause_gate::PauseGate,
    placement::Placement,
};

/// How the threads of one frame meet.
struct Shared<'a> {
    asked: &'a Asked<'a>,
    /// Operations of each arm that each lane is to do more than the others while it warms up.
    lag: Vec<u64>,
    meeting: &'a Meeting,
    /// When the first slot begins, ns; known when all have met twice.
    start_ns: &'a AtomicU64,
    pause_gate: &'a PauseGate,
}

impl Lanes<'_> {
    /// One frame; `None` when it was cancelled.
    ///
    /// # Errors
    /// When a lane cannot connect or panics.
    pub fn measure(
        &self,
        context: &CellContext<'_>,
        watch: &Watch<'_>,
        asked: &Asked<'_>,
    ) -> Result<Option<Measured>, Fault> {
        let pause_gate = context.pause_gate()?;
        let (meeting, start_ns) = (Meeting::of(context.lanes() + 1), AtomicU64::new(0));
        let lag = lag(context, asked.done);
        let shared = Shared { asked, lag, meeting: &meeting, start_ns: &start_ns, pause_gate: &pause_gate };
        let (before, seen) = std::thread::scope(|scope| {
            let shared = &shared;
            let lane = |number| {
                let placement = Placement::drawn(context.cell.seed, asked.number, number);
                scope.spawn(move || placement.within(|| self.run(context, number, shared)))
            };
            let threads: Vec<_> = (0..context.lanes()).map(lane).collect();
            let before = begin(watch, shared);
            let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|words| Err(panicked(&*words))));
            (before, ended.collect::<Vec<Result<Option<Seen<'_>>, Fault>>>())
        });
        let grown = before.ok().map(|before| watch.grown_since(before, pause_gate));
        // Where a lane could not connect or panicked, the others saw nothing, and its fault is the one that is told.
        let seen = seen.into_iter().collect::<Result<Vec<Option<Seen<'_>>>, Fault>>()?;
        let seen: Vec<Seen<'_>> = seen.into_iter().flatten().collect();
        let Some((counters, grown)) = grown.filter(|_| !asked.cancelled.load(Ordering::SeqCst)) else {
            return Ok(None);
        };
        let schedule = Schedule::new(&context.cell, asked.number, context.arms.len(), 0);
        let arm = |(arm, counters)| record::measured(context, arm, schedule.has(arm), &seen, counters);
        Ok(Some(Measured {
            slots: seen.iter().flat_map(|seen| seen.slots.iter().copied()).collect(),
            arms: counters.into_iter().enumerate().map(arm).collect(),
            stalls: seen.first().map(|seen| seen.opened.stalls.clone()).unwrap_or_default(),
            grown,
        }))
    }

    /// One lane's part of a frame; `None` where another lane has failed.
    fn run<'s>(
        &'s self,
        context: &'s CellContext<'s>,
        number: usize,
        shared: &Shared<'_>,
    ) -> Result<Option<Seen<'s>>, Fault> {
        // Whatever ends this thread from here on, nobody waits for it.
        let attendance = shared.meeting.attend();
        let Asked { number: frame, free, warmup_ns, cancelled, .. } = *shared.asked;
        let pinned = context.cell.pinned && !free;
        let bound = prepare_thread(pinned.then(|| context.processor(number)));
        let mut schedule = Schedule::new(&context.cell, frame, context.arms.len(), 0);
        let mut opened = self.open(context, number, frame, pinned)?;
        let lane = &mut opened.lane;
        let warmed_up = lane.warm_up(&schedule, warmup_ns, &shared.lag, context.cell.frame_ns(context.arms.len()));
        if let Err(reason) = bound {
            lane.arms.iter_mut().for_each(|arm| arm.recorder.invalidate(reason.clone()));
        }
        if attendance.wait().and_then(|()| attendance.wait()).is_err() {
            return Ok(None);
        }
        attendance.leave();
        schedule.start_ns = match &lane.clock {
            Clock::Real => shared.start_ns.load(Ordering::SeqCst),
            Clock::Virtual(_) => lane.clock.now(),
        };
        let before = Traffic::of(lane);
        let slots = lane.run(&schedule, shared.pause_gate, &|| cancelled.load(Ordering::Relaxed));
        let traffic = Traffic::of(lane).into_iter().zip(before).map(|(after, before)| after.since(before)).collect();
        Ok(Some(Seen { opened, slots, traffic, warmed_up }))
    }
}

/// How many operations a lane is behind at each arm of a writing workload, after `done` of each arm: servers that have
/// written as much as each other are the same distance from their last checkpoint, and their tables have grown alike.
fn lag(context: &CellContext<'_>, done: &[u64]) -> Vec<u64> {
    let even = context.workload.writes()
        && !context.embedded
        && context.cell.arrivals == Arrivals::Closed
        && !context.cell.design.has_one_arm_a_frame();
    let furthest = done.iter().copied().max().unwrap_or(0);
    done.iter().map(|done| if even { (furthest - done).div_ceil(context.lanes() as u64) } else { 0 }).collect()
}

/// Has all lanes begin their slots once each is connected and warm; the counters before that.
fn begin(watch: &Watch<'_>, shared: &Shared<'_>) -> Result<Counted, Broken> {
    let attendance = shared.meeting.attend();
    attendance.wait()?;
    let before = watch.count(shared.pause_gate);
    // Far enough away for every lane to be there in time.
    shared.start_ns.store(Clock::Real.now() + 500_000, Ordering::SeqCst);
    attendance.wait()?;
    attendance.leave();
    Ok(before)
}

/// Binds the calling thread to `processor`, or to none, and lets its sleeps end on time.
fn prepare_thread(processor: Option<usize>) -> Result<(), String> {
    // SAFETY: PR_SET_TIMERSLACK takes a number and concerns this thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
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
