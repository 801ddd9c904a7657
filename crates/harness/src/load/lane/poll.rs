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

/// As many connections are told at once, at most: the others with the next wait.
const AT_ONCE: usize = 256;

/// An epoll descriptor over the connections of one arm.
///
/// It tells edges, not levels: that a connection has become readable or writable. So it need not be told when a request
/// could not be sent whole, and the kernel does not look again at connections whose answer was taken. Nothing is
/// missed, because a session that says [`Progress::Pending`](tithe_plugin::session::Progress::Pending) has read and
/// written until the kernel had nothing more, or has just sent a request whose answer is an edge of its own.
pub(super) struct Poll {
    pub epoll: Epoll,
    /// Numbers of the connections that were told last. Events may hold pointers: kept here, they would keep a lane from
    /// going to another thread.
    ready: Vec<usize>,
    /// How long no connection may answer before the server counts as dead.
    timeout: Timeout,
}

/// The descriptor of a [`Poll`], shared with its connections: one that is opened again is added by itself.
#[derive(Clone)]
pub(super) struct Epoll(Arc<OwnedFd>);

impl Epoll {
    /// Has `connection` told about under `number`.
    pub fn add(&self, connection: BorrowedFd<'_>, number: usize) -> Result<(), Fault> {
        let edges = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&self.0, connection, EventData::new_u64(number as u64), edges).map_err(failed)
    }
}

impl Poll {
    /// Over these connections, numbered in their order, none of which answers for longer than `timeout` if the server
    /// is dead.
    pub fn new(descriptors: &[BorrowedFd<'_>], timeout: Timeout) -> Result<Self, Fault> {
        let epoll = Epoll(Arc::new(epoll::create(CreateFlags::CLOEXEC).map_err(failed)?));
        for (number, connection) in descriptors.iter().enumerate() {
            epoll.add(*connection, number)?;
        }
        Ok(Self { epoll, ready: Vec::with_capacity(AT_ONCE.min(descriptors.len())), timeout })
    }

    /// The numbers of the connections that can go on; empty when `timeout_ns` passes first.
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
