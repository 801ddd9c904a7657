//! Programs that run during a test.

use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::Signal;

/// A process that is killed when it is dropped: a failed test must leave no process that disturbs later tests.
pub struct Process(Option<Child>);

impl Process {
    /// Starts `command`, with its own input and output.
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("it starts")))
    }

    /// Starts `command`, and keeps its output for [`Process::output`].
    pub fn heard(command: &mut Command) -> Self {
        Self::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts `command`, without input and output.
    pub fn unheard(command: &mut Command) -> Self {
        Self::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Its identity.
    pub fn id(&self) -> u32 {
        self.0.as_ref().expect("nobody has taken its output").id()
    }

    /// Sends it `signal`.
    pub fn signal(&self, signal: Signal) {
        // The number belongs to the child until its end was waited for; after that no test sends a signal.
        assert_eq!(tithe_machine::proc::signal(self.id() as i32, signal), Ok(()));
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child().try_wait().expect("a state").is_some()
    }

    /// Kills it now, as kill -9 does; returns how it has ended.
    pub fn kill(&mut self) -> ExitStatus {
        self.child().kill().expect("it may be killed");
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child().wait().expect("it ends")
    }

    /// Waits for its end; returns its output.
    pub fn output(mut self) -> Output {
        self.0.take().expect("nobody has taken its output").wait_with_output().expect("it ends")
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("nobody has taken its output")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
