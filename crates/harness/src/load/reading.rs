//! What an arm's counters say at one moment, and what has grown between two.

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
    /// Whoever sees them on another machine did not answer.
    pub lost: bool,
}

impl Reading {
    /// What has grown until `later`; levels are those of `later`.
    pub fn grown(&self, later: &Self) -> Counters {
        let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
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
            // Blocks of 512 bytes whatever the file system's own (stat(2)).
            sum = (sum.0 + metadata.len(), sum.1 + metadata.blocks() * 512);
        }
    }
    sum
}
