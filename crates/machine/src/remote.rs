//! The machine of an attached server where it is another one than this: what somebody who is there sees and says.
//!
//! Who that is and how it is asked is not known here.

use std::{fmt, net::SocketAddr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{fault::Fault, paths::Paths, proc::TreeUsage};

/// Both ends of a connection, as its client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The client's.
    pub client: SocketAddr,
    /// The server's.
    pub server: SocketAddr,
}

/// What a server is known by, beside a connection to it.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Names of its program, as the kernel has them (proc(5), `comm`).
    pub programs: &'a [&'a str],
    /// The process that serves the connection, as the server itself numbers it on its own machine.
    pub serving: Option<i32>,
}

/// Another machine, through somebody who is there. Every question is bounded by a time.
pub trait ServerMachine: fmt::Debug + Send + Sync {
    /// What the observer there is called.
    fn name(&self) -> &str;

    /// The main process of the server that has the other of the `ends` of a connection from here; the reason where it
    /// cannot be seen.
    ///
    /// # Errors
    /// When nobody answers.
    fn server_at(&self, ends: Ends, known: Known<'_>) -> Result<Result<i32, String>, Fault>;

    /// What the server with the main process `process` has used, and what its `paths` hold.
    ///
    /// # Errors
    /// When nobody answers, or it may not be checked.
    fn usage(&self, process: i32, paths: &Paths) -> Result<RemoteUsage, Fault>;

    /// Looks for `needles` in the files of `paths`.
    ///
    /// # Errors
    /// When nobody answers, or they may not be opened.
    fn search(&self, needles: &[(&'static str, &[u8])], paths: &Paths) -> Result<RemoteMatches, Fault>;
}

/// A server on another machine.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    /// Who sees it there.
    pub by: Arc<dyn ServerMachine>,
    /// Its main process, as that machine numbers it.
    pub process: i32,
    /// What it writes, as far as the experiment says; that machine's paths.
    pub paths: Paths,
}

impl PartialEq for RemoteServer {
    fn eq(&self, other: &Self) -> bool {
        (self.by.name(), self.process, &self.paths) == (other.by.name(), other.process, &other.paths)
    }
}

/// What a server on another machine has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteUsage {
    /// The server with all its descendants.
    pub tree: TreeUsage,
    /// Length of its logs, bytes; `None` where no path of one is known.
    pub log_bytes: Option<u64>,
    /// Space that its data take on disk, bytes; `None` where no path is known.
    pub disk_bytes: Option<u64>,
}

/// What was found in files of another machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteMatches {
    /// Files that were read to their end.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Files in which something was found.
    pub found: Vec<RemoteFile>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<String>,
}

/// A file of another machine in which needles were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// Its path.
    pub name: String,
    /// It is one of the data files, and not of a journal or log.
    pub holds_data: bool,
    /// How often any needle was found.
    pub hits: u64,
    /// Which, by their place in what was asked for.
    pub needles: Vec<usize>,
    /// How they were written: `raw`, `hexadecimal`, `base64`.
    pub forms: Vec<String>,
}
