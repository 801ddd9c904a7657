//! Does the file say that it is a plain SQLite database?

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_plugin::evidence::{CheckEntry, Evidence, Scene};

use super::flush;
use crate::sqlite::{PLAIN_HEADER, header, path};

/// Looks at the first bytes of the file. Id `header`.
pub struct Header;

impl Evidence for Header {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("header")
    }

    fn claim(&self) -> String {
        "the file does not begin as a plain SQLite file does".to_owned()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        flush(scene)?;
        let bytes = header(path(scene.server)?)?;
        let quotation = format!("it begins with `{}`", bytes.escape_ascii());
        Ok(if bytes == *PLAIN_HEADER { Sight::Exposed(quotation) } else { Sight::Protected(quotation) })
    }
}
