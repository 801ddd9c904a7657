//! How a server is started, and where it then is, as plain data.
//!
//! A database describes what to do ([`Launch`]); the sandbox does it. Nothing here has side effects.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use tithe_model::experiment::Url;

use crate::{credentials::ServerIdentity, paths::Paths, remote::RemoteServer, secret::Secret};

/// Where to search for an installation.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Folders that the user named, checked first.
    pub folders: Vec<PathBuf>,
}

/// An installation that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Install {
    /// Folder of the programs; empty for an embedded database.
    pub programs: PathBuf,
    /// Version as the program reports it.
    pub version: String,
    /// Further facts that launching needs (folder of extensions, …).
    pub facts: BTreeMap<String, String>,
}

/// Something that this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, as a noun: `PostgreSQL 13 or newer`.
    pub what: String,
    /// Every place that was checked.
    pub looked_in: Vec<String>,
    /// How to install it, one line per system.
    pub how_to_install: Vec<String>,
}

/// The folder, port and account of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Folder of this server only; it writes everything below it.
    pub folder: PathBuf,
    /// The address of this machine that it listens on.
    pub listen: IpAddr,
    /// A free TCP port of that address.
    pub port: u16,
}

impl Place {
    /// In `folder`, at `port` of 127.0.0.1.
    pub fn on_loopback(folder: impl Into<PathBuf>, port: u16) -> Self {
        Self { folder: folder.into(), listen: IpAddr::V4(Ipv4Addr::LOCALHOST), port }
    }

    /// The address of a server in this place.
    pub fn address(&self) -> Address {
        Address::Tcp { host: self.listen.to_string(), port: self.port }
    }
}

/// Everything that starts one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Steps before the server's start, in this order: files and one-off commands.
    pub steps: Vec<Step>,
    /// The server; `None` for an embedded database.
    pub server: Option<Command>,
    /// Signal that stops it cleanly.
    pub stop_signal: Signal,
    /// The fastest signal to end it, when its data are about to be replaced; unwritten data of the server are lost.
    pub discard_signal: Signal,
    /// The server's address.
    pub address: Address,
    /// All files that it writes, by kind.
    pub paths: Paths,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            server: None,
            stop_signal: Signal::TERM,
            discard_signal: Signal::KILL,
            address: Address::default(),
            paths: Paths::default(),
        }
    }
}

/// One thing to do before a server is started.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Write a file.
    Write {
        /// Where.
        path: PathBuf,
        /// Its content. A secret is written like any other, and shown as `***` in the configuration.
        content: Content,
        /// Permissions, octal.
        mode: u32,
    },
    /// Copy a file of the user's own, for its owner to read and run.
    Copy {
        /// Where.
        path: PathBuf,
        /// The file.
        from: PathBuf,
    },
    /// Append to a file that a command made.
    Append {
        /// Where.
        path: PathBuf,
        /// What.
        content: String,
    },
    /// Make a folder, mode 0700.
    Folder(PathBuf),
    /// Make a symbolic link, for a program that reads files next to itself: they are then in a folder of Tithe's.
    Link {
        /// Where.
        path: PathBuf,
        /// Its target.
        to: PathBuf,
    },
    /// Make a key and have the run's authority sign its certificates, unless they exist.
    Identity {
        /// The kind of key and chain.
        identity: ServerIdentity,
        /// The certificates, PEM, the server's own first.
        certificate: PathBuf,
        /// The key, PEM, mode 0600.
        key: PathBuf,
    },
    /// Run a command to its end; a status other than 0 is an error with the command's own words.
    Run(Command),
    /// Like [`Step::Run`], for the command that makes the data: skipped if the data are a copy.
    MakeData(Command),
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Shown in the configuration.
    Text(String),
    /// Never shown.
    Secret(Secret),
}

/// A program with its arguments. Arguments hold no secret: everyone on the machine can read them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, in addition to a minimal one.
    pub environment: BTreeMap<String, String>,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Address {
    /// A TCP port.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A file: an embedded database.
    File(PathBuf),
    /// A server that was running before: attached.
    Attached(Url),
    /// The same through a relay of Tithe's own on this machine, for evidence. Certificates are checked against the
    /// server's own name.
    Relayed {
        /// The server.
        url: Url,
        /// The relay's port on 127.0.0.1.
        port: u16,
    },
    /// Nowhere: the simulated database.
    #[default]
    Nowhere,
}

impl Address {
    /// True for a server that was running before.
    pub fn is_attached(&self) -> bool {
        matches!(self, Self::Attached(_) | Self::Relayed { .. })
    }
}

/// The part of a cleanly stopped server's data that another server needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Files and folders that hold all data, relative to [`Place::folder`]; missing ones are not needed.
    pub paths: Vec<String>,
    /// All settings that decide how rows are stored there and who may read them, except for keys and client-side
    /// encryption. If in doubt, include a setting: servers with equal settings are started on copies of each other's
    /// data.
    pub storage_settings: Vec<String>,
}

/// A running server of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its address.
    pub address: Address,
    /// Its main process; `None` if it is embedded, or attached and not visible on this machine.
    pub process: Option<i32>,
    /// Files that it writes on this machine; empty if it is attached.
    pub paths: Paths,
    /// The server on another machine, if it is attached and an observer runs there.
    pub remote: Option<RemoteServer>,
    /// Folder for files of the evidence.
    pub folder: PathBuf,
}

impl Server {
    /// The server at `address`, about which nothing else is known.
    pub fn at(address: Address) -> Self {
        Self { address, process: None, paths: Paths::default(), remote: None, folder: PathBuf::new() }
    }

    /// The server of `launch` in `folder`, without a process: an embedded database.
    pub fn embedded(launch: &Launch, folder: &Path) -> Self {
        let paths = launch.paths.clone();
        Self { paths, folder: folder.to_owned(), ..Self::at(launch.address.clone()) }
    }
}
