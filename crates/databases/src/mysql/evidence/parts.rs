//! What of a server is encrypted beside its tables, and whether that part of its journal can be read.

use tithe_harness::{
    database::Server,
    evidence::{Evidence, Scene, Sight, canary::Targets, disk_canary::DiskCanary, scan::Places},
};

use crate::mysql::launch::{BINLOG_FOLDER, REDO_FILES, UNDO_FILES};

/// The parts of a server that are encrypted, or not, each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The redo log.
    pub redo: bool,
    /// The undo log.
    pub undo: bool,
    /// The binary log.
    pub binlog: bool,
}

impl Parts {
    /// True where there is one at all.
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
pub struct PartsCanary(pub Parts);

impl Evidence for PartsCanary {
    fn id(&self) -> &'static str {
        "journal-canary"
    }

    fn claim(&self) -> String {
        format!("no {} is readable in {}", Targets::Everything.noun(), self.0.noun())
    }

    fn look(&self, scene: &mut Scene<'_>) -> Sight {
        let mut paths = scene.server.paths.clone();
        paths.journal.retain(|path| path.file_name().is_some_and(|name| self.0.has(&name.to_string_lossy())));
        let server = Server { paths, ..scene.server.clone() };
        DiskCanary::new(Places::JOURNAL, Targets::Everything).look(&mut Scene { server: &server, ..*scene })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_and_found_by_name() {
        let parts = Parts { redo: true, undo: false, binlog: true };
        assert_eq!(parts.noun(), "the redo log and the binary log");
        assert_eq!(["#innodb_redo", "undo_001", "binlog"].map(|name| parts.has(name)), [true, false, true]);
        let none = Parts { redo: false, undo: false, binlog: false };
        assert!(!none.any() && parts.any());
        assert_eq!(none.noun(), "no log");
    }
}
