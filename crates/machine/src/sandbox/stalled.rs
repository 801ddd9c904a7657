//! Kills a program that serves a file system if a signal has stopped it: every process that uses its mount, Tithe
//! included, would wait in the kernel for an answer that never comes.

use std::time::Duration;

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::{leave_behind, process::pidfd_ends_within};
use crate::{fault::Fault, proc::is_stopped, threads};

/// Interval between two checks of its state.
const INTERVAL: Duration = Duration::from_secs(1);

/// Checks in a row that may find it stopped. Checks are counted and not time, because Tithe may have been stopped too.
const LOOKS: u32 = 10;

/// Watches `process`, a child that was not waited for yet and runs `program`, until it ends.
///
/// # Errors
/// When the machine refuses a descriptor or a thread.
pub(super) fn watch(process: i32, program: &str) -> Result<(), Fault> {
    watch_each(process, program, INTERVAL)
}

fn watch_each(process: i32, program: &str, interval: Duration) -> Result<(), Fault> {
    let failed = |error: Errno| Fault::machine(format!("cannot watch process {process}"), error);
    let pid = Pid::from_raw(process).ok_or_else(|| failed(Errno::SRCH))?;
    // The number of the process may be used again once it has ended, the descriptor is its own.
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).map_err(failed)?;
    let program = program.to_owned();
    threads::spawn(move || {
        let mut stopped = 0;
        while stopped < LOOKS {
            if pidfd_ends_within(&descriptor, interval).unwrap_or(true) {
                return;
            }
            stopped = if is_stopped(process) { stopped + 1 } else { 0 };
        }
        if pidfd_send_signal(&descriptor, Signal::KILL).is_ok() {
            leave_behind(format!(
                "{program} was killed: a signal had stopped it for {LOOKS} s, and programs on its volume waited for it"
            ));
        }
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{launch::Command, sandbox::process, soon::soon};

    #[test]
    fn a_program_that_stays_stopped_is_killed_and_one_that_continues_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = |name: &str| {
            let (log, arguments) = (folder.path().join(name), vec!["-c".to_owned(), "exec sleep 600".to_owned()]);
            std::fs::write(&log, "").expect("a log");
            let command = Command { program: "/bin/sh".into(), arguments, ..Command::default() };
            let running = process::start(&command, None, None, &log, Signal::TERM).expect("a shell");
            watch_each(running.process(), name, Duration::from_millis(100)).expect("a thread");
            running
        };
        let (mut stopped, mut continued) = (start("stopped"), start("continued"));
        stopped.signal(Signal::STOP);
        continued.signal(Signal::STOP);
        continued.signal(Signal::CONT);
        let words = soon("its end", || stopped.ended().ok_or("it is stopped"));
        assert!(words.contains("signal: 9"), "{words}");
        assert_eq!(continued.ended(), None);
    }
}
