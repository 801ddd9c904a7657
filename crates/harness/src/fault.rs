//! What can go wrong between Tithe and a database.

/// A failed conversation with a database or its machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The connection could not be made, or broke.
    #[error("connection: {0}")]
    Connection(String),
    /// The server is there and refused: authentication, plaintext where TLS is required, rights.
    #[error("refused: {0}")]
    Refused(String),
    /// The server answered with an error.
    #[error("server: {0}")]
    Server(String),
    /// The server answered something that is not true: a missing row, another value.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// The server speaks something that this client does not understand.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The machine did not do it: file, process, memory.
    #[error("{0}")]
    Machine(String),
}

impl Fault {
    /// A file or process operation that failed, with what was attempted.
    pub fn machine(attempt: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self::Machine(format!("{attempt}: {error}"))
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}
