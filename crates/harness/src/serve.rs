//! Starts a server in its place and waits until it answers.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tithe_machine::{
    fault::Fault,
    launch::{Launch, Place, Server},
    sandbox::{Sandbox, process::Running},
};
use tithe_plugin::{database::Database, setup::Setup};

/// File in a server's folder for its output.
pub const LOG: &str = "server.log";

/// How long a server may take until it answers: several virtual machines that start one after the other on a busy
/// machine take minutes. A server that ends meanwhile is not waited for.
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

/// As [`start`], if everything is prepared already.
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
    let (server, mut running) = begin(sandbox, launch, &place.folder)?;
    if let Some(running) = &mut running {
        wait_until_ready(database, &server, setup, running)?;
    }
    Ok((server, running))
}

/// Starts what is prepared of `launch` in `folder`, without waiting for it. Without a process for an embedded database.
///
/// # Errors
/// When the program cannot be started.
pub fn begin(sandbox: &Sandbox, launch: &Launch, folder: &Path) -> Result<(Server, Option<Running>), Fault> {
    let running = sandbox.start(launch, &folder.join(LOG))?;
    let process = running.as_ref().map(Running::process);
    Ok((Server { process, ..Server::embedded(launch, folder) }, running))
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
        let answer = database.facts(server, setup);
        // Checked before an answer is believed: if this server found its port taken, the answer comes from another
        // program.
        if let Some(words) = running.ended() {
            return Err(Fault::Machine(words));
        }
        match answer {
            Ok(_) => return Ok(()),
            Err(fault) if Instant::now() > deadline => return Err(fault),
            Err(_) => {}
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use tithe_machine::{launch::Command, soon::soon};
    use tithe_plugin::simulated::{Simulated, test_bench::Bench};

    use super::*;

    #[test]
    fn a_server_that_has_ended_is_not_ready_whoever_answers() {
        // It answers even without a process, like another arm's server at a port that both were given.
        let bench = Bench::plain();
        let arguments = vec!["-c".to_owned(), "echo the port is taken; exit 1".to_owned()];
        let command = Command { program: "/bin/sh".into(), arguments, ..Command::default() };
        let launch = Launch { server: Some(command), ..Launch::default() };
        let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
        let place = sandbox.place("ended").expect("a place");
        let mut running = sandbox.start(&launch, &place.folder.join(LOG)).expect("a shell").expect("a process");
        soon("its end", || running.ended().ok_or("it runs"));
        let outcome = wait_until_ready(&Simulated, &bench.server, &bench.setup, &mut running);
        let told = |words: &str| words.contains("the server ended") && words.contains("the port is taken");
        assert!(matches!(&outcome, Err(Fault::Machine(words)) if told(words)), "{outcome:?}");
    }
}
