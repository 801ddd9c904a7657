//! Encryption at rest by the storage engine, with a key from a file.
//!
//! Settings: MongoDB documentation, "Encryption at Rest"; Percona's server has the same ones. Each database has a key
//! of its own, which the key of the file wraps. Data files and journal are encrypted.

use tithe_harness::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::Evidence,
    launch::{Install, Missing},
    protection::Protection,
    setup::{AtRest, Setup},
};
use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment,
};

use super::needs_enterprise;
use crate::mongodb::evidence::encryption_in_force::EncryptionInForce;

/// `security.enableEncryption`.
pub struct Encryption;

impl Protection for Encryption {
    fn id(&self) -> &'static str {
        "encryption"
    }

    fn title(&self) -> &'static str {
        "encrypted storage engine"
    }

    fn guards_against(&self) -> &'static str {
        "whoever gets at the data files, a copy or a backup of them, but not at the key file."
    }

    fn leaves_open(&self) -> &'static str {
        "data in memory and on the wire; server and audit logs; file names and sizes; the key file itself, which stands \
         beside the data here."
    }

    fn options(&self) -> &'static [OptionEntry] {
        &[OptionEntry {
            name: "cipher",
            kind: OptionKind::Choice(&["AES256-CBC", "AES256-GCM"]),
            default: Some(Default::Text("AES256-CBC")),
            help: "Cipher of pages and journal (security.encryptionCipherMode).",
        }]
    }

    fn at_rest(&self) -> bool {
        true
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_enterprise(install, "an encrypted storage engine")
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.at_rest = Some(AtRest { cipher: chosen.text("cipher").to_owned(), key: setup.materials.key.clone() });
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![
            Box::new(EncryptionInForce::new(chosen.text("cipher"))),
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(DiskCanary::new(Places::JOURNAL, Targets::Everything)),
        ]
    }
}
