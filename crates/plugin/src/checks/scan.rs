//! Searches for needles in the files of a server.
//!
//! Files may vanish, grow and be sparse while they are read. Holes, where nothing was ever written, read as zeros and
//! are skipped: a journal is often allocated far ahead. Compressed or encrypted copies are not found: that is what
//! positive controls are for.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::{fs::SeekFrom, io::Errno};
use tithe_machine::{
    fault::Fault,
    launch::Server,
    observation::Observation,
    paths::Paths,
    remote::{RemoteFile, RemoteMatches},
};
use tithe_model::quantity;

use crate::checks::needles::{Needles, Tally};

/// Which of the server's files a check searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Tables and indexes.
    pub data: bool,
    /// Write-ahead log, redo log, journal.
    pub journal: bool,
    /// Server and audit logs.
    pub logs: bool,
}

impl Places {
    /// Tables and indexes only.
    pub const DATA: Self = Self { data: true, journal: false, logs: false };
    /// Journal only.
    pub const JOURNAL: Self = Self { data: false, journal: true, logs: false };
    /// Logs only.
    pub const LOGS: Self = Self { data: false, journal: false, logs: true };
    /// Tables, indexes and journal: the expected scope of encryption at rest.
    pub const FILES: Self = Self { data: true, journal: true, logs: false };
    /// Every file of the server.
    pub const ALL: Self = Self { data: true, journal: true, logs: true };

    /// The noun of a claim: `data files and journal`.
    pub fn noun(self) -> String {
        let names = [(self.data, "data files"), (self.journal, "journal"), (self.logs, "logs")];
        let names: Vec<_> = names.into_iter().filter_map(|(chosen, name)| chosen.then_some(name)).collect();
        match names.split_last() {
            None => "no files".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, first)) => format!("{} and {last}", first.join(", ")),
        }
    }

    /// Those of `paths` that are included.
    fn of(self, paths: &Paths) -> Paths {
        let chosen = |is: bool, paths: &[PathBuf]| if is { paths.to_vec() } else { Vec::new() };
        Paths {
            data: chosen(self.data, &paths.data),
            journal: chosen(self.journal, &paths.journal),
            logs: chosen(self.logs, &paths.logs),
        }
    }

    fn has(self, kind: FileKind) -> bool {
        match kind {
            FileKind::Data => self.data,
            FileKind::Journal => self.journal,
            FileKind::Log => self.logs,
        }
    }
}

/// The content of a server's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Tables and indexes.
    Data,
    /// Write-ahead log, redo log, journal.
    Journal,
    /// Server and audit logs.
    Log,
}

/// A file to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Its name in the finding: relative to the server's folder.
    pub name: String,
    /// Its content.
    pub kind: FileKind,
}

/// The files of `server` in `places`, each once, in a stable order. If a file is below several of the server's paths,
/// the deepest path gives its kind: a journal inside the data folder is journal. Links are followed.
pub fn files_of(server: &Server, places: Places) -> Vec<File> {
    files_named_below(&server.paths, &server.folder, places)
}

/// The files of `paths` in the same way, by their full paths.
pub fn files_in(paths: &Paths) -> Vec<File> {
    files_named_below(paths, Path::new(""), Places::ALL)
}

/// The files of `paths` in `places`, with names relative to `base`.
fn files_named_below(paths: &Paths, base: &Path, places: Places) -> Vec<File> {
    let kinds = [(FileKind::Data, &paths.data), (FileKind::Journal, &paths.journal), (FileKind::Log, &paths.logs)];
    let mut roots: Vec<_> =
        kinds.into_iter().flat_map(|(kind, paths)| paths.iter().map(move |path| (kind, path))).collect();
    roots.sort_by_key(|(_, path)| std::cmp::Reverse(path.components().count()));
    let mut walk = Walk::new(base);
    for (kind, root) in roots {
        walk.visit(root, kind);
    }
    walk.files(places)
}

/// Searches for `needles`, with their nouns, in the files of `server` in `places`, on any machine. A report without
/// files if none is visible.
///
/// # Errors
/// If the observer of another machine does not answer.
///
/// # Panics
/// As [`Needles::new`].
pub fn search(server: &Server, places: Places, needles: &[(&'static str, &[u8])]) -> Result<Report, Fault> {
    let Some(remote) = &server.remote else {
        return Ok(scan(&Needles::new(needles.iter().copied()), files_of(server, places)));
    };
    let RemoteMatches { files, bytes, found, unreadable } = remote.by.search(needles, &places.of(&remote.paths))?;
    let in_file = |file: RemoteFile| {
        let kind = if file.holds_data { FileKind::Data } else { FileKind::Log };
        let what = file.needles.iter().filter_map(|number| Some((needles.get(*number)?.0, *number)));
        let tally = Tally::told(file.hits, what, &file.forms);
        (File { path: PathBuf::from(&file.name), name: file.name, kind }, tally)
    };
    Ok(Report { files, bytes, found: found.into_iter().map(in_file).collect(), unreadable })
}

/// True if files of `server` in `places` are visible here, or to an observer on its machine.
pub fn shows(server: &Server, places: Places) -> bool {
    match &server.remote {
        Some(remote) => places.of(&remote.paths) != Paths::default(),
        None => !files_of(server, places).is_empty(),
    }
}

/// The result of a file check if `server` has no visible files.
pub fn unseen(server: &Server) -> Observation {
    let words = "no such file of the server can be seen from here".to_owned();
    if server.address.is_attached() { Observation::OutOfReach(words) } else { Observation::Unknown(words) }
}

/// Every file below `folder`, each once; all are called data.
pub fn files_below(folder: &Path) -> Vec<File> {
    let mut walk = Walk::new(folder);
    walk.visit(folder, FileKind::Data);
    walk.files(Places::DATA)
}

struct Walk<'a> {
    base: &'a Path,
    seen: HashSet<(u64, u64)>,
    files: Vec<File>,
    /// What this user cannot even look at.
    closed: Vec<File>,
}

impl<'a> Walk<'a> {
    fn new(base: &'a Path) -> Self {
        Self { base, seen: HashSet::new(), files: Vec::new(), closed: Vec::new() }
    }

    /// The files in `places`. Beside others, those that are closed are among them, so that the scan complains about
    /// them.
    fn files(self, places: Places) -> Vec<File> {
        let of = |files: Vec<File>| files.into_iter().filter(|file| places.has(file.kind)).collect::<Vec<_>>();
        let (mut files, closed) = (of(self.files), of(self.closed));
        if !files.is_empty() {
            files.extend(closed);
        }
        files
    }

    fn file(&self, path: &Path, kind: FileKind) -> File {
        let name = path.strip_prefix(self.base).unwrap_or(path).display().to_string();
        File { path: path.to_owned(), name, kind }
    }

    /// Adds the file at `path`. A file that vanishes is skipped; a folder that cannot be listed is added as a file, so
    /// that the scan complains about it.
    fn visit(&mut self, path: &Path, kind: FileKind) {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => return,
            Err(_) => {
                self.closed.push(self.file(path, kind));
                return;
            }
        };
        if !self.seen.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        match (metadata.is_dir(), fs::read_dir(path)) {
            (true, Ok(entries)) => {
                let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
                entries.sort();
                entries.iter().for_each(|entry| self.visit(entry, kind));
            }
            (is_folder, _) if is_folder || metadata.is_file() => {
                self.files.push(self.file(path, kind));
            }
            _ => {}
        }
    }
}

/// The result of a scan of files.
#[derive(Debug, Default)]
pub struct Report {
    /// Files that were read to their end.
    pub files: u64,
    /// Bytes that were read: less than the file size if there are holes.
    pub bytes: u64,
    /// The needles found, and in which files.
    pub found: Vec<(File, Tally)>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<String>,
}

/// Searches `files` for `needles`. A file that vanishes meanwhile is empty.
pub fn scan(needles: &Needles, files: Vec<File>) -> Report {
    let mut report = Report::default();
    for file in files {
        match fs::File::open(&file.path).and_then(|open| needles.count_in(&mut Kept::of(open))) {
            Ok((tally, bytes)) => {
                report.files += 1;
                report.bytes += bytes;
                if tally.hits() > 0 {
                    report.found.push((file, tally));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => report.unreadable.push(format!("{}: {error}", file.name)),
        }
    }
    report
}

/// Zeros that replace a hole when it is read, bytes: data on its two sides are not adjacent.
const APART: u64 = 4096;

/// The parts of a file that its file system stores, one after the other.
struct Kept {
    file: fs::File,
    at: u64,
    /// The end of the part that contains `at`.
    end: u64,
}

impl Kept {
    fn of(file: fs::File) -> Self {
        Self { file, at: 0, end: 0 }
    }

    /// Goes to the next part; false if there is none.
    fn next(&mut self) -> io::Result<bool> {
        let Some(start) = self.seek(SeekFrom::Data(self.at), self.at)? else { return Ok(false) };
        self.at = self.at.max(start.saturating_sub(APART));
        self.end = self.seek(SeekFrom::Hole(start), u64::MAX)?.unwrap_or(start);
        Ok(true)
    }

    /// The first data or hole from `from` on; `otherwise` if the file system cannot report it; `None` after the end.
    fn seek(&self, from: SeekFrom, otherwise: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.file, from) {
            Ok(place) => Ok(Some(place)),
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL) => Ok(Some(otherwise)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.end && !self.next()? {
            return Ok(0);
        }
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        let read = self.file.read_at(&mut buffer[..length], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Report {
    /// Everything found, over all files.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for (_, tally) in &self.found {
            total.merge(tally);
        }
        total
    }

    /// True when something was found in a file of this kind.
    pub fn found_in(&self, kind: FileKind) -> bool {
        self.found.iter().any(|(file, _)| file.kind == kind)
    }

    /// `12 canaries found 44 times, in base/5/16389 (40), pg_wal/01 (4)`: at most four files by name.
    pub fn describe_found(&self) -> String {
        const NAMED: usize = 4;
        let mut names: Vec<_> =
            self.found.iter().take(NAMED).map(|(file, tally)| format!("{} ({})", file.name, tally.hits())).collect();
        if self.found.len() > NAMED {
            names.push(format!("{} further files", self.found.len() - NAMED));
        }
        format!("{}, in {}", self.total().describe(), names.join(", "))
    }

    /// Data that were found are exposed; if there are none, a file that could not be read leaves it open, and else they
    /// are protected: `none` in words.
    pub fn observation(&self, none: String) -> Observation {
        if self.total().hits() > 0 {
            return Observation::Exposed(self.describe_found());
        }
        match self.unreadable.first() {
            Some(file) => Observation::Unknown(format!("cannot read {file}")),
            None => Observation::Protected(none),
        }
    }

    /// The [`observation`](Self::observation) of files, called `what`, to which `written_bytes` were just written: if
    /// they hold less, nothing was seen.
    pub fn observation_of_written(&self, what: &str, written_bytes: usize, none: String) -> Observation {
        match self.observation(none) {
            Observation::Protected(_) if self.bytes < written_bytes as u64 => {
                Observation::Unknown(format!("{what} has {}, less than was written", self.extent()))
            }
            observation => observation,
        }
    }

    /// `43 files, 38.1 MB`.
    pub fn extent(&self) -> String {
        let files = if self.files == 1 { "file" } else { "files" };
        format!("{} {files}, {}", self.files, quantity::size(self.bytes))
    }
}

#[cfg(test)]
mod tests;
