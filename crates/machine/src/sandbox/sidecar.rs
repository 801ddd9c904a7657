//! A helper program of an arm, which is paused together with the arm's server.
//!
//! It is a direct child of Tithe without children of its own, so the parent-death signal ends it even while it is
//! stopped. It needs no record on disk.

use std::{
    fs::File,
    io,
    path::Path,
    process::{Child, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{
    leave_behind,
    process::{kill, pidfd_ends_within, prepared, tail},
};
use crate::{fault::Fault, launch::Command};

/// Time that a program gets to end after it was asked to.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time that a killed program gets to disappear; see the same in [`super::process`].
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that a program may run, pauses included: re-encrypting a large disk takes hours.
const WORK_TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// Runs the programs of an arm, one at a time.
#[derive(Debug, Clone, Default)]
pub struct Sidecar(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Its process number, valid until it is removed here.
    process: Option<Pid>,
    is_paused: bool,
    dismissed: bool,
}

impl Sidecar {
    /// Runs `command` in `folder` to its end and writes both its outputs to the file `log`.
    ///
    /// # Errors
    /// When it cannot be started or fails, with its last words; when it runs for longer than six hours; when
    /// [`Sidecar::dismiss`] was called before.
    pub fn run(&self, command: &Command, folder: &Path, log: &Path) -> Result<(), Fault> {
        self.run_within(command, folder, log, WORK_TIMEOUT)
    }

    fn run_within(&self, command: &Command, folder: &Path, log: &Path, timeout: Duration) -> Result<(), Fault> {
        let mut child = self.start(command, folder, log)?;
        let ended = await_end(&child, timeout);
        self.state().process = None;
        let name = command.program.display();
        let failed = |error| Fault::machine(format!("cannot wait for {name}"), error);
        if !matches!(ended, Ok(true)) {
            kill(&mut child, &name);
        }
        if !ended.map_err(failed)? {
            return Err(Fault::Machine(format!("{name} did not end within {} s and was killed", timeout.as_secs())));
        }
        let status = child.wait().map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read(log).unwrap_or_default();
        Err(Fault::Machine(format!("{name} failed ({status}): {}", tail(&String::from_utf8_lossy(&said)))))
    }

    fn start(&self, command: &Command, folder: &Path, log: &Path) -> Result<Child, Fault> {
        let output = File::create(log).map_err(|error| Fault::machine(log.display(), error))?;
        let errors = output.try_clone().map_err(|error| Fault::machine(log.display(), error))?;
        let mut prepared = prepared(command, None, folder);
        prepared.stdin(Stdio::null()).stdout(output).stderr(errors);
        // Locked until the process is known: pausing the arm in the meantime then pauses it too.
        let mut state = self.state();
        let name = command.program.display();
        if state.dismissed {
            return Err(Fault::Refused(format!("{name} is no longer needed")));
        }
        let child = prepared.spawn().map_err(|error| Fault::machine(format!("cannot start {name}"), error))?;
        state.process = Some(Pid::from_child(&child));
        if state.is_paused {
            state.signal(Signal::STOP);
        }
        Ok(child)
    }

    /// Pauses the program, also one that is just being started.
    pub fn pause(&self) {
        let mut state = self.state();
        state.is_paused = true;
        state.signal(Signal::STOP);
    }

    /// Lets the program continue.
    pub fn resume(&self) {
        let mut state = self.state();
        state.is_paused = false;
        state.signal(Signal::CONT);
    }

    /// Asks the program to end, and waits until it has; no further one is started.
    pub fn dismiss(&self) {
        self.state().dismissed = true;
        self.resume();
        self.state().signal(Signal::TERM);
        if self.is_gone_within(TIMEOUT) {
            return;
        }
        self.state().signal(Signal::KILL);
        if !self.is_gone_within(KILL_TIMEOUT) {
            leave_behind("a program that worked for a server was killed and is still there".to_owned());
        }
    }

    fn is_gone_within(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while self.state().process.is_some() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// The state is still valid if a thread panicked while it held the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process {
            // The child was not waited for yet, so its process number was not reused.
            let _ = kill_process(process, signal);
        }
    }
}

/// True if `child` has ended (it is not reaped); false if it has not after `timeout`.
fn await_end(child: &Child, timeout: Duration) -> io::Result<bool> {
    // The child was not waited for yet, so its process number was not reused.
    pidfd_ends_within(&pidfd_open(Pid::from_child(child), PidfdFlags::empty())?, timeout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soon::{await_state, soon};

    fn shell(script: &str) -> Command {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        Command { program: "/bin/sh".into(), arguments, ..Command::default() }
    }

    fn log(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tithe-test-sidecar-{name}-{}", std::process::id()))
    }

    #[test]
    fn it_runs_to_its_end_and_a_failure_is_told_in_its_words() {
        let (sidecar, log) = (Sidecar::default(), log("end"));
        assert_eq!(sidecar.run(&shell("exit 0"), Path::new("/"), &log), Ok(()));
        let failed = sidecar.run(&shell("echo no such key >&2; exit 3"), Path::new("/"), &log);
        assert_eq!(failed, Err(Fault::Machine("/bin/sh failed (exit status: 3): no such key".to_owned())));
        assert!(sidecar.state().process.is_none());
        std::fs::remove_file(&log).expect("removed");
    }

    #[test]
    fn one_that_does_not_end_is_killed_and_said_to_be() {
        let (sidecar, log) = (Sidecar::default(), log("late"));
        let late = sidecar.run_within(&shell("exec sleep 60"), Path::new("/"), &log, Duration::from_millis(50));
        assert_eq!(late, Err(Fault::Machine("/bin/sh did not end within 0 s and was killed".to_owned())));
        assert!(sidecar.state().process.is_none());
        std::fs::remove_file(&log).expect("removed");
    }

    #[test]
    fn it_is_paused_with_its_arm_from_its_start_and_ends_when_it_is_dismissed() {
        let (sidecar, log) = (Sidecar::default(), log("still"));
        sidecar.pause();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| sidecar.run(&shell("exec sleep 60"), Path::new("/"), &log));
            let process = soon("its process", || sidecar.state().process.ok_or("nothing was started")).as_raw_pid();
            await_state(process, &["T"]);
            sidecar.resume();
            await_state(process, &["S", "R"]);
            sidecar.pause();
            await_state(process, &["T"]);
            sidecar.dismiss();
            assert!(matches!(thread.join().expect("no panic"), Err(Fault::Machine(_))));
        });
        let refused = sidecar.run(&shell("exit 0"), Path::new("/"), &log);
        assert_eq!(refused, Err(Fault::Refused("/bin/sh is no longer needed".to_owned())));
        std::fs::remove_file(&log).expect("removed");
    }
}
