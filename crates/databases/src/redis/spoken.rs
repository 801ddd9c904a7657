//! Commands of the user's own, as protections that data describe have them.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Row, Speaker, Statements},
    setup::Setup,
};

use super::{
    connection::{RedisConnection, Reply},
    store::administrator,
    target::of_clients,
};

/// Commands that change nothing although the server does not mark them so, and the second words of others.
const ASKING: [&str; 14] = [
    "ACL", "COMMAND", "DBSIZE", "ECHO", "GET", "GETUSER", "DRYRUN", "INFO", "LIST", "LATENCY", "PING", "ROLE", "TIME",
    "WHOAMI",
];

/// A connection for them. If it is careful, a command that may change something is refused, or queued in a transaction
/// that is discarded.
pub struct Spoken {
    connection: RedisConnection,
    careful: bool,
}

impl Spoken {
    /// Connects as `speaker`.
    ///
    /// # Errors
    /// As [`RedisConnection::open`]; the server's error about the first commands of sessions.
    pub fn open(server: &Server, setup: &Setup, speaker: Speaker) -> Result<Self, Fault> {
        if speaker == Speaker::Administrator {
            return Ok(Self { connection: administrator(server, setup)?, careful: false });
        }
        let mut connection = RedisConnection::open(&of_clients(server, setup)?)?;
        setup.session_statements.iter().try_for_each(|statement| connection.run(statement).map(drop))?;
        Ok(Self { connection, careful: true })
    }

    /// True if `command` is known to the server, and may change something.
    fn may_change(&mut self, command: &str) -> bool {
        let words: Vec<String> = command.split_ascii_whitespace().map(str::to_ascii_uppercase).collect();
        let Some(first) = words.first() else { return false };
        let asks = |word: &String| ASKING.contains(&word.as_str());
        // For `ACL` and `LATENCY` the second word decides.
        let alone = !["ACL", "LATENCY"].contains(&first.as_str());
        if words.get(1).is_some_and(asks) || alone && asks(first) {
            return false;
        }
        let Ok(Reply::Array(known)) = self.connection.call(&["COMMAND", "INFO", first]) else { return true };
        match known.first() {
            Some(Reply::Array(parts)) => !matches!(parts.get(2), Some(Reply::Array(flags))
                if flags.iter().any(|flag| flag.text().as_deref() == Some("readonly"))),
            _ => false,
        }
    }
}

impl Statements for Spoken {
    fn rows(&mut self, command: &str) -> Result<Vec<Row>, Fault> {
        let queued = self.careful && self.may_change(command);
        if queued {
            self.connection.call(&["MULTI"])?;
        }
        let reply = self.connection.run(command);
        if queued {
            self.connection.call(&["DISCARD"])?;
        }
        Ok(match reply? {
            Reply::Array(replies) => replies.into_iter().map(row).collect(),
            Reply::Nothing => Vec::new(),
            reply => vec![row(reply)],
        })
    }
}

/// A reply within an array is a row, and an array in that a row of several values.
fn row(reply: Reply) -> Row {
    match reply {
        Reply::Array(values) => values.iter().map(Reply::text).collect(),
        value => vec![value.text()],
    }
}
