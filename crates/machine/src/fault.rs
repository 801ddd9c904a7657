//! Errors between Tithe and a database: one kind for each conclusion that a check can draw. Errors in experiment files
//! are diagnostics, not faults.

use std::fmt;

/// A failed conversation with a database or its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The connection could not be made, or broke.
    Connection(String),
    /// The server is there and refused: authentication, plaintext where TLS is required, rights.
    Refused(String),
    /// The server answered with an error.
    Server(String),
    /// The server answered something wrong: a missing row, another value.
    Wrong(String),
    /// The server's answer does not follow the protocol that this client knows.
    Protocol(String),
    /// The machine failed: file, process, memory.
    Machine(String),
}

/// Maximum length of a server's text that is kept, characters.
const LONGEST: usize = 400;

/// A server's text, made safe for a terminal and a report: no control characters, limited length.
pub fn said(text: &[u8]) -> String {
    // A character has at most four bytes.
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
    text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).take(LONGEST).collect()
}

impl Fault {
    /// A file or process operation that failed, with what was attempted.
    pub fn machine(attempt: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::Machine(format!("{attempt}: {error}"))
    }

    /// The fault with `what` in front: an arm, a statement.
    #[must_use]
    pub fn of(self, what: impl fmt::Display) -> Self {
        let said = |words: String| format!("{what}: {words}");
        match self {
            Self::Connection(words) => Self::Connection(said(words)),
            Self::Refused(words) => Self::Refused(said(words)),
            Self::Server(words) => Self::Server(said(words)),
            Self::Wrong(words) => Self::Wrong(said(words)),
            Self::Protocol(words) => Self::Protocol(said(words)),
            Self::Machine(words) => Self::Machine(said(words)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(words) => write!(formatter, "connection: {words}"),
            Self::Refused(words) => write!(formatter, "refused: {words}"),
            Self::Server(words) => write!(formatter, "server: {words}"),
            Self::Wrong(words) => write!(formatter, "wrong answer: {words}"),
            Self::Protocol(words) => write!(formatter, "protocol: {words}"),
            Self::Machine(words) => formatter.write_str(words),
        }
    }
}

impl std::error::Error for Fault {}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_steers_no_terminal_and_fills_no_memory() {
        assert_eq!(said(b"a\x1b[2J\xc2\x9bb\r\n\xff"), "a [2J b  \u{fffd}");
        assert_eq!(said(&"é".repeat(10_000_000).into_bytes()), "é".repeat(400));
    }

    #[test]
    fn a_fault_is_told_of_what_it_befell_and_stays_of_its_kind() {
        let kinds = [Fault::Connection, Fault::Refused, Fault::Server, Fault::Wrong, Fault::Protocol, Fault::Machine];
        for kind in kinds {
            assert_eq!(kind("broken".to_owned()).of("arm tls"), kind("arm tls: broken".to_owned()));
        }
    }
}
