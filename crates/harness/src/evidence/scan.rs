//! Looks for needles in files.

/// Which of the server's files a check looks into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Tables and indexes.
    pub data: bool,
    /// Write-ahead log, redo log, journal.
    pub journal: bool,
    /// Server and audit logs.
    pub logs: bool,
}

impl Places {
    /// Tables and indexes only.
    pub const DATA: Self = Self {
        data: true,
        journal: false,
        logs: false,
    };
    /// Journal only.
    pub const JOURNAL: Self = Self {
        data: false,
        journal: true,
        logs: false,
    };
    /// Tables, indexes and journal: what encryption at rest is expected to cover.
    pub const FILES: Self = Self {
        data: true,
        journal: true,
        logs: false,
    };
    /// Every file of the server.
    pub const ALL: Self = Self {
        data: true,
        journal: true,
        logs: true,
    };
}
