//! Encryption of every page and journal record in the storage engine, as MongoDB's encrypted storage engine does it.
//!
//! MongoDB's default is AES-256-CBC; its documentation offers AES-256-GCM as the other mode. The data key is wrapped
//! with a master key that is kept elsewhere: in a file, or on a key server. See [`super::encryptor`] for the ciphers
//! and [`super::encryptor::keystore`] for the keys.

use std::path::PathBuf;

use tithe_machine::launch::{Install, Missing};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, key_apart::KeyApart, scan::Places},
    evidence::Check,
    protection::Protection,
    setup::{AtRest, KeyServer, Setup},
};

use super::{
    encryptor::{CIPHERS, Implementation, NONE, arm_cipher},
    evidence::{
        cache::CacheFits, data_key::DataKeyWrapped, idle::EncryptorIdle, key_server::KeyServed,
        keys_locked::KeysLocked, repeats::NoRepeats, rotation::KeyRotation, tamper::Tamper, wrong_key::WrongKey,
    },
    kmip,
};

/// Pages and journal records are encrypted before they reach a file.
pub struct PageEncryption;

impl Protection for PageEncryption {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "page-encryption",
            title: "page encryption",
            protects_against: "attackers who get the data folder, its journal or a backup, but not the master key: the \
                             content can be neither read nor guessed.",
            leaves_open: "the size of the files, which pages change, and everything in the memory of the process, the \
                          keys included; an old page put in the place of its successor; aes-256-cbc also leaves other \
                          changes unnoticed.",
            options: const {
                &[
                    OptionEntry {
                        name: "cipher",
                        kind: OptionKind::Choice(&const { [CIPHERS[0], CIPHERS[1], CIPHERS[2], NONE] }),
                        default: Some(DefaultValue::Text("aes-256-cbc")),
                        help: "the cipher; aes-256-cbc is MongoDB's default, and -hmac adds what it lacks: \
                               authentication; none calls the encryptor without encrypting, which measures the call",
                    },
                    OptionEntry {
                        name: "aes",
                        kind: OptionKind::Choice(&["processor", "portable"]),
                        default: Some(DefaultValue::Text("processor")),
                        help: "whether the processor's AES instructions are used, where it has them, or portable code",
                    },
                    kmip_option(
                        "kmip_server",
                        "host:port of the KMIP server that gives the master key; Tithe makes one where it is empty",
                    ),
                    kmip_option("kmip_key_id", "identifier of the master key there: an AES key of 256 bits"),
                    kmip_option("kmip_certificate", "file of the certificate that Tithe shows the server, PEM"),
                    kmip_option(
                        "kmip_private_key",
                        "file of that certificate's private key, PEM, readable by its owner alone",
                    ),
                    kmip_option("kmip_authority", "file of the authority that signed the server's certificate, PEM"),
                ]
            },
            at_rest: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let implementation = match chosen.text("aes") {
            "portable" => Implementation::Portable,
            _ => Implementation::Processor,
        };
        let cipher = arm_cipher(chosen.text("cipher"), implementation);
        setup.at_rest = Some(AtRest { cipher, key: setup.credentials.key.clone() });
        setup.key_server = key_server(chosen);
    }

    fn needs(&self, _install: &Install, chosen: &experiment::Protection) -> Result<(), Missing> {
        if let Some(name) = half_said(chosen) {
            return Err(Missing {
                what: format!("the option {name} of page-encryption"),
                looked_in: vec![
                    "the experiment: a key server is named by all options that begin with kmip_, or by none".to_owned(),
                ],
                how_to_install: vec![format!("give {name}, or leave the others out")],
            });
        }
        let Some(server) = key_server(chosen) else { return Ok(()) };
        kmip::fetch(&server).map(drop).map_err(|fault| Missing {
            what: format!("the master key {} on a KMIP server", server.key_id),
            looked_in: vec![format!("{}: {fault}", server.address)],
            how_to_install: vec!["an AES key of 256 bits, active, that the client's certificate may get".to_owned()],
        })
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        if chosen.text("cipher") == NONE {
            return vec![Box::new(EncryptorIdle), Box::new(CacheFits)];
        }
        // Tithe's own key can be searched for in every file; a key server's key must be requested first.
        let key_apart: Box<dyn Check> =
            if key_server(chosen).is_some() { Box::new(KeyServed) } else { Box::new(KeyApart) };
        vec![
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(DiskCanary::new(Places::JOURNAL, Targets::Everything)),
            Box::new(NoRepeats),
            Box::new(WrongKey),
            key_apart,
            Box::new(DataKeyWrapped),
            Box::new(KeysLocked),
            Box::new(Tamper),
            Box::new(KeyRotation),
            Box::new(CacheFits),
        ]
    }
}

/// Options that name a key server, all or none of them.
const KMIP_OPTIONS: [&str; 5] =
    ["kmip_server", "kmip_key_id", "kmip_certificate", "kmip_private_key", "kmip_authority"];

const fn kmip_option(name: &'static str, help: &'static str) -> OptionEntry {
    OptionEntry { name, kind: OptionKind::Text, default: Some(DefaultValue::Text("")), help }
}

/// The first option that is empty if another names a key server.
fn half_said(chosen: &experiment::Protection) -> Option<&'static str> {
    let empty = |name: &&str| chosen.text(name).is_empty();
    KMIP_OPTIONS.into_iter().find(empty).filter(|_| !KMIP_OPTIONS.iter().all(empty))
}

/// The key server that `chosen` names.
fn key_server(chosen: &experiment::Protection) -> Option<KeyServer> {
    let file = |name| PathBuf::from(chosen.text(name));
    (!chosen.text("kmip_server").is_empty()).then(|| KeyServer {
        address: chosen.text("kmip_server").to_owned(),
        key_id: chosen.text("kmip_key_id").to_owned(),
        certificate: file("kmip_certificate"),
        key: file("kmip_private_key"),
        authority: file("kmip_authority"),
    })
}
