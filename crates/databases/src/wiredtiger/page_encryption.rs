//! Encryption of every page and journal record in the storage engine, as MongoDB's encrypted storage engine does it.
//!
//! MongoDB's default is AES-256-CBC; its documentation offers AES-256-GCM as the other mode. A data key is wrapped by a
//! master key that is kept elsewhere. See [`super::encryptor`] for the ciphers and [`super::encryptor::keystore`] for the
//! keys.

use tithe_harness::{
    evidence::{Evidence, canary::Targets, disk_canary::DiskCanary, key_apart::KeyApart, scan::Places},
    protection::{AtRest, Protection, Setup},
};
use tithe_model::{
    catalogue::{Default, OptionEntry, OptionKind},
    experiment,
};

use super::{
    encryptor::{CIPHERS, Implementation, arm_cipher},
    evidence::{
        cache::CacheFits, data_key::DataKeyWrapped, keys_locked::KeysLocked, repeats::NoRepeats, rotation::KeyRotation,
        tamper::Tamper, wrong_key::WrongKey,
    },
};

/// Pages and journal records are encrypted before they reach a file.
pub struct PageEncryption;

impl Protection for PageEncryption {
    fn id(&self) -> &'static str {
        "page-encryption"
    }

    fn title(&self) -> &'static str {
        "page encryption"
    }

    fn guards_against(&self) -> &'static str {
        "Someone who gets the data folder, its journal or a backup of them, but not the master key, reads or guesses \
         nothing of its content."
    }

    fn leaves_open(&self) -> &'static str {
        "The size of the files, which pages change, and everything in the memory of the process, the keys included; an old \
         page put in the place of its successor; aes-256-cbc also leaves other changes unnoticed."
    }

    fn options(&self) -> &'static [OptionEntry] {
        &[
            OptionEntry {
                name: "cipher",
                kind: OptionKind::Choice(&CIPHERS),
                default: Some(Default::Text("aes-256-cbc")),
                help: "the cipher; aes-256-cbc is MongoDB's default, and -hmac adds what it lacks: authentication",
            },
            OptionEntry {
                name: "aes",
                kind: OptionKind::Choice(&["processor", "portable"]),
                default: Some(Default::Text("processor")),
                help: "whether the processor's AES instructions are used, where it has them, or portable code",
            },
        ]
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let implementation = match chosen.text("aes") {
            "portable" => Implementation::Portable,
            _ => Implementation::Processor,
        };
        let cipher = arm_cipher(chosen.text("cipher"), implementation);
        setup.at_rest = Some(AtRest { cipher, key: setup.materials.key.clone() });
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![
            Box::new(DiskCanary::new(Places::DATA, Targets::Everything)),
            Box::new(DiskCanary::new(Places::JOURNAL, Targets::Everything)),
            Box::new(NoRepeats),
            Box::new(WrongKey),
            Box::new(KeyApart),
            Box::new(DataKeyWrapped),
            Box::new(KeysLocked),
            Box::new(Tamper),
            Box::new(KeyRotation),
            Box::new(CacheFits),
        ]
    }
}
