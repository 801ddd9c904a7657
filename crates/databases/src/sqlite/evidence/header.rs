//! Does the file say that it is a plain SQLite database?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::flush;
use crate::sqlite::{PLAIN_HEADER, header, path};

/// Looks at the first bytes of the file. Id `header`.
pub struct Header;

impl Check for Header {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("header")
    }

    fn claim(&self) -> String {
        "the file does not begin as a plain SQLite file does".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        flush(context)?;
        let bytes = header(path(context.server)?)?;
        let quotation = format!("it begins with `{}`", bytes.escape_ascii());
        Ok(if bytes == *PLAIN_HEADER { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }
}
