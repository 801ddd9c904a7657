//! Writes a database out while it is in use: checkpoint and copy.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tithe_machine::fault::Fault;

use super::{engine::Engine, settings::JOURNAL};

impl Engine {
    /// Writes everything that was committed to the tables.
    ///
    /// # Errors
    /// The engine's error.
    pub fn checkpoint(self: &Arc<Self>) -> Result<(), Fault> {
        self.session()?.checkpoint()
    }

    /// Copies the database to the empty folder `to`, as it is at this moment, while it is in use.
    ///
    /// # Errors
    /// The engine's error, or that of the machine.
    pub fn backup(self: &Arc<Self>, from: &Path, to: &Path) -> Result<(), Fault> {
        let mut session = self.session()?;
        let cursor = session.cursor("backup:", "")?;
        let fault = |error| Fault::machine("cannot copy the database", error);
        fs::create_dir_all(to.join(JOURNAL)).map_err(fault)?;
        while session.next(cursor)? {
            let name = session.key_text(cursor)?;
            // The engine names files of the journal without their folder.
            let path =
                if name.starts_with("WiredTigerLog.") { Path::new(JOURNAL).join(&name) } else { PathBuf::from(&name) };
            fs::copy(from.join(&path), to.join(&path)).map_err(fault)?;
        }
        Ok(())
    }
}
