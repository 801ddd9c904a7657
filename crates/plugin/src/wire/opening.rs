//! The time to open a connection, by part. Each thread stores it for the connection that it opened last.

use std::cell::Cell;

use tithe_machine::clock::Clock;
use tithe_model::connecting::{ConnectPart, Connecting};

thread_local! {
    static OPENED: Cell<Connecting> = Cell::default();
}

/// A moment of the calling thread: wall-clock time and processor time.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at_ns: u64,
    used_ns: u64,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        Self { at_ns: Clock::Real.now(), used_ns: Clock::Real.thread_cpu() }
    }

    fn since(self) -> ConnectPart {
        let now = Self::now();
        ConnectPart { time_ns: now.at_ns - self.at_ns, client_ns: now.used_ns - self.used_ns }
    }
}

/// Clears the last connection, and returns its times; empty if none was logged in.
pub fn take() -> Connecting {
    let opened = OPENED.take();
    if opened.connections == 0 { Connecting::default() } else { opened }
}

/// The connection was accepted; connecting began at `begun`.
pub(super) fn accepted(begun: Moment) {
    OPENED.set(Connecting { tcp: begun.since(), ..Connecting::default() });
}

/// The TLS handshake is done; it began at `begun`.
pub(super) fn encrypted(begun: Moment) {
    OPENED.set(Connecting { tls: begun.since(), ..OPENED.get() });
}

/// The login is done; it began at `begun`.
pub fn let_in(begun: Moment) {
    let (all, opened) = (begun.since(), OPENED.get());
    let rest = |all: u64, parts: [u64; 2]| all.saturating_sub(parts.iter().sum());
    let login = ConnectPart {
        time_ns: rest(all.time_ns, [opened.tcp.time_ns, opened.tls.time_ns]),
        client_ns: rest(all.client_ns, [opened.tcp.client_ns, opened.tls.client_ns]),
    };
    OPENED.set(Connecting { connections: 1, login, ..opened });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_no_more_than_the_whole_and_are_taken_once() {
        let whole = Moment::now();
        accepted(Moment::now());
        encrypted(Moment::now());
        assert_eq!(take(), Connecting::default());
        accepted(Moment::now());
        encrypted(Moment::now());
        let_in(whole);
        let Connecting { connections, tcp, tls, login } = take();
        let all = whole.since();
        assert_eq!(connections, 1);
        assert!(tcp.time_ns + tls.time_ns + login.time_ns <= all.time_ns);
        assert!(tcp.client_ns + tls.client_ns + login.client_ns <= all.client_ns);
        assert_eq!(take(), Connecting::default());
    }

    /// The moment `ns` ago, as if half of the thread's processor time had been used since then.
    fn earlier(ns: u64) -> Moment {
        let Moment { at_ns, used_ns } = Moment::now();
        Moment { at_ns: at_ns - ns, used_ns: used_ns / 2 }
    }

    #[test]
    fn a_login_is_what_is_left_of_the_whole_after_the_other_parts() {
        const MS: u64 = 1_000_000;
        let begun = Moment::now();
        accepted(earlier(100 * MS));
        encrypted(earlier(30 * MS));
        let_in(earlier(1000 * MS));
        let Connecting { tcp, tls, login, .. } = take();
        let ended = Moment::now();
        let took = ended.at_ns - begun.at_ns;
        let lasted = |part: ConnectPart, ns: u64| (ns..=ns + took).contains(&part.time_ns);
        assert!(lasted(tcp, 100 * MS) && lasted(tls, 30 * MS), "{tcp:?} {tls:?}");
        let all = tcp.time_ns + tls.time_ns + login.time_ns;
        assert!((1000 * MS..=1000 * MS + took).contains(&all), "{login:?}");
        let half = begun.used_ns / 2;
        assert!((half..=ended.used_ns - half).contains(&tcp.client_ns), "{tcp:?}");
        // A connection without TLS has no such part, whatever the one before it had.
        accepted(earlier(100 * MS));
        let_in(earlier(1000 * MS));
        assert_eq!(take().tls, ConnectPart::default());
    }
}
