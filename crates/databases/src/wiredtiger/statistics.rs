//! The engine's counters, and the resources it has used.

use std::sync::Arc;

use tithe_machine::{fault::Fault, proc::TreeUsage};

use super::engine::Engine;

/// Bytes of table pages that were read from files.
pub const BYTES_READ: &str = "block-manager: bytes read";
/// Bytes of table pages that were written to files.
pub const BYTES_WRITTEN: &str = "block-manager: bytes written";
/// Bytes that were written to the journal, compressed and encrypted.
pub const JOURNAL_BYTES: &str = "log: log bytes written";
/// Bytes that the cache holds.
pub const CACHE_BYTES: &str = "cache: bytes currently in the cache";
/// Bytes that the cache may hold.
pub const CACHE_LIMIT: &str = "cache: maximum bytes configured";
/// How often a page was requested.
pub const PAGES_ASKED: &str = "cache: pages requested from the cache";
/// How often it had to be read.
pub const PAGES_READ: &str = "cache: pages read into cache";

/// Names and values.
pub struct Statistics(Vec<(String, u64)>);

impl Statistics {
    /// The value called `name`; 0 if the engine has none of this name.
    pub fn value(&self, name: &str) -> u64 {
        self.0.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value)
    }
}

impl Engine {
    /// The engine's statistics by their names, as `statistics:` has them.
    ///
    /// # Errors
    /// The engine's error.
    pub fn statistics(self: &Arc<Self>) -> Result<Statistics, Fault> {
        let mut session = self.session()?;
        let cursor = session.cursor("statistics:", "statistics=(fast)")?;
        let mut all = Vec::with_capacity(512);
        while session.next(cursor)? {
            all.push(session.statistic(cursor)?);
        }
        Ok(Statistics(all))
    }

    /// The engine's usage so far, besides its clients: processor time of its own threads, and bytes of tables and
    /// journal, from its counters.
    ///
    /// # Errors
    /// The engine's error.
    pub fn usage(self: &Arc<Self>) -> Result<TreeUsage, Fault> {
        let statistics = self.statistics()?;
        Ok(TreeUsage {
            cpu_ns: self.threads_cpu_ns(),
            cpu_times: None,
            read_bytes: Some(statistics.value(BYTES_READ)),
            written_bytes: Some(statistics.value(BYTES_WRITTEN) + statistics.value(JOURNAL_BYTES)),
            switches: None,
            memory_bytes: statistics.value(CACHE_BYTES),
        })
    }
}
