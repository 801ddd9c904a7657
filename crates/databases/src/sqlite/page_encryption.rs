//! Encryption of every page of the database file and its journals by SQLite3 Multiple Ciphers.
//!
//! The four ciphers, all with 256-bit keys (names and defaults are those of SQLite3 Multiple Ciphers 2):
//!
//! | cipher | page | a changed page is | key derivation from the passphrase |
//! |---|---|---|---|
//! | `aegis` | AEGIS-256, random nonce | refused | Argon2id, 2 passes over 19 MiB, random salt |
//! | `chacha20` | ChaCha20-Poly1305, random nonce | refused | PBKDF2-HMAC-SHA-256, 64 007 rounds, random salt |
//! | `sqlcipher` | AES-256-CBC, random IV, HMAC-SHA-512 | refused | PBKDF2-HMAC-SHA-512, 256 000 rounds, random salt |
//! | `aes256cbc` | AES-256-CBC, IV from page number | not noticed | SHA-256, 4 001 rounds, no salt, first 32 bytes |
//!
//! An application gives the library a passphrase or a key that it keeps elsewhere. Tithe does the same with its 32
//! random bytes. By default they are a passphrase: key derivation is part of the cost of connecting, and is reported
//! there. With `key = "raw"` they are the key itself; `aes256cbc` has no such form. 32 bytes are the longest passphrase
//! that every one of the ciphers uses completely.

use tithe_machine::{
    launch::{Install, Missing},
    secret::Secret,
};
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
    connection::{NO_RAW_KEY, RAW_KEY},
    evidence::{header::Header, journal::JournalCanary, repeats::NoRepeats, tamper::Tamper, wrong_key::WrongKey},
};

/// Pages are encrypted before they reach the file or its journals.
pub struct PageEncryption;

impl Protection for PageEncryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "page-encryption",
            title: "page encryption",
            protects_against: "attackers who get the database file, its journals or a backup, but not the key: the content \
                             can be neither read nor guessed.",
            leaves_open: "the size of the file, which pages change, and everything in the memory of the application, \
                          the key included; aes256cbc also leaves changes unnoticed, and encrypts the same beginning \
                          of the same page the same way each time.",
            options: &[
                OptionEntry {
                    name: "cipher",
                    kind: OptionKind::Choice(&["aegis", "chacha20", "sqlcipher", "aes256cbc"]),
                    default: Some(DefaultValue::Text("chacha20")),
                    help: "the cipher, in the library's own name; chacha20 is the library's default",
                },
                OptionEntry {
                    name: "key",
                    kind: OptionKind::Choice(&["passphrase", "raw"]),
                    default: Some(DefaultValue::Text("passphrase")),
                    help: "whether each connection derives the key from a passphrase, which takes up to a third of a \
                           second, or is given it as it is",
                },
            ],
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        if chosen.text("cipher") != NO_RAW_KEY || chosen.text("key") != "raw" {
            return Ok(());
        }
        Err(Missing {
            what: format!("a raw key for the cipher {NO_RAW_KEY}"),
            looked_in: vec![install.version.clone()],
            how_to_install: vec!["set key = \"passphrase\", or choose another cipher".to_owned()],
        })
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let key = match chosen.text("key") {
            "raw" => Secret::new([RAW_KEY, setup.credentials.key.expose_hex().as_bytes()].concat()),
            _ => setup.credentials.key.clone(),
        };
        setup.at_rest = Some(AtRest { cipher: chosen.text("cipher").to_owned(), key });
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![
            Box::new(Header),
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(JournalCanary),
            Box::new(WrongKey),
            Box::new(NoRepeats),
            Box::new(KeyApart),
            Box::new(Tamper),
        ]
    }
}

/// How the key of `setup` is derived, for the facts of an arm.
pub fn key_derivation(setup: &Setup) -> &'static str {
    match &setup.at_rest {
        None => "none",
        Some(at_rest) if at_rest.key.expose().starts_with(RAW_KEY) => "none: raw key",
        Some(at_rest) => match at_rest.cipher.as_str() {
            "aegis" => "Argon2id, 2 passes over 19 MiB",
            "chacha20" => "PBKDF2-HMAC-SHA-256, 64007 rounds",
            "sqlcipher" => "PBKDF2-HMAC-SHA-512, 256000 rounds",
            _ => "SHA-256, 4001 rounds, no salt",
        },
    }
}
