//! Is every write in the append-only file?

use std::{
    os::fd::AsFd as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, observation::Observation, paths::Paths, watch::peer};
use tithe_plugin::{
    checks::{
        canary::{Canaries, Targets, key_value},
        needles::Needles,
        scan::{Places, files_in, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

use crate::redis::{
    connection::RedisConnection,
    store::{administrator, info},
    target::of_administrator,
};

/// How long a write may take to reach the file with `everysec`: Redis delays writes for at most two seconds while the
/// disk is busy (documentation, "Redis persistence"), and then the write itself may wait for the disk.
const EVERYSEC_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes canaries and searches for all of them in the append-only file: at once with `always`, within
/// [`EVERYSEC_TIMEOUT`] with `everysec`. Asks the server for its settings. Id `aof-written`.
///
/// Whether the data was synced to disk (`fsync`) cannot be seen from outside; the server's own report is quoted for it.
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
            "every acknowledged write is in the append-only file, and the server reports appendfsync {}",
            self.fsync
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut administrator = administrator(context.server, context.setup)?;
        let on = administrator.setting("appendonly")?.unwrap_or_default();
        let fsync = administrator.setting("appendfsync")?.unwrap_or_default();
        let status = info(&mut administrator, "persistence", "aof_last_write_status")?.unwrap_or_default();
        let said = format!("the server reports appendonly {on}, appendfsync {fsync}, aof_last_write_status {status}");
        let folder = match folder_here(context, &mut administrator)? {
            Ok(folder) => folder,
            Err(why) => return Ok(Observation::Unknown(format!("{why}; {said}"))),
        };
        let files = || match &folder {
            Some(folder) => files_in(&Paths { journal: vec![folder.clone()], ..Paths::default() }),
            None => files_of(context.server, Places::JOURNAL),
        };
        let canaries = Canaries::new(context, self.id());
        canaries.write(key_value(context.connect()?)?.as_mut())?;
        let answered = Instant::now();
        let tokens = canaries.tokens(&Targets::Everything);
        let needles = Needles::new(tokens.iter().map(|token| ("canary", *token)));
        let timeout = if self.fsync == "always" { Duration::ZERO } else { EVERYSEC_TIMEOUT };
        let found = loop {
            let report = scan(&needles, files());
            let found = report.total().distinct("canary");
            // Without a file there is nothing to wait for.
            if found == tokens.len() || report.files == 0 || answered.elapsed() >= timeout {
                break found;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let is_as_asked = self.is_as_asked(&on, &fsync, &status);
        let quotation = format!("{found} of {} canaries in the append-only file; {said}", tokens.len());
        let holds = is_as_asked && found == tokens.len();
        Ok(if holds { Observation::Protected(quotation) } else { Observation::Exposed(quotation) })
    }
}

impl AofWritten {
    /// True if the server reports that it writes the file, as the arm asks, and that the last write succeeded.
    fn is_as_asked(&self, appendonly: &str, appendfsync: &str, last_write: &str) -> bool {
        appendonly == "yes" && appendfsync == self.fsync && last_write == "ok"
    }
}

/// The append-only folder of an attached server, if it is on this machine; otherwise the reason. `Ok(None)` if Tithe
/// launched the server and knows its files.
fn folder_here(
    context: &CheckContext<'_>,
    administrator: &mut RedisConnection,
) -> Result<Result<Option<PathBuf>, String>, Fault> {
    if !context.server.address.is_attached() {
        return Ok(Ok(None));
    }
    let mut setting = |name: &str| administrator.setting(name).map(Option::unwrap_or_default);
    let base = setting("dir")?;
    // Before version 7 it is one file.
    let name = Some(setting("appenddirname")?).filter(|name| !name.is_empty());
    let name = name.map_or_else(|| setting("appendfilename"), Ok)?;
    let wire = RedisConnection::open(&of_administrator(context.server, context.setup)?)?.into_wire();
    let here = peer::files_of_server(wire.as_fd(), context.database.entry().server_programs);
    Ok(here.map(|(_, root)| Some(root.join(base.trim_start_matches('/')).join(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_when_the_server_says_all_three() {
        let always = AofWritten::new("always");
        assert!(always.is_as_asked("yes", "always", "ok"));
        for (on, fsync, status) in
            [("no", "always", "ok"), ("yes", "everysec", "ok"), ("yes", "always", "err"), ("", "", "")]
        {
            assert!(!always.is_as_asked(on, fsync, status), "{on} {fsync} {status}");
        }
    }
}
