//! The files that may hold an audit log, and what is added to them.
//!
//! For a server that Tithe launched they are known. An attached server on a Java virtual machine does not report where
//! its audit log is: the configuration of logging decides for text, and `nodetool` for Cassandra's binary queue. So
//! Tithe reads the logs that the server's process has open, and the files next to them, if it runs on this machine. A
//! log that goes to syslog is not among them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::{
        fd::AsFd as _,
        unix::fs::{FileExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use tithe_machine::{fault::Fault, watch::peer};
use tithe_plugin::{
    checks::scan::{Places, files_of},
    evidence::CheckContext,
    wire::Wire,
};

use super::marked::{Gained, NO_LOG, ROTATED};

/// Opens a connection to the server, which leads to its process.
pub type Dial = fn(&CheckContext<'_>) -> Result<Wire, Fault>;

/// Where the logs of one server are.
enum OpenLogs {
    /// Where Tithe had them put.
    Launched,
    /// Where this process has them open; its paths begin here.
    Open(i32, PathBuf),
}

impl OpenLogs {
    fn of(context: &CheckContext<'_>, dial: Dial) -> Result<Self, String> {
        if !context.server.address.is_attached() {
            return Ok(Self::Launched);
        }
        let wire = dial(context).map_err(|fault| fault.to_string())?;
        let programs = context.database.entry().server_programs;
        peer::files_of_server(wire.as_fd(), programs).map(|(process, root)| Self::Open(process, root))
    }

    fn paths(&self, context: &CheckContext<'_>) -> Vec<PathBuf> {
        match self {
            Self::Launched => files_of(context.server, Places::LOGS).into_iter().map(|log| log.path).collect(),
            Self::Open(process, root) => {
                let folders: BTreeSet<PathBuf> = open_logs(*process)
                    .iter()
                    .filter_map(|log| log.parent())
                    .map(|folder| below(root, folder))
                    .collect();
                let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
                entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
            }
        }
    }
}

/// `path`, which is absolute, below `root`.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The logs that `process` has open or mapped, by its own paths.
fn open_logs(process: i32) -> Vec<PathBuf> {
    let opened = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let opened = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
    opened.chain(mapped).filter(|path| is_log(path)).collect()
}

/// True for a text log, and for a part of a binary queue (`.cq4`, and its table of contents `.cq4t`). Cassandra's
/// commit log has the same suffix as a text log.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default();
    ["log", "cq4", "cq4t"].iter().any(|known| ending == *known) && !name.starts_with("CommitLog-")
}

/// The logs from a moment on, by their inode numbers, which a rotation does not change. A binary log is created at its
/// full size and filled from its start: the filled part counts.
pub struct Growth {
    files: OpenLogs,
    filled: BTreeMap<u64, u64>,
}

impl Growth {
    /// Starts with the logs as they are now, or returns why they cannot be read.
    ///
    /// # Errors
    /// When a file that is there cannot be read.
    pub fn begin(context: &CheckContext<'_>, dial: Dial) -> Result<Result<Self, String>, Fault> {
        let files = match OpenLogs::of(context, dial) {
            Ok(files) => files,
            Err(why) => return Ok(Err(why)),
        };
        let mut filled = BTreeMap::new();
        for path in files.paths(context) {
            let (number, length) = measured(&path).map_err(|error| Fault::machine(path.display(), error))?;
            filled.insert(number, length);
        }
        Ok(if filled.is_empty() { Err(NO_LOG.to_owned()) } else { Ok(Self { files, filled }) })
    }

    /// What was added since, and whether some of it may be lost with a removed file.
    ///
    /// # Errors
    /// When a file that is there cannot be read.
    pub fn so_far(&self, context: &CheckContext<'_>) -> Result<Gained, Fault> {
        let (mut text, mut gone) = (String::new(), self.filled.clone());
        let mut is_cut = false;
        for path in self.files.paths(context) {
            let gained = File::open(&path).and_then(|mut file| {
                let known = file.metadata()?;
                let before = gone.remove(&known.ino()).unwrap_or(0);
                is_cut |= known.len() < before;
                filled_from(&mut file, if known.len() < before { 0 } else { before })
            });
            let bytes = gained.map_err(|error| Fault::machine(path.display(), error))?;
            text += &String::from_utf8_lossy(&bytes);
        }
        Ok(Gained { text, doubt: (is_cut || !gone.is_empty()).then_some(ROTATED) })
    }

    /// True if missing records do not prove that none was written.
    pub fn may_miss(&self) -> bool {
        matches!(self.files, OpenLogs::Open(..))
    }
}

/// The `doubt` about the log of a `protected` arm that contains nothing of what was sent (`is_empty`): if the log
/// [`may_miss`](Growth::may_miss) something, the server may write its records `elsewhere`.
pub fn doubted(
    doubt: Option<&'static str>,
    (protected, is_empty, may_miss): (bool, bool, bool),
    elsewhere: &'static str,
) -> Option<&'static str> {
    if protected && is_empty && may_miss { doubt.or(Some(elsewhere)) } else { doubt }
}

/// The number of the file, and how far it is filled.
fn measured(path: &Path) -> io::Result<(u64, u64)> {
    let mut file = File::open(path)?;
    let known = file.metadata()?;
    let mut last = [1];
    if known.len() > 0 {
        file.read_exact_at(&mut last, known.len() - 1)?;
    }
    let length = if last == [0] { filled_from(&mut file, 0)?.len() as u64 } else { known.len() };
    Ok((known.ino(), length))
}

/// The bytes of `file` from `start` on, as far as it is filled.
fn filled_from(file: &mut File, start: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut bytes)?;
    let filled = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_log_is_doubted_where_records_may_be_elsewhere() {
        for number in 0..8_u32 {
            let facts = [1, 2, 4].map(|bit| number & bit != 0).into();
            let expected = (number == 7).then_some("elsewhere");
            assert_eq!(doubted(None, facts, "elsewhere"), expected, "{facts:?}");
            assert_eq!(doubted(Some(ROTATED), facts, "elsewhere"), Some(ROTATED), "{facts:?}");
        }
    }

    #[test]
    fn logs_are_told_from_all_else_that_a_node_has_open() {
        let is_log = |path: &str| is_log(Path::new(path));
        for log in ["/var/log/cassandra/system.log", "/a/audit/20261125-03.cq4", "/a/audit/metadata.cq4t"] {
            assert!(is_log(log), "{log}");
        }
        for other in ["/c/CommitLog-7-1.log", "/d/nb-1-big-Data.db", "/l/a.jar", "socket:[7]", "/var/log"] {
            assert!(!is_log(other), "{other}");
        }
    }

    #[test]
    fn what_a_process_has_open_is_found_and_read_through_its_root() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("of-this-test.log");
        let _open = File::create(&log).expect("a log");
        let own = std::process::id() as i32;
        assert!(open_logs(own).contains(&log), "{:?}", open_logs(own));
        fs::write(&log, b"filled\0\0\0").expect("written");
        let through = below(Path::new("/proc/self/root"), &log);
        assert_eq!(measured(&through).expect("read").1, 6);
        assert_eq!(filled_from(&mut File::open(&through).expect("open"), 4).expect("read"), b"ed");
    }

    #[test]
    fn logs_are_known_by_their_numbers_and_what_may_be_lost_is_told() {
        let mut bench = tithe_plugin::simulated::test_bench::Bench::plain();
        let logs = bench.server.folder.join("logs");
        bench.server.paths.logs = vec![logs.clone()];
        let context = bench.context();
        let begun = || Growth::begin(&context, |_| panic!("it was launched")).expect("readable");
        assert_eq!(begun().err().as_deref(), Some(NO_LOG));
        fs::create_dir(&logs).expect("made");
        let write = |name: &str, bytes: &[u8]| fs::write(logs.join(name), bytes).expect("written");
        let gained = |growth: &Growth| {
            let Gained { text, doubt } = growth.so_far(&context).expect("read");
            (text, doubt.is_some())
        };
        let told = |text: &str, doubted: bool| (text.to_owned(), doubted);
        write("a.log", b"before\n");
        write("b.cq4", b"head\0\0\0\0");
        let growth = begun().expect("logs");
        assert_eq!((gained(&growth), growth.may_miss()), (told("", false), false));
        // A text grows, and a binary log is filled within its size.
        write("a.log", b"before\none\n");
        write("b.cq4", b"headtwo\0");
        assert_eq!(gained(&growth), told("one\ntwo", false));
        // A file that was renamed is the same one, and a new one is read from its beginning.
        fs::rename(logs.join("a.log"), logs.join("a.log.1")).expect("renamed");
        write("a.log", b"three\n");
        assert_eq!(gained(&growth), told("three\none\ntwo", false));
        fs::remove_file(logs.join("a.log.1")).expect("removed");
        assert_eq!(gained(&growth), told("three\ntwo", true), "a file is gone");
        let growth = begun().expect("logs");
        write("a.log", b"new\n");
        assert_eq!(gained(&growth), told("new\n", true), "it was cut short");
    }
}
