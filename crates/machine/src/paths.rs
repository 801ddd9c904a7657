//! Files that a server writes, by kind, so that a check searches only those that its claim is about. It does not
//! check whether they exist.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Files that a server writes, by kind. Files or folders; a folder stands for everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Paths {
    /// Tables and indexes.
    pub data: Vec<PathBuf>,
    /// Write-ahead log, redo log, journal.
    pub journal: Vec<PathBuf>,
    /// Server and audit logs.
    pub logs: Vec<PathBuf>,
}

impl Paths {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.data.iter().chain(&self.journal).chain(&self.logs).map(PathBuf::as_path)
    }
}
