//! Is the data key kept out of the server's folder?

use std::fs;

use tithe_machine::{fault::Fault, observation::Observation};

use crate::{
    checks::{
        canary::{Source, TOKEN_BYTES},
        needles::Needles,
        scan::{Places, files_below, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

/// Searches for the arm's data keys (of encryption at rest, of columns) in every file of the server and of its folder,
/// raw, in hexadecimal and in base64. Its control is a marker file in that folder, which it must find. Id `key-apart`.
///
/// It does not search memory, swap or core files.
pub struct KeyApart;

impl Check for KeyApart {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("key-apart").own_control()
    }

    fn claim(&self) -> String {
        "no file of the server or of its folder holds the data key".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let setup = context.setup;
        let at_rest = setup.at_rest.as_ref().map(|at_rest| &at_rest.key);
        let columns = setup.columns.as_ref().map(|columns| &columns.key);
        let keys = [at_rest, columns, Some(&setup.credentials.key), Some(&setup.credentials.second_key)];
        let keys = keys.into_iter().flatten().map(|key| ("data key", key.expose()));
        let token = Source::new(context, self.id()).text(TOKEN_BYTES);
        let needles = Needles::new(keys.chain([("marker", token.as_slice())]));

        let marker = context.server.folder.join(format!("tithe-marker-{:016x}", context.nonce));
        fs::write(&marker, &token).map_err(|error| Fault::machine("cannot write the marker file", error))?;
        let mut files = files_below(&context.server.folder);
        let elsewhere = files_of(context.server, Places::ALL);
        files.extend(elsewhere.into_iter().filter(|file| !file.path.starts_with(&context.server.folder)));
        let mut report = scan(&needles, files);
        fs::remove_file(&marker).map_err(|error| Fault::machine("cannot remove the marker file", error))?;

        let control = report.total().distinct("marker") == 1;
        report.found.retain(|(file, _)| file.path != marker);
        Ok(if report.total().distinct("data key") > 0 {
            Observation::Exposed(report.describe_found())
        } else if let Some(file) = report.unreadable.first() {
            Observation::Unknown(format!("cannot read {file}"))
        } else if control {
            Observation::Protected(format!("no data key in {}; the marker was found", report.extent()))
        } else {
            Observation::Unknown("the marker file was not found".to_owned())
        })
    }
}
