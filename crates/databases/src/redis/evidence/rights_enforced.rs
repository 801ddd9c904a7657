//! Can the measured account do what it needs, and nothing else?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::{
    evidence::rights,
    redis::{connection::RedisConnection, target::of_clients},
};

/// As the measured account: reads a key outside Tithe's names and asks for a setting of the server, which must be
/// refused. Then reads one of Tithe's keys, which must be served. Neither changes anything. Id `rights-enforced`.
pub struct RightsEnforced;

/// Commands that must be refused, each with its name.
const FORBIDDEN: [(&str, &[&str]); 3] = [
    ("a key of someone else", &["GET", "someone:else"]),
    ("a setting of the server", &["CONFIG", "GET", "maxmemory"]),
    ("the list of accounts", &["ACL", "LIST"]),
];

impl Check for RightsEnforced {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("rights-enforced")
    }

    fn claim(&self) -> String {
        "the measured account is refused other keys and commands that manage the server".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut connection = RedisConnection::open(&of_clients(context.server, context.setup)?)?;
        let tried: Vec<_> = FORBIDDEN.iter().map(|(name, command)| (*name, connection.call(command))).collect();
        rights(tried, || connection.call(&["GET", &context.setup.space]).map(drop))
    }
}
