//! All connections of a lane to one arm.

use std::{collections::VecDeque, os::fd::RawFd};

use tithe_machine::{
    fault::Fault,
    watch::process::{TaskUsage, TaskWatch},
};

use super::{poll::Poll, seat::Seat};
use crate::load::recorder::Recorder;

/// All connections of a lane to one arm.
pub struct Arm<'a> {
    /// The connections; at least one.
    pub seats: Vec<Seat<'a>>,
    /// What was seen.
    pub recorder: Recorder,
    /// Statements that switch the protection on before a slot, where arms share a server.
    pub on: Vec<String>,
    /// Statements that switch it off after the slot.
    pub off: Vec<String>,
    pub(super) poll: Option<Poll>,
    /// Seats without an operation, in an open loop: who waits longest is next.
    pub(super) free: VecDeque<usize>,
    pub(super) broken: bool,
}

impl<'a> Arm<'a> {
    /// An arm of a lane.
    ///
    /// # Errors
    /// When the kernel gives no epoll descriptor.
    pub fn new(mut seats: Vec<Seat<'a>>, recorder: Recorder, on: Vec<String>, off: Vec<String>) -> Result<Self, Fault> {
        let descriptors: Vec<Option<RawFd>> =
            seats.iter_mut().map(|seat| Ok(seat.connection()?.descriptor())).collect::<Result<_, Fault>>()?;
        let poll = match descriptors.into_iter().collect::<Option<Vec<RawFd>>>() {
            Some(descriptors) if descriptors.len() > 1 => Some(Poll::new(&descriptors)?),
            _ => None,
        };
        for (number, seat) in seats.iter_mut().enumerate() {
            seat.poll = poll.as_ref().map(|poll| (poll.epoll, number));
        }
        let free = VecDeque::with_capacity(seats.len());
        Ok(Self { seats, recorder, on, off, poll, free, broken: false })
    }

    /// Bytes sent and received by all connections so far.
    pub fn wire_bytes(&mut self) -> (u64, u64) {
        self.seats.iter_mut().fold((0, 0), |(sent, received), seat| {
            let (more_sent, more_received) = seat.wire_bytes();
            (sent + more_sent, received + more_received)
        })
    }

    /// Statements sent by all clients so far.
    pub fn statements(&self) -> u64 {
        self.seats.iter().map(|seat| seat.client.statements()).sum()
    }

    /// Charges what `watch` sees of a whole server to this lane's part of its clients: for servers whose threads serve
    /// whoever comes, and where connections come and go, so that no task belongs to a client. Between two arms' slots
    /// such a server is idle.
    pub fn watch_whole(&mut self, watch: Option<TaskWatch>) {
        self.seats.iter_mut().for_each(|seat| seat.watch = None);
        if let Some(seat) = self.seats.first_mut() {
            seat.watch = watch;
        }
    }

    /// True when its clients pause between operations.
    pub(super) fn is_paced(&self) -> bool {
        self.seats.first().is_some_and(|seat| seat.client.pauses())
    }

    pub(super) fn server_usage(&self) -> TaskUsage {
        self.seats.iter().filter_map(|seat| seat.watch.as_ref()).map(TaskWatch::read).fold(
            TaskUsage::default(),
            |sum, usage| TaskUsage { cpu_ns: sum.cpu_ns + usage.cpu_ns, wait_ns: sum.wait_ns + usage.wait_ns },
        )
    }

    pub(super) fn toggle(&mut self, on: bool) {
        let statements = if on { &self.on } else { &self.off };
        for seat in &mut self.seats {
            for statement in statements {
                let outcome = seat.connection().and_then(|connection| connection.run_statement(statement));
                if let Err(fault) = outcome {
                    self.recorder.spoil(format!("`{statement}`: {fault}"));
                    self.broken = true;
                }
            }
        }
    }
}
