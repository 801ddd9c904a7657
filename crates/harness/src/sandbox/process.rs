//! Starts, runs and stops programs.

use std::{
    fs::File,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{
    account::Account,
    cgroup::{self, Group},
};
use crate::{clock::Modes, database::Command, fault::Fault};

/// How long a server may take to stop cleanly before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A running server; stopped when dropped.
pub struct Running {
    child: Child,
    stop_signal: i32,
    log: PathBuf,
}

impl Running {
    /// Its process.
    pub fn process(&self) -> i32 {
        self.child.id() as i32
    }

    /// How it ended and its last words, once it has ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("the server ended ({status}); its log ends with: {}", last_lines(&self.log)))
    }

    /// Sends `signal` to the server's main process.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so its number is still its own.
        unsafe { libc::kill(self.process(), signal) };
    }

    /// Tells the server to stop, without waiting for it.
    pub fn ask_to_stop(&mut self) {
        self.signal(self.stop_signal);
    }

    /// Stops the server and waits until it has ended by itself.
    ///
    /// # Errors
    /// When it had to be killed, or did not end well: then nothing may be copied of what it left.
    pub fn stop_cleanly(mut self) -> Result<(), Fault> {
        self.stop();
        let ended = self.child.wait().map_err(|error| Fault::machine("cannot wait for a server", error))?;
        if ended.success() {
            return Ok(());
        }
        let words = last_lines(&self.log);
        Err(Fault::Machine(format!("a server did not stop cleanly ({ended}); its log ends with: {words}")))
    }

    fn stop(&mut self) {
        if self.child.try_wait().ok().flatten().is_some() {
            return;
        }
        self.signal(self.stop_signal);
        let deadline = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            if self.child.try_wait().ok().flatten().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: a negative number means the process group, which this server leads alone.
        unsafe { libc::kill(-self.process(), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a server, in `group` from its first instruction on.
pub fn start(
    command: &Command,
    account: Option<&Account>,
    group: Option<&Group>,
    log: &Path,
    stop_signal: i32,
) -> Result<Running, Fault> {
    let output = File::options().append(true).open(log).map_err(|error| Fault::machine(log.display(), error))?;
    let errors = output.try_clone().map_err(|error| Fault::machine(log.display(), error))?;
    let folder = log.parent().unwrap_or(Path::new("/"));
    let mut prepared = prepared(command, account, folder);
    prepared.stdin(Stdio::null()).stdout(output).stderr(errors);
    // Opened by this account: the server's may not join a group.
    let doors = group.map(Group::doors).transpose()?.unwrap_or_default();
    // SAFETY: write(2) is async-signal-safe, and the descriptors are open until the child has been started.
    unsafe {
        prepared.pre_exec(move || doors.iter().try_for_each(cgroup::enter));
    }
    let child = prepared
        .spawn()
        .map_err(|error| Fault::machine(format!("cannot start {}", command.program.display()), error))?;
    Ok(Running { child, stop_signal, log: log.to_owned() })
}

/// Runs a command to its end.
pub fn run(command: &Command, account: Option<&Account>, folder: &Path) -> Result<(), Fault> {
    output(command, account, folder).map(drop)
}

/// Runs a command to its end; returns what it wrote to its standard output.
pub fn output(command: &Command, account: Option<&Account>, folder: &Path) -> Result<String, Fault> {
    let name = command.program.display();
    let output = prepared(command, account, folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Fault::machine(format!("cannot start {name}"), error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(Fault::Machine(format!("{name} failed ({}): {}", output.status, tail(&said))))
}

/// A program that ran to its end.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Processor time of the program and of the children that it has waited for.
    pub modes: Modes,
}

/// Runs a command to its end, both its outputs going to the file `output`; `None` when `cancelled` ended it before.
///
/// # Errors
/// When it cannot be started, or does not end within `patience`: it is killed then, with all that it has started.
pub fn run_counted(
    command: &Command,
    account: Option<&Account>,
    folder: &Path,
    output: &Path,
    patience: Duration,
    cancelled: &AtomicBool,
) -> Result<Option<Ended>, Fault> {
    let name = command.program.display();
    let file = File::create(output).map_err(|error| Fault::machine(output.display(), error))?;
    let errors = file.try_clone().map_err(|error| Fault::machine(output.display(), error))?;
    let child = prepared(command, account, folder)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|error| Fault::machine(format!("cannot start {name}"), error))?;
    let process = child.id() as i32;
    let deadline = Instant::now() + patience;
    loop {
        if let Some(ended) = look_after(process).map_err(|error| Fault::machine(&name, error))? {
            return Ok(Some(ended));
        }
        let late = Instant::now() > deadline;
        if late || cancelled.load(Ordering::SeqCst) {
            // SAFETY: a negative number means the process group, which this program leads and which has not been waited for.
            unsafe { libc::kill(-process, libc::SIGKILL) };
            let mut child = child;
            let _ = child.wait();
            let words = format!("{name} did not end within {} s and was killed", patience.as_secs());
            return if late { Err(Fault::Machine(words)) } else { Ok(None) };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How the child `process` has ended, if it has; it is waited for then.
fn look_after(process: i32) -> std::io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: `usage` is zeroed plain data, and like `status` it lives through the call.
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(process, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    match found {
        0 => Ok(None),
        found if found == process => Ok(Some(Ended { status: ExitStatus::from_raw(status), modes: Modes::of(&usage) })),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The command with account, environment, process group and parent-death signal set.
pub(super) fn prepared(command: &Command, account: Option<&Account>, folder: &Path) -> std::process::Command {
    let mut prepared = std::process::Command::new(&command.program);
    prepared.args(&command.arguments).current_dir(folder).process_group(0).env_clear();
    // PATH for what a server starts itself; the C locale so that messages can be read by programs.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    prepared.env("PATH", path).env("LC_ALL", "C").env("HOME", folder).envs(&command.environment);
    if let Some(account) = account {
        prepared.uid(account.user).gid(account.group);
    }
    // SAFETY: prctl is async-signal-safe, and the closure touches nothing else. It runs after the account
    // was changed, which would have cleared the signal.
    unsafe {
        prepared.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    prepared
}

fn last_lines(log: &Path) -> String {
    tail(&String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()))
}

/// The last three lines with something in them.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}
