//! A database that Tithe can launch or attach to, without its protections, which depend on it.
//!
//! `launch` is pure: it returns files, commands and arguments as data. So a protection's changes are a diff for the
//! report and a golden file for the tests, and need no server. Only the sandbox acts on it.

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

/// How long a server must keep an idle connection open, s. Connections of an arm are idle during other arms' slots,
/// slices and warm-ups, and while evidence waits for a log.
pub const IDLE_AT_LEAST_S: u64 = 60;

/// The task that writes a server's log on behalf of those that serve clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogWriting {
    /// Each task itself, or none.
    Each,
    /// This process.
    By(i32),
    /// A process that is not visible, or unknown.
    Unseen,
}

/// Something that a running server or an account on it lacks, or that is not visible from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What it is needed for, in one sentence without a full stop.
    pub why: String,
    /// Statements that an administrator can paste, or another remedy.
    pub remedy: Remedy,
    /// What is impossible without it.
    pub without: Without,
}

impl std::fmt::Display for Lack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.why, self.remedy)
    }
}

/// What is impossible without something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// Nothing can be measured.
    Measurement,
    /// Sessions cannot switch these protections, as arms on a shared server need.
    Switch(&'static [&'static str]),
    /// Arms with these protections are measured, but not proven.
    Proof(&'static [&'static str]),
    /// These figures are left out; everything else is complete.
    Figures(&'static str),
}

impl Without {
    /// The protections that are incomplete without it; `None` if nothing can be measured.
    pub fn protections(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Measurement => None,
            Self::Switch(some) | Self::Proof(some) => Some(some),
            Self::Figures(_) => Some(&[]),
        }
    }

    /// True if an arm with `protections` needs it.
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

/// A remedy.
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

/// Everything that an arm with `protections`, which its sessions switch if `switched`, lacks on `server`, each with a
/// remedy; empty if it can be measured.
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

/// A connection that runs the user's own statements, in the product's language.
pub trait Statements {
    /// The rows that `statement` returns, as text.
    ///
    /// # Errors
    /// The server's error.
    fn rows(&mut self, statement: &str) -> Result<Vec<Row>, Fault>;
}

/// The client that runs the user's own statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The administrator: may change everything.
    Administrator,
    /// A measured client, which changes nothing and whose statements end within
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
    /// Its description.
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

    /// Checks whether the clients of an arm with this set-up can use `url`, without connecting.
    ///
    /// # Errors
    /// The problem; the text never quotes the URL.
    fn check_url(&self, _url: &Url, _setup: &Setup) -> Result<(), Fault> {
        Ok(())
    }

    /// Checks whether servers that Tithe launches can have this set-up.
    ///
    /// # Errors
    /// The reason if not.
    fn check_setup(&self, _setup: &Setup) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether the server at `url` identifies itself on connecting as this product; `None` if it does not identify
    /// itself, or the product cannot decide it.
    fn is_product_at(&self, _url: &Url) -> Option<bool> {
        None
    }

    /// Remarks on how clients use `url`: which parts have no effect, how they connect, and what they do not check.
    fn remarks(&self, _url: &Url, _setup: &Setup) -> Vec<String> {
        Vec::new()
    }

    /// Host (or path of a socket) and port that clients of an attached server at `url` connect to; `None` if they are
    /// redirected from there, so that no relay can be in between
    /// ([`Address::Relayed`](tithe_machine::launch::Address::Relayed)).
    fn endpoint(&self, _url: &Url) -> Option<(String, u16)> {
        None
    }

    /// Everything that `server`, which Tithe did not start, or the account on it lacks for measurement and proof. It
    /// must accept writes, serve each connection separately, keep one open that waits for its turn
    /// ([`IDLE_AT_LEAST_S`]), and grant the account Tithe's operations. Each is tested by the operation that needs it,
    /// and nothing is changed.
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn lacks(&self, _server: &Server, _setup: &Setup) -> Result<Vec<Lack>, Fault> {
        Ok(Vec::new())
    }

    /// An identifier of the server and the database behind `server`, independent of the URL; `None` if the product has
    /// none.
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn identity(&self, _server: &Server, _setup: &Setup) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    /// True if one server can store the data of several arms, each in its own [space](Setup::space).
    fn keeps_apart(&self) -> bool {
        false
    }

    /// The least memory of a server with `settings`, bytes; `None` if that is unknown.
    fn memory_needed(&self, _settings: &BTreeMap<String, String>) -> Option<u64> {
        None
    }

    /// Page requests to the server's own cache so far, and its misses; `None` if it does not report them.
    fn cache_use(&self, _server: &Server, _setup: &Setup) -> Option<CacheUse> {
        None
    }

    /// Checks whether the settings of an experiment are consistent.
    ///
    /// # Errors
    /// The problem.
    fn check_settings(&self, _settings: &BTreeMap<String, String>) -> Result<(), Fault> {
        Ok(())
    }

    /// The names of the installed server's settings if it does not know one called `name`, all of them if it can list
    /// them; `None` if it does, or cannot be queried without a start.
    fn in_place_of(&self, _install: &Install, _name: &str) -> Option<Vec<String>> {
        None
    }

    /// Searches for an installation on this machine.
    ///
    /// # Errors
    /// Where it searched, and how to install it.
    fn find(&self, search: &Search) -> Result<Install, Missing>;

    /// All installations on this machine that experiments may select by version, the one that [`Database::find`]
    /// prefers first.
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

    /// How to download its programs; `None` if packages of the system provide them.
    fn download(&self) -> Option<Download> {
        None
    }

    /// Everything that starts one server of this arm in `place`. Pure.
    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch;

    /// The files that a cleanly stopped server of this arm leaves, if another one can start on a copy of them; `None`
    /// if data are loaded for every start. Pure.
    fn stored(&self, _setup: &Setup) -> Option<Stored> {
        None
    }

    /// Opens one connection without fallback: TLS that is requested but not obtained is an error, and so is TLS
    /// obtained without request.
    ///
    /// # Errors
    /// The refusal or the broken connection.
    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault>;

    /// The writer of the log of the server; `task` serves one of its clients.
    fn log_writing(&self, _server: &Server, _setup: &Setup, _task: &ServerTask) -> LogWriting {
        LogWriting::Each
    }

    /// Creates `table` in a schema with Tithe's name.
    ///
    /// # Errors
    /// If something exists there that Tithe did not make, or the server refuses.
    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Removes what `create` made, on a server that Tithe does not stop. Launched servers are removed as a whole.
    ///
    /// # Errors
    /// If the server refuses.
    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Moves everything written so far to its final place, and leaves no trace of deleted data: vacuum, flush,
    /// checkpoint. Called on every arm before evidence reads files and again before the first frame of an epoch.
    ///
    /// # Errors
    /// If the server refuses.
    fn quiesce(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault>;

    /// Puts the files that a launched server will leave into the form that a start reads fastest, the same for every
    /// arm. Called after [`Database::quiesce`] on a server whose data are kept for further starts.
    ///
    /// # Errors
    /// If the server refuses.
    fn condense(&self, _server: &Server, _setup: &Setup) -> Result<(), Fault> {
        Ok(())
    }

    /// Does at once, on a launched server that has just started and before a workload writes to it, the work that the
    /// first writes after a start do page by page. From then on it writes as in the long run.
    ///
    /// # Errors
    /// If the server refuses.
    fn precondition(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
        Ok(())
    }

    /// Makes a server that Tithe did not launch write all of `table`, which is Tithe's own, to its files:
    /// [`Database::quiesce`] leaves the time of such writes to the server's owner. On a launched server, settling is
    /// enough.
    ///
    /// # Errors
    /// If the server refuses, with the missing privileges.
    fn write_out(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
        Ok(())
    }

    /// Exact version, cipher, libraries: what the figure depends on, as the server reports it.
    ///
    /// # Errors
    /// If the server refuses.
    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault>;

    /// Checks the ten features of the security matrix on a running server, without changing anything there.
    ///
    /// # Errors
    /// If the server cannot be reached. A feature that is not visible on a reachable one is an observation.
    fn inspect(&self, _server: &Server, _setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
        Err(Fault::Refused(format!("{} has no running server that could be inspected", self.title())))
    }

    /// Which recorders of the server write `sent` data in the clear; `None` if Tithe does not know them.
    ///
    /// # Errors
    /// As [`Database::connect`]; settings that the server does not report.
    fn recording(&self, _server: &Server, _setup: &Setup, _sent: Sent) -> Result<Option<Recording>, Fault> {
        Ok(None)
    }

    /// Opens a list of the clients of a running server.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the product does not list its clients; as [`Database::connect`].
    fn connection_list(&self, _server: &Server, _setup: &Setup) -> Result<Box<dyn ConnectionList>, Fault> {
        Err(Fault::Refused(format!("Tithe does not know how {} lists its clients", self.title())))
    }

    /// The functions for workloads on SQL tables; `None` for a database without them.
    fn sql(&self) -> Option<&dyn SqlDatabase> {
        None
    }

    /// Re-encrypts the data of an arm with another key, through its own connection, on a server with loaded data. Used
    /// if the set-up [rotates](Setup::rotates).
    ///
    /// # Errors
    /// [`Fault::Refused`] if this database cannot do it; the server's error.
    fn rotator(&self, _server: &Server, _setup: &Setup) -> Result<Box<dyn Rotator>, Fault> {
        Err(keeps_its_keys(self.title()))
    }

    /// How another program reaches the server in the same way as Tithe's clients.
    ///
    /// # Errors
    /// [`Fault::Refused`] if no other program can.
    fn reach(&self, _server: &Server, _setup: &Setup) -> Result<Reach, Fault> {
        Err(Fault::Refused(format!("{} is not reached by other programs", self.title())))
    }

    /// Opens a connection on which `speaker` runs the user's own statements.
    ///
    /// # Errors
    /// [`Fault::Refused`] if this database takes none; as [`Database::connect`].
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

    /// True if [`Database::ask`] returns an answer.
    fn answers(&self) -> bool {
        self.sql().is_some()
    }

    /// The server's answer to `question`, in its own language, through a separate connection with this set-up's client
    /// options: the last value of the first row, as text. `None` if there is no row.
    ///
    /// # Errors
    /// [`Fault::Refused`] if Tithe cannot query this database; as [`Database::connect`]; the server's error.
    fn ask(&self, server: &Server, setup: &Setup, question: &str) -> Result<Option<String>, Fault> {
        let Some(sql) = self.sql() else {
            return Err(no_statements(self.title()));
        };
        let table = Table { name: "tithe".to_owned(), fields: 0, field_prefix: "field".to_owned() };
        let how = Connect::blocking(table);
        let mut rows = sql.connect(server, setup, &how)?.run(question)?;
        Ok(if rows.is_empty() { None } else { rows.swap_remove(0).pop().flatten() })
    }

    /// What must stay as it is while the server is measured: frames at whose end it has changed are invalid. `None` if
    /// there is nothing of the kind, or it is not visible.
    fn condition(&self, _server: &Server, _setup: &Setup) -> Option<Condition> {
        None
    }

    /// False if an attached server no longer has what Tithe made for `table`. A server that came back without its data,
    /// and makes what a write names, would get records that nobody removes.
    ///
    /// # Errors
    /// [`Fault::Refused`] if somebody else's are there; the server's error.
    fn keeps_records(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<bool, Fault> {
        Ok(true)
    }

    /// Position in the write-ahead log, bytes since an arbitrary start; `None` if it is not visible.
    fn wal_position(&self, _server: &Server, _setup: &Setup) -> Option<u64> {
        None
    }

    /// What an embedded database has used so far besides its clients' threads, as far as it reports it; `None` for a
    /// server, whose processes are counted.
    fn usage(&self, _server: &Server, _setup: &Setup) -> Option<TreeUsage> {
        None
    }

    /// Closes an embedded database that stays open between connections. Afterwards its folder is removed, or another
    /// process opens it.
    fn close(&self, _server: &Server) {}
}

/// The refusal of a database, called `title` in reports, that does not run the user's own statements.
fn no_statements(title: &str) -> Fault {
    Fault::Refused(format!("Tithe cannot run statements of yours on {title}"))
}

/// The refusal of a database, called `title` in reports, that does not support [`Database::rotator`].
pub fn keeps_its_keys(title: &str) -> Fault {
    Fault::Refused(format!("{title} does not change its keys while it is measured"))
}

/// How the programs of a database are downloaded for this user.
#[derive(Debug, Clone, Copy)]
pub struct Download {
    /// A description shown before the download: source, size, licence.
    pub words: &'static str,
    /// Downloads a version, by default the one that Tithe was tested with, and returns its folder. Fails for an invalid
    /// version, and if a program that it needs is missing or fails.
    pub get: fn(version: Option<&str>) -> Result<PathBuf, Fault>,
    /// Folders of earlier downloads, the newest version first.
    pub folders: fn() -> Vec<PathBuf>,
    /// Another name for it besides the database's, if another product is used as this database.
    pub name: Option<&'static str>,
}

/// Something that must not change while a server is measured: `evicted items: 0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What it is, with the setting that decides about it.
    pub what: &'static str,
    /// How it is now.
    pub now: String,
}

impl Condition {
    /// Why a frame is invalid at whose end the condition is this one, and was `before`.
    pub fn changed(&self, before: &Self) -> Option<String> {
        (self != before).then(|| format!("{}: {}, and {} before the first frame", self.what, self.now, before.now))
    }
}

/// Uses of a server's own cache of pages since it was started, or since an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheUse {
    /// Requested pages.
    pub asked: u64,
    /// Of those, the misses, which were read from a file.
    pub missed: u64,
}

/// How to open a connection.
#[derive(Debug, Clone)]
pub struct Connect {
    /// True: reads wait in the kernel, `advance` never returns pending. False: for `epoll`.
    pub blocking: bool,
    /// Number of the lane that will drive the connection.
    pub lane: usize,
    /// The lane's clock.
    pub clock: Clock,
    /// The table that the session will be used with.
    pub table: Table,
}

impl Connect {
    /// To `table`, outside of the load: by a session that blocks.
    pub fn blocking(table: Table) -> Self {
        Self { blocking: true, lane: 0, clock: Clock::Real, table }
    }
}

/// The further functions of a database with SQL workloads, besides [`Database`].
pub trait SqlDatabase: Sync {
    /// How it writes SQL.
    fn dialect(&self) -> &'static Dialect;

    /// Opens a session whose statements name tables without a schema.
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Box<dyn SqlSession>, Fault>;

    /// Makes a table called `name` by the statement `definition` where Tithe keeps its tables, and its indexes by
    /// `indexes`; replaces one that Tithe left there.
    ///
    /// # Errors
    /// If something exists there that Tithe did not make, or the server refuses.
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
    /// If the server refuses.
    fn remove(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault>;

    /// Settles the tables `names`, as [`Database::quiesce`].
    ///
    /// # Errors
    /// If the server refuses.
    fn quiesce(&self, server: &Server, setup: &Setup, names: &[&str]) -> Result<(), Fault>;

    /// Functions for the user's own tables on a server that Tithe did not start; `None` if it has none.
    fn own_tables(&self) -> Option<&dyn OwnTables> {
        None
    }

    /// Changes the user's own `table` so that `columns` can store ciphertext, which clients then read and write: texts
    /// and numbers as UTF-8.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the parts of the table that do not work with bytes that only clients can read; the
    /// server's error.
    fn open_columns(
        &self,
        _session: &mut dyn SqlSession,
        _table: &str,
        _columns: &[&OwnColumn],
    ) -> Result<Opened, Fault> {
        Err(Fault::Refused("Tithe does not do that on this product".to_owned()))
    }

    /// As [`Database::precondition`], for the tables `names`.
    ///
    /// # Errors
    /// If the server refuses.
    fn precondition(&self, _server: &Server, _setup: &Setup, _names: &[&str]) -> Result<(), Fault> {
        Ok(())
    }
}

/// The functions of `database` for workloads on SQL tables.
///
/// # Errors
/// [`Fault::Refused`] if it has none.
pub fn sql_of(database: &dyn Database) -> Result<&dyn SqlDatabase, Fault> {
    database.sql().ok_or_else(|| Fault::Refused(format!("{} runs no workload on SQL tables", database.title())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Simulated, sql_bench::SqlInMemory, test_bench::Bench};

    const ALL: [Without; 4] =
        [Without::Measurement, Without::Switch(&["audit"]), Without::Proof(&["seal"]), Without::Figures("latency")];

    /// What stops an arm with `protections` on a server that lacks something for each of `without`.
    fn told(without: &[Without], protections: &[&str], switched: bool) -> Vec<String> {
        let lack = |without: &Without| Lack {
            why: without.to_string(),
            remedy: Remedy::Statement("GRANT a".to_owned()),
            without: *without,
        };
        let bench = Bench::plain();
        let mut database = SqlInMemory::default();
        database.lacks.extend(without.iter().map(lack));
        lacking(&database, &bench.server, &bench.setup, protections, switched).expect("the server tells it")
    }

    #[test]
    fn an_arm_is_stopped_by_what_it_cannot_be_measured_without() {
        let arms: [&[&str]; 4] = [&[], &["audit"], &["seal"], &["audit", "seal"]];
        for protections in arms {
            for switched in [false, true] {
                let stops = ALL.map(|without| !told(&[without], protections, switched).is_empty());
                let switches = switched && protections.contains(&"audit");
                assert_eq!(stops, [true, switches, false, false], "{protections:?}, switched: {switched}");
            }
        }
    }

    #[test]
    fn an_arm_that_is_stopped_is_told_everything_that_concerns_it() {
        let measurement = "without it nothing can be measured: run `GRANT a`";
        let switch = "without it no session can switch audit: run `GRANT a`";
        let proof = "without it seal cannot be proven: run `GRANT a`";
        assert_eq!(told(&ALL, &[], true), [measurement]);
        assert_eq!(told(&ALL, &["audit"], false), [measurement, switch]);
        assert_eq!(told(&ALL[1..], &["audit", "seal"], true), [switch, proof]);
        assert_eq!(told(&ALL[1..], &["audit", "seal"], false), [""; 0]);
        assert_eq!(Without::Figures("latency").to_string(), "without it there is no latency");
        assert_eq!(Remedy::Words("restart it".to_owned()).to_string(), "restart it");
    }

    #[test]
    fn a_condition_that_has_changed_is_told_with_what_it_was() {
        let evicted = |now: &str| Condition { what: "evicted items", now: now.to_owned() };
        assert_eq!(evicted("0").changed(&evicted("0")), None);
        let words = "evicted items: 3, and 0 before the first frame";
        assert_eq!(evicted("3").changed(&evicted("0")).as_deref(), Some(words));
    }

    #[test]
    fn a_database_without_statements_says_so_and_answers_nothing() {
        let bench = Bench::plain();
        let asked = Simulated.ask(&bench.server, &bench.setup, "SELECT 1");
        assert!(
            matches!(&asked, Err(Fault::Refused(why)) if why.starts_with("Tithe cannot run statements of yours")),
            "{asked:?}"
        );
        assert!(!Simulated.answers() && sql_of(&Simulated).is_err());
        let context = bench.context();
        for speaker in [Speaker::Administrator, Speaker::CarefulClient] {
            let session = Simulated.statements(&bench.server, &bench.setup, &context.how(), speaker);
            assert!(matches!(session, Err(Fault::Refused(_))), "{speaker:?}");
        }
    }
}
