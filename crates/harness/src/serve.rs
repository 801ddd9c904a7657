//! Starts a server in its place and waits until it answers.

use std::time::{Duration, Instant};

use tithe_machine::{
    fault::Fault,
    launch::{Launch, Place, Server},
    sandbox::{Sandbox, process::Running},
};
use tithe_plugin::{database::Database, setup::Setup};

/// File in a server's folder that its output goes to.
pub const LOG: &str = "server.log";

/// How long a server may take until it answers: several virtual machines that start one after the other on a busy
/// machine take minutes. One that ends meanwhile is not waited for.
const START_TIMEOUT: Duration = Duration::from_secs(400);

/// Carries out `launch` in `place`. Without a process for an embedded database.
///
/// # Errors
/// A step that failed; a server that ended, with its last words, or that does not answer an administrator.
pub fn start(
    database: &dyn Database,
    sandbox: &Sandbox,
    place: &Place,
    launch: &Launch,
    setup: &Setup,
) -> Result<(Server, Option<Running>), Fault> {
    sandbox.prepare(launch)?;
    serve(database, sandbox, place, launch, setup)
}

/// As [`start`], where everything is prepared already.
///
/// # Errors
/// As [`start`].
pub fn serve(
    database: &dyn Database,
    sandbox: &Sandbox,
    place: &Place,
    launch: &Launch,
    setup: &Setup,
) -> Result<(Server, Option<Running>), Fault> {
    let mut running = sandbox.start(launch, &place.folder.join(LOG))?;
    let server = Server {
        address: launch.address.clone(),
        remote: None,
        process: running.as_ref().map(Running::process),
        paths: launch.paths.clone(),
        folder: place.folder.clone(),
    };
    if let Some(running) = &mut running {
        wait_until_ready(database, &server, setup, running)?;
    }
    Ok((server, running))
}

/// Waits until `server` answers an administrator.
///
/// # Errors
/// Its last words when it ended; its last refusal when it does not answer in time.
pub fn wait_until_ready(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    running: &mut Running,
) -> Result<(), Fault> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let fault = match database.facts(server, setup) {
            Ok(_) => return Ok(()),
            Err(fault) => fault,
        };
        if let Some(words) = running.ended() {
            return Err(Fault::Machine(words));
        }
        if Instant::now() > deadline {
            return Err(fault);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
