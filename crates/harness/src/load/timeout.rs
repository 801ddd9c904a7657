//! How long a server may give a measured client no answer before it counts as dead.
//!
//! Tithe notices when a server that it started ends, so that one gets the usual limit: [`TIMEOUT_S`]. An attached
//! server may be behind a network that drops packets silently, so its limit is shorter: a frame must not hang for a
//! minute.

use std::time::Duration;

use tithe_machine::fault::Fault;
use tithe_plugin::session::{TIMEOUT_S, answered_within};

/// How long an operation on an attached server may take beyond the length of its frame: for a failover or another
/// client's lock.
const BEYOND_FRAME: Duration = Duration::from_secs(10);

/// How long the first answer of an attached server to a connection is waited for, s.
pub const FIRST_ANSWER_S: u16 = 15;

/// How long an answer to a measured client is waited for, s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(u16);

impl Timeout {
    /// The limit of any answer.
    pub const LONGEST: Self = Self(TIMEOUT_S);

    /// For frames of `frame_ns` on a server that is `attached` or not.
    pub fn of(frame_ns: u64, attached: bool) -> Self {
        let frame = Duration::from_nanos(frame_ns).saturating_add(BEYOND_FRAME);
        let frame_s = u16::try_from(frame.as_secs()).unwrap_or(TIMEOUT_S);
        if attached { Self(frame_s.min(TIMEOUT_S)) } else { Self::LONGEST }
    }

    /// The same, ns.
    pub fn ns(self) -> u64 {
        u64::from(self.0) * 1_000_000_000
    }

    /// The error when it has passed.
    pub fn spent(self) -> Fault {
        Fault::Connection(format!("the server did not answer for {} s", self.0))
    }

    /// Does `work` with this limit for each of its answers, also on connections that it opens.
    pub fn bound<T>(self, work: impl FnOnce() -> T) -> T {
        answered_within(self.0, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attached_server_is_waited_for_as_long_as_a_frame_and_some_seconds() {
        let seconds = |frame_s: u64, attached| Timeout::of(frame_s * 1_000_000_000, attached).ns() / 1_000_000_000;
        assert_eq!([seconds(0, true), seconds(2, true), seconds(50, true), seconds(600, true)], [10, 12, 60, 60]);
        assert_eq!(seconds(2, false), 60);
        let words = Timeout::of(2_000_000_000, true).spent().to_string();
        assert_eq!(words, "connection: the server did not answer for 12 s");
    }
}
