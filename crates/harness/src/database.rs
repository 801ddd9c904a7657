//! A product that Tithe can launch or attach to.
//!
//! `launch` is pure: it returns files, commands and arguments as data, so that what a protection changes is
//! a diff for the report and a golden file for the tests, and needs no server. Only the sandbox acts on it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_model::{experiment::Url, record::ArmFacts};

use crate::{
    clock::Clock,
    fault::Fault,
    inspect::{FindCanaryChecks, Observation},
    protection::{Protection, Setup, TlsVersion},
    rotation::Rotator,
    secret::Secret,
    session::Session,
    sql::SqlDatabase,
    watch::process::TreeUsage,
    workload::Table,
};

/// A product that Tithe can launch or attach to. One folder in `crates/databases`, one line in its list.
pub trait Database: Sync {
    /// Name in experiment files.
    fn id(&self) -> &'static str;

    /// Name in reports.
    fn title(&self) -> &'static str;

    /// True when it runs inside Tithe's own process.
    fn embedded(&self) -> bool {
        false
    }

    /// True when it runs on invented time and is no real database: the simulated one, for tests.
    fn simulated(&self) -> bool {
        false
    }

    /// URL schemes by which a running server is attached.
    fn schemes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Looks whether `url` can be used at all, without connecting.
    ///
    /// # Errors
    /// What is wrong with it; the text never quotes the URL.
    fn check_url(&self, _url: &Url) -> Result<(), Fault> {
        Ok(())
    }

    /// True when a server that is stopped and started again has its data: then it is started anew for every frame of a
    /// workload that only reads. An embedded database that says so has a cache that its sessions share, and is closed and
    /// opened again; of one that does not, every session has a cache of its own, and every frame opens new sessions.
    fn restarts(&self) -> bool {
        false
    }

    /// True when a server that is stopped and started again has its data, however long that takes: then its caches can be
    /// emptied.
    fn keeps_data(&self) -> bool {
        self.restarts()
    }

    /// The least memory that a server with `settings` lives in, bytes; `None` where that is not known.
    fn memory_needed(&self, _settings: &BTreeMap<String, String>) -> Option<u64> {
        None
    }

    /// Pages that the server has looked for in its own cache so far, and those of them that it did not find there; `None`
    /// where it does not say.
    fn cache_use(&self, _server: &Server, _setup: &Setup) -> Option<CacheUse> {
        None
    }

    /// Settings that Tithe sets itself, with the reason.
    fn reserved_settings(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Settings that an experiment may set, with a sentence each; empty where the server itself refuses unknown names.
    fn known_settings(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Looks whether the settings of an experiment fit together.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check_settings(&self, _settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        Ok(())
    }

    /// Its protections, in the order of `tithe ls`.
    fn protections(&self) -> &'static [&'static dyn Protection];

    /// Looks for an installation on this machine.
    ///
    /// # Errors
    /// Where it looked, and how to install it.
    fn find(&self, search: &Search) -> Result<Install, Missing>;

    /// What [`Database::get`] downloads, as it is told before: from where, how much, under which licence.
    fn download(&self) -> Option<&'static str> {
        None
    }

    /// Downloads its programs for this user where no package of the system brings them; `None` is the version that Tithe
    /// was tested with. Returns the folder that they are in.
    ///
    /// # Errors
    /// When nothing is downloaded for this database, or a program that it takes is missing or fails.
    fn get(&self, _version: Option<&str>) -> Result<PathBuf, Fault> {
        Err(Fault::Refused(format!("{} is installed by the packages of your system", self.title())))
    }

    /// Everything that starts one server of this arm in `place`. Pure.
    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch;

    /// What a server of this arm leaves when it is stopped cleanly, if another one can be started on a copy of it; `None`
    /// where data are loaded for every start. Pure.
    fn stored(&self, _setup: &Setup) -> Option<Stored> {
        None
    }

    /// Opens one connection, refusing to fall back: TLS asked for and not obtained is an error, and so is TLS
    /// obtained and not asked for.
    ///
    /// # Errors
    /// The refusal or the broken connection.
    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault>;

    /// Creates `table` in a schema of Tithe's own name.
    ///
    /// # Errors
    /// When something is there that Tithe did not make, or the server refuses.
    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Removes what `create` made, on a server that Tithe does not stop. Launched servers are thrown away whole.
    ///
    /// # Errors
    /// When the server refuses.
    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Brings everything written so far to where it ends up, and leaves no trace of what was deleted: vacuum, flush,
    /// checkpoint. Called on every arm before evidence looks at files and again before the first frame of an epoch.
    ///
    /// # Errors
    /// When the server refuses.
    fn settle(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Has a server that Tithe did not launch write all of `table`, which is Tithe's own, to its files: [`Database::settle`]
    /// leaves it to such a server's owner when pages are written. A launched server needs no more than settling.
    ///
    /// # Errors
    /// When the server refuses, with the rights that are missing.
    fn write_out(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
        Ok(())
    }

    /// Exact version, cipher, libraries: what the figure depends on, as the server says it.
    ///
    /// # Errors
    /// When the server refuses.
    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault>;

    /// Looks at the ten features of the security matrix on a running server, without changing anything there.
    ///
    /// # Errors
    /// When the server cannot be reached; what could not be seen on one that can is an observation.
    fn inspect(&self, _server: &Server, _setup: &Setup) -> Result<Vec<Observation>, Fault> {
        Err(Fault::Refused(format!("{} has no running server that could be inspected", self.title())))
    }

    /// How it is found out what canaries can show on a running server; `None` for a product where Tithe does not know where
    /// to look.
    fn canary_checks(&self) -> Option<FindCanaryChecks> {
        None
    }

    /// What workloads on SQL tables need; `None` for a database without them.
    fn sql(&self) -> Option<&dyn SqlDatabase> {
        None
    }

    /// What encrypts the data of an arm with another key, through a connection of its own, on a server whose data are
    /// loaded. Asked for where the set-up [rotates](Setup::rotates).
    ///
    /// # Errors
    /// [`Fault::Refused`] where this database cannot; the server's error.
    fn rotator(&self, _server: &Server, _setup: &Setup) -> Result<Box<dyn Rotator>, Fault> {
        Err(Fault::Refused(format!("{} does not change its keys while it is measured", self.title())))
    }

    /// The protocol that its servers speak, if other programs may drive them; `None` where no other program reaches it.
    fn wire_protocol(&self) -> Option<WireProtocol> {
        None
    }

    /// How a program that is not Tithe's reaches the server as Tithe's clients do.
    ///
    /// # Errors
    /// [`Fault::Refused`] where no other program can.
    fn reach(&self, _server: &Server, _setup: &Setup) -> Result<Reach, Fault> {
        Err(Fault::Refused(format!("{} is not reached by other programs", self.title())))
    }

    /// Position in the write-ahead log, bytes since an arbitrary start; `None` where it cannot be seen.
    fn wal_position(&self, _server: &Server, _setup: &Setup) -> Option<u64> {
        None
    }

    /// What an embedded database has used so far beside its clients' threads, as far as it can tell; `None` for a server,
    /// whose processes are looked at.
    fn usage(&self, _server: &Server, _setup: &Setup) -> Option<TreeUsage> {
        None
    }

    /// Lets go of an embedded database that stays open between connections. Its folder is removed afterwards.
    fn close(&self, _server: &Server) {}
}

/// A protocol that programs and servers of several products speak. By it programs choose what they drive, never by the
/// name of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProtocol {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's, which MariaDB speaks as well.
    MySql,
    /// Redis's, RESP.
    Redis,
    /// Cassandra's, CQL.
    Cql,
}

impl WireProtocol {
    /// What follows "the protocol of".
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
            Self::Redis => "Redis",
            Self::Cql => "Cassandra",
        }
    }
}

/// How another program reaches a server: where, as whom, and how protected.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Account; empty where the product has a nameless one.
    pub user: String,
    /// Database; empty where there is none.
    pub database: String,
    /// Password: for files and the environment, never for arguments.
    pub password: Option<Secret>,
    /// TLS; `None` means that nothing but plaintext is spoken.
    pub tls: Option<ReachTls>,
}

/// What another program needs for TLS.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachTls {
    /// Authority that signed the server's certificate, PEM.
    pub authority: PathBuf,
    /// The only versions allowed.
    pub versions: Vec<TlsVersion>,
    /// Certificate and key of a client, PEM.
    pub identity: (PathBuf, PathBuf),
    /// The server demands them.
    pub mutual: bool,
}

/// How often a server's own cache of pages has helped since it was started, or since before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheUse {
    /// Pages that were asked for.
    pub asked: u64,
    /// Of those, the ones that were not there and were read from a file.
    pub missed: u64,
}

/// Where to look for an installation.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Folders that the user named, looked at first.
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
    /// Every place that was looked at.
    pub looked_in: Vec<String>,
    /// What to do, one line a system.
    pub how_to_install: Vec<String>,
}

/// The folder, port and account of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Folder of this server alone; everything that it writes is below it.
    pub folder: PathBuf,
    /// A free TCP port on 127.0.0.1.
    pub port: u16,
}

/// Everything that starts one server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// Done in order, before the server: files and one-off commands.
    pub steps: Vec<Step>,
    /// The server; `None` for an embedded database.
    pub server: Option<Command>,
    /// Signal that stops it cleanly.
    pub stop_signal: i32,
    /// Where it answers.
    pub address: Address,
    /// Everything that it writes, by kind.
    pub paths: Paths,
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
    /// Run a command to its end; a status other than 0 is an error with the command's own words.
    Run(Command),
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
    /// Nowhere: the simulated database.
    #[default]
    Nowhere,
}

/// What a server writes, by kind. Files or folders; a folder stands for everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

/// What a cleanly stopped server leaves, as far as another one needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Files and folders that hold all data, relative to [`Place::folder`]; those that are not there are not needed.
    pub paths: Vec<String>,
    /// Everything of the set-up that decides how rows are stored there and who may ask for them, but for keys and for what
    /// clients encrypt. Where in doubt a setting belongs to it: servers for which it is the same are started on copies of
    /// each other's data.
    pub alike: Vec<String>,
}

/// A running server of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Where it answers.
    pub address: Address,
    /// Its main process; `None` when it is attached or embedded.
    pub process: Option<i32>,
    /// What it writes; empty when it is attached.
    pub paths: Paths,
    /// Where the evidence may leave files of its own.
    pub folder: PathBuf,
}

/// How to open a connection.
#[derive(Debug, Clone)]
pub struct Connect {
    /// True: reads wait in the kernel, `advance` never says pending. False: for `epoll`.
    pub blocking: bool,
    /// Number of the lane that will drive the connection.
    pub lane: usize,
    /// The lane's clock.
    pub clock: Clock,
    /// The table that the session will be used with.
    pub table: Table,
}
