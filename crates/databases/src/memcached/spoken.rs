//! Commands of the user's own, as protections that data describe have them.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Row, Speaker, Statements},
    setup::Setup,
};

use super::{connection::MemcachedConnection, store::open};

/// Commands that change nothing, with the second word for commands that can also change something.
const ASKING: [(&str, &[&str]); 8] = [
    ("get", &[]),
    ("gets", &[]),
    ("lru_crawler", &["metadump", "mgdump"]),
    ("me", &[]),
    ("mn", &[]),
    ("stats", &["", "conns", "extstore", "items", "settings", "sizes", "slabs"]),
    ("version", &[]),
    ("watch", &[]),
];

/// A connection for them. If it is careful, it sends no command that may change something: there are no transactions.
pub struct Spoken {
    connection: MemcachedConnection,
    careful: bool,
}

impl Spoken {
    /// Connects as `speaker`.
    ///
    /// # Errors
    /// As [`MemcachedConnection::open`]; the server's error about the first commands of sessions.
    pub fn open(server: &Server, setup: &Setup, speaker: Speaker) -> Result<Self, Fault> {
        let mut connection = open(server, setup)?;
        let careful = speaker == Speaker::CarefulClient;
        if careful {
            setup.session_statements.iter().try_for_each(|statement| connection.line(statement).map(drop))?;
        }
        Ok(Self { connection, careful })
    }
}

/// True if `command` changes nothing.
fn asks(command: &str) -> bool {
    let mut words = command.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    ASKING.iter().any(|(name, parts)| *name == first && (parts.is_empty() || parts.contains(&second)))
}

impl Statements for Spoken {
    fn rows(&mut self, command: &str) -> Result<Vec<Row>, Fault> {
        if self.careful && !asks(command) {
            return Err(Fault::Refused(format!("`{command}` may change something, and a claim changes nothing")));
        }
        self.connection.rows(command)
    }
}

#[cfg(test)]
mod tests {
    use super::asks;

    #[test]
    fn what_may_change_something_does_not_ask() {
        let asking = ["get a", "stats", "stats settings", "watch fetchers", "lru_crawler metadump all"];
        assert!(asking.iter().all(|command| asks(command)));
        let changing = ["flush_all", "stats reset", "stats detail on", "lru_crawler disable", "gat 1 a", "", "GET a"];
        assert!(!changing.iter().any(|command| asks(command)));
    }
}
