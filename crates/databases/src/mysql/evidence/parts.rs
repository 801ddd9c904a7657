//! Which parts of a server are encrypted besides its tables, and whether the tables and that part of the journal are
//! readable.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tithe_machine::{fault::Fault, launch::Server, observation::Observation, paths::Paths};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::{Check, CheckContext, CheckEntry},
};

use crate::mysql::launch::{BINLOG_FOLDER, DOUBLEWRITE_ENDS, REDO_FILES, UNDO_FILES};

/// The parts of a server that are encrypted, or not, each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncryptedLogs {
    /// The redo log.
    pub redo: bool,
    /// The undo log.
    pub undo: bool,
    /// The binary log.
    pub binlog: bool,
}

impl EncryptedLogs {
    /// True if there is one at all.
    pub fn any(self) -> bool {
        self.redo || self.undo || self.binlog
    }

    /// As in `the redo log and the binary log`.
    pub fn noun(self) -> String {
        let names = [(self.redo, "the redo log"), (self.undo, "the undo log"), (self.binlog, "the binary log")];
        let names: Vec<_> = names.into_iter().filter_map(|(chosen, name)| chosen.then_some(name)).collect();
        match names.split_last() {
            None => "no log".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, first)) => format!("{} and {last}", first.join(", ")),
        }
    }

    /// True for a file or folder of one of these parts.
    fn has(self, name: &str) -> bool {
        let undo = UNDO_FILES.contains(&name);
        (self.redo && REDO_FILES.contains(&name)) || (self.undo && undo) || (self.binlog && name == BINLOG_FOLDER)
    }
}

/// The shared check of the journal, of these parts alone. Id `journal-canary`.
pub struct PartsCanary(pub EncryptedLogs);

impl Check for PartsCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("journal-canary")
    }

    fn claim(&self) -> String {
        format!("no {} is readable in {}", Targets::Everything.noun(), self.0.noun())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut paths = context.server.paths.clone();
        paths.journal.retain(|path| path.file_name().is_some_and(|name| self.0.has(&name.to_string_lossy())));
        observe_in(paths, &DiskCanary::new(Places::JOURNAL, Targets::Everything), context)
    }
}

/// What `check` observes if the files of the server are at `paths`.
fn observe_in(paths: Paths, check: &DiskCanary, context: &CheckContext<'_>) -> Result<Observation, Fault> {
    let server = Server { paths, ..context.server.clone() };
    check.observe(&mut CheckContext { server: &server, ..*context })
}

/// The shared check of the data files. Id `disk-canary`.
///
/// MySQL encrypts doublewrite pages like the tablespace that they are copied from. If the undo log is not encrypted,
/// its rows are readable there even if the tables are encrypted. Then these files count as part of the undo log.
pub struct TablesCanary(pub EncryptedLogs);

impl TablesCanary {
    fn check() -> DiskCanary {
        DiskCanary::new(Places::DATA, Targets::Everything)
    }
}

impl Check for TablesCanary {
    fn entry(&self) -> CheckEntry {
        Self::check().entry()
    }

    fn claim(&self) -> String {
        let claim = Self::check().claim();
        if self.0.undo {
            claim
        } else {
            format!("{claim}, those of doublewrite left out: they hold pages of the undo log")
        }
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if self.0.undo {
            return Self::check().observe(context);
        }
        let mut paths = context.server.paths.clone();
        for folder in &paths.data {
            paths.journal.extend(doublewrite_files(folder)?);
        }
        observe_in(paths, &Self::check(), context)
    }
}

/// The doublewrite files in `folder`, for single pages (`bdblwr`) and for batches.
fn doublewrite_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let ends = |path: &PathBuf| path.extension().is_some_and(|end| DOUBLEWRITE_ENDS.iter().any(|known| end == *known));
    Ok(files.into_iter().filter(ends).collect())
}

#[cfg(test)]
mod tests {
    use tithe_plugin::simulated::test_bench::Bench;

    use super::*;

    const NONE: EncryptedLogs = EncryptedLogs { redo: false, undo: false, binlog: false };

    /// Makes `path` another name of the file that an arm of the simulated database writes its records to.
    fn link(bench: &Bench, path: &Path) {
        fs::hard_link(bench.server.paths.data[0].join("records"), path).expect("linked");
    }

    #[test]
    fn a_journal_is_searched_in_its_encrypted_parts_alone() {
        let parts = [
            ("#innodb_redo", EncryptedLogs { redo: true, ..NONE }),
            ("undo_002", EncryptedLogs { undo: true, ..NONE }),
            ("binlog", EncryptedLogs { binlog: true, ..NONE }),
        ];
        for (readable, _) in parts {
            let mut bench = Bench::plain();
            let folder = bench.server.folder.join("logs");
            fs::create_dir(&folder).expect("made");
            for (name, _) in parts {
                let path = folder.join(name);
                if name == readable {
                    link(&bench, &path);
                } else {
                    fs::write(&path, "nothing").expect("written");
                }
                bench.server.paths.journal.push(path);
            }
            for (name, encrypted) in parts {
                let seen = bench.observe(&PartsCanary(encrypted));
                assert_eq!(matches!(seen, Observation::Exposed(_)), name == readable, "{name}: {seen:?}");
                assert_eq!(matches!(seen, Observation::Protected(_)), name != readable, "{name}: {seen:?}");
            }
        }
    }

    #[test]
    fn doublewrite_files_are_data_if_the_undo_log_is_encrypted() {
        let bench = Bench::plain();
        link(&bench, &bench.server.paths.data[0].join("#ib_16384_0.dblwr"));
        let [with, without] = [true, false].map(|undo| TablesCanary(EncryptedLogs { undo, ..NONE }));
        let seen = bench.observe(&with);
        assert!(matches!(&seen, Observation::Exposed(words) if words.contains("#ib_16384_0.dblwr")), "{seen:?}");
        let seen = bench.observe(&without);
        assert!(matches!(seen, Observation::Unknown(_)), "no other file is left: {seen:?}");
        let limited = format!("{}, those of doublewrite left out: they hold pages of the undo log", with.claim());
        assert_eq!(without.claim(), limited);
    }

    #[test]
    fn parts_are_told_and_found_by_name() {
        let parts = EncryptedLogs { redo: true, undo: false, binlog: true };
        assert_eq!(parts.noun(), "the redo log and the binary log");
        assert_eq!(["#innodb_redo", "undo_001", "binlog"].map(|name| parts.has(name)), [true, false, true]);
        let none = EncryptedLogs { redo: false, undo: false, binlog: false };
        assert!(!none.any() && parts.any());
        assert_eq!(none.noun(), "no log");
    }

    #[test]
    fn doublewrite_files_are_found_by_their_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["#ib_16384_0.dblwr", "#ib_16384_0.bdblwr", "ibdata1", "undo_001"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let mut found = doublewrite_files(folder.path()).expect("read");
        found.sort();
        assert_eq!(found, ["#ib_16384_0.bdblwr", "#ib_16384_0.dblwr"].map(|name| folder.path().join(name)));
    }
}
