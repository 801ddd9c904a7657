//! Whether a server that Tithe did not start can be measured.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{database::IDLE_AT_LEAST_S, setup::Setup};

use super::{schema::administrator, session::PostgresSession};

/// Looks whether `server` takes writes, serves each connection by a process of its own, and leaves silent ones open.
///
/// # Errors
/// [`Fault::Refused`] with what stands against it and what to change; the server's error.
pub fn check(server: &Server, setup: &Setup) -> Result<(), Fault> {
    let mut session = administrator(server, setup)?;
    let account = session.value("SELECT quote_ident(current_user)")?;
    let refused = |words: String| Err(Fault::Refused(words));
    if session.value("SELECT pg_is_in_recovery()")? == "t" {
        return refused(
            "it is a standby, which takes no writes, and Tithe loads records of its own: name its primary".into(),
        );
    }
    if session.value("SHOW transaction_read_only")? == "on" {
        return refused(format!(
            "its transactions are read-only for {account}, and Tithe loads records of its own: say `ALTER ROLE {account} \
             SET default_transaction_read_only = off`"
        ));
    }
    // Versions before 14 close no silent sessions.
    let silent_ms = "SELECT coalesce(max(setting), '0') FROM pg_settings WHERE name = 'idle_session_timeout'";
    let silent_ms: u64 = session.value(silent_ms)?.parse().unwrap_or(0);
    if (1..IDLE_AT_LEAST_S * 1000).contains(&silent_ms) {
        return refused(format!(
            "it closes connections that are silent for {} s, and those of an arm are silent while others are measured: \
             say `ALTER ROLE {account} SET idle_session_timeout = 0`",
            silent_ms as f64 / 1e3
        ));
    }
    check_pooler(&mut session, &mut administrator(server, setup)?)
}

/// Two sessions that are open at the same time and served by one process of the server share it, as clients of a pooler
/// do that lends its connections for a transaction.
fn check_pooler(one: &mut PostgresSession, other: &mut PostgresSession) -> Result<(), Fault> {
    const PROCESS: &str = "SELECT pg_backend_pid()";
    if one.value(PROCESS)? != other.value(PROCESS)? {
        return Ok(());
    }
    Err(Fault::Refused(
        "a pooler stands before it that lends one connection to several clients by turns (pgbouncer with `pool_mode` \
         transaction or statement): what switches a protection for a session would reach others, and prepared statements \
         be lost; name the server itself, or a pool with `pool_mode = session`"
            .to_owned(),
    ))
}
