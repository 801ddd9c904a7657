//! What a server keeps of what its clients send: asked of a database, and judged by a check.

/// What clients send that a protection hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Values of records and of statements.
    Values,
    /// Passwords that statements set.
    Passwords,
}

/// What the settings of a server say of its recorders: statement logs, slow logs and the like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// What repeats it in the clear, each with its setting.
    pub repeats: Vec<String>,
    /// What was not judged, each with the reason.
    pub doubts: Vec<String>,
}
