//! What starts a server, and where it then is, as plain data.
//!
//! A database says what is to be done ([`Launch`]); the sandbox does it. Nothing here acts.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use rustix::process::Signal;
use tithe_model::experiment::Url;

use crate::{credentials::ServerIdentity, paths::Paths, remote::RemoteServer, secret::Secret};

/// Where to look for an installation.
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
    /// Version as the program says it.
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
    /// What to do, one line a system.
    pub how_to_install: Vec<String>,
}

/// The folder, port and account of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Folder of this server alone; everything that it writes is below it.
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

    /// Where a server in this place answers.
    pub fn address(&self) -> Address {
        Address::Tcp { host: self.listen.to_string(), port: self.port }
    }
}

/// Everything that starts one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Done in order, before the server: files and one-off commands.
    pub steps: Vec<Step>,
    /// The server; `None` for an embedded database.
    pub server: Option<Command>,
    /// Signal that stops it cleanly.
    pub stop_signal: Signal,
    /// Signal that ends it soonest, where its data are about to be replaced; whatever the server would still write is
    /// lost.
    pub discard_signal: Signal,
    /// Where it answers.
    pub address: Address,
    /// Everything that it writes, by kind.
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
        /// What. A secret's file is written like any other, and shown as `***` in the configuration.
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
    /// Add to a file that a command made.
    Append {
        /// Where.
        path: PathBuf,
        /// What.
        content: String,
    },
    /// Make a folder, mode 0700.
    Folder(PathBuf),
    /// Make a symbolic link: what a program reads beside itself then stands in a folder of Tithe's.
    Link {
        /// Where.
        path: PathBuf,
        /// What it leads to.
        to: PathBuf,
    },
    /// Make a key and have the run's authority sign what a server shows, unless it is there.
    Identity {
        /// What it shows.
        identity: ServerIdentity,
        /// The certificates, PEM, the server's own first.
        certificate: PathBuf,
        /// The key, PEM, mode 0600.
        key: PathBuf,
    },
    /// Run a command to its end; a status other than 0 is an error with the command's own words.
    Run(Command),
    /// As [`Step::Run`], for the command that makes the data: left out where the data are a copy.
    MakeData(Command),
}

/// What goes into a file.
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
    /// Its environment, beside a minimal one.
    pub environment: BTreeMap<String, String>,
}

/// Where a server answers.
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
    /// The same through a relay of Tithe's own on this machine, for evidence. Certificates are held to the server's own
    /// name.
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

/// What a cleanly stopped server leaves, as far as another one needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Files and folders that hold all data, relative to [`Place::folder`]; those that are not there are not needed.
    pub paths: Vec<String>,
    /// Everything of the set-up that decides how rows are stored there and who may ask for them, but for keys and for
    /// what clients encrypt. Where in doubt a setting belongs to it: servers for which it is the same are started on
    /// copies of each other's data.
    pub storage_settings: Vec<String>,
}

/// A running server of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Where it answers.
    pub address: Address,
    /// Its main process; `None` when it is embedded, or attached and not seen on this machine.
    pub process: Option<i32>,
    /// What it writes on this machine; empty when it is attached.
    pub paths: Paths,
    /// Where it is, when it is attached and seen by somebody on its own machine, which is another one.
    pub remote: Option<RemoteServer>,
    /// Where the evidence may leave files of its own.
    pub folder: PathBuf,
}
