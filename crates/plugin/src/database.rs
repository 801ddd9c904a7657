//! A database that Tithe can launch or attach to, but for its protections, which know it.
//!
//! `launch` is pure: it returns files, commands and arguments as data, so that what a protection changes is
//! a diff for the report and a golden file for the tests, and needs no server. Only the sandbox acts on it.

use std::{collections::BTreeMap, path::PathBuf};

use tithe_machine::{
    clock::Clock,
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server, Stored},
    proc::{ServerTask, TreeUsage},
};
use tithe_model::{catalogue::DatabaseEntry, experiment::Url, record::ArmFacts};

use crate::{
    connections::ConnectionList,
    matrix::FeatureStatus,
    own_tables::{Opened, OwnTables},
    recording::{Recording, Sent},
    rotation::Rotator,
    session::{Session, SqlSession, Table},
    setup::{OwnColumn, Reach, Setup},
    sql::Dialect,
};

/// How long a server must leave a connection open that asks nothing, s. Those of an arm are silent while other arms
/// have their slots, slices and warm-ups, and while evidence waits for a log.
pub const IDLE_AT_LEAST_S: u64 = 60;

/// The task that writes a server's log for those that serve clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogWriting {
    /// Each of them by itself, or nobody.
    Each,
    /// This process.
    By(i32),
    /// A process that cannot be seen, or nobody knows.
    Unseen,
}

/// Something that a running server or an account on it lacks, or that cannot be seen from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What it is needed for, in one sentence without a full stop.
    pub why: String,
    /// Statements that an administrator can paste, or what to do in their place.
    pub remedy: Remedy,
    /// What there is not without it.
    pub without: Without,
}

impl std::fmt::Display for Lack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.why, self.remedy)
    }
}

/// What there is not without something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// Nothing can be measured.
    Measurement,
    /// Sessions cannot switch these protections, as they do where arms share a server.
    Switch(&'static [&'static str]),
    /// Arms with these protections are measured, and not proven.
    Proof(&'static [&'static str]),
    /// These figures are left out, and everything else is there.
    Figures(&'static str),
}

impl Without {
    /// The protections that are not had in full without it; `None` where nothing is had.
    pub fn protections(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Measurement => None,
            Self::Switch(some) | Self::Proof(some) => Some(some),
            Self::Figures(_) => Some(&[]),
        }
    }

    /// True where an arm with `protections` misses it.
    pub fn concerns(self, protections: &[&str]) -> bool {
        self.protections().is_none_or(|some| some.iter().any(|id| protections.contains(id)))
    }
}

impl std::fmt::Display for Without {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Measurement => formatter.write_str("without it nothing can be measured"),
            Self::Switch(some) => write!(formatter, "without it no session can switch {}", some.join(" and ")),
            Self::Proof(some) => write!(formatter, "without it {} cannot be proven", some.join(" and ")),
            Self::Figures(some) => write!(formatter, "without it there is no {some}"),
        }
    }
}

/// What helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A statement, without its semicolon.
    Statement(String),
    /// Something that no statement does.
    Words(String),
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Statement(statement) => write!(formatter, "run `{statement}`"),
            Self::Words(words) => formatter.write_str(words),
        }
    }
}

/// Everything that an arm with `protections`, which its sessions switch where it is `switched`, lacks on `server`, each
/// with what to do; nothing where it can be measured.
///
/// # Errors
/// As [`Database::lacks`].
pub fn lacking(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    protections: &[&str],
    switched: bool,
) -> Result<Vec<String>, Fault> {
    let mut lacks = database.lacks(server, setup)?;
    lacks.retain(|lack| lack.without.concerns(protections));
    let stops = |lack: &Lack| match lack.without {
        Without::Measurement => true,
        Without::Switch(_) => switched,
        Without::Proof(_) | Without::Figures(_) => false,
    };
    if !lacks.iter().any(stops) {
        return Ok(Vec::new());
    }
    Ok(lacks.iter().map(Lack::to_string).collect())
}

/// A row of an answer; SQL's NULL is `None`.
pub type Row = Vec<Option<String>>;

/// A connection that says statements of the user's own, in the product's language.
pub trait Statements {
    /// The rows that `statement` brings, as text.
    ///
    /// # Errors
    /// The server's error.
    fn rows(&mut self, statement: &str) -> Result<Vec<Row>, Fault>;
}

/// Who says statements of the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The administrator: may change everything.
    Administrator,
    /// A measured client, which changes nothing and asks for no longer than
    /// [`PATIENCE_S`](tithe_model::catalogue::PATIENCE_S).
    CarefulClient,
}

impl Statements for Box<dyn SqlSession> {
    fn rows(&mut self, statement: &str) -> Result<Vec<Row>, Fault> {
        self.run(statement)
    }
}

/// A database that Tithe can launch or attach to.
pub trait Database: Sync {
    /// What it says of itself.
    fn entry(&self) -> &'static DatabaseEntry;

    /// [`DatabaseEntry::id`].
    fn id(&self) -> &'static str {
        self.entry().id
    }

    /// [`DatabaseEntry::title`].
    fn title(&self) -> &'static str {
        self.entry().title
    }

    /// [`DatabaseEntry::embedded`].
    fn embedded(&self) -> bool {
        self.entry().embedded
    }

    /// [`DatabaseEntry::simulated`].
    fn simulated(&self) -> bool {
        self.entry().simulated
    }

    /// Looks whether `url` can be used by the clients of an arm with this set-up, without connecting.
    ///
    /// # Errors
    /// What is wrong with it; the text never quotes the URL.
    fn check_url(&self, _url: &Url, _setup: &Setup) -> Result<(), Fault> {
        Ok(())
    }

    /// Looks whether servers that Tithe launches can be set up so.
    ///
    /// # Errors
    /// Why not.
    fn check_setup(&self, _setup: &Setup) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether the server at `url` says, as soon as it is connected to, that it is of this product; `None`
    /// where it says nothing, or the product cannot tell.
    fn is_product_at(&self, _url: &Url) -> Option<bool> {
        None
    }

    /// What there is to say of how clients use `url`: what of it has no effect, by which way they come, and
    /// what they do not check.
    fn remarks(&self, _url: &Url, _setup: &Setup) -> Vec<String> {
        Vec::new()
    }

    /// Host (or path of a socket) and port that clients of an attached server at `url` connect to; `None` where
    /// they are led elsewhere from there, so that no relay can stand between
    /// ([`Address::Relayed`](tithe_machine::launch::Address::Relayed)).
    fn endpoint(&self, _url: &Url) -> Option<(String, u16)> {
        None
    }

    /// Everything that `server`, which Tithe did not start, or the account on it lacks for being measured and for
    /// proof: that it takes writes, serves each connection by itself, leaves one open that waits for its turn
    /// ([`IDLE_AT_LEAST_S`]), and lets the account do what Tithe will do. Each is tried by what it is needed for, and
    /// nothing is changed.
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn lacks(&self, _server: &Server, _setup: &Setup) -> Result<Vec<Lack>, Fault> {
        Ok(Vec::new())
    }

    /// What tells the server and the database that `server` leads to from all others, by whatever URL they are reached;
    /// `None` where the product has no such thing.
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn identity(&self, _server: &Server, _setup: &Setup) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    /// True where one server can have the data of several arms, each in a [space](Setup::space) of its own.
    fn keeps_apart(&self) -> bool {
        false
    }

    /// The least memory that a server with `settings` lives in, bytes; `None` where that is not known.
    fn memory_needed(&self, _settings: &BTreeMap<String, String>) -> Option<u64> {
        None
    }

    /// Pages that the server has looked for in its own cache so far, and those of them that it did not find there;
    /// `None` where it does not say.
    fn cache_use(&self, _server: &Server, _setup: &Setup) -> Option<CacheUse> {
        None
    }

    /// Looks whether the settings of an experiment fit together.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check_settings(&self, _settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        Ok(())
    }

    /// The names of settings of the installed server, of all where it lists them, where it does not know one called
    /// `name`; `None` where it does, or cannot be asked without being started.
    fn in_place_of(&self, _install: &Install, _name: &str) -> Option<Vec<String>> {
        None
    }

    /// Looks for an installation on this machine.
    ///
    /// # Errors
    /// Where it looked, and how to install it.
    fn find(&self, search: &Search) -> Result<Install, Missing>;

    /// All installations on this machine that experiments may name by their versions, what [`Database::find`] prefers
    /// first.
    fn find_all(&self, search: &Search) -> Vec<Install> {
        let downloaded = self.download().map(|download| (download.folders)()).unwrap_or_default();
        let by_name = downloaded.into_iter().map(|folder| Search { folders: vec![folder] });
        let mut all: Vec<Install> = Vec::new();
        for install in std::iter::once(search.clone()).chain(by_name).filter_map(|search| self.find(&search).ok()) {
            if !all.contains(&install) {
                all.push(install);
            }
        }
        all
    }

    /// How its programs are downloaded; `None` where packages of the system bring them.
    fn download(&self) -> Option<Download> {
        None
    }

    /// Everything that starts one server of this arm in `place`. Pure.
    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch;

    /// What a server of this arm leaves when it is stopped cleanly, if another one can be started on a copy of it;
    /// `None` where data are loaded for every start. Pure.
    fn stored(&self, _setup: &Setup) -> Option<Stored> {
        None
    }

    /// Opens one connection, refusing to fall back: TLS asked for and not obtained is an error, and so is TLS
    /// obtained and not asked for.
    ///
    /// # Errors
    /// The refusal or the broken connection.
    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault>;

    /// The writer of the log of the server of which `task` serves a client.
    fn log_writing(&self, _server: &Server, _setup: &Setup, _task: &ServerTask) -> LogWriting {
        LogWriting::Each
    }

    /// Creates `table` in a schema of Tithe's own name.
    ///
    /// # Errors
    /// When something is there that Tithe did not make, or the server refuses.
    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Removes what `create` made, on a server that Tithe does not stop. Launched servers are removed as a whole.
    ///
    /// # Errors
    /// When the server refuses.
    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Brings everything written so far to where it ends up, and leaves no trace of what was deleted: vacuum, flush,
    /// checkpoint. Called on every arm before evidence looks at files and again before the first frame of an epoch.
    ///
    /// # Errors
    /// When the server refuses.
    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Brings what a launched server will leave when it is stopped into the form that a start reads soonest, and the
    /// same whatever the arm; called after [`Database::quiesce`] on a server whose data are to be kept for further
    /// starts.
    ///
    /// # Errors
    /// When the server refuses.
    fn condense(&self, _server: &Server, _setup: &Setup) -> Result<(), Fault> {
        Ok(())
    }

    /// Does at once, on a launched server that has just started and before a workload writes to it, what the first
    /// writes after a start do page by page, so that it writes from then on as it does in the long run.
    ///
    /// # Errors
    /// When the server refuses.
    fn precondition(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
        Ok(())
    }

    /// Has a server that Tithe did not launch write all of `table`, which is Tithe's own, to its files:
    /// [`Database::quiesce`] leaves it to such a server's owner when pages are written. A launched server needs no more
    /// than settling.
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
    fn inspect(&self, _server: &Server, _setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        Err(Fault::Refused(format!("{} has no running server that could be inspected", self.title())))
    }

    /// Which recorders of the server repeat what is `sent` in the clear; `None` where Tithe does not know them.
    ///
    /// # Errors
    /// As [`Database::connect`]; what the server does not say of itself.
    fn recording(&self, _server: &Server, _setup: &Setup, _sent: Sent) -> Result<Option<Recording>, Fault> {
        Ok(None)
    }

    /// Opens what lists the clients of a running server.
    ///
    /// # Errors
    /// [`Fault::Refused`] where the product tells nobody who is connected; as [`Database::connect`].
    fn connection_list(&self, _server: &Server, _setup: &Setup) -> Result<Box<dyn ConnectionList>, Fault> {
        Err(Fault::Refused(format!("Tithe does not know how {} lists its clients", self.title())))
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
        Err(keeps_its_keys(self.title()))
    }

    /// How a program that is not Tithe's reaches the server as Tithe's clients do.
    ///
    /// # Errors
    /// [`Fault::Refused`] where no other program can.
    fn reach(&self, _server: &Server, _setup: &Setup) -> Result<Reach, Fault> {
        Err(Fault::Refused(format!("{} is not reached by other programs", self.title())))
    }

    /// Opens a connection by which `speaker` says statements of the user's own.
    ///
    /// # Errors
    /// [`Fault::Refused`] where this database takes none; as [`Database::connect`].
    fn statements(
        &self,
        server: &Server,
        setup: &Setup,
        how: &Connect,
        speaker: Speaker,
    ) -> Result<Box<dyn Statements>, Fault> {
        let taken = self.sql().zip(self.entry().custom);
        let (sql, asked) = taken.ok_or_else(|| no_statements(self.title()))?;
        let own = (speaker == Speaker::Administrator && !setup.session_statements.is_empty())
            .then(|| Setup { session_statements: Vec::new(), ..setup.clone() });
        let mut session = sql.connect(server, own.as_ref().unwrap_or(setup), how)?;
        if speaker == Speaker::CarefulClient {
            asked.careful.iter().try_for_each(|statement| session.run(statement).map(drop))?;
        }
        Ok(Box::new(session))
    }

    /// True where [`Database::ask`] brings an answer.
    fn answers(&self) -> bool {
        self.sql().is_some()
    }

    /// What the server answers to `question`, in its own language, through a connection of its own as the clients of an
    /// arm with this set-up have it: the last value of the first row, as text. `None` where there is no row.
    ///
    /// # Errors
    /// [`Fault::Refused`] where Tithe puts no question to this database; as [`Database::connect`]; the server's error.
    fn ask(&self, server: &Server, setup: &Setup, question: &str) -> Result<Option<String>, Fault> {
        let Some(sql) = self.sql() else {
            return Err(no_statements(self.title()));
        };
        let table = Table { name: "tithe".to_owned(), fields: 0, field_prefix: "field".to_owned() };
        let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table };
        let mut rows = sql.connect(server, setup, &how)?.run(question)?;
        Ok(if rows.is_empty() { None } else { rows.swap_remove(0).pop().flatten() })
    }

    /// Position in the write-ahead log, bytes since an arbitrary start; `None` where it cannot be seen.
    fn wal_position(&self, _server: &Server, _setup: &Setup) -> Option<u64> {
        None
    }

    /// What an embedded database has used so far beside its clients' threads, as far as it can tell; `None` for a
    /// server, whose processes are checked.
    fn usage(&self, _server: &Server, _setup: &Setup) -> Option<TreeUsage> {
        None
    }

    /// Lets go of an embedded database that stays open between connections. Afterwards its folder is removed, or it is
    /// opened again, in another process.
    fn close(&self, _server: &Server) {}
}

/// The refusal of a database, called `title` in reports, that takes no statements of the user's own.
fn no_statements(title: &str) -> Fault {
    Fault::Refused(format!("Tithe puts no question of yours to {title}"))
}

/// The refusal of a database, called `title` in reports, that cannot do what [`Database::rotator`] is asked for.
pub fn keeps_its_keys(title: &str) -> Fault {
    Fault::Refused(format!("{title} does not change its keys while it is measured"))
}

/// How the programs of a database are downloaded for this user.
#[derive(Debug, Clone, Copy)]
pub struct Download {
    /// What is downloaded, as it is told before: from where, how much, under which licence.
    pub words: &'static str,
    /// Downloads a version, by default the one that Tithe was tested with, and returns the folder that it is in. Fails
    /// for what is no version, and when a program that it takes is missing or fails.
    pub get: fn(version: Option<&str>) -> Result<PathBuf, Fault>,
    /// Folders of what was downloaded before, the newest version first.
    pub folders: fn() -> Vec<PathBuf>,
    /// By what name it is asked for besides the database's, where it is another product that serves as this database.
    pub name: Option<&'static str>,
}

/// How often a server's own cache of pages has helped since it was started, or since before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheUse {
    /// Pages that were asked for.
    pub asked: u64,
    /// Of those, the ones that were not there and were read from a file.
    pub missed: u64,
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

/// What a database with SQL workloads offers beside [`Database`].
pub trait SqlDatabase: Sync {
    /// How it writes SQL.
    fn dialect(&self) -> &'static Dialect;

    /// Opens a session whose statements name tables without a schema.
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Box<dyn SqlSession>, Fault>;

    /// Makes a table called `name` by the statement `definition` where Tithe keeps its tables, in place of one that
    /// Tithe left there, and its indexes by `indexes`.
    ///
    /// # Errors
    /// When something is there that Tithe did not make, or the server refuses.
    fn create(
        &self,
        server: &Server,
        setup: &Setup,
        name: &str,
        definition: &str,
        indexes: &[String],
    ) -> Result<(), Fault>;

    /// Removes the tables `names`, on a server that Tithe does not stop.
    ///
    /// # Errors
    /// When the server refuses.
    fn remove(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault>;

    /// Brings the tables `names` to where they end up, as [`Database::quiesce`].
    ///
    /// # Errors
    /// When the server refuses.
    fn quiesce(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault>;

    /// What it does with tables of the user's own on a server that Tithe did not start; `None` where nothing.
    fn own_tables(&self) -> Option<&dyn OwnTables> {
        None
    }

    /// Has the user's own `table` take ciphertext for `columns`, which are read and encrypted by clients then: texts
    /// and numbers as UTF-8.
    ///
    /// # Errors
    /// [`Fault::Refused`] with what of the table cannot go on with bytes that only clients read; the server's error.
    fn open_columns(
        &self,
        _session: &mut dyn SqlSession,
        _table: &str,
        _columns: &[&OwnColumn],
    ) -> Result<Opened, Fault> {
        Err(Fault::Refused("Tithe does not do that on this product".to_owned()))
    }

    /// Does for the tables `names` what [`Database::precondition`] does.
    ///
    /// # Errors
    /// When the server refuses.
    fn precondition(&self, _server: &Server, _setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        Ok(())
    }
}

/// What `database` offers for workloads on SQL tables.
///
/// # Errors
/// [`Fault::Refused`] when it offers nothing.
pub fn sql_of(database: &dyn Database) -> Result<&dyn SqlDatabase, Fault> {
    database.sql().ok_or_else(|| Fault::Refused(format!("{} runs no workload on SQL tables", database.title())))
}
