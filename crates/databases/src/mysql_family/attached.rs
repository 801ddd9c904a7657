//! Whether a server that Tithe did not start can be measured.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{database::IDLE_AT_LEAST_S, setup::Setup};

use super::access::Access;

/// Looks whether `server` takes writes and leaves silent connections open.
///
/// # Errors
/// [`Fault::Refused`] with what stands against it and what to change; the server's error.
pub fn check(access: &Access, server: &Server, setup: &Setup) -> Result<(), Fault> {
    let mut session = access.administrator(server, setup)?;
    if !["0", "OFF"].contains(&session.value("SELECT @@GLOBAL.read_only")?.as_str()) {
        return Err(Fault::Refused(
            "it is read-only (`read_only`), as replicas are, and Tithe loads records of its own: name the server that it \
             replicates, or say `SET GLOBAL read_only = OFF` where it replicates none"
                .to_owned(),
        ));
    }
    let silent_s: u64 = session.value("SELECT @@SESSION.wait_timeout")?.parse().unwrap_or(IDLE_AT_LEAST_S);
    if silent_s < IDLE_AT_LEAST_S {
        return Err(Fault::Refused(format!(
            "it closes connections that are silent for {silent_s} s, and those of an arm are silent while others are \
             measured: say `SET GLOBAL wait_timeout = 28800`"
        )));
    }
    Ok(())
}
