//! Does anything but the keys open the database?

use std::sync::Arc;

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_plugin::{
    evidence::{CheckEntry, Evidence, Scene},
    session::{Discard, Fields, KeyValueSession, Request},
};

use super::{Copy, session};
use crate::wiredtiger::{
    cipher_of,
    encryptor::{self, cipher::PageCipher, keystore},
    folder, opened,
};

/// Opens a copy with the arm's own keys, then asks for the data key with a wrong master key, and opens the copy with a
/// wrong data key and without an encryptor. Id `wrong-key`.
pub struct WrongKey;

impl WrongKey {
    fn unwrap_with_wrong_master(scene: &Scene<'_>) -> Result<String, Fault> {
        let store = keystore::Keystore::read(folder(scene.server)?)?;
        let store = store.ok_or_else(|| Fault::Wrong("there is no keystore".to_owned()))?;
        store.unwrap(&keystore::random_key()?).map(|_| "the data key was unwrapped".to_owned())
    }
}

impl Evidence for WrongKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-key")
    }

    fn claim(&self) -> String {
        "the database does not open without an encryptor, with a wrong master key or with a wrong data key".to_owned()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        let copy = Copy::of(scene, self.id())?;
        let own = opened(scene.server, scene.setup)?.engine.cipher();
        let records = read(&copy, scene, own)?;
        let Some(cipher) = cipher_of(scene.setup) else {
            return Ok(Sight::Exposed(format!("without an encryptor: opened, {records} documents read")));
        };
        let wrong_data_key = encryptor::page_cipher(cipher, &keystore::random_key()?)?;
        let attempts = [
            ("with a wrong master key", Self::unwrap_with_wrong_master(scene)),
            (
                "with a wrong data key",
                read(&copy, scene, Some(wrong_data_key)).map(|records| format!("{records} documents read")),
            ),
            ("without an encryptor", read(&copy, scene, None).map(|records| format!("{records} documents read"))),
        ];
        let mut seen = Vec::new();
        let mut opened = false;
        for (attempt, outcome) in attempts {
            match outcome {
                Ok(what) => {
                    opened = true;
                    seen.push(format!("{attempt}: {what}"));
                }
                Err(Fault::Refused(reason) | Fault::Server(reason)) => seen.push(format!("{attempt}: {reason}")),
                Err(other) => return Err(other),
            }
        }
        let quotation = seen.join("; ");
        Ok(if opened { Sight::Exposed(quotation) } else { Sight::Protected(quotation) })
    }
}

/// Opens the copy with `cipher` and reads its first documents; how many there were.
fn read(copy: &Copy, scene: &Scene<'_>, cipher: Option<Arc<dyn PageCipher>>) -> Result<u64, Fault> {
    let engine = copy.open(scene, cipher)?;
    session(&engine, scene.table)?.call(&Request::Scan { start: b"", count: 10, fields: Fields::All }, &mut Discard)
}
