//! Starts, runs and stops programs.

#![expect(clippy::disallowed_methods, reason = "this is the place that starts them")]

use std::{
    fs::File,
    io::{self, Read, Seek},
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    process::{Pid, Signal, getpgid, kill_process, kill_process_group, set_parent_process_death_signal},
    time::Timespec,
};

use super::{account::Account, leave_behind, own_ipc::OwnIpc};
use crate::{
    cgroup::{self, Group},
    clock::CpuTimes,
    fault::Fault,
    launch::Command,
    proc::has_signal,
};

/// Time that a server gets to stop cleanly before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that a killed process gets to disappear. One that waits in the kernel for a disk or a file system ends only
/// when that answers, possibly never.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that a tool of the system or of a server may run: creating a database takes minutes on a busy machine.
const TOOL_TIMEOUT: Duration = Duration::from_secs(900);

/// Time that a program gets to print its version: a virtual machine takes seconds to start on a busy machine.
const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval of the check whether a process has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// Interval if more than the process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running server; stopped when dropped.
pub struct Running {
    child: Child,
    stop_signal: Signal,
    /// It had a handler for that signal when it was asked to stop.
    handles_stop: bool,
    log: PathBuf,
}

impl Running {
    /// Its process.
    pub fn process(&self) -> i32 {
        self.child.id() as i32
    }

    /// How it ended and its last words, if it has ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("the server ended ({status}); its log ends with: {}", last_lines(&self.log)))
    }

    /// Sends `signal` to the server's main process; false if it has ended: then nothing is sent.
    pub fn signal(&mut self, signal: Signal) -> bool {
        // If it has ended and was waited for, its number may belong to another process by now. Only this value waits
        // for it.
        matches!(self.child.try_wait(), Ok(None)) && kill_process(Pid::from_child(&self.child), signal).is_ok()
    }

    /// Asks the server to stop, without waiting for it.
    pub fn ask_to_stop(&mut self) {
        self.handles_stop |= handles(self.process(), self.stop_signal);
        self.signal(self.stop_signal);
    }

    /// Ends the server by `signal` instead of a clean stop, without waiting for it. Later stops use `signal`, too.
    pub fn discard(&mut self, signal: Signal) {
        self.stop_signal = signal;
        self.ask_to_stop();
    }

    /// Stops the server and waits until it has ended by itself.
    ///
    /// # Errors
    /// When it had to be killed or failed: then its data must not be copied.
    pub fn stop_cleanly(mut self) -> Result<(), Fault> {
        self.stop();
        // A virtual machine that was stopped by a signal exits with 128 plus the signal's number, as shells do. etcd
        // handles the signal and then ends by it.
        let signal = self.stop_signal.as_raw();
        let ended = match self.child.try_wait() {
            Ok(Some(ended)) if ended.success() || ended.code() == Some(128 + signal) => return Ok(()),
            Ok(Some(ended)) if self.handles_stop && ended.signal() == Some(signal) => return Ok(()),
            Ok(Some(ended)) => ended.to_string(),
            Ok(None) => "killed, and still there".to_owned(),
            Err(error) => error.to_string(),
        };
        let words = last_lines(&self.log);
        Err(Fault::Machine(format!("a server did not stop cleanly ({ended}); its log ends with: {words}")))
    }

    fn stop(&mut self) {
        if self.child.try_wait().ok().flatten().is_some() {
            return;
        }
        self.ask_to_stop();
        // A paused process would not handle the signal.
        self.signal(Signal::CONT);
        if ended_within(&mut self.child, STOP_TIMEOUT).is_none() {
            kill(&mut self.child, &self.log.display());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// True if `process` has a handler for `signal`.
fn handles(process: i32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    has_signal(&status, "SigCgt:", signal)
}

/// Starts a server, whose output is added to the file `log`. It is in `group` from its first instruction on.
///
/// # Errors
/// When `log` cannot be written, or the server cannot be started or put into `group`.
pub fn start(
    command: &Command,
    account: Option<&Account>,
    group: Option<&Group>,
    log: &Path,
    stop_signal: Signal,
) -> Result<Running, Fault> {
    let output = File::options().append(true).open(log).map_err(|error| Fault::machine(log.display(), error))?;
    let errors = output.try_clone().map_err(|error| Fault::machine(log.display(), error))?;
    let folder = log.parent().unwrap_or(Path::new("/"));
    let mut prepared = prepared(command, account, folder);
    prepared.stdin(Stdio::null()).stdout(output).stderr(errors);
    // Opened by this account: the server's account may not join a group.
    let task_files = group.map(Group::task_files).transpose()?.unwrap_or_default();
    before_exec(&mut prepared, move || task_files.iter().try_for_each(cgroup::enter));
    let apart = OwnIpc::enter();
    let child = prepared.spawn();
    drop(apart);
    let child = child.map_err(|error| Fault::machine(format!("cannot start {}", command.program.display()), error))?;
    Ok(Running { child, stop_signal, handles_stop: false, log: log.to_owned() })
}

/// Runs a command to its end.
///
/// # Errors
/// As [`output`].
pub fn run(command: &Command, account: Option<&Account>, folder: &Path) -> Result<(), Fault> {
    output(command, account, folder).map(drop)
}

/// Runs a command to its end; returns what it wrote to its standard output.
///
/// # Errors
/// When it cannot be started, does not end in time, or fails: with its last lines.
pub fn output(command: &Command, account: Option<&Account>, folder: &Path) -> Result<String, Fault> {
    let name = command.program.display();
    // Servers make their data so. Tools of the machine, as dmsetup, talk to its services by System V's semaphores.
    let apart = account.map(|_| OwnIpc::enter());
    let output = finish(&mut prepared(command, account, folder), TOOL_TIMEOUT);
    drop(apart);
    let output = output
        .map_err(|error| Fault::machine(format!("cannot start {name}"), error))?
        .ok_or_else(|| late(&name, TOOL_TIMEOUT))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(Fault::Machine(format!("{name} failed ({}): {}", output.status, tail(&said))))
}

/// The output of `program` for its version, called with `argument`.
///
/// # Errors
/// When it cannot be started, or does not end in time: then it is killed.
pub fn version(program: &Path, argument: &str) -> Result<Output, Fault> {
    ask(program, &[argument])
}

/// The output of `program`, called with `arguments`, about itself.
///
/// # Errors
/// When it cannot be started, or does not end in time: then it is killed.
pub fn ask(program: &Path, arguments: &[&str]) -> Result<Output, Fault> {
    ask_within(program, arguments, VERSION_TIMEOUT)
}

/// The output of `program`, called with `arguments`, in a process group of its own.
///
/// # Errors
/// When it cannot be started, or does not end within `timeout`: then it is killed with all its children.
pub fn ask_within(program: &Path, arguments: &[&str], timeout: Duration) -> Result<Output, Fault> {
    let name = program.display();
    let output = finish(std::process::Command::new(program).args(arguments).process_group(0), timeout);
    let output = output.map_err(|error| Fault::machine(format!("cannot start {name}"), error))?;
    output.ok_or_else(|| late(&name, timeout))
}

/// Runs `command` to its end; returns its status and output. `None` if it did not end within `timeout`: then it is
/// killed with all its children.
///
/// # Errors
/// When it cannot be started.
pub fn finish(command: &mut std::process::Command, timeout: Duration) -> io::Result<Option<Output>> {
    // Not pipes: background processes that a program leaves behind would keep them open.
    let (mut said, mut complained) = (memory_file()?, memory_file()?);
    command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(complained.try_clone()?);
    let mut child = command.spawn()?;
    let Some(status) = ended_within(&mut child, timeout) else {
        kill(&mut child, &command.get_program().display());
        return Ok(None);
    };
    Ok(Some(Output { status, stdout: read_again(&mut said)?, stderr: read_again(&mut complained)? }))
}

/// A file that has no name and no place on a disk (memfd_create(2)).
pub(super) fn memory_file() -> io::Result<File> {
    Ok(memfd_create("tithe", MemfdFlags::CLOEXEC)?.into())
}

pub(super) fn read_again(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn late(name: &dyn std::fmt::Display, timeout: Duration) -> Fault {
    Fault::Machine(format!("{name} did not end within {} s and was killed", timeout.as_secs()))
}

/// The status of `child`; `None` if it has not ended after `timeout`.
pub(super) fn ended_within(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            _ => return None,
        }
    }
}

/// True if the process of the descriptor `process` (pidfd_open(2)) has ended; it is not reaped. False if it has not
/// after `timeout`.
pub(super) fn pidfd_ends_within(process: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Ok(found) => return Ok(found > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills `child`, with its process group if it leads one, and waits until it is gone. If it does not end, it is left
/// behind and reported.
pub(super) fn kill(child: &mut Child, name: &dyn std::fmt::Display) {
    // The child was not waited for yet, so its process number was not reused.
    let process = Pid::from_child(child);
    let leads_group = getpgid(Some(process)) == Ok(process);
    let _ = if leads_group { kill_process_group(process, Signal::KILL) } else { kill_process(process, Signal::KILL) };
    if ended_within(child, KILL_TIMEOUT).is_none() {
        leave_behind(format!(
            "process {process} ({name}) was killed and is still there after {} s: it waits in the kernel for a disk or a file \
             system that does not answer (`cat /proc/{process}/stack` says where)",
            KILL_TIMEOUT.as_secs()
        ));
    }
}

/// A program that ran to its end.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Processor time of the program and of the children that it waited for.
    pub cpu_times: CpuTimes,
}

/// Runs a command to its end and writes both its outputs to the file `output`; `None` if `cancelled` ended it before.
///
/// # Errors
/// When it cannot be started, or does not end within `timeout`: then it is killed with all its children.
pub fn run_counted(
    command: &Command,
    account: Option<&Account>,
    folder: &Path,
    output: &Path,
    timeout: Duration,
    cancelled: &AtomicBool,
) -> Result<Option<Ended>, Fault> {
    let name = command.program.display();
    let file = File::create(output).map_err(|error| Fault::machine(output.display(), error))?;
    let errors = file.try_clone().map_err(|error| Fault::machine(output.display(), error))?;
    let mut child = prepared(command, account, folder)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|error| Fault::machine(format!("cannot start {name}"), error))?;
    let process = child.id() as i32;
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(ended) = reap(process).map_err(|error| Fault::machine(&name, error))? {
            return Ok(Some(ended));
        }
        let is_late = Instant::now() > deadline;
        if is_late || cancelled.load(Ordering::SeqCst) {
            kill(&mut child, &name);
            return if is_late { Err(late(&name, timeout)) } else { Ok(None) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs a user's command to its end as a shell would: in this folder, with this program's input, outputs and
/// environment plus the command's own environment. With `aside` its output goes to standard error. `look` is called
/// regularly while it runs. `None` if `cancelled` ended it before.
///
/// # Errors
/// When it cannot be started.
pub fn accompany(
    command: &Command,
    aside: bool,
    cancelled: &AtomicBool,
    look: &mut dyn FnMut(),
) -> io::Result<Option<ExitStatus>> {
    let mut prepared = std::process::Command::new(&command.program);
    prepared.args(&command.arguments).envs(&command.environment);
    if aside {
        prepared.stdout(io::stderr());
    }
    die_with_tithe(&mut prepared);
    let mut child = prepared.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if cancelled.load(Ordering::SeqCst) {
            // The child was not waited for yet, so its process number was not reused.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            if ended_within(&mut child, STOP_TIMEOUT).is_none() {
                kill(&mut child, &command.program.display());
            }
            return Ok(None);
        }
        look();
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Runs a user's command to its end as a shell would: in this folder, as the user of this program and with its
/// environment, except for the variables `hidden`, which hold secrets. It gets no input. Returns its output. `look` is
/// called regularly while it runs.
///
/// # Errors
/// When it cannot be started, fails, with its last words, or does not end within `timeout`: then it is killed with all
/// its children.
pub fn run_own(
    command: &Command,
    hidden: &[String],
    timeout: Duration,
    look: &mut dyn FnMut(),
) -> Result<String, Fault> {
    let name = command.program.display();
    let failed = |error| Fault::machine(format!("cannot start {name}"), error);
    let mut said = memory_file().map_err(failed)?;
    let mut prepared = std::process::Command::new(&command.program);
    prepared.args(&command.arguments).envs(&command.environment).process_group(0).stdin(Stdio::null());
    prepared.stdout(said.try_clone().map_err(failed)?).stderr(said.try_clone().map_err(failed)?);
    for variable in hidden {
        prepared.env_remove(variable);
    }
    die_with_tithe(&mut prepared);
    let mut child = prepared.spawn().map_err(failed)?;
    let deadline = Instant::now() + timeout;
    let ended = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => break None,
            None => {}
        }
        look();
        std::thread::sleep(POLL_INTERVAL);
    };
    if ended.is_none() {
        kill(&mut child, &name);
    }
    let text = String::from_utf8_lossy(&read_again(&mut said).map_err(failed)?).into_owned();
    let words = tail(&text);
    let said = if words.is_empty() { "it printed nothing".to_owned() } else { format!("it said: {words}") };
    match ended {
        Some(status) if status.success() => Ok(text),
        Some(status) => Err(Fault::Machine(format!("{name} failed ({status}); {said}"))),
        None => Err(Fault::Machine(format!("{}; {said}", late(&name, timeout)))),
    }
}

/// How the child `process` has ended, if it has; this reaps it.
fn reap(process: i32) -> std::io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: rustix waits without the processor time. `usage` is zeroed plain data; it and `status` live through the
    // call.
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(process, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    match found {
        0 => Ok(None),
        found if found == process => {
            Ok(Some(Ended { status: ExitStatus::from_raw(status), cpu_times: CpuTimes::of(&usage) }))
        }
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The command with account, environment, process group and parent-death signal set.
pub(super) fn prepared(command: &Command, account: Option<&Account>, folder: &Path) -> std::process::Command {
    let mut prepared = outliving(command, folder);
    // PATH for programs that a server starts itself; the C locale so that programs can parse messages; TMPDIR so that
    // files left behind are removed with the folder.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    prepared.env("PATH", path).env("LC_ALL", "C").env("HOME", folder).env("TMPDIR", folder).envs(&command.environment);
    if let Some(account) = account {
        prepared.uid(account.user).gid(account.group);
    }
    die_with_tithe(&mut prepared);
    prepared
}

/// Like [`prepared`], for a program that outlives Tithe: no account of its own, and an empty environment.
pub(crate) fn outliving(command: &Command, folder: &Path) -> std::process::Command {
    let mut prepared = std::process::Command::new(&command.program);
    prepared.args(&command.arguments).current_dir(folder).process_group(0).env_clear();
    prepared
}

/// Ends the started process together with the thread that started it.
fn die_with_tithe(prepared: &mut std::process::Command) {
    // After the change of account, which would clear the signal.
    before_exec(prepared, || Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
}

/// Runs `work` between fork and exec.
fn before_exec(prepared: &mut std::process::Command, work: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: both callers, which are in this file, only do system calls that are async-signal-safe: they neither
    // allocate nor take a lock. Descriptors that they use are open until the child has been started.
    unsafe { prepared.pre_exec(work) };
}

fn last_lines(log: &Path) -> String {
    tail(&String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()))
}

/// The last three lines that are not empty.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soon::soon;

    fn shell(script: &str) -> std::process::Command {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_waited_for_and_what_it_leaves_running_is_not() {
        // The background child keeps both outputs open for longer than this test waits.
        let script = "echo said; echo complained >&2; sleep 600 & echo $!; exit 3";
        let output = finish(&mut shell(script), Duration::from_secs(300)).expect("a shell").expect("it ends");
        assert_eq!(output.status.code(), Some(3));
        let said = String::from_utf8(output.stdout).expect("text");
        let stays: i32 = said.strip_prefix("said\n").and_then(|rest| rest.trim().parse().ok()).expect("a process");
        assert_eq!(crate::proc::signal(stays, Signal::KILL), Ok(()), "it does not run any more");
        assert_eq!(output.stderr, b"complained\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let output = finish(&mut shell("exec sleep 600"), Duration::from_millis(50)).expect("a shell");
        assert!(output.is_none(), "it was waited for to its end");
    }

    #[test]
    fn a_command_of_somebody_else_is_accompanied_to_its_end() {
        let command = |script: &str| Command {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: [("GIVEN".to_owned(), "7".to_owned())].into(),
        };
        let never = AtomicBool::new(false);
        let folder = tempfile::tempdir().expect("a folder");
        let looked = folder.path().join("looked");
        let until_looked = format!("while [ ! -e '{}' ]; do sleep 0.01; done; exit $GIVEN", looked.display());
        let look = &mut || std::fs::write(&looked, "").expect("written");
        let ended = accompany(&command(&until_looked), true, &never, look).expect("a shell");
        assert_eq!(ended.and_then(|status| status.code()), Some(7));
        let stopped = accompany(&command("exec sleep 600"), true, &AtomicBool::new(true), &mut || ());
        assert_eq!(stopped.expect("a shell"), None);
        let missing = Command { program: "/nowhere/at-all".into(), ..Command::default() };
        let error = accompany(&missing, true, &never, &mut || ()).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_own_command_sees_the_users_environment_and_no_secret_and_its_words_are_returned() {
        let run = |script: &str, timeout: Duration| {
            let command = Command {
                program: "/bin/sh".into(),
                arguments: vec!["-c".to_owned(), script.to_owned()],
                environment: [("GIVEN".to_owned(), "7".to_owned()), ("SECRET".to_owned(), "hunter2".to_owned())].into(),
            };
            let ended = run_own(&command, &["SECRET".to_owned()], timeout, &mut || ());
            ended.map_err(|fault| fault.to_string())
        };
        let long = Duration::from_secs(300);
        assert_eq!(
            run(
                "test \"$GIVEN$PATH\" = \"7$PATH\" && test -n \"$PATH\" && test -z \"$SECRET\" && echo so && echo on",
                long
            ),
            Ok("so\non\n".to_owned())
        );
        let failed = "/bin/sh failed (exit status: 3); it said: no such group";
        assert_eq!(run("echo no such group >&2; exit 3", long), Err(failed.to_owned()));
        assert_eq!(run("exit 4", long), Err("/bin/sh failed (exit status: 4); it printed nothing".to_owned()));
        // On a busy machine a shell may need more than a second for its first output.
        let late = [1, 10, 100].into_iter().find_map(|within_s| {
            let late = run("echo waiting; sleep 600", Duration::from_secs(within_s)).expect_err("it does not end");
            let said = late.strip_prefix(&format!("/bin/sh did not end within {within_s} s and was killed; it said"));
            said.map(str::to_owned).filter(|said| said != " nothing")
        });
        assert_eq!(late.as_deref(), Some(": waiting"));
    }

    /// A server that is a shell with `script`, and its log, called `name`.
    fn server(name: &str, script: &str) -> (Running, PathBuf) {
        let log = std::env::temp_dir().join(format!("tithe-test-process-{name}-{}", std::process::id()));
        File::create(&log).expect("a log");
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let command = Command { program: "/bin/sh".into(), arguments, ..Command::default() };
        (start(&command, None, None, &log, Signal::TERM).expect("a shell"), log)
    }

    #[test]
    fn a_server_that_has_ended_is_sent_nothing() {
        let (mut running, log) = server("ended", "exec sleep 600");
        assert!(running.signal(Signal::KILL), "it runs");
        running.child.wait().expect("it ends");
        // From here on its process number may be reused.
        assert!(!running.signal(Signal::TERM));
        running.discard(Signal::KILL);
        assert!(!running.signal(Signal::CONT));
        drop(running);
        std::fs::remove_file(&log).expect("removed");
    }

    #[test]
    fn a_server_that_stands_still_is_stopped_all_the_same() {
        let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
        let (mut running, log) = server("still", script);
        let said = || std::fs::read_to_string(&log).expect("a log");
        soon("its first word", || if said().is_empty() { Err("it said nothing") } else { Ok(()) });
        running.signal(Signal::STOP);
        assert_eq!(running.stop_cleanly(), Ok(()), "it was killed");
        std::fs::remove_file(&log).expect("removed");
    }
}
