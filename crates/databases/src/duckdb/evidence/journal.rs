//! Is written data readable in the write-ahead log, before a checkpoint empties it?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        canary::{Canaries, Targets, key_value},
        scan::{Places, Report, search},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

/// Empties the log, writes canaries, and searches for them in the log. Id `journal-canary`.
pub struct JournalCanary;

impl Check for JournalCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("journal-canary")
    }

    fn claim(&self) -> String {
        "no key or field value is readable in the write-ahead log while it is in use".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        context.database.quiesce(context.server, context.setup, context.table)?;
        let canaries = Canaries::new(context, self.id());
        let mut session = key_value(context.connect()?)?;
        canaries.write(session.as_mut())?;
        canaries.read_back(session.as_mut())?;
        let tokens = canaries.tokens(&Targets::Everything);
        let needles: Vec<_> = tokens.iter().map(|token| ("canary", *token)).collect();
        let report = search(context.server, Places::JOURNAL, &needles)?;
        canaries.remove(session.as_mut())?;
        let written: usize = tokens.iter().map(|token| token.len()).sum();
        Ok(judged(&report, tokens.len(), written))
    }
}

/// What a search for `canaries` of `written` bytes together shows, if the log holds that much.
fn judged(report: &Report, canaries: usize, written: usize) -> Observation {
    let none = format!("none of {canaries} canaries in {}", report.extent());
    report.observation_of_written("the log", written, none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_holds_less_than_was_written_shows_nothing() {
        let seen = |bytes: u64| judged(&Report { files: 1, bytes, ..Report::default() }, 9, 1000);
        for bytes in [1000, 5000] {
            assert!(matches!(seen(bytes), Observation::Protected(words) if words.starts_with("none of 9 canaries")));
        }
        for bytes in [0, 999] {
            assert!(matches!(seen(bytes), Observation::Unknown(_)), "{bytes}");
        }
    }
}
