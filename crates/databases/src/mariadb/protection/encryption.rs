//! Encryption at rest by MariaDB itself, with keys from a file.
//!
//! Settings: MariaDB documentation, "Data-at-Rest Encryption". Everything that the server can encrypt is encrypted:
//! tables of InnoDB and Aria, redo log, binary log, temporary tables and files. Older tables are encrypted in the
//! background; Tithe waits for that before measuring.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, key_apart::KeyApart, recorders::Recorders, scan::Places},
    evidence::Check,
    protection::Protection,
    recording::Sent,
    setup::{AtRest, Setup},
};

use crate::mariadb::{
    evidence::{encryption_in_force::EncryptionInForce, key_rotated::KeyRotated},
    install::needs_plugin,
    launch::load_plugin,
};

/// `file_key_management`.
pub struct Encryption;

/// Settings that are switched on, in addition to the plugin and its cipher.
const SETTINGS: [(&str, &str); 7] = [
    ("aria_encrypt_tables", "ON"),
    ("encrypt_binlog", "ON"),
    ("encrypt_tmp_disk_tables", "ON"),
    ("encrypt_tmp_files", "ON"),
    ("innodb_encrypt_log", "ON"),
    ("innodb_encrypt_tables", "FORCE"),
    ("innodb_encrypt_temporary_tables", "ON"),
];

impl Protection for Encryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "encryption",
            title: "encryption at rest (file_key_management)",
            protects_against: "attackers who get the files, a copy or a backup of them, but not the key file.",
            leaves_open: "data in memory and on the wire; audit, general, slow and error logs; file names and sizes; \
                          the key file itself.",
            options: &[
                OptionEntry {
                    name: "cipher",
                    kind: OptionKind::Choice(&["AES_CTR", "AES_CBC"]),
                    default: Some(DefaultValue::Text("AES_CTR")),
                    help: "Cipher of pages and logs (file_key_management_encryption_algorithm).",
                },
                OptionEntry {
                    name: "rotate",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(false)),
                    help: "Tables are encrypted with another key, again and again, while they are measured (ALTER \
                           TABLE … ENCRYPTION_KEY_ID).",
                },
            ],
            at_rest: true,
            rotated_by: Some("rotate"),
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_plugin(install, "file_key_management", "mariadb-server")
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let cipher = chosen.text("cipher").to_owned();
        load_plugin(setup, "file_key_management");
        setup.settings.insert("file_key_management_encryption_algorithm".to_owned(), cipher.clone());
        for (name, value) in SETTINGS {
            setup.settings.insert(name.to_owned(), value.to_owned());
        }
        // An experiment may choose how many threads encrypt old pages; with none it would never end.
        setup.settings.entry("innodb_encryption_threads".to_owned()).or_insert_with(|| "2".to_owned());
        setup.rotates = chosen.flag("rotate");
        setup.at_rest = Some(AtRest { cipher, key: setup.credentials.key.clone() });
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(EncryptionInForce::new(chosen.text("cipher"))),
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(DiskCanary::new(Places::JOURNAL, Targets::Everything)),
            Box::new(KeyApart),
        ];
        if chosen.flag("rotate") {
            checks.push(Box::new(KeyRotated::new(chosen.text("cipher"))));
        }
        checks.push(Box::new(Recorders(Sent::Values)));
        checks
    }
}
