//! What a server keeps of its clients' data: queried by a database, and judged by a check.

/// Client data that a protection hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Values of records and of statements.
    Values,
    /// Passwords that statements set.
    Passwords,
}

/// The recorders in a server's settings: statement logs, slow logs and similar ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// Recorders that write it in the clear, each with its setting.
    pub repeats: Vec<String>,
    /// Recorders that were not judged, each with the reason.
    pub doubts: Vec<String>,
}
