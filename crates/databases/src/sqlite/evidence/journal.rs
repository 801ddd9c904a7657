//! Is written data readable in the journal, before a checkpoint or a commit empties it?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        canary::TOKEN_BYTES,
        needles::Needles,
        scan::{Places, Report, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
    session::{Discard, KeyValueSession, Request},
};

use super::{Probe, flush, text};
use crate::sqlite::{key_value, path};

/// Writes a canary and searches for it in the journal, at the one moment when each journal mode holds it. After an
/// insert, a write-ahead log holds its page; while a transaction that deletes it is open, a rollback journal does. Id
/// `journal-canary`.
pub struct JournalCanary;

impl Check for JournalCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("journal-canary")
    }

    fn claim(&self) -> String {
        "no field value is readable in the journal while it is in use".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        flush(context)?;
        let values = vec![text(context, self.id(), TOKEN_BYTES); context.table.fields];
        let needles = Needles::new(values.first().map(|value| ("canary", value.as_slice())));
        let probe = Probe::new(context, self.id(), 0, values.clone());
        let mut session = key_value(path(context.server)?, context.setup, context.table)?;
        probe.insert(&mut session)?;
        session.begin_bulk()?;
        session.call(&Request::Delete { key: &probe.key }, &mut Discard)?;
        let report = scan(&needles, files_of(context.server, Places::JOURNAL));
        session.end_bulk()?;
        Ok(judged(&report))
    }
}

/// What a search in the journal shows, if it holds at least as much as one canary.
fn judged(report: &Report) -> Observation {
    report.observation_of_written("the journal", TOKEN_BYTES, format!("no canary in {}", report.extent()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_holds_less_than_was_written_shows_nothing() {
        let seen = |bytes: u64| judged(&Report { files: 1, bytes, ..Report::default() });
        let enough = TOKEN_BYTES as u64;
        for bytes in [enough, 5000] {
            assert!(matches!(seen(bytes), Observation::Protected(_)), "{bytes}");
        }
        for bytes in [0, enough - 1] {
            assert!(matches!(seen(bytes), Observation::Unknown(_)), "{bytes}");
        }
    }
}
