//! Does every write stand in the append-only file?

use std::time::{Duration, Instant};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        canary::{Canaries, Targets, key_value},
        needles::Needles,
        scan::{Places, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

use crate::redis::store::{administrator, info};

/// How long a write may take into the file with `everysec`: Redis holds writes back for at most two seconds while the
/// disk is busy (documentation, "Redis persistence").
const EVERYSEC_TIMEOUT: Duration = Duration::from_secs(3);

/// Writes canaries and looks for all of them in the append-only file: at once with `always`, within
/// [`EVERYSEC_TIMEOUT`] with `everysec`. Asks the server for its settings. Id `aof-written`.
///
/// That the disk has been told to keep what was written (`fsync`) cannot be seen from outside; the server's word is
/// quoted for it.
pub struct AofWritten {
    fsync: &'static str,
}

impl AofWritten {
    /// A check of `appendfsync = fsync`.
    pub fn new(fsync: &'static str) -> Self {
        Self { fsync }
    }
}

impl Check for AofWritten {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("aof-written")
    }

    fn claim(&self) -> String {
        format!(
            "every acknowledged write stands in the append-only file, and the server says appendfsync {}",
            self.fsync
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut administrator = administrator(context.server, context.setup)?;
        let on = administrator.setting("appendonly")?.unwrap_or_default();
        let fsync = administrator.setting("appendfsync")?.unwrap_or_default();
        let status = info(&mut administrator, "persistence", "aof_last_write_status")?.unwrap_or_default();
        let said = format!("the server says appendonly {on}, appendfsync {fsync}, aof_last_write_status {status}");
        if context.server.paths.journal.is_empty() {
            return Ok(Observation::Unknown(format!("the file is not on this machine; {said}")));
        }
        let canaries = Canaries::new(context, self.id());
        canaries.write(key_value(context.connect()?)?.as_mut())?;
        let answered = Instant::now();
        let tokens = canaries.tokens(&Targets::Everything);
        let needles = Needles::new(tokens.iter().map(|token| ("canary", *token)));
        let timeout = if self.fsync == "always" { Duration::ZERO } else { EVERYSEC_TIMEOUT };
        let found = loop {
            let report = scan(&needles, files_of(context.server, Places::JOURNAL));
            let found = report.total().distinct("canary");
            // Without a file there is nothing to wait for.
            if found == tokens.len() || report.files == 0 || answered.elapsed() >= timeout {
                break found;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let quotation = format!("{found} of {} canaries in the append-only file; {said}", tokens.len());
        let asked = on == "yes" && fsync == self.fsync && status == "ok";
        Ok(if asked && found == tokens.len() {
            Observation::Protected(quotation)
        } else {
            Observation::Exposed(quotation)
        })
    }
}
