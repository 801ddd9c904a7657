//! One slot at one arm: the measured path.
//!
//! Per operation it reads the clock twice, and it neither allocates nor locks.

use tithe_machine::{
    clock::{Clock, Modes},
    fault::Fault,
};
use tithe_model::record::Slot;
use tithe_plugin::session::Progress;

use super::{
    arm::Arm,
    seat::{Busy, Seat, open},
};
use crate::load::{
    Turn,
    recorder::{PartTimes, Recorder},
};

/// One lane's stay at one arm.
pub(super) struct Visit<'a> {
    pub(super) clock: &'a Clock,
    slot: &'a mut Slot,
    pub(super) turn: Turn,
    counts_from_ns: u64,
    open: bool,
    /// Client processor time spent waiting for an intended start: not the operation's.
    pub(super) idle_cpu_ns: u64,
    /// The same by mode.
    pub(super) idle_modes: Modes,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl<'a> Visit<'a> {
    /// A stay for `turn`, recorded in `slot`; nothing that begins within the first `guard_ns` counts for latency.
    /// `open`: operations start at intended times.
    pub(super) fn new(clock: &'a Clock, slot: &'a mut Slot, turn: Turn, guard_ns: u64, open: bool) -> Self {
        Self {
            clock,
            slot,
            turn,
            counts_from_ns: if turn.block.is_some() { turn.start_ns + guard_ns } else { u64::MAX },
            open,
            idle_cpu_ns: 0,
            idle_modes: Modes::default(),
            first_ns: 0,
            last_ns: 0,
        }
    }
}

impl Visit<'_> {
    /// Offers the operations of the slot and takes their answers.
    pub(super) fn drive(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<(), Fault> {
        self.last_ns = self.clock.now();
        self.first_ns = self.last_ns;
        if self.open {
            let started = self.open_loop(arm, intended)?;
            if self.turn.block.is_some() {
                arm.recorder.undrained += (intended.len() - started) as u64;
            }
            return Ok(());
        }
        if arm.is_paced() {
            return self.paced(arm);
        }
        if arm.seats.len() == 1 { self.closed_single(arm) } else { self.closed_many(arm) }
    }

    fn closed_single(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let seat = &mut arm.seats[0];
        while self.last_ns < self.turn.end_ns {
            self.begin(seat, &mut arm.recorder, None)?;
            self.finish(seat, &mut arm.recorder)?;
        }
        Ok(())
    }

    /// One operation after the other: a single connection, or an embedded database, whose connections take turns.
    fn open_in_turn(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<usize, Fault> {
        let seats = arm.seats.len();
        for (started, at) in intended.iter().enumerate() {
            if self.last_ns >= self.turn.end_ns {
                return Ok(started);
            }
            self.idle_until(*at);
            let seat = &mut arm.seats[started % seats];
            self.begin(seat, &mut arm.recorder, Some(*at))?;
            self.finish(seat, &mut arm.recorder)?;
        }
        Ok(intended.len())
    }

    fn closed_many(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let Some(poll) = &mut arm.poll else { return self.round_robin(arm) };
        for seat in &mut arm.seats {
            self.begin(seat, &mut arm.recorder, None)?;
        }
        let mut busy = arm.seats.len();
        while busy > 0 {
            for number in poll.wait(None)? {
                let seat = &mut arm.seats[number];
                if self.advance(seat, &mut arm.recorder)? {
                    if self.last_ns < self.turn.end_ns {
                        self.begin(seat, &mut arm.recorder, None)?;
                    } else {
                        busy -= 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Several connections to an embedded database: one after the other.
    fn round_robin(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        loop {
            for seat in &mut arm.seats {
                if self.last_ns >= self.turn.end_ns {
                    return Ok(());
                }
                self.begin(seat, &mut arm.recorder, None)?;
                self.finish(seat, &mut arm.recorder)?;
            }
        }
    }

    /// Starts what is intended when it is due and a connection is free; the number of operations started.
    fn open_loop(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<usize, Fault> {
        let Some(poll) = &mut arm.poll else { return self.open_in_turn(arm, intended) };
        arm.free.clear();
        arm.free.extend(0..arm.seats.len());
        let mut started = 0;
        loop {
            let mut now = self.clock.now();
            while started < intended.len() && intended[started] <= now && now < self.turn.end_ns {
                let Some(number) = arm.free.pop_front() else { break };
                self.begin(&mut arm.seats[number], &mut arm.recorder, Some(intended[started]))?;
                started += 1;
                now = self.clock.now();
            }
            let more = started < intended.len() && now < self.turn.end_ns;
            if arm.free.len() == arm.seats.len() && !more {
                return Ok(started);
            }
            let deadline = (more && !arm.free.is_empty()).then(|| intended[started].saturating_sub(now));
            for number in poll.wait(deadline)? {
                if self.advance(&mut arm.seats[number], &mut arm.recorder)? {
                    arm.free.push_back(number);
                }
            }
        }
    }

    /// Waits for an intended start; the processor time of waiting is not the operation's.
    pub(super) fn idle_until(&mut self, at: u64) {
        if at <= self.clock.now() {
            return;
        }
        let (before, modes) = (self.clock.thread_cpu(), self.clock.thread_modes());
        self.clock.wait_until(at);
        if let (Some(before), Some(after)) = (modes, self.clock.thread_modes()) {
            self.idle_modes += after.since(before);
        }
        // Last, so that looking is not charged to the operation either.
        self.idle_cpu_ns += self.clock.thread_cpu() - before;
    }

    #[inline]
    fn begin(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder, intended_ns: Option<u64>) -> Result<(), Fault> {
        seat.client.prepare();
        self.begin_prepared(seat, recorder, intended_ns)
    }

    #[inline]
    pub(super) fn begin_prepared(
        &mut self,
        seat: &mut Seat<'_>,
        recorder: &mut Recorder,
        intended_ns: Option<u64>,
    ) -> Result<(), Fault> {
        if seat.renewal.is_some() {
            self.renew_if_spent(seat, recorder)?;
        }
        let begun_ns = self.clock.now();
        seat.busy = Some(Busy { begun_ns, part_ns: begun_ns, intended_ns: intended_ns.unwrap_or(begun_ns) });
        seat.client.submit(open(&mut seat.session)?)
    }

    /// Renews a connection that has done its operations. The lane waits for it: its other connections are not looked at
    /// meanwhile. The time belongs to the slot and to its operations together, and is recorded by itself as well.
    fn renew_if_spent(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder) -> Result<(), Fault> {
        if seat.is_spent() {
            let begun_ns = self.clock.now();
            seat.renew()?;
            let latency_ns = self.clock.now() - begun_ns;
            if begun_ns >= self.counts_from_ns {
                self.slot.wall_g_ns += latency_ns;
                recorder.connection(latency_ns);
            }
        }
        seat.served += 1;
        Ok(())
    }

    /// Carries the operation of `seat` to its end.
    pub(super) fn finish(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder) -> Result<(), Fault> {
        while !self.advance(seat, recorder)? {
            tithe_plugin::session::wait_ready(seat.connection()?)?;
        }
        Ok(())
    }

    /// Takes what has arrived; true when the operation is over.
    #[inline]
    pub(super) fn advance(&mut self, seat: &mut Seat<'_>, recorder: &mut Recorder) -> Result<bool, Fault> {
        let Some(busy) = &mut seat.busy else { return Ok(false) };
        let counts = busy.begun_ns >= self.counts_from_ns;
        let now = || self.clock.now();
        let mut parts = PartTimes::new(recorder, &now, busy.part_ns, counts);
        let result = seat.client.advance(open(&mut seat.session)?, &mut parts);
        busy.part_ns = parts.since_ns();
        let busy = *busy;
        match result {
            Ok(Progress::Pending) => return Ok(false),
            Ok(Progress::Done(_)) => {}
            Err(Fault::Server(message)) => {
                recorder.failed += 1;
                seat.busy = None;
                self.last_ns = self.clock.now();
                // A few failures are counted; many make the frame worthless, and the first one says why.
                if recorder.failed * 100 > recorder.operations + recorder.settling + 100 {
                    recorder.spoil(format!("more than 1 % of the operations failed, the first with: {message}"));
                }
                return Ok(true);
            }
            Err(Fault::Wrong(message)) => {
                recorder.spoil(format!("wrong answer: {message}"));
                seat.busy = None;
                self.last_ns = self.clock.now();
                return Ok(true);
            }
            Err(fault) => return Err(fault),
        }
        let end_ns = self.clock.now();
        seat.busy = None;
        self.last_ns = end_ns;
        let latency_ns = end_ns - busy.begun_ns;
        self.slot.n += 1;
        if self.turn.block.is_none() {
            recorder.settling += 1;
        } else {
            recorder.operations += 1;
            recorder.phase(busy.begun_ns.saturating_sub(self.turn.start_ns), latency_ns);
        }
        if counts {
            self.slot.n_g += 1;
            self.slot.wall_g_ns += latency_ns;
            recorder.latency(seat.client.operation(), latency_ns);
            if self.open {
                recorder.from_intended(seat.client.operation(), end_ns.saturating_sub(busy.intended_ns));
            }
        }
        Ok(true)
    }
}
