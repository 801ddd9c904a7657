//! Are the keys of the keyring kept out of the data?

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use tithe_machine::{
    fault::Fault,
    launch::Server,
    observation::Observation,
    secret::{Secret, unhex},
};
use tithe_plugin::{
    checks::key_apart::KeyApart,
    evidence::{Check, CheckContext, CheckEntry},
    setup::AtRest,
};

use crate::mysql::{
    access::ACCESS,
    at_rest::{KEYRING_UNTOLD, keyring},
    launch::KEYS,
};

/// Reads the server's keys from its keyring file and searches for each of them as the shared check searches for Tithe's
/// keys: in all other files of the server. The file must only be readable by the server's account, and must be the one
/// that the server reports. If the performance schema is off, the server does not report it, but its folder only had
/// keys that it made itself. Id `keyring-apart`.
pub struct KeyringApart;

impl Check for KeyringApart {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("keyring-apart").own_control()
    }

    fn claim(&self) -> String {
        "the keys of the keyring are in its own file, which the server's account alone may read, and in no other file of the \
         server"
            .to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let file = context.server.folder.join(KEYS);
        let mut session = ACCESS.administrator(context.server, context.setup)?;
        let told = keyring(&mut session)?;
        let failed = |error| Fault::machine(file.display(), error);
        if let Some(why) = elsewhere(told.as_deref(), &file) {
            return Ok(Observation::Exposed(why));
        }
        let mode = fs::metadata(&file).map_err(failed)?.permissions().mode() & 0o777;
        if let Some(why) = open_to_others(mode) {
            return Ok(Observation::Exposed(why));
        }
        let keys = keys(&fs::read_to_string(&file).map_err(failed)?);
        if keys.is_empty() {
            return Ok(Observation::Unknown(format!("no key could be read out of {KEYS}")));
        }
        let count = keys.len();
        let mut extent = String::new();
        for key in keys {
            match apart(context, key)? {
                Observation::Protected(words) => extent = words,
                other => return Ok(other),
            }
        }
        let word = if told.is_some() { String::new() } else { format!("; the file in use: {KEYRING_UNTOLD}") };
        Ok(Observation::Protected(format!("{count} keys in {KEYS} (mode 600): {extent}{word}")))
    }
}

/// The keyring file that the server reports, if it reports one other than `file`.
fn elsewhere(told: Option<&[(String, String)]>, file: &Path) -> Option<String> {
    let used = told?.iter().find(|(name, _)| name == "Data_file").map(|(_, value)| value.as_str());
    (used.map(Path::new) != Some(file)).then(|| format!("the server's keys are in {}", used.unwrap_or("no file")))
}

/// The mode of the keyring's file, if others than the server's account may read it.
fn open_to_others(mode: u32) -> Option<String> {
    (mode != 0o600).then(|| format!("{KEYS} has mode {mode:o}"))
}

/// The result of the shared check for one `key`, over all files of the server except the keyring's folder.
fn apart(context: &CheckContext<'_>, key: Secret) -> Result<Observation, Fault> {
    let mut setup = context.setup.clone();
    setup.at_rest = Some(AtRest { cipher: String::new(), key });
    let folder = &context.server.folder;
    let mut server = Server { folder: folder.join("tmp"), ..context.server.clone() };
    server.paths.data.extend(["my.cnf", "accounts.sql", "plugins", "program/mysqld.my"].map(|name| folder.join(name)));
    KeyApart.observe(&mut CheckContext { server: &server, setup: &setup, ..*context })
}

/// Bytes of a key: all are for AES-256. A shorter value is the number of the binary log's key.
const KEY: usize = 32;

/// The keys in a keyring's file: JSON, with each key in hexadecimal digits as the `data` of an element.
fn keys(file: &str) -> Vec<Secret> {
    let values = file.split("\"data\":").skip(1).filter_map(|rest| rest.split('"').nth(1));
    values.filter_map(unhex::<KEY>).map(Secret::new).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_read_out_of_the_file() {
        let element = |id: &str, data: &str| {
            format!(r#"{{"user":"","data_id":"{id}","data_type":"AES","data":"{data}","extension":[]}}"#)
        };
        let [first, second] = ["00ffA1C5".repeat(8), "2b".repeat(32)];
        let elements = [
            element("INNODBKey-b238fcb8-1", &first),
            element("MySQLReplicationKey_b238fcb8_1", &second),
            element("MySQLReplicationKey_b238fcb8", "01000000000000000000000000000000"),
        ];
        let file = format!(r#"{{"version":"1.0","elements":[{}]}}"#, elements.join(","));
        let found: Vec<_> = keys(&file).iter().map(Secret::expose_hex).collect();
        assert_eq!(found, [first.to_lowercase(), second]);
        assert!(keys(r#"{"version":"1.0","elements":[]}"#).is_empty());
    }

    #[test]
    fn the_file_in_use_is_the_one_that_is_checked() {
        let (file, words) = (Path::new("/s/keyring/keys"), |words: &str| Some(words.to_owned()));
        let told = |name: &str, value: &str| {
            elsewhere(
                Some(&[("Component_status".to_owned(), "Active".to_owned()), (name.to_owned(), value.to_owned())]),
                file,
            )
        };
        assert_eq!(told("Data_file", "/s/keyring/keys"), None);
        assert_eq!(told("Data_file", "/s/data/keys"), words("the server's keys are in /s/data/keys"));
        assert_eq!(told("Other_file", "/s/keyring/keys"), words("the server's keys are in no file"));
        assert_eq!(elsewhere(Some(&[]), file), words("the server's keys are in no file"));
        // Where the server does not report it, the content of the file decides.
        assert_eq!(elsewhere(None, file), None);
    }

    #[test]
    fn the_keys_are_for_the_servers_account_alone() {
        assert_eq!(open_to_others(0o600), None);
        for mode in [0o640, 0o604, 0o620, 0o660, 0o644, 0o700] {
            assert!(open_to_others(mode).is_some_and(|words| words.ends_with(&format!(" has mode {mode:o}"))));
        }
    }

    proptest! {
        #[test]
        fn nothing_in_a_file_makes_it_panic(text in "[\"a-f:,{}d ]{0,40}", digits in "[0-9a-fx]{0,9}") {
            let _ = keys(&text);
            let _ = keys(&format!("{text}\"data\":\"{digits}\"{text}"));
        }
    }
}
