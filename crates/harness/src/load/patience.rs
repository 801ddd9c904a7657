//! How long a server may say nothing to a measured client before it counts as dead.
//!
//! A server that Tithe started is seen to end, and is waited for as long as any: [`TIMEOUT_S`]. An attached one behind
//! a network that swallows everything is not; nobody is to look at a frame that stands still for a minute.

use std::{os::fd::RawFd, time::Duration};

use tithe_machine::fault::Fault;
use tithe_plugin::session::TIMEOUT_S;

/// What an operation on an attached server may take beyond the length of its frame: a failover or somebody's lock.
const BEYOND_FRAME: Duration = Duration::from_secs(10);

/// How long the first answer of an attached server to a connection is waited for, s.
pub const FIRST_ANSWER_S: u16 = 15;

/// How long a measured operation is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(Duration);

impl Patience {
    /// As long as any answer is waited for.
    pub const LONGEST: Self = Self(Duration::from_secs(TIMEOUT_S as u64));

    /// For frames of `frame_ns` on a server that is `attached` or not.
    pub fn of(frame_ns: u64, attached: bool) -> Self {
        let frame = Duration::from_nanos(frame_ns).saturating_add(BEYOND_FRAME);
        if attached { Self(frame.min(Self::LONGEST.0)) } else { Self::LONGEST }
    }

    /// The same, ns.
    pub fn ns(self) -> u64 {
        self.0.as_nanos() as u64
    }

    /// Says that it has come to its end.
    pub fn spent(self) -> Fault {
        Fault::Connection(format!("the server did not answer for {} s", self.0.as_secs()))
    }

    /// Has the kernel wait no longer for what the blocking `connection` receives.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn bound(self, connection: RawFd) -> Result<(), Fault> {
        let wait = libc::timeval {
            tv_sec: self.0.as_secs() as libc::time_t,
            tv_usec: self.0.subsec_micros() as libc::suseconds_t,
        };
        // SAFETY: the descriptor is open, and `wait` lives through the call, which reads as many bytes as it has.
        let refused = unsafe {
            libc::setsockopt(
                connection,
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const wait).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            )
        };
        if refused != 0 {
            return Err(Fault::machine("SO_RCVTIMEO", std::io::Error::last_os_error()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
    };

    use super::*;

    #[test]
    fn an_attached_server_is_waited_for_as_long_as_a_frame_and_some_seconds() {
        let seconds = |frame_s: u64, attached| Patience::of(frame_s * 1_000_000_000, attached).ns() / 1_000_000_000;
        assert_eq!([seconds(0, true), seconds(2, true), seconds(50, true), seconds(600, true)], [10, 12, 60, 60]);
        assert_eq!(seconds(2, false), 60);
        let words = Patience::of(2_000_000_000, true).spent().to_string();
        assert_eq!(words, "connection: the server did not answer for 12 s");
    }

    #[test]
    fn a_blocking_connection_waits_no_longer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        Patience(Duration::from_millis(1500)).bound(stream.as_raw_fd()).expect("bound");
        assert_eq!(stream.read_timeout().expect("told"), Some(Duration::from_millis(1500)));
        Patience(Duration::from_millis(20)).bound(stream.as_raw_fd()).expect("bound");
        let error = stream.read(&mut [0]).expect_err("nobody says anything");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
