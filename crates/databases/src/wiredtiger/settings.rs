//! The settings that an experiment may set, and the WiredTiger configuration made from them.
//!
//! All other configuration is that of MongoDB 4.2 (`src/mongo/db/storage/wiredtiger/wiredtiger_kv_engine.cpp`,
//! `wiredtiger_record_store.cpp`, `wiredtiger_index.cpp`).

use std::collections::BTreeMap;

use tithe_machine::fault::Fault;

use super::{encryptor, library::Library};

/// The folder of the journal within the data folder.
pub const JOURNAL: &str = "journal";

/// Names and sentences of all settings.
pub const HELP: [(&str, &str); 7] = [
    ("cache_size_mb", "the engine's cache, MB; default 256, the least that MongoDB takes"),
    ("compressor", "of tables: snappy, as MongoDB has it, or none"),
    ("journal_compressor", "of the journal: snappy, as MongoDB has it, or none"),
    ("journal_file_mb", "size at which a file of the journal is full, MB; 100, as MongoDB has it"),
    (
        "commit_interval_ms",
        "time between two moments at which the journal is made durable, ms; 100, as MongoDB has it; 0 is never",
    ),
    ("checkpoint_interval_s", "time between two checkpoints, s; 60, as MongoDB has it; 0 is never"),
    ("eviction_threads", "threads that make room in the cache; 4, as MongoDB has it"),
];

/// The compression algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// Snappy.
    Snappy,
    /// Nothing.
    None,
}

impl Compressor {
    fn name(self) -> &'static str {
        match self {
            Self::Snappy => "snappy",
            Self::None => "none",
        }
    }
}

/// All settings, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Size of the cache, MB.
    pub cache_size_mb: u64,
    /// Of tables.
    pub compressor: Compressor,
    /// Of the journal.
    pub journal_compressor: Compressor,
    /// Size of a file of the journal, MB.
    pub journal_file_mb: u64,
    /// Time between two flushes of the journal, ms.
    pub commit_interval_ms: u64,
    /// Time between two checkpoints, s.
    pub checkpoint_interval_s: u64,
    /// Threads that evict pages from the cache.
    pub eviction_threads: u64,
}

impl Settings {
    /// The experiment's settings, and the defaults for the rest.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a name or a value that is none.
    pub fn resolve(given: &BTreeMap<String, String>) -> Result<Self, Fault> {
        if let Some(name) = given.keys().find(|name| HELP.iter().all(|(known, _)| known != name)) {
            let known = HELP.map(|(name, _)| name).join(", ");
            return Err(Fault::Refused(format!("`{name}` is not a setting of WiredTiger here; {known} are")));
        }
        let refused = |name: &str, value: &str| {
            let help = HELP.iter().find(|(known, _)| *known == name).map_or("", |(_, help)| help);
            Fault::Refused(format!("`{value}` is not a value of {name}: {help}"))
        };
        let number = |name: &str, default: u64, range: std::ops::RangeInclusive<u64>| match given.get(name) {
            None => Ok(default),
            Some(value) => {
                value.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| refused(name, value))
            }
        };
        let compressor = |name: &str| match given.get(name).map(String::as_str) {
            None | Some("snappy") => Ok(Compressor::Snappy),
            Some("none") => Ok(Compressor::None),
            Some(other) => Err(refused(name, other)),
        };
        Ok(Self {
            // The bounds are the engine's own, if it has any.
            cache_size_mb: number("cache_size_mb", 256, 1..=10_000_000)?,
            compressor: compressor("compressor")?,
            journal_compressor: compressor("journal_compressor")?,
            journal_file_mb: number("journal_file_mb", 100, 1..=2048)?,
            commit_interval_ms: number("commit_interval_ms", 100, 0..=60_000)?,
            checkpoint_interval_s: number("checkpoint_interval_s", 60, 0..=100_000)?,
            eviction_threads: number("eviction_threads", 4, 1..=20)?,
        })
    }

    /// Every setting, one line each.
    pub fn lines(&self) -> Vec<String> {
        vec![
            format!("cache_size_mb = {}", self.cache_size_mb),
            format!("compressor = {}", self.compressor.name()),
            format!("journal_compressor = {}", self.journal_compressor.name()),
            format!("journal_file_mb = {}", self.journal_file_mb),
            format!("commit_interval_ms = {}", self.commit_interval_ms),
            format!("checkpoint_interval_s = {}", self.checkpoint_interval_s),
            format!("eviction_threads = {}", self.eviction_threads),
        ]
    }

    /// The configuration of `wiredtiger_open`.
    ///
    /// # Errors
    /// [`Fault::Refused`] if snappy is requested and not installed, or if the encryptor cannot be loaded.
    pub fn connection(&self, library: &Library, encrypted: bool) -> Result<String, Fault> {
        let mut extensions = Vec::new();
        if [self.compressor, self.journal_compressor].contains(&Compressor::Snappy) {
            let path = library.snappy().ok_or_else(|| {
                Fault::Refused(format!("there is no libwiredtiger_snappy.so next to {}", library.path.display()))
            })?;
            extensions.push(format!("{:?}=(early_load=true)", path.display().to_string()));
        }
        if encrypted {
            extensions.push(format!("{:?}=(early_load=true)", encryptor::extension()?));
        }
        let encryption = if encrypted { format!(",encryption=(name={})", encryptor::NAME) } else { String::new() };
        Ok(format!("{},extensions=[{}]{encryption}", self.options(), extensions.join(",")))
    }

    fn options(&self) -> String {
        let Self { cache_size_mb, journal_file_mb, checkpoint_interval_s, eviction_threads, .. } = self;
        let checkpoint = match checkpoint_interval_s {
            0 => String::new(),
            seconds => format!("checkpoint=(wait={seconds},log_size=2GB),"),
        };
        let journal_compressor = self.journal_compressor.name();
        format!(
            "create,cache_size={cache_size_mb}M,session_max=33000,\
             eviction=(threads_min={eviction_threads},threads_max={eviction_threads}),config_base=false,\
             statistics=(fast),{checkpoint}\
             log=(enabled=true,archive=true,path={JOURNAL},compressor={journal_compressor},file_max={journal_file_mb}MB),\
             file_manager=(close_idle_time=100000,close_scan_interval=10,close_handle_minimum=250)"
        )
    }

    /// The configuration of the table of documents by record id.
    pub fn records(&self) -> String {
        let compressor = self.compressor.name();
        format!(
            "type=file,memory_page_max=10m,split_pct=90,leaf_value_max=64MB,checksum=on,\
             block_compressor={compressor},key_format=q,value_format=u,app_metadata=(formatVersion=1),\
             log=(enabled=true),exclusive"
        )
    }

    /// The configuration of the `_id` index.
    pub fn index(&self) -> String {
        "type=file,internal_page_max=16k,leaf_page_max=16k,checksum=on,prefix_compression=true,key_format=u,\
         value_format=u,app_metadata=(formatVersion=8),log=(enabled=true),exclusive"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(given: &[(&str, &str)], expect: Expect) {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = match Settings::resolve(&given) {
            Ok(settings) => [settings.options(), settings.records(), settings.index()].join("\n"),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn settings_become_the_engines_configuration() {
        check(
            &[],
            expect![[r#"
            create,cache_size=256M,session_max=33000,eviction=(threads_min=4,threads_max=4),config_base=false,statistics=(fast),checkpoint=(wait=60,log_size=2GB),log=(enabled=true,archive=true,path=journal,compressor=snappy,file_max=100MB),file_manager=(close_idle_time=100000,close_scan_interval=10,close_handle_minimum=250)
            type=file,memory_page_max=10m,split_pct=90,leaf_value_max=64MB,checksum=on,block_compressor=snappy,key_format=q,value_format=u,app_metadata=(formatVersion=1),log=(enabled=true),exclusive
            type=file,internal_page_max=16k,leaf_page_max=16k,checksum=on,prefix_compression=true,key_format=u,value_format=u,app_metadata=(formatVersion=8),log=(enabled=true),exclusive"#]],
        );
        check(
            &[
                ("cache_size_mb", "32"),
                ("compressor", "none"),
                ("journal_compressor", "none"),
                ("checkpoint_interval_s", "0"),
            ],
            expect![[r#"
                create,cache_size=32M,session_max=33000,eviction=(threads_min=4,threads_max=4),config_base=false,statistics=(fast),log=(enabled=true,archive=true,path=journal,compressor=none,file_max=100MB),file_manager=(close_idle_time=100000,close_scan_interval=10,close_handle_minimum=250)
                type=file,memory_page_max=10m,split_pct=90,leaf_value_max=64MB,checksum=on,block_compressor=none,key_format=q,value_format=u,app_metadata=(formatVersion=1),log=(enabled=true),exclusive
                type=file,internal_page_max=16k,leaf_page_max=16k,checksum=on,prefix_compression=true,key_format=u,value_format=u,app_metadata=(formatVersion=8),log=(enabled=true),exclusive"#]],
        );
    }

    #[test]
    fn unknown_names_and_values_are_refused() {
        check(
            &[("cache", "1")],
            expect![
                "refused: `cache` is not a setting of WiredTiger here; cache_size_mb, compressor, journal_compressor, journal_file_mb, commit_interval_ms, checkpoint_interval_s, eviction_threads are"
            ],
        );
        check(
            &[("cache_size_mb", "1GB,encryption=(name=none)")],
            expect![
                "refused: `1GB,encryption=(name=none)` is not a value of cache_size_mb: the engine's cache, MB; default 256, the least that MongoDB takes"
            ],
        );
        check(
            &[("compressor", "zlib")],
            expect!["refused: `zlib` is not a value of compressor: of tables: snappy, as MongoDB has it, or none"],
        );
    }
}
