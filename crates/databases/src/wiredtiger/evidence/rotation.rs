//! Can the keys be changed, and how long does it take?

use std::{fs, time::Instant};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::Copy;
use crate::wiredtiger::{
    cipher_of,
    encryptor::{
        self,
        keystore::{self, Keystore},
    },
    folder, master_key, opened,
    rotation::{count, dump_and_load, rotate_master_key},
    settings::{JOURNAL, Settings},
};

/// Changes both keys of a copy, reports how long it took, and opens the result. A disclosure. Id `key-rotation`.
pub struct KeyRotation;

impl Check for KeyRotation {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("key-rotation").own_control()
    }

    fn claim(&self) -> String {
        "both keys can be changed, and every document is there afterwards".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Some(cipher) = cipher_of(context.setup) else {
            return Ok(Observation::Exposed("there are no keys".to_owned()));
        };
        let copy = Copy::of(context, self.id())?;
        // A backup holds the engine's files; the keystore is not one of them.
        fs::copy(folder(context.server)?.join(keystore::FILE_NAME), copy.folder.join(keystore::FILE_NAME))
            .map_err(|error| Fault::machine("cannot copy the keystore", error))?;
        let old = master_key(context.server, context.setup)?;
        let new = keystore::random_key()?;

        let begun = Instant::now();
        rotate_master_key(&copy.folder, &old, &new)?;
        let rewrapped_ms = begun.elapsed().as_secs_f64() * 1e3;
        let store = Keystore::read(&copy.folder)?.ok_or_else(|| Fault::Wrong("the keystore is gone".to_owned()))?;
        if store.unwrap(&old).is_ok() {
            return Ok(Observation::Exposed("the old master key still unwraps the data key".to_owned()));
        }
        let before = copy.open(context, Some(encryptor::page_cipher(cipher, &store.unwrap(&new)?)?))?;

        let after = Copy { folder: copy.folder.with_extension("rotated") };
        fs::create_dir_all(after.folder.join(JOURNAL))
            .map_err(|error| Fault::machine(after.folder.display(), error))?;
        let begun = Instant::now();
        let fresh = encryptor::page_cipher(cipher, &keystore::random_key()?)?;
        let engine = after.open(context, Some(fresh))?;
        let settings = Settings::resolve(&context.setup.settings)?;
        dump_and_load(&before, &engine, context.table, &settings)?;
        let loaded_s = begun.elapsed().as_secs_f64();
        let held = count(&engine, context.table)?;
        let measured = count(&opened(context.server, context.setup)?.engine, context.table)?;
        let quotation = format!(
            "master key: wrapped again in {rewrapped_ms:.1} ms, the old one is refused; data key: {} documents dumped and \
             loaded in {loaded_s:.1} s",
            held.0
        );
        Ok(judged(held, measured, quotation))
    }
}

/// What it shows that so many documents and index entries are `held` after a rotation of as many as were `measured`.
fn judged(held: (u64, u64), measured: (u64, u64), quotation: String) -> Observation {
    if held == measured && held.0 == held.1 {
        return Observation::Protected(quotation);
    }
    let [held, measured] =
        [held, measured].map(|(documents, entries)| format!("{documents} with {entries} index entries"));
    Observation::Exposed(format!("{held} of {measured} documents are there afterwards; {quotation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_and_its_entry_is_there_afterwards_or_something_was_lost() {
        let seen = |held, measured| judged(held, measured, "rotated".to_owned());
        assert_eq!(seen((9, 9), (9, 9)), Observation::Protected("rotated".to_owned()));
        for (held, measured) in
            [((8, 8), (9, 9)), ((8, 9), (9, 9)), ((9, 8), (9, 9)), ((9, 8), (9, 8)), ((10, 10), (9, 9))]
        {
            assert!(matches!(seen(held, measured), Observation::Exposed(_)), "{held:?} of {measured:?}");
        }
    }
}
