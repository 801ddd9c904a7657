//! Encryption at rest by MySQL itself, with keys that its keyring component keeps in a file.
//!
//! Settings: MySQL documentation, "InnoDB Data-at-Rest Encryption", "Encrypting Binary Log Files and Relay Log Files".
//! All tables are encrypted, including the server's own (tablespace `mysql`); the redo, undo and binary logs on
//! request.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::recorders::Recorders, evidence::Check, protection::Protection, recording::Sent, setup::Setup,
};

use crate::mysql::{
    evidence::{
        encryption_in_force::EncryptionInForce,
        keyring_apart::KeyringApart,
        parts::{EncryptedLogs, PartsCanary, TablesCanary},
    },
    install::needs_keyring,
    launch::{BINLOG, REDO, TABLES, UNDO},
};

/// `component_keyring_file`.
pub struct Encryption;

fn parts(chosen: &experiment::Protection) -> EncryptedLogs {
    EncryptedLogs { redo: chosen.flag("redo"), undo: chosen.flag("undo"), binlog: chosen.flag("binlog") }
}

/// An option that is on unless an experiment switches it off.
const fn part(name: &'static str, help: &'static str) -> OptionEntry {
    OptionEntry { name, kind: OptionKind::Flag, default: Some(DefaultValue::Flag(true)), help }
}

impl Protection for Encryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "encryption",
            title: "encryption at rest (component_keyring_file)",
            protects_against: "attackers who get the files, a copy or a backup of them, but not the keyring's file.",
            leaves_open: "data in memory and on the wire; the system tablespace (ibdata1) with its change buffer and \
                          the tablespace of temporary tables (ibtmp1), which MySQL cannot encrypt; general, slow and \
                          error logs; file names and sizes; the keyring's file itself.",
            options: const {
                &[
                    part("redo", "The redo log is encrypted too (innodb_redo_log_encrypt)."),
                    part(
                        "undo",
                        "The undo log is encrypted too (innodb_undo_log_encrypt); else rows can be read in the doublewrite \
                         files, too.",
                    ),
                    part("binlog", "The binary log is encrypted too, where there is one (binlog_encryption)."),
                ]
            },
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_keyring(install)
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let EncryptedLogs { redo, undo, binlog } = parts(chosen);
        // Without the check every account may create an unencrypted table.
        for (on, name) in
            [(true, TABLES), (true, "table_encryption_privilege_check"), (redo, REDO), (undo, UNDO), (binlog, BINLOG)]
        {
            setup.settings.insert(name.to_owned(), if on { "ON" } else { "OFF" }.to_owned());
        }
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let parts = parts(chosen);
        let mut checks: Vec<Box<dyn Check>> =
            vec![Box::new(EncryptionInForce(parts)), Box::new(TablesCanary(parts)), Box::new(KeyringApart)];
        if parts.any() {
            checks.push(Box::new(PartsCanary(parts)));
        }
        checks.push(Box::new(Recorders(Sent::Values)));
        checks
    }
}
