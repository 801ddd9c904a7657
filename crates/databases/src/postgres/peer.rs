//! Whether a server that did not ask for a password asked the kernel which user connects.
//!
//! The protocol looks the same to clients for `peer` and for `trust`. From version 16 on the server reports it
//! (`SYSTEM_USER`). For older servers, the first rule that matches a connection decides (documentation, "The
//! pg_hba.conf File"), if the account may see the rules.

use tithe_machine::fault::Fault;

use super::{session::PostgresSession, startup::NO_PASSWORD};
use crate::target::{SOCKET_PEER, Target};

/// From version 16 on: the method, and the user name that it established.
const SYSTEM_USER: &str = "SELECT coalesce(system_user, 'trust')";

/// The method of the first rule for this connection by a Unix socket.
const RULE: &str = "SELECT auth_method FROM pg_hba_file_rules WHERE type = 'local' AND error IS NULL \
    AND (database && ARRAY['all', current_database()::text] \
         OR 'sameuser' = ANY (database) AND session_user::text = current_database()::text \
         OR database && ARRAY['samerole', 'samegroup'] AND EXISTS (SELECT FROM pg_roles \
            WHERE rolname = current_database() AND pg_has_role(session_user, oid, 'MEMBER'))) \
    AND EXISTS (SELECT FROM unnest(user_name) AS name WHERE name IN ('all', session_user::text) \
         OR EXISTS (SELECT FROM pg_roles WHERE '+' || rolname = name AND pg_has_role(session_user, oid, 'MEMBER'))) \
    ORDER BY line_number LIMIT 1";

/// How the client of `session` at `target` authenticated: the method of the start-up, or [`SOCKET_PEER`].
///
/// # Errors
/// The reason if it is unknown whether the kernel was asked.
pub fn method(session: &mut PostgresSession, target: &Target) -> Result<String, Fault> {
    let method = session.greeting().method.clone();
    if method != NO_PASSWORD || !target.is_socket() {
        return Ok(method);
    }
    let newer = session.value("SHOW server_version_num")?.parse::<u32>().is_ok_and(|number| number >= 160_000);
    let said = session.value(if newer { SYSTEM_USER } else { RULE })?;
    Ok(if said.split(':').next() == Some("peer") { SOCKET_PEER.to_owned() } else { method })
}
