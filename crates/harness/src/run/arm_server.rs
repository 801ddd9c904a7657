//! The server of one arm, from one start to the next.

use std::path::Path;

use tithe_machine::{
    fault::Fault,
    launch::{Launch, Server},
    sandbox::{Sandbox, process::Running},
};
use tithe_plugin::{database::Database, setup::Setup};

use super::draw::pad;
use crate::serve;

/// The server that an arm uses.
pub(super) struct ArmServer {
    pub server: Server,
    /// `None` for an embedded or attached database, and for one that is stopped.
    process: Option<(Running, Launch)>,
}

impl ArmServer {
    /// A server that Tithe did not start.
    pub fn attached(server: Server) -> Self {
        Self { server, process: None }
    }

    /// Starts `launch` in `folder`, without waiting for it, with `padding` bytes added to its environment. An embedded
    /// database has no process.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn begin(launch: Launch, folder: &Path, padding: usize, sandbox: &Sandbox) -> Result<Self, Fault> {
        let (server, running) = serve::begin(sandbox, &padded(&launch, padding), folder)?;
        Ok(Self { server, process: running.map(|running| (running, launch)) })
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// As [`serve::wait_until_ready`].
    pub fn await_ready(&mut self, database: &dyn Database, setup: &Setup) -> Result<(), Fault> {
        match &mut self.process {
            Some((running, _)) => serve::wait_until_ready(database, &self.server, setup, running),
            None => Ok(()),
        }
    }

    /// Asks it to stop, without waiting for it: cleanly, or at once if it is to `discard` what it has not written.
    pub fn ask_to_stop(&mut self, discard: bool) {
        match &mut self.process {
            Some((running, launch)) if discard => running.discard(launch.discard_signal),
            Some((running, _)) => running.ask_to_stop(),
            None => {}
        }
    }

    /// Waits until a server that was asked to stop has stopped. Returns the launch to start it again, `None` if Tithe
    /// did not start it.
    pub fn stopped(&mut self) -> Option<Launch> {
        self.process.take().map(|(_, launch)| launch)
    }

    /// Stops it so that its files are whole.
    ///
    /// # Errors
    /// When it did not stop by itself.
    pub fn stop_cleanly(&mut self) -> Result<(), Fault> {
        self.process.take().map_or(Ok(()), |(running, _)| running.stop_cleanly())
    }

    /// How it ended by itself, if it did.
    pub fn ended(&mut self) -> Option<String> {
        self.process.as_mut().and_then(|(running, _)| running.ended())
    }
}

/// `launch` with `padding` bytes added to its environment. The arm's configuration in reports is the launch without
/// them.
fn padded(launch: &Launch, padding: usize) -> Launch {
    let mut launch = launch.clone();
    if let Some(command) = &mut launch.server {
        pad(&mut command.environment, padding);
    }
    launch
}
