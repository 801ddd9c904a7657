//! A program that answers Tithe's requests, one line each, over its standard input and output.
//!
//! It is a direct child of Tithe and leads a process group: ctrl-C reaches only Tithe, which then asks the child to
//! end, and the parent-death signal ends it with Tithe. Requests appear in no argument, environment or file. Its
//! standard error is kept in memory, for the text of a fault.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, Signal, kill_process},
    time::Timespec,
};

use super::process::{ended_within, kill, memory_file, prepared, read_again, tail};
use crate::{fault::Fault, launch::Command, proc};

/// Time that it gets to answer after it was asked to end its current work: hundreds of connections that derive keys are
/// still being opened.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that it gets to end after the last request: a storage engine writes its data.
const END_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that it gets to disappear after it closed its output.
const GONE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that it may be stopped (SIGSTOP) while it is to answer.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval of the check whether Tithe was asked to stop; a signal is noticed at once.
const POLL_TIME: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Longest accepted answer, bytes.
const ANSWER_MAX: usize = 1 << 30;

/// A running co-process; killed if it is dropped before [`end`](Coprocess::end).
pub struct Coprocess {
    child: Child,
    /// `None` after the last request.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    /// The part of the next answer that has arrived.
    arrived: Vec<u8>,
    /// Its standard error.
    said: File,
    /// Its name in messages.
    name: String,
    has_ended: bool,
}

impl Coprocess {
    /// Starts `command` in `folder`, under Tithe's own account. Messages call it `name`; in process lists it is
    /// `tithe`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &Command, name: &str, folder: &Path) -> Result<Self, Fault> {
        let failed = |error| Fault::machine(format!("cannot start {name}"), error);
        let said = memory_file().map_err(failed)?;
        let mut prepared = prepared(command, None, folder);
        prepared.arg0("tithe").stdin(Stdio::piped()).stdout(Stdio::piped());
        // `folder` belongs to the caller and is no place for temporary files.
        prepared.env_remove("TMPDIR");
        prepared.stderr(said.try_clone().map_err(failed)?);
        let mut child = prepared.spawn().map_err(failed)?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or_else(|| failed(io::Error::other("it has no standard output")))?;
        let name = name.to_owned();
        Ok(Self { child, requests, answers, arrived: Vec::new(), said, name, has_ended: false })
    }

    /// Its process.
    pub fn process(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it `line`, which must not contain a line break.
    ///
    /// # Errors
    /// How it ended, if it is gone.
    pub fn send(&mut self, line: &[u8]) -> Result<(), Fault> {
        let told = match &mut self.requests {
            Some(requests) => requests.write_all(line).and_then(|()| requests.write_all(b"\n")),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if told.is_err() { Err(self.gone()) } else { Ok(()) }
    }

    /// Its next line, without the line break. Once `cancelled` is set, it gets SIGTERM to end its current work, and has
    /// two minutes to answer.
    ///
    /// # Errors
    /// How it ended, with its last words, if no answer comes any more.
    pub fn answer(&mut self, cancelled: &AtomicBool) -> Result<Vec<u8>, Fault> {
        let mut deadline = None;
        let mut stopped_since = None;
        let mut looked_at = 0;
        loop {
            if let Some(length) = self.arrived[looked_at..].iter().position(|byte| *byte == b'\n') {
                let rest = self.arrived.split_off(looked_at + length + 1);
                let mut line = std::mem::replace(&mut self.arrived, rest);
                line.pop();
                return Ok(line);
            }
            looked_at = self.arrived.len();
            if deadline.is_none() && cancelled.load(Ordering::SeqCst) {
                deadline = Some(Instant::now() + CANCEL_TIMEOUT);
                self.signal(Signal::TERM);
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(self.late("did not stop", CANCEL_TIMEOUT));
            }
            if self.has_something().map_err(|error| self.failed(error))? {
                if !self.read_on()? {
                    return Err(self.gone());
                }
            } else if self.is_stopped() {
                if stopped_since.get_or_insert_with(Instant::now).elapsed() > STOPPED_TIMEOUT {
                    return Err(self.late("was stopped by a signal and did not go on", STOPPED_TIMEOUT));
                }
            } else {
                stopped_since = None;
            }
        }
    }

    /// Sends no further request and waits until it has ended; returns its standard error.
    ///
    /// # Errors
    /// When it failed, with its last words; when it had to be killed.
    pub fn end(mut self) -> Result<String, Fault> {
        self.requests = None;
        match ended_within(&mut self.child, END_TIMEOUT) {
            None => Err(self.late("did not end", END_TIMEOUT)),
            Some(status) if status.success() => {
                self.has_ended = true;
                Ok(self.words())
            }
            Some(_) => Err(self.gone()),
        }
    }

    /// True while a signal of somebody else keeps it from running.
    fn is_stopped(&self) -> bool {
        proc::is_stopped(self.child.id() as i32)
    }

    /// True if something can be read, or the output has ended.
    fn has_something(&self) -> io::Result<bool> {
        match poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&POLL_TIME)) {
            Ok(found) => Ok(found > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what has arrived; false if the output has ended.
    fn read_on(&mut self) -> Result<bool, Fault> {
        let mut buffer = [0; 1 << 16];
        let length = self.answers.read(&mut buffer).map_err(|error| self.failed(error))?;
        self.arrived.extend_from_slice(&buffer[..length]);
        if self.arrived.len() > ANSWER_MAX {
            return Err(Fault::Machine(format!("{} sent an answer that is too long", self.name)));
        }
        Ok(length > 0)
    }

    fn signal(&self, signal: Signal) {
        // The child was not waited for yet, so its process number was not reused.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    fn failed(&self, error: io::Error) -> Fault {
        Fault::machine(format!("cannot hear {}", self.name), error)
    }

    /// How it ended, before it answered.
    fn gone(&mut self) -> Fault {
        let ended = ended_within(&mut self.child, GONE_TIMEOUT);
        self.has_ended = ended.is_some();
        let how =
            ended.map_or_else(|| "it stopped answering and is still there".to_owned(), |status| status.to_string());
        let words = self.last_words();
        Fault::Machine(format!("{} ended ({how}){words}", self.name))
    }

    fn late(&mut self, what: &str, timeout: Duration) -> Fault {
        let words = self.last_words();
        self.kill();
        Fault::Machine(format!("{} {what} within {} s and was killed{words}", self.name, timeout.as_secs()))
    }

    fn last_words(&mut self) -> String {
        match tail(&self.words()).as_str() {
            "" => "; it printed nothing".to_owned(),
            words => format!("; its output ended with: {words}"),
        }
    }

    /// Its standard error so far.
    fn words(&mut self) -> String {
        String::from_utf8_lossy(&read_again(&mut self.said).unwrap_or_default()).into_owned()
    }

    fn kill(&mut self) {
        kill(&mut self.child, &self.name);
        self.has_ended = true;
    }
}

impl Drop for Coprocess {
    fn drop(&mut self) {
        if !self.has_ended {
            self.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soon::soon;

    fn shell(script: &str) -> Coprocess {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let command = Command { program: "/bin/sh".into(), arguments, ..Command::default() };
        Coprocess::start(&command, "the shell", Path::new("/")).expect("a shell")
    }

    fn is_there(process: i32) -> bool {
        Path::new(&format!("/proc/{process}")).exists()
    }

    static GOES_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn lines_are_answered_by_lines_and_the_end_is_waited_for() {
        let mut coprocess = shell("while read line; do echo got $line; echo and more; done; echo bye >&2");
        coprocess.send(b"one").expect("told");
        assert_eq!(coprocess.answer(&GOES_ON), Ok(b"got one".to_vec()));
        assert_eq!(coprocess.answer(&GOES_ON), Ok(b"and more".to_vec()));
        // Longer than a pipe's buffer and than one read.
        let long = vec![b'x'; 300_000];
        coprocess.send(&long).expect("told");
        assert_eq!(coprocess.answer(&GOES_ON).map(|line| line.len()), Ok(300_004));
        assert_eq!(coprocess.end(), Ok("bye\n".to_owned()));
    }

    #[test]
    fn one_that_ends_early_tells_how_with_its_last_words() {
        let words = |script: &str| shell(script).answer(&GOES_ON).expect_err("it ends").to_string();
        assert_eq!(words("echo no key >&2; exit 3"), "the shell ended (exit status: 3); its output ended with: no key");
        assert_eq!(words("printf half; kill -9 $$"), "the shell ended (signal: 9 (SIGKILL)); it printed nothing");
        let failed = shell("read line; exit 4").end().expect_err("it fails").to_string();
        assert_eq!(failed, "the shell ended (exit status: 4); it printed nothing");
    }

    #[test]
    fn one_that_is_gone_cannot_be_told_anything() {
        let mut coprocess = shell("exit 5");
        let fault = soon("a refusal", || coprocess.send(b"hello").err().ok_or("it is sent again and again"));
        assert_eq!(fault.to_string(), "the shell ended (exit status: 5); it printed nothing");
    }

    #[test]
    fn it_is_asked_to_stop_when_tithe_is_and_still_answers() {
        let mut coprocess = shell("trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
        assert_eq!(coprocess.answer(&GOES_ON), Ok(b"ready".to_vec()));
        assert_eq!(coprocess.answer(&AtomicBool::new(true)), Ok(b"stopped".to_vec()));
        assert_eq!(coprocess.end(), Ok(String::new()));
    }

    #[test]
    fn one_that_is_dropped_is_gone() {
        let mut coprocess = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done");
        assert_eq!(coprocess.answer(&GOES_ON), Ok(b"ready".to_vec()));
        let process = coprocess.process();
        assert!(is_there(process));
        drop(coprocess);
        assert!(!is_there(process));
    }
}
