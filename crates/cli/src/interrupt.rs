//! Ctrl-C: the first asks the run to end and keep what it has, the second ends the program. A terminal that is closed
//! or a connection that is lost (SIGHUP) asks as the first does, however often: what is on a user's server has to be
//! removed.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(signal: i32) {
    ASKED.store(true, Ordering::SeqCst);
    // The kernel and the shell both say that a terminal was closed.
    if signal != libc::SIGHUP {
        // SAFETY: `signal` is async-signal-safe; the next signal then has its default effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Listens from now on; the flag becomes true at the first SIGINT, SIGTERM or SIGHUP.
pub fn listen() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic and calls `signal`.
        let before = unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        // `nohup` has asked for a run that outlives its terminal.
        if signal == libc::SIGHUP && before == libc::SIG_IGN {
            // SAFETY: nothing but the signal's effect changes.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
    &ASKED
}
