//! Does anything but the keys open the database?

use std::sync::Arc;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::{Discard, Fields, KeyValueSession, Request},
};

use super::{Copy, session};
use crate::{
    evidence::wrong_key::of_attempts,
    wiredtiger::{
        cipher_of,
        encryptor::{self, cipher::PageCipher, keystore},
        folder, opened,
    },
};

/// Opens a copy with the arm's own keys. Then asks for the data key with a wrong master key, and opens the copy with a
/// wrong data key and without an encryptor. Id `wrong-key`.
pub struct WrongKey;

impl WrongKey {
    fn unwrap_with_wrong_master(context: &CheckContext<'_>) -> Result<String, Fault> {
        let store = keystore::Keystore::read(folder(context.server)?)?;
        let store = store.ok_or_else(|| Fault::Wrong("there is no keystore".to_owned()))?;
        store.unwrap(&keystore::random_key()?).map(|_| "the data key was unwrapped".to_owned())
    }
}

impl Check for WrongKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-key")
    }

    fn claim(&self) -> String {
        "the database does not open without an encryptor, with a wrong master key or with a wrong data key".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let copy = Copy::of(context, self.id())?;
        let own = opened(context.server, context.setup)?.engine.cipher();
        let records = read(&copy, context, own)?;
        let Some(cipher) = cipher_of(context.setup) else {
            return Ok(Observation::Exposed(format!("without an encryptor: opened, {records} documents read")));
        };
        let wrong_data_key = encryptor::page_cipher(cipher, &keystore::random_key()?)?;
        let attempts = [
            ("with a wrong master key", Self::unwrap_with_wrong_master(context)),
            (
                "with a wrong data key",
                read(&copy, context, Some(wrong_data_key)).map(|records| format!("{records} documents read")),
            ),
            ("without an encryptor", read(&copy, context, None).map(|records| format!("{records} documents read"))),
        ];
        // The engine reports what it cannot decrypt as an error of its own.
        let refused = |fault| if let Fault::Server(reason) = fault { Fault::Refused(reason) } else { fault };
        of_attempts(attempts.map(|(attempt, outcome)| (attempt, outcome.map_err(refused))))
    }
}

/// Opens the copy with `cipher` and reads its first documents; returns how many there were.
fn read(copy: &Copy, context: &CheckContext<'_>, cipher: Option<Arc<dyn PageCipher>>) -> Result<u64, Fault> {
    let engine = copy.open(context, cipher)?;
    session(&engine, context.table)?.call(&Request::Scan { start: b"", count: 10, fields: Fields::All }, &mut Discard)
}
