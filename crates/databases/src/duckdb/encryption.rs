//! Encryption of the database file, its write-ahead log and its temporary files by DuckDB itself (1.4 and newer).
//!
//! The file's key is derived from the given one and a random salt by one SHA-256. Each block and each entry of the log
//! has a random nonce; GCM authenticates them, CTR does not. OpenSSL comes with the extension httpfs. The built-in
//! mbedTLS can only read, unless a setting that DuckDB calls unsafe lets it write. Temporary files stay plain by
//! default, even if the database is encrypted: this protection encrypts them, too, unless an arm asks for the default.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, key_apart::KeyApart, scan::Places},
    evidence::Check,
    protection::Protection,
    setup::{AtRest, Setup},
};

use super::{
    HTTPFS,
    evidence::{
        header::CipherOfHeader, journal::JournalCanary, provider::Provider, temporary::TemporaryCanary,
        wrong_key::WrongKey,
    },
    settings::{
        self,
        provider::{MBEDTLS, OPENSSL},
    },
};

/// Everything that DuckDB writes is encrypted.
pub struct Encryption;

impl Protection for Encryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "encryption",
            title: "database encryption",
            protects_against: "attackers who get the database file, its log, its temporary files or a backup, but not \
                             the key: the content cannot be read.",
            leaves_open: "the size of the file, which blocks change, and everything in the memory of the application, \
                          the key included; CTR also leaves changes to the file unauthenticated, and mbedTLS writes \
                          with random numbers that DuckDB calls insecure.",
            options: &[
                OptionEntry {
                    name: "cipher",
                    kind: OptionKind::Choice(&["gcm", "ctr"]),
                    default: Some(DefaultValue::Text("gcm")),
                    help: "AES-256 with authentication (gcm, DuckDB's default) or without (ctr)",
                },
                OptionEntry {
                    name: "provider",
                    kind: OptionKind::Choice(&[OPENSSL, MBEDTLS]),
                    default: Some(DefaultValue::Text(OPENSSL)),
                    help: "what encrypts: OpenSSL by the extension httpfs, or the built-in mbedTLS, which \
                           force_mbedtls_unsafe lets write",
                },
                OptionEntry {
                    name: "temporary_files",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(true)),
                    help: "encrypt temporary files, too (temp_file_encryption); DuckDB's own default is not to",
                },
            ],
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        if chosen.text("provider") == MBEDTLS || install.facts.contains_key(HTTPFS) {
            return Ok(());
        }
        Err(Missing {
            what: format!("the extension httpfs of {}, which brings OpenSSL", install.version),
            looked_in: vec!["the folder of the library, ~/.duckdb/extensions".to_owned()],
            how_to_install: vec![
                "tithe get duckdb".to_owned(),
                "or set provider = \"mbedtls\", which is built in".to_owned(),
            ],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let cipher = chosen.text("cipher").to_uppercase();
        setup.at_rest = Some(AtRest { cipher, key: setup.credentials.key.clone() });
        for (name, on) in [
            (settings::MBEDTLS, chosen.text("provider") == MBEDTLS),
            (settings::TEMPORARY, chosen.flag("temporary_files")),
        ] {
            if on {
                setup.settings.insert(name.to_owned(), "true".to_owned());
            }
        }
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let provider = if chosen.text("provider") == MBEDTLS { MBEDTLS } else { OPENSSL };
        let mut checks: Vec<Box<dyn Check>> = vec![
            Box::new(CipherOfHeader { cipher: chosen.text("cipher").to_uppercase() }),
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(JournalCanary),
        ];
        if chosen.flag("temporary_files") {
            checks.push(Box::new(TemporaryCanary));
        }
        checks.push(Box::new(WrongKey));
        checks.push(Box::new(Provider { provider }));
        checks.push(Box::new(KeyApart));
        checks
    }
}
