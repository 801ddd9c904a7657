//! Files that only grow, and only by this process.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
};

use tithe_machine::fault::Fault;

/// Why nothing is added to a file, and why its run is not reported.
pub const CHANGED: &str = "another program has removed or changed its file since this run began to write it";

/// A file that lines are added to.
pub struct Growing {
    file: File,
    /// Its length according to this process, bytes.
    pub length: u64,
}

impl Growing {
    /// Adds to `file` from now on.
    ///
    /// # Errors
    /// When its length cannot be read.
    pub fn open(file: File) -> Result<Self, Fault> {
        let seen = file.metadata().map_err(|error| Fault::machine("cannot read a file of the run folder", error))?;
        Ok(Self { file, length: seen.len() })
    }

    /// False if another program has removed or changed the file.
    ///
    /// # Errors
    /// When its length cannot be read.
    pub fn is_ours(&self) -> io::Result<bool> {
        let seen = self.file.metadata()?;
        Ok(seen.nlink() > 0 && seen.len() == self.length)
    }

    /// Adds `bytes` as a whole. If the disk is full, the part that was written is removed, so that the next line is
    /// intact. Nothing is added if another program has removed or changed the file: the rest of the run would be lost.
    ///
    /// # Errors
    /// When the disk refuses, or another program has removed or changed the file. They name `what` was to be added.
    pub fn add(&mut self, bytes: &[u8], what: &str) -> Result<(), Fault> {
        let failed = |error| Fault::machine(format!("cannot write {what}"), error);
        if !self.is_ours().map_err(failed)? {
            return Err(Fault::Machine(format!("cannot write {what}: {CHANGED}")));
        }
        let written = self.file.write_all(bytes);
        // If that fails too, the incomplete line is the last one, and readers leave it out.
        let taken_back = written.is_err() && self.file.set_len(self.length).is_ok();
        if !taken_back {
            self.length = self.file.metadata().map_err(failed)?.len();
        }
        written.map_err(failed)
    }
}
