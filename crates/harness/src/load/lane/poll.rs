//! Waiting for several connections at once.

use std::os::fd::RawFd;

use tithe_machine::fault::Fault;

use crate::load::timeout::Timeout;

/// An epoll descriptor over the connections of one arm.
///
/// It tells edges, not levels: that a connection has become readable or writable. So it need not be told when a request
/// could not be sent whole, and the kernel does not look again at connections whose answer was taken. Nothing is
/// missed, because a session that says [`Progress::Pending`](tithe_plugin::session::Progress::Pending) has read and
/// written until the kernel had nothing more, or has just sent a request whose answer is an edge of its own.
pub(super) struct Poll {
    pub epoll: Epoll,
    events: Vec<libc::epoll_event>,
    /// How long no connection may answer before the server counts as dead.
    timeout: Timeout,
}

/// The descriptor of a [`Poll`], which closes it.
#[derive(Clone, Copy)]
pub(super) struct Epoll(RawFd);

impl Epoll {
    /// Has `connection` told about under `number`.
    pub fn add(self, connection: RawFd, number: usize) -> Result<(), Fault> {
        let edges = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
        let mut event = libc::epoll_event { events: edges as u32, u64: number as u64 };
        // SAFETY: both descriptors are open, `event` lives through the call.
        if unsafe { libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, connection, &raw mut event) } != 0 {
            return Err(Fault::machine("epoll", std::io::Error::last_os_error()));
        }
        Ok(())
    }
}

impl Poll {
    /// Over these connections, numbered in their order, none of which answers for longer than `timeout` if the server
    /// is dead.
    pub fn new(descriptors: &[RawFd], timeout: Timeout) -> Result<Self, Fault> {
        // SAFETY: no preconditions; the descriptor is owned by the new value and closed by its drop.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(Fault::machine("epoll", std::io::Error::last_os_error()));
        }
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; descriptors.len()];
        let poll = Self { epoll: Epoll(descriptor), events, timeout };
        for (number, connection) in descriptors.iter().enumerate() {
            poll.epoll.add(*connection, number)?;
        }
        Ok(poll)
    }

    /// The numbers of the connections that can go on; empty when `timeout_ns` passes first.
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> Result<impl Iterator<Item = usize> + '_, Fault> {
        let wait_ns = timeout_ns.unwrap_or(self.timeout.ns());
        let wait =
            libc::timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
        // By its number, because musl has no function for it.
        // SAFETY: `events` has room for the number of entries that is passed; `wait` lives through the call; without a
        // mask of signals its size is not looked at.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.0,
                self.events.as_mut_ptr(),
                self.events.len() as i32,
                &raw const wait,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if ready < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(Fault::machine("epoll", error));
            }
        }
        if ready == 0 && timeout_ns.is_none() {
            return Err(self.timeout.spent());
        }
        Ok(self.events[..ready.max(0) as usize].iter().map(|event| event.u64 as usize))
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own and is not used afterwards.
        unsafe { libc::close(self.epoll.0) };
    }
}
