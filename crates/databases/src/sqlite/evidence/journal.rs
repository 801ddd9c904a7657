//! Is what is written readable in the journal, before a checkpoint or a commit empties it?

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_plugin::{
    checks::{
        canary::TOKEN_BYTES,
        needles::Needles,
        scan::{Places, files_of, scan},
    },
    evidence::{CheckEntry, Evidence, Scene},
    session::{Discard, KeyValueSession, Request},
};

use super::{Probe, flush, text};
use crate::sqlite::{key_value, path};

/// Writes a canary and looks for it in the journal at the one moment when it is there in every journal mode: after
/// inserting it, a write-ahead log holds its page; while a transaction that deletes it is open, a rollback journal
/// does. Id `journal-canary`.
pub struct JournalCanary;

impl Evidence for JournalCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("journal-canary")
    }

    fn claim(&self) -> String {
        "no field value is readable in the journal while it is in use".to_owned()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        flush(scene)?;
        let values = vec![text(scene, self.id(), TOKEN_BYTES); scene.table.fields];
        let needles = Needles::new(values.first().map(|value| ("canary", value.as_slice())));
        let probe = Probe::new(scene, self.id(), 0, values.clone());
        let mut session = key_value(path(scene.server)?, scene.setup, scene.table)?;
        probe.insert(&mut session)?;
        session.begin_bulk()?;
        session.call(&Request::Delete { key: &probe.key }, &mut Discard)?;
        let report = scan(&needles, files_of(scene.server, Places::JOURNAL));
        session.end_bulk()?;
        Ok(if report.total().hits() > 0 {
            Sight::Exposed(report.describe_found())
        } else if let Some(file) = report.unreadable.first() {
            Sight::Unknown(format!("cannot read {file}"))
        } else {
            Sight::Protected(format!("no canary in {}", report.extent()))
        })
    }
}
