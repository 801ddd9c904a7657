//! All connections of a lane to one arm.

use std::{collections::VecDeque, os::fd::BorrowedFd};

use tithe_machine::{
    fault::Fault,
    watch::process::{TaskUsage, TaskWatch},
};
use tithe_model::connecting::Connecting;

use super::{connection::ClientConnection, poll::Poll};
use crate::load::{recorder::Recorder, timeout::Timeout};

/// The server process that writes the log for all clients.
pub struct LogWriter {
    /// Its usage.
    pub watch: TaskWatch,
    /// Lanes that are on the arm in each of its slots: each is charged an equal part.
    pub parts: u64,
    /// It runs on this lane's processor, so its work there is not that of other programs.
    pub is_here: bool,
}

impl LogWriter {
    /// Divides `used_ns` that it has used in a slot: what this lane is charged, and what ran on this lane's processor.
    fn divide(&self, used_ns: u64) -> (u64, u64) {
        (used_ns / self.parts.max(1), if self.is_here { used_ns } else { 0 })
    }
}

/// All connections of a lane to one arm.
pub struct Arm<'a> {
    /// The connections; at least one.
    pub connections: Vec<ClientConnection<'a>>,
    /// The results.
    pub recorder: Recorder,
    /// Statements that switch the protection on before a slot, if arms share a server.
    pub on: Vec<String>,
    /// Statements that switch it off after the slot.
    pub off: Vec<String>,
    log_writer: Option<LogWriter>,
    pub(super) poll: Option<Poll>,
    /// Connections without an operation, in an open loop: the one that has waited longest is next.
    pub(super) free: VecDeque<usize>,
    pub(super) broken: bool,
}

impl<'a> Arm<'a> {
    /// An arm of a lane. Its server counts as dead when no connection has had an answer for `timeout`.
    ///
    /// # Errors
    /// When the kernel gives no epoll descriptor.
    pub fn new(
        mut connections: Vec<ClientConnection<'a>>,
        recorder: Recorder,
        (on, off): (Vec<String>, Vec<String>),
        timeout: Timeout,
    ) -> Result<Self, Fault> {
        let descriptors: Vec<Option<BorrowedFd<'_>>> =
            connections.iter_mut().map(|conn| Ok(conn.connection()?.descriptor())).collect::<Result<_, Fault>>()?;
        let poll = match descriptors.into_iter().collect::<Option<Vec<_>>>() {
            Some(descriptors) if descriptors.len() > 1 => Some(Poll::new(&descriptors, timeout)?),
            _ => None,
        };
        for (number, conn) in connections.iter_mut().enumerate() {
            conn.poll = poll.as_ref().map(|poll| (poll.epoll.clone(), number));
        }
        let free = VecDeque::with_capacity(connections.len());
        Ok(Self { connections, recorder, on, off, log_writer: None, poll, free, broken: false })
    }

    /// The same, whose server's log is written by `log_writer`.
    #[must_use]
    pub fn logged_by(mut self, log_writer: Option<LogWriter>) -> Self {
        self.log_writer = log_writer;
        self
    }

    /// The cost of opening all connections so far.
    pub fn connecting(&self) -> Connecting {
        self.connections.iter().fold(Connecting::default(), |mut sum, conn| {
            sum.add(&conn.connecting);
            sum
        })
    }

    /// Bytes sent and received by all connections so far.
    pub fn wire_bytes(&mut self) -> (u64, u64) {
        self.connections.iter_mut().fold((0, 0), |(sent, received), conn| {
            let (more_sent, more_received) = conn.wire_bytes();
            (sent + more_sent, received + more_received)
        })
    }

    /// Statements sent by all clients so far.
    pub fn statements(&self) -> u64 {
        self.connections.iter().map(|conn| conn.client.statements()).sum()
    }

    /// Charges what `watch` reads of a whole server to this lane's share of its clients. This is for servers whose
    /// threads serve any client, and for connections that come and go, so that no task belongs to a client. Between two
    /// slots of an arm its server is idle.
    pub fn watch_whole(&mut self, watch: Option<TaskWatch>) {
        self.connections.iter_mut().for_each(|conn| conn.watch = None);
        if let Some(conn) = self.connections.first_mut() {
            conn.watch = watch;
        }
    }

    /// True when its clients pause between operations.
    pub(super) fn is_paced(&self) -> bool {
        self.connections.first().is_some_and(|conn| conn.client.pauses())
    }

    /// Processor time of the server's log writer so far, ns.
    pub(super) fn log_writer_ns(&self) -> u64 {
        self.log_writer.as_ref().map_or(0, |writer| writer.watch.read().cpu_ns)
    }

    /// Usage of the log writer since it had used `before_ns`: what this lane is charged, and what ran on this lane's
    /// processor, ns.
    pub(super) fn of_log_writer(&self, before_ns: u64) -> (u64, u64) {
        let used_ns = self.log_writer_ns().saturating_sub(before_ns);
        self.log_writer.as_ref().map_or((0, 0), |writer| writer.divide(used_ns))
    }

    pub(super) fn server_usage(&self) -> TaskUsage {
        self.connections.iter().filter_map(|conn| conn.watch.as_ref()).map(TaskWatch::read).fold(
            TaskUsage::default(),
            |sum, usage| TaskUsage { cpu_ns: sum.cpu_ns + usage.cpu_ns, wait_ns: sum.wait_ns + usage.wait_ns },
        )
    }

    /// Tells its clients to remove what earlier slots have added.
    pub(super) fn put_back(&mut self) {
        for conn in &mut self.connections {
            if let Err(fault) = conn.put_back() {
                self.recorder.invalidate(fault.to_string());
                self.broken = true;
            }
        }
    }

    pub(super) fn toggle(&mut self, on: bool) {
        let statements = if on { &self.on } else { &self.off };
        for conn in &mut self.connections {
            for statement in statements {
                let outcome = conn.connection().and_then(|connection| connection.run_statement(statement));
                if let Err(fault) = outcome {
                    self.recorder.invalidate(format!("`{statement}`: {fault}"));
                    self.broken = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lanes_pay_for_the_log_and_one_of_them_has_its_writer() {
        let lane = |is_here| LogWriter { watch: TaskWatch::this_thread(), parts: 4, is_here };
        assert_eq!(lane(true).divide(1000), (250, 1000));
        assert_eq!(lane(false).divide(1000), (250, 0));
    }
}
