//! Encryption at rest by the storage engine, with a key from a file.
//!
//! Settings: MongoDB documentation, "Encryption at Rest"; Percona's server has the same ones. Each database has its own
//! key, which is encrypted with the key from the file. Data files and journal are encrypted.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, recorders::Recorders, scan::Places},
    evidence::Check,
    protection::Protection,
    recording::Sent,
    setup::{AtRest, Setup},
};

use super::needs_enterprise;
use crate::mongodb::evidence::encryption_in_force::EncryptionInForce;

/// `security.enableEncryption`.
pub struct Encryption;

impl Protection for Encryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "encryption",
            title: "encrypted storage engine",
            protects_against: "attackers who get the data files, a copy or a backup of them, but not the key file.",
            leaves_open: "data in memory and on the wire; server and audit logs; file names and sizes; the key file \
                          itself, which is next to the data here.",
            options: &[OptionEntry {
                name: "cipher",
                kind: OptionKind::Choice(&["AES256-CBC", "AES256-GCM"]),
                default: Some(DefaultValue::Text("AES256-CBC")),
                help: "Cipher of pages and journal (security.encryptionCipherMode).",
            }],
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_enterprise(install, "an encrypted storage engine")
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.at_rest = Some(AtRest { cipher: chosen.text("cipher").to_owned(), key: setup.credentials.key.clone() });
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![
            Box::new(EncryptionInForce::new(chosen.text("cipher"))),
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(DiskCanary::new(Places::JOURNAL, Targets::Everything)),
            Box::new(Recorders(Sent::Values)),
        ]
    }
}
