//! Does the storage engine say that it encrypts, with the cipher asked for?

use mongodb::bson::doc;
use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::mongodb::{build::at, store::administrator};

/// Asks the server for the options that it runs with and for its state. Id `encryption-in-force`.
pub struct EncryptionInForce {
    cipher: String,
}

impl EncryptionInForce {
    /// A check of `cipher`, in the words of `security.encryptionCipherMode`.
    pub fn new(cipher: &str) -> Self {
        Self { cipher: cipher.to_owned() }
    }
}

impl Check for EncryptionInForce {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("encryption-in-force")
    }

    fn claim(&self) -> String {
        format!("the server says that its storage engine encrypts with {}", self.cipher)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let link = administrator(context.server, context.setup)?;
        let options = link.admin(doc! { "getCmdLineOpts": 1 })?;
        let status = link.admin(doc! { "serverStatus": 1 })?;
        let option = |name: &str| at(&options, &["parsed", "security", name]).unwrap_or_else(|| "off".to_owned());
        let (on, cipher) = (option("enableEncryption"), option("encryptionCipherMode"));
        let engine = at(&status, &["storageEngine", "name"]).unwrap_or_else(|| "unknown".to_owned());
        let said =
            format!("getCmdLineOpts: enableEncryption {on}, encryptionCipherMode {cipher}; storage engine {engine}");
        Ok(if on == "true" && cipher == self.cipher {
            Observation::Protected(said)
        } else {
            Observation::Exposed(said)
        })
    }
}
