//! An arm's counters at one moment, and their growth between two.

use std::path::PathBuf;

use tithe_machine::proc::TreeUsage;
use tithe_model::record::Counters;

/// Counters of one arm at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub tree: Option<TreeUsage>,
    pub wal_bytes: Option<u64>,
    pub log_bytes: Option<u64>,
    pub disk_bytes: Option<u64>,
    /// The observer of another machine did not answer.
    pub lost: bool,
}

impl Reading {
    /// The growth until `later`; levels are those of `later`. If a value has fallen, as with a log that was rewritten
    /// meanwhile, the growth is unknown.
    pub fn grown(&self, later: &Self) -> Counters {
        let grown = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
        let tree = |field: fn(&TreeUsage) -> Option<u64>| {
            grown(self.tree.as_ref().and_then(field), later.tree.as_ref().and_then(field))
        };
        Counters {
            server_cpu_ns: tree(|usage| Some(usage.cpu_ns)),
            server_user_ns: tree(|usage| Some(usage.cpu_times?.user_ns)),
            server_system_ns: tree(|usage| Some(usage.cpu_times?.system_ns)),
            client_user_ns: None,
            client_system_ns: None,
            wal_bytes: grown(self.wal_bytes, later.wal_bytes),
            log_bytes: grown(self.log_bytes, later.log_bytes),
            read_bytes: tree(|usage| usage.read_bytes),
            written_bytes: tree(|usage| usage.written_bytes),
            sent_bytes: None,
            received_bytes: None,
            statements: None,
            switches: tree(|usage| usage.switches),
            memory_bytes: later.tree.map(|usage| usage.memory_bytes),
            disk_bytes: later.disk_bytes,
        }
    }
}

/// Files that Chronicle Queue creates large and then fills: only their allocated blocks hold data.
const QUEUE: &str = "cq4";

/// Length and allocated size of all files at and below `paths`, bytes. Files that vanish meanwhile do not count.
pub(crate) fn sizes(paths: &[PathBuf]) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let mut sum = (0, 0);
    let mut waiting = paths.to_vec();
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else {
            // Blocks of 512 bytes, independent of the file system's block size (stat(2)).
            let allocated = metadata.blocks() * 512;
            let is_queue = path.extension().is_some_and(|extension| extension == QUEUE);
            let filled = if is_queue { metadata.len().min(allocated) } else { metadata.len() };
            sum = (sum.0 + filled, sum.1 + allocated);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use tithe_machine::clock::CpuTimes;

    use super::*;

    /// What a server has used after so many times the same work.
    fn after(times: u64) -> Reading {
        let tree = TreeUsage {
            cpu_ns: times,
            cpu_times: Some(CpuTimes { user_ns: 2 * times, system_ns: 3 * times }),
            read_bytes: Some(4 * times),
            written_bytes: Some(5 * times),
            switches: Some(6 * times),
            memory_bytes: 7 * times,
        };
        let [wal_bytes, log_bytes, disk_bytes] = [8, 9, 10].map(|size| Some(size * times));
        Reading { tree: Some(tree), wal_bytes, log_bytes, disk_bytes, lost: false }
    }

    #[test]
    fn each_counter_grows_by_its_own_reading_and_levels_are_the_last() {
        let grown = Counters {
            server_cpu_ns: Some(10),
            server_user_ns: Some(20),
            server_system_ns: Some(30),
            read_bytes: Some(40),
            written_bytes: Some(50),
            switches: Some(60),
            memory_bytes: Some(770),
            wal_bytes: Some(80),
            log_bytes: Some(90),
            disk_bytes: Some(1100),
            ..Counters::default()
        };
        assert_eq!(after(100).grown(&after(110)), grown);
        let levels = Counters { memory_bytes: Some(770), disk_bytes: Some(1100), ..Counters::default() };
        assert_eq!(Reading::default().grown(&after(110)), levels, "nothing was read before");
        assert_eq!(after(100).grown(&Reading::default()), Counters::default());
    }

    #[test]
    fn what_a_file_was_made_large_by_is_not_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, length, filled) in [("queue.cq4", 80 << 20, 8192), ("audit.log", 8192, 8192)] {
            let path = folder.path().join(name);
            std::fs::write(&path, vec![1; 8192]).expect("written");
            std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(length)).expect("made large");
            assert_eq!(sizes(&[path]).0, filled, "{name}");
        }
    }

    #[test]
    fn a_folder_is_as_large_as_the_files_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("below")).expect("a folder");
        let [one, two] = [("one", 5000), ("below/two", 3000)].map(|(name, length)| {
            std::fs::write(folder.path().join(name), vec![1; length]).expect("written");
            sizes(&[folder.path().join(name)])
        });
        assert_eq!((one.0, two.0), (5000, 3000));
        assert!(one.1 > 0 && two.1 > 0, "{one:?} {two:?}");
        assert_eq!(sizes(&[folder.path().to_owned()]), (one.0 + two.0, one.1 + two.1));
        assert_eq!(sizes(&[folder.path().join("three")]), (0, 0), "it may have vanished");
    }

    #[test]
    fn what_became_less_is_not_known() {
        let reading = |wal_bytes| Reading { wal_bytes: Some(wal_bytes), log_bytes: Some(5), ..Reading::default() };
        let grown = reading(70).grown(&reading(60));
        assert_eq!((grown.wal_bytes, grown.log_bytes), (None, Some(0)));
        assert_eq!(reading(60).grown(&reading(70)).wal_bytes, Some(10));
    }
}
