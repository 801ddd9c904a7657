//! Evidence about a file of DuckDB: checks that are only possible with an embedded database.
//!
//! Values are compressed in the file, so that a repeated canary could not be found even on a plain arm. The canaries of
//! all checks are random, each of its own.

pub mod header;
pub mod journal;
pub mod provider;
pub mod temporary;
pub mod wrong_key;

use std::{fs, path::PathBuf};

use tithe_machine::fault::Fault;
use tithe_plugin::evidence::CheckContext;

use super::{journal, path, temporary};

/// A copy of the arm's file with all written data, which a check may open by itself. Removed when dropped.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn of(context: &CheckContext<'_>, check: &str) -> Result<Self, Fault> {
        context.database.quiesce(context.server, context.setup, context.table)?;
        let copy = Self { path: context.server.folder.join(format!("tithe-{check}-{:016x}.duckdb", context.nonce)) };
        let failed = |error| Fault::machine("cannot copy the file", error);
        fs::copy(path(context.server)?, &copy.path).map_err(failed)?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // A missing file need not be removed, and the folder is deleted with the arm anyway.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(journal(&self.path));
        let _ = fs::remove_dir_all(temporary(&self.path));
    }
}
