//! Whether a server that Tithe did not start can be measured.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{database::IDLE_AT_LEAST_S, setup::Setup};

use super::{schema::administrator, session::PostgresSession, startup::NO_PASSWORD};

/// Looks whether `server` takes writes, serves each connection by a process of its own, leaves silent ones open, and
/// goes on letting the account in.
///
/// # Errors
/// [`Fault::Refused`] with what stands against it and what to change; the server's error.
pub fn check(server: &Server, setup: &Setup) -> Result<(), Fault> {
    let mut session = administrator(server, setup).map_err(denied)?;
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
    check_expiry(&mut session, &account)?;
    check_pooler(&mut session, &mut administrator(server, setup)?)
}

/// Looks whether the password of `account` holds for a day: connections are opened as long as a run lasts, and evidence
/// is looked at after it. Who is let in without one may have any.
fn check_expiry(session: &mut PostgresSession, account: &str) -> Result<(), Fault> {
    if session.greeting().method == NO_PASSWORD {
        return Ok(());
    }
    let expiry = session.value(
        "SELECT coalesce(max(rolvaliduntil::text), '') FROM pg_roles \
         WHERE rolname = current_user AND rolvaliduntil < now() + interval '1 day'",
    )?;
    if expiry.is_empty() {
        return Ok(());
    }
    Err(Fault::Refused(format!(
        "the password of {account} expires at {expiry}, which is within a day, and connections are opened as long as a \
         run lasts: say `ALTER ROLE {account} VALID UNTIL 'infinity'`, or name a later time"
    )))
}

/// The refusal of a login, where it may be an old password: the server tells its log that one has expired, and not the
/// client.
fn denied(fault: Fault) -> Fault {
    /// "invalid_password", in the documentation's table of error codes.
    const INVALID_PASSWORD: &str = "28P01: ";
    match fault {
        Fault::Refused(words) if words.starts_with(INVALID_PASSWORD) => Fault::Refused(format!(
            "{words}; where the password is the right one, it has expired (`rolvaliduntil` of `pg_roles`), and an \
             administrator says `ALTER ROLE … VALID UNTIL 'infinity'`"
        )),
        fault => fault,
    }
}

/// Refuses a pooler that lends its connections for a transaction: two sessions that are open at the same time are
/// served by one process of the server, or one by several. A server names its process when it greets, a pooler a number
/// of its own; that is asked often, because other clients of a busy pooler have its connections in between.
fn check_pooler(one: &mut PostgresSession, other: &mut PostgresSession) -> Result<(), Fault> {
    const PROCESS: &str = "SELECT pg_backend_pid()";
    const QUESTIONS: usize = 50;
    let (first, second) = (one.value(PROCESS)?, other.value(PROCESS)?);
    let greeted = |session: &PostgresSession, process: &str| {
        session.greeting().process.is_some_and(|greeted| greeted.to_string() == process)
    };
    if first != second && greeted(one, &first) && greeted(other, &second) {
        return Ok(());
    }
    let mut lent = first == second;
    for _ in 0..QUESTIONS {
        // One is asked twice: asked strictly by turns, each session would always get the same of two connections.
        lent = lent || one.value(PROCESS)? != first || one.value(PROCESS)? != first;
        lent = lent || other.value(PROCESS)? != second;
    }
    if !lent {
        return Ok(());
    }
    Err(Fault::Refused(
        "a pooler stands before it that lends one connection to several clients by turns (pgbouncer with `pool_mode` \
         transaction or statement): what switches a protection for a session would reach others, and prepared statements \
         be lost; name the server itself, or a pool with `pool_mode = session`"
            .to_owned(),
    ))
}
