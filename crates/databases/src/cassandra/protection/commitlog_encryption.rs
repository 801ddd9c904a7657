//! Encryption of the commit log.
//!
//! The product calls it `transparent_data_encryption_options`, which promises more than it does. Commit log and hints
//! are encrypted, data files are not, and open-source Cassandra cannot encrypt them.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::cassandra::{
    evidence::{commitlog::CommitlogEncrypted, data_files::DataFilesClear},
    install::needs_keytool,
    launch::COMMITLOG_CIPHER,
};

/// AES in CBC mode with a key from a key store.
pub struct CommitlogEncryption;

impl Protection for CommitlogEncryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "commitlog-encryption",
            title: "encryption of the commit log (transparent_data_encryption_options)",
            protects_against: "attackers who get the files of the commit log, but not the key store.",
            leaves_open: "the data files (SSTables), which hold the same values in the clear, which is most of what \
                          encryption at rest should protect; logs; the key store, whose password is in the \
                          configuration; without a seal, changes to the log are not noticed. Hints are encrypted too, \
                          which is not checked here.",
            options: &[OptionEntry {
                name: "cipher",
                kind: OptionKind::Choice(&["AES/CBC/PKCS5Padding"]),
                default: Some(DefaultValue::Text("AES/CBC/PKCS5Padding")),
                help: "The cipher, in Java's words.",
            }],
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_keytool(install)
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(COMMITLOG_CIPHER.to_owned(), chosen.text("cipher").to_owned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(CommitlogEncrypted::new(chosen.text("cipher"))), Box::new(DataFilesClear::new())]
    }
}
