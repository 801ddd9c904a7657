//! One slot at one arm: the measured path.
//!
//! It reads the clock twice per request, and neither allocates nor locks. A request is one operation, or several whose
//! time is known only together: the rows of a batch.

use tithe_machine::{
    clock::{Clock, CpuTimes},
    fault::Fault,
};
use tithe_model::record::Slot;
use tithe_plugin::session::Progress;

use super::{
    arm::Arm,
    connection::{Busy, ClientConnection, open},
};
use crate::load::{
    Turn,
    recorder::{PartTimes, Recorder},
};

/// One lane's slot at one arm.
pub(super) struct SlotRun<'a> {
    pub(super) clock: &'a Clock,
    slot: &'a mut Slot,
    pub(super) turn: Turn,
    counts_from_ns: u64,
    open: bool,
    /// Operations that a request stands for.
    operations: u64,
    /// Client processor time spent waiting for an intended start, which is not part of the operation.
    pub(super) idle_cpu_ns: u64,
    /// The same by mode.
    pub(super) idle_cpu_times: CpuTimes,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl<'a> SlotRun<'a> {
    /// A run for `turn`, recorded in `slot`; nothing that begins within the first `settling_ns` counts for latency.
    /// `open`: operations start at intended times.
    pub(super) fn new(clock: &'a Clock, slot: &'a mut Slot, turn: Turn, settling_ns: u64, open: bool) -> Self {
        Self {
            clock,
            slot,
            turn,
            counts_from_ns: if turn.block.is_some() { turn.start_ns + settling_ns } else { u64::MAX },
            open,
            operations: 1,
            idle_cpu_ns: 0,
            idle_cpu_times: CpuTimes::default(),
            first_ns: 0,
            last_ns: 0,
        }
    }

    /// The same, if a request stands for this number of `operations`.
    pub(super) fn of_requests(mut self, operations: u64) -> Self {
        self.operations = operations;
        self
    }
}

impl SlotRun<'_> {
    /// Offers the operations of the slot and receives their answers.
    pub(super) fn drive(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<(), Fault> {
        self.last_ns = self.clock.now();
        self.first_ns = self.last_ns;
        if self.open {
            let started = self.open_loop(arm, intended)?;
            if self.turn.block.is_some() {
                arm.recorder.unfinished += (intended.len() - started) as u64 * self.operations;
            }
            return Ok(());
        }
        if arm.is_paced() {
            return self.paced(arm);
        }
        if arm.connections.len() == 1 { self.closed_single(arm) } else { self.closed_many(arm) }
    }

    fn closed_single(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let conn = &mut arm.connections[0];
        while self.last_ns < self.turn.end_ns {
            self.begin(conn, &mut arm.recorder, None)?;
            self.finish(conn, &mut arm.recorder)?;
        }
        Ok(())
    }

    /// One operation after the other: a single connection, or an embedded database, whose connections take turns.
    fn open_in_turn(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<usize, Fault> {
        let connections = arm.connections.len();
        for (started, at) in intended.iter().enumerate() {
            if self.last_ns >= self.turn.end_ns {
                return Ok(started);
            }
            self.idle_until(*at);
            let conn = &mut arm.connections[started % connections];
            self.begin(conn, &mut arm.recorder, Some(*at))?;
            self.finish(conn, &mut arm.recorder)?;
        }
        Ok(intended.len())
    }

    fn closed_many(&mut self, arm: &mut Arm<'_>) -> Result<(), Fault> {
        let Some(poll) = &mut arm.poll else { return self.round_robin(arm) };
        // A lane that is too late because an earlier operation took too long skips the turn. Otherwise every turn of a
        // slow server would last for an operation, and a frame for many times its length.
        if self.turn.block.is_some() && self.last_ns >= self.turn.end_ns {
            return Ok(());
        }
        for conn in &mut arm.connections {
            self.begin(conn, &mut arm.recorder, None)?;
        }
        let mut busy = arm.connections.len();
        while busy > 0 {
            for number in poll.wait(None)? {
                let conn = &mut arm.connections[number];
                if self.advance(conn, &mut arm.recorder)? {
                    if self.last_ns < self.turn.end_ns {
                        self.begin(conn, &mut arm.recorder, None)?;
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
            for conn in &mut arm.connections {
                if self.last_ns >= self.turn.end_ns {
                    return Ok(());
                }
                self.begin(conn, &mut arm.recorder, None)?;
                self.finish(conn, &mut arm.recorder)?;
            }
        }
    }

    /// Starts the operations that are due as soon as a connection is free; returns the number of operations started.
    fn open_loop(&mut self, arm: &mut Arm<'_>, intended: &[u64]) -> Result<usize, Fault> {
        let Some(poll) = &mut arm.poll else { return self.open_in_turn(arm, intended) };
        arm.free.clear();
        arm.free.extend(0..arm.connections.len());
        let mut started = 0;
        loop {
            let mut now = self.clock.now();
            while started < intended.len() && intended[started] <= now && now < self.turn.end_ns {
                let Some(number) = arm.free.pop_front() else { break };
                self.begin(&mut arm.connections[number], &mut arm.recorder, Some(intended[started]))?;
                started += 1;
                now = self.clock.now();
            }
            let more = started < intended.len() && now < self.turn.end_ns;
            if arm.free.len() == arm.connections.len() && !more {
                return Ok(started);
            }
            let deadline = (more && !arm.free.is_empty()).then(|| intended[started].saturating_sub(now));
            for number in poll.wait(deadline)? {
                if self.advance(&mut arm.connections[number], &mut arm.recorder)? {
                    arm.free.push_back(number);
                }
            }
        }
    }

    /// Waits for an intended start; the processor time of waiting is not part of the operation.
    pub(super) fn idle_until(&mut self, at: u64) {
        if at <= self.clock.now() {
            return;
        }
        let (before, cpu_times) = (self.clock.thread_cpu(), self.clock.thread_cpu_times());
        self.clock.wait_until(at);
        if let (Some(before), Some(after)) = (cpu_times, self.clock.thread_cpu_times()) {
            self.idle_cpu_times += after.since(before);
        }
        // Last, so that reading it is not charged to the operation either.
        self.idle_cpu_ns += self.clock.thread_cpu() - before;
    }

    #[inline]
    fn begin(
        &mut self,
        conn: &mut ClientConnection<'_>,
        recorder: &mut Recorder,
        intended_ns: Option<u64>,
    ) -> Result<(), Fault> {
        conn.client.prepare();
        self.begin_prepared(conn, recorder, intended_ns)
    }

    #[inline]
    pub(super) fn begin_prepared(
        &mut self,
        conn: &mut ClientConnection<'_>,
        recorder: &mut Recorder,
        intended_ns: Option<u64>,
    ) -> Result<(), Fault> {
        if conn.reconnect.is_some() {
            self.renew_if_spent(conn, recorder)?;
        }
        let begun_ns = self.clock.now();
        conn.busy = Some(Busy { begun_ns, part_ns: begun_ns, intended_ns: intended_ns.unwrap_or(begun_ns) });
        conn.client.submit(open(&mut conn.session)?)
    }

    /// Reopens a connection that has done its operations. The lane waits for it, and does not check its other
    /// connections meanwhile. The time belongs to the slot and to its operations together, and is also recorded
    /// separately. In an open loop the latency of the operation that waits for it includes it.
    fn renew_if_spent(&mut self, conn: &mut ClientConnection<'_>, recorder: &mut Recorder) -> Result<(), Fault> {
        if conn.is_spent() {
            let begun_ns = self.clock.now();
            conn.reopen()?;
            let latency_ns = self.clock.now() - begun_ns;
            if begun_ns >= self.counts_from_ns {
                if !self.open {
                    self.slot.latency_sum_ns += latency_ns;
                }
                recorder.connection(latency_ns);
            }
        }
        conn.served += 1;
        Ok(())
    }

    /// Runs the operation of `connection` to its end.
    pub(super) fn finish(&mut self, conn: &mut ClientConnection<'_>, recorder: &mut Recorder) -> Result<(), Fault> {
        while !self.advance(conn, recorder)? {
            let connection = conn.connection()?;
            if !connection.blocks() {
                tithe_plugin::session::wait_ready(connection)?;
            }
        }
        Ok(())
    }

    /// Takes the data that has arrived; true when the operation is over.
    #[inline]
    pub(super) fn advance(&mut self, conn: &mut ClientConnection<'_>, recorder: &mut Recorder) -> Result<bool, Fault> {
        let Some(busy) = &mut conn.busy else { return Ok(false) };
        let counts = busy.begun_ns >= self.counts_from_ns;
        let now = || self.clock.now();
        let mut parts = PartTimes::new(recorder, &now, busy.part_ns, counts);
        let result = conn.client.advance(open(&mut conn.session)?, &mut parts);
        busy.part_ns = parts.since_ns();
        let busy = *busy;
        match result {
            Ok(Progress::Pending) => return Ok(false),
            Ok(Progress::Done(_)) => {}
            Err(Fault::Server(message)) => {
                recorder.fail(message, self.operations);
                conn.busy = None;
                self.last_ns = self.clock.now();
                return Ok(true);
            }
            Err(Fault::Wrong(message)) => {
                recorder.invalidate(format!("wrong answer: {message}"));
                conn.busy = None;
                self.last_ns = self.clock.now();
                return Ok(true);
            }
            Err(fault) => return Err(fault),
        }
        let end_ns = self.clock.now();
        conn.busy = None;
        self.last_ns = end_ns;
        let latency_ns = end_ns - busy.begun_ns;
        self.slot.operations += self.operations;
        if self.turn.block.is_none() {
            recorder.lead_in += self.operations;
        } else {
            recorder.operations += self.operations;
            recorder.phase(busy.begun_ns.saturating_sub(self.turn.start_ns), latency_ns);
        }
        if counts {
            // In a closed loop an operation is intended to start when it does.
            let since_intended_ns = end_ns.saturating_sub(busy.intended_ns);
            self.slot.counted += self.operations;
            self.slot.latency_sum_ns += since_intended_ns;
            recorder.latency(conn.client.operation(), latency_ns);
            if self.open {
                recorder.from_intended(conn.client.operation(), since_intended_ns);
            }
        }
        Ok(true)
    }
}
