//! Every record is sealed with AES-256-GCM before it is added to its file.

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, key_apart::KeyApart, scan::Places},
    evidence::{Check, CheckContext, CheckEntry},
    protection::Protection,
    setup::{AtRest, Setup},
};

use super::{file, key, store::Log};

/// Records are encrypted before they reach the file.
pub struct RecordEncryption;

impl Protection for RecordEncryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "record-encryption",
            title: "record encryption",
            protects_against: "Attackers who get the file or a backup of it, but not the key, and read keys or values, or \
                             change them unnoticed.",
            leaves_open: "How many records there are and how long each is, an older file in the place of its \
                          successor, and everything in the memory of the process, the key included.",
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.at_rest = Some(AtRest { cipher: "AES-256-GCM".to_owned(), key: setup.credentials.key.clone() });
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(DiskCanary::new(Places::DATA, Targets::Everything)), Box::new(WrongKey), Box::new(KeyApart)]
    }
}

/// Opens the file with the arm's own key, without a key, and with another key. Id `wrong-key`.
struct WrongKey;

impl Check for WrongKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-key")
    }

    fn claim(&self) -> String {
        "the file opens with its own key alone".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let path = file(context.server, context.table)?;
        // If its own key did not open it, a refusal would prove nothing.
        let own = key(context.setup);
        let records = Log::open(&path, own)?.records();
        if own.is_none() {
            return Ok(Observation::Exposed(format!("without a key: {records} records read")));
        }
        let mut seen = vec![format!("with its own key: {records} records read")];
        for (attempt, key) in
            [("without a key", None), ("with another key", Some(&context.setup.credentials.second_key))]
        {
            match Log::open(&path, key) {
                Ok(log) => return Ok(Observation::Exposed(format!("{attempt}: {} records read", log.records()))),
                Err(Fault::Refused(reason)) => seen.push(format!("{attempt}: {reason}")),
                Err(other) => return Err(other),
            }
        }
        Ok(Observation::Protected(seen.join("; ")))
    }
}
