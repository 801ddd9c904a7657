//! Does the storage engine report that it encrypts, with the requested cipher?

use mongodb::bson::{Document, doc};
use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::mongodb::{build::at, store::administrator};

/// Asks the server for its running options and for its state. Id `encryption-in-force`.
pub struct EncryptionInForce {
    cipher: String,
}

impl EncryptionInForce {
    /// A check of `cipher`, as `security.encryptionCipherMode` names it.
    pub fn new(cipher: &str) -> Self {
        Self { cipher: cipher.to_owned() }
    }
}

impl Check for EncryptionInForce {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryption-in-force")
    }

    fn claim(&self) -> String {
        format!("the server reports that its storage engine encrypts with {}", self.cipher)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let link = administrator(context.server, context.setup)?;
        let options = link.admin(doc! { "getCmdLineOpts": 1 })?;
        let status = link.admin(doc! { "serverStatus": 1 })?;
        Ok(told(&options, &status, &self.cipher))
    }
}

/// The cipher, if no option names one (documentation, "security.encryptionCipherMode").
const DEFAULT: &str = "AES256-CBC";

/// What the answers to `getCmdLineOpts` and `serverStatus` show about encryption with `cipher`.
fn told(options: &Document, status: &Document, cipher: &str) -> Observation {
    let option = |name: &str| at(options, &["parsed", "security", name]);
    let on = option("enableEncryption").unwrap_or_else(|| "off".to_owned());
    let (mode, words) = match option("encryptionCipherMode") {
        Some(mode) => (mode, ""),
        None if on == "true" => (DEFAULT.to_owned(), ", the default"),
        None => ("off".to_owned(), ""),
    };
    let engine = at(status, &["storageEngine", "name"]).unwrap_or_else(|| "unknown".to_owned());
    let said =
        format!("getCmdLineOpts: enableEncryption {on}, encryptionCipherMode {mode}{words}; storage engine {engine}");
    if on == "true" && mode == cipher { Observation::Protected(said) } else { Observation::Exposed(said) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MongoDB's documentation has the answers, "getCmdLineOpts" and "Configuration File Options".
    fn told_by(security: Option<Document>) -> Observation {
        told_of(security, "AES256-GCM")
    }

    fn told_of(security: Option<Document>, cipher: &str) -> Observation {
        let mut parsed = doc! { "config": "/etc/mongod.conf", "net": { "port": 27017 } };
        if let Some(security) = security {
            parsed.insert("security", security);
        }
        let options = doc! { "argv": ["mongod", "--config", "/etc/mongod.conf"], "parsed": parsed, "ok": 1.0 };
        let status = doc! { "storageEngine": { "name": "wiredTiger", "persistent": true }, "ok": 1.0 };
        told(&options, &status, cipher)
    }

    #[test]
    fn encryption_with_the_cipher_that_was_asked_for_is_in_force() {
        let security =
            doc! { "enableEncryption": true, "encryptionKeyFile": "/key", "encryptionCipherMode": "AES256-GCM" };
        let said = "getCmdLineOpts: enableEncryption true, encryptionCipherMode AES256-GCM; storage engine wiredTiger";
        assert_eq!(told_by(Some(security)), Observation::Protected(said.to_owned()));
        let by_default = told_of(Some(doc! { "enableEncryption": true, "encryptionKeyFile": "/key" }), "AES256-CBC");
        let said = "getCmdLineOpts: enableEncryption true, encryptionCipherMode AES256-CBC, the default; storage \
                    engine wiredTiger";
        assert_eq!(by_default, Observation::Protected(said.to_owned()));
    }

    #[test]
    fn no_encryption_is_none_and_neither_is_another_cipher() {
        for (security, said) in [
            (
                Some(doc! { "enableEncryption": false, "encryptionCipherMode": "AES256-GCM" }),
                "enableEncryption false, encryptionCipherMode AES256-GCM",
            ),
            (
                Some(doc! { "enableEncryption": true, "encryptionCipherMode": "AES256-CBC" }),
                "enableEncryption true, encryptionCipherMode AES256-CBC",
            ),
            (
                Some(doc! { "enableEncryption": true, "encryptionKeyFile": "/key" }),
                "enableEncryption true, encryptionCipherMode AES256-CBC, the default",
            ),
            (Some(doc! { "authorization": "enabled" }), "enableEncryption off, encryptionCipherMode off"),
            (None, "enableEncryption off, encryptionCipherMode off"),
        ] {
            let said = format!("getCmdLineOpts: {said}; storage engine wiredTiger");
            assert_eq!(told_by(security), Observation::Exposed(said));
        }
    }
}
