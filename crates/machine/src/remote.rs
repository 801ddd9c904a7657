//! The machine of an attached server, if it is another machine: reports of an observer there.
//!
//! This module does not know who the observer is or how it is asked.

use std::{fmt, net::SocketAddr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{fault::Fault, paths::Paths, proc::TreeUsage};

/// Both ends of a connection, as its client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
}

/// Facts that identify a server, in addition to a connection to it.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Names of its program, as the kernel has them (proc(5), `comm`).
    pub programs: &'a [&'a str],
    /// The process that serves the connection, by the server's own report, numbered on its own machine.
    pub serving: Option<i32>,
}

/// Another machine, through an observer there. Every question has a time limit.
pub trait ServerMachine: fmt::Debug + Send + Sync {
    /// Name of the observer.
    fn name(&self) -> &str;

    /// The main process of the server at the other of the `ends` of a connection from here; the reason if it cannot be
    /// seen.
    ///
    /// # Errors
    /// When the observer does not answer.
    fn server_at(&self, ends: Ends, known: Known<'_>) -> Result<Result<i32, String>, Fault>;

    /// Usage of the server with the main process `process`, and the size of its `paths`.
    ///
    /// # Errors
    /// When the observer does not answer, or access is denied.
    fn usage(&self, process: i32, paths: &Paths) -> Result<RemoteUsage, Fault>;

    /// Searches the files of `paths` for `needles`.
    ///
    /// # Errors
    /// When the observer does not answer, or the files may not be opened.
    fn search(&self, needles: &[(&'static str, &[u8])], paths: &Paths) -> Result<RemoteMatches, Fault>;
}

/// A server on another machine.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    /// The observer there.
    pub by: Arc<dyn ServerMachine>,
    /// Its main process, numbered on that machine.
    pub process: i32,
    /// Files that it writes, as far as the experiment names them; paths on that machine.
    pub paths: Paths,
}

impl PartialEq for RemoteServer {
    fn eq(&self, other: &Self) -> bool {
        (self.by.name(), self.process, &self.paths) == (other.by.name(), other.process, &other.paths)
    }
}

/// Usage of a server on another machine so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteUsage {
    /// The server with all its descendants.
    pub tree: TreeUsage,
    /// Total size of its logs, bytes; `None` if no log's path is known.
    pub log_bytes: Option<u64>,
    /// Size of its data on disk, bytes; `None` if no path is known.
    pub disk_bytes: Option<u64>,
}

/// Search results in files of another machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteMatches {
    /// Number of files that were read completely.
    pub files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Files with matches.
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
    /// Number of matches of all needles.
    pub hits: u64,
    /// The needles found, by index in the request.
    pub needles: Vec<usize>,
    /// Encodings of the matches: `raw`, `hexadecimal`, `base64`.
    pub forms: Vec<String>,
}
