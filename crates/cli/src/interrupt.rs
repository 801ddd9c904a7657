//! Ctrl-C: the first one ends the run and keeps what it has, the second one ends the program. A closed terminal or a
//! lost connection (SIGHUP) acts like the first one, however often: Tithe's data on a user's server must be removed.

use std::{
    fs, io,
    sync::{Arc, Once, atomic::AtomicBool},
};

use rustix::process::Signal;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use tithe_machine::proc::has_signal;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens from now on; the flag becomes true at the first SIGINT, SIGTERM or SIGHUP.
pub fn listen() -> &'static AtomicBool {
    // With two listeners, the first signal would count as the second.
    static BEGUN: Once = Once::new();
    // The kernel refuses only signals that no process can handle.
    BEGUN.call_once(|| drop(begin()));
    &ASKED
}

fn begin() -> io::Result<()> {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    static TERMINATED: AtomicBool = AtomicBool::new(false);
    for (signal, was_sent) in [(SIGINT, &INTERRUPTED), (SIGTERM, &TERMINATED)] {
        // The handlers run in this order, so a signal ends the program only if an earlier one was sent.
        flag::register_conditional_default(signal, was_sent)?;
        flag::register(signal, was_sent)?;
        flag::register(signal, &ASKED)?;
    }
    // With `nohup`, the run is meant to outlive its terminal.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !has_signal(&status, "SigIgn:", Signal::HUP) {
        flag::register(SIGHUP, &ASKED)?;
    }
    Ok(())
}

/// Turns a file that would exceed the file size limit of this process into an error with a message, instead of a silent
/// end by SIGXFSZ. Processes that this one starts begin with the kernel's default disposition.
pub fn survive_quotas() {
    // The kernel refuses only signals that no process can handle.
    let _ = flag::register(Signal::XFSZ.as_raw(), Arc::default());
}
