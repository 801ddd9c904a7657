//! Ctrl-C: the first asks the run to end and keep what it has, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(signal: i32) {
    ASKED.store(true, Ordering::SeqCst);
    // SAFETY: `signal` is async-signal-safe; the next signal then has its default effect.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Listens from now on; the flag becomes true at the first SIGINT or SIGTERM.
pub fn listen() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic and calls `signal`.
        unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
    }
    &ASKED
}
