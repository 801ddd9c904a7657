//! Ctrl-C: the first asks the run to end and keep what it has, the second ends the program. A terminal that is closed
//! or a connection that is lost (SIGHUP) asks as the first does, however often: what is on a user's server has to be
//! removed.

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
    // Listening twice would take the first signal for the second.
    static BEGUN: Once = Once::new();
    // The kernel refuses only signals that nobody can listen to.
    BEGUN.call_once(|| drop(begin()));
    &ASKED
}

fn begin() -> io::Result<()> {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    static TERMINATED: AtomicBool = AtomicBool::new(false);
    for (signal, was_sent) in [(SIGINT, &INTERRUPTED), (SIGTERM, &TERMINATED)] {
        // They act in this order, so a signal ends the program only when it was sent before.
        flag::register_conditional_default(signal, was_sent)?;
        flag::register(signal, was_sent)?;
        flag::register(signal, &ASKED)?;
    }
    // `nohup` has asked for a run that outlives its terminal.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !has_signal(&status, "SigIgn:", Signal::HUP) {
        flag::register(SIGHUP, &ASKED)?;
    }
    Ok(())
}

/// Has a file that would become larger than this process may write be an error with words, and no silent end by
/// SIGXFSZ. What this process starts begins with the kernel's own disposition.
pub fn survive_quotas() {
    // The kernel refuses only signals that nobody can listen to.
    let _ = flag::register(Signal::XFSZ.as_raw(), Arc::default());
}
