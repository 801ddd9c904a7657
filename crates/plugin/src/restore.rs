//! Data of the user's own: a dump, a schema or a folder of tables, restored into a launched server once.

use std::path::{Path, PathBuf};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Missing},
};
use tithe_model::catalogue::{DatabaseEntry, WireProtocol};

use crate::{program::ProgramContext, session::SqlSession};

/// The place of the data in the folder of the program that restores them.
pub const PLACE: &str = "dump";

/// Restores the user's own data into a server.
pub trait Restore: Send + Sync {
    /// The place of the data.
    fn path(&self) -> &Path;

    /// Why a server of `database` in this `version` cannot take the data: they are from another product, or from a
    /// newer version.
    fn refuses(&self, database: &DatabaseEntry, version: &str) -> Option<String>;

    /// Searches for the program that restores them on servers which speak `protocol`.
    ///
    /// # Errors
    /// Where it searched, and how to install it.
    fn find(&self, protocol: WireProtocol) -> Result<PathBuf, Missing>;

    /// Files that the program needs in its folder, by name; only the servers' account reads them.
    ///
    /// # Errors
    /// Files of the user's own that cannot be read.
    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault>;

    /// Commands that restore the data; run in this order. The program finds them at [`PLACE`] in its folder.
    fn commands(&self, at: &ProgramContext<'_>) -> Vec<Command>;

    /// Restores them through a session of an embedded database.
    ///
    /// # Errors
    /// The first statement that fails.
    fn through(&self, session: &mut dyn SqlSession) -> Result<(), Fault>;

    /// The statement by which clients' sessions select the place of the data; `None` if it is the default.
    fn enter(&self, protocol: WireProtocol) -> Option<String>;
}
