//! Waiting for several connections at once.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::epoll::{self, CreateFlags, Event, EventData, EventFlags},
    io::Errno,
    time::Timespec,
};
use tithe_machine::fault::Fault;

use crate::load::timeout::Timeout;

/// At most this many connections are returned by one wait; the others follow with the next wait.
const AT_ONCE: usize = 256;

/// An epoll descriptor over the connections of one arm.
///
/// It is edge-triggered: it reports that a connection has become readable or writable. So a request that could not be
/// sent whole needs no further call, and the kernel does not check connections again after their answer. No event is
/// missed: a session that returns [`Progress::Pending`](tithe_plugin::session::Progress::Pending) has read and written
/// until the kernel had nothing more, or has just sent a request whose answer is a new edge.
pub(super) struct Poll {
    pub epoll: Epoll,
    /// Numbers of the connections that the last wait returned. The events themselves may hold pointers: if they were
    /// kept here, a lane could not move to another thread.
    ready: Vec<usize>,
    /// The server counts as dead if no connection answers for this time.
    timeout: Timeout,
}

/// The descriptor of a [`Poll`], shared with its connections, so that a connection that is opened again adds itself.
#[derive(Clone)]
pub(super) struct Epoll(Arc<OwnedFd>);

impl Epoll {
    /// Registers `connection` under `number`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&self, connection: BorrowedFd<'_>, number: usize) -> Result<(), Fault> {
        let edges = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&self.0, connection, EventData::new_u64(number as u64), edges).map_err(failed)
    }
}

impl Poll {
    /// Over these connections, numbered in their order; a server without any answer for `timeout` counts as dead.
    ///
    /// # Errors
    /// When the machine has no descriptor left; the kernel's.
    pub fn new(descriptors: &[BorrowedFd<'_>], timeout: Timeout) -> Result<Self, Fault> {
        let epoll = Epoll(Arc::new(epoll::create(CreateFlags::CLOEXEC).map_err(failed)?));
        for (number, connection) in descriptors.iter().enumerate() {
            epoll.add(*connection, number)?;
        }
        Ok(Self { epoll, ready: Vec::with_capacity(AT_ONCE.min(descriptors.len())), timeout })
    }

    /// The numbers of the connections that can continue; empty when `timeout_ns` passes first.
    ///
    /// # Errors
    /// When no server has answered for the timeout, unless `timeout_ns` is given; the kernel's.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> Result<impl Iterator<Item = usize> + '_, Fault> {
        let wait_ns = timeout_ns.unwrap_or(self.timeout.ns());
        let wait = Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
        self.ready.clear();
        let mut room = [MaybeUninit::<Event>::uninit(); AT_ONCE];
        match epoll::wait(&self.epoll.0, &mut room, Some(&wait)) {
            Ok(([], _)) if timeout_ns.is_none() => return Err(self.timeout.spent()),
            Ok((events, _)) => self.ready.extend(events.iter().map(|event| event.data.u64() as usize)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(self.ready.iter().copied())
    }
}

fn failed(error: Errno) -> Fault {
    Fault::machine("epoll", io::Error::from(error))
}
