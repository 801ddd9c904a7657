//! Is data readable in temporary files?

use std::fmt::Write as _;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        canary::{Source, TOKEN_BYTES},
        needles::Needles,
        scan::{Report, files_below, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

use super::Copy;
use crate::duckdb::{Mode, Opened, temporary};

/// Has an engine with little memory, set up as the arm's, hold more than that in a temporary table, and searches for
/// its values in the temporary files. Id `temporary-canary`.
///
/// The engine is one of its own on a copy of the file, so that the arm's memory and files stay as they are.
pub struct TemporaryCanary;

/// Memory of that engine.
const MEMORY: &str = "16MiB";

/// Bytes of the temporary table, about twice that.
const BYTES: usize = 32 << 20;

/// Different canaries; every row begins with one of them.
const CANARIES: usize = 16;

/// Bytes of a row: a canary and 64 further digits.
const ROW: usize = TOKEN_BYTES + 64;

impl Check for TemporaryCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("temporary-canary")
    }

    fn claim(&self) -> String {
        "no value is readable in temporary files when a query needs more than its memory".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let copy = Copy::of(context, self.id())?;
        let mut setup = context.setup.clone();
        setup.settings.insert("memory_limit".to_owned(), MEMORY.to_owned());
        let opened = Opened::open(&copy.path, &setup, Mode::Write)?;
        let mut connection = opened.connection()?;
        for statement in &setup.session_statements {
            connection.run(statement)?;
        }
        let mut source = Source::new(context, self.id());
        let tokens: Vec<Vec<u8>> = (0..CANARIES).map(|_| source.text(TOKEN_BYTES)).collect();
        let mut list = String::new();
        for token in &tokens {
            let _ = write!(list, "'{}', ", String::from_utf8_lossy(token));
        }
        connection.run(&format!(
            "CREATE TEMPORARY TABLE tithe_spilled AS SELECT [{list}][1 + i % {CANARIES}] || sha256(i::VARCHAR) AS value \
             FROM range({}) numbers(i)",
            BYTES / ROW,
        ))?;
        let needles = Needles::new(tokens.iter().map(|token| ("canary", token.as_slice())));
        let report = scan(&needles, files_below(&temporary(&copy.path)));
        // Names of files are relative to the folder of temporary files.
        Ok(judged(&report))
    }
}

/// What a search in the temporary files shows, if they hold a good part of the table.
fn judged(report: &Report) -> Observation {
    match report.observation(format!("none of {CANARIES} canaries in {}", report.extent())) {
        Observation::Protected(_) if (report.bytes as usize) < BYTES / 4 => Observation::Unknown(format!(
            "{} in the folder of temporary files: the query's values are elsewhere",
            report.extent()
        )),
        observation => observation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_without_a_good_part_of_the_table_show_nothing() {
        let seen = |bytes: u64| judged(&Report { files: 1, bytes, ..Report::default() });
        // The table has 32 MiB.
        for bytes in [8 << 20, 40 << 20] {
            assert!(matches!(seen(bytes), Observation::Protected(words) if words.starts_with("none of 16 canaries")));
        }
        for bytes in [0, (8 << 20) - 1] {
            assert!(matches!(seen(bytes), Observation::Unknown(_)), "{bytes}");
        }
    }
}
