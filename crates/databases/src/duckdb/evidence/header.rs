//! What does the file say of its encryption?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::duckdb::{Header, header, path};

/// Reads the header of the file, without the engine. Id `header`.
pub struct CipherOfHeader {
    /// The cipher that was asked for.
    pub cipher: String,
}

impl Check for CipherOfHeader {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("header")
    }

    fn claim(&self) -> String {
        format!("the header of the file says that it is encrypted with AES-{}", self.cipher)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(match header(path(context.server)?)? {
            Header::Plain => Observation::Exposed("its flag says that it is not encrypted".to_owned()),
            Header::Encrypted(cipher) if cipher == self.cipher => {
                Observation::Protected(format!("encrypted with AES-{cipher}"))
            }
            Header::Encrypted(other) => Observation::Exposed(format!("encrypted with AES-{other}")),
        })
    }
}
