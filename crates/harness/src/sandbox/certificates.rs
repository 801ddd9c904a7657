//! Certificates, keys and passwords of one run.

use std::path::Path;

use crate::{fault::Fault, protection::Materials};

/// Makes the materials of one run and writes their certificates and keys into `folder`.
///
/// # Errors
/// When a certificate cannot be made, or a file cannot be written.
pub fn prepare(folder: &Path) -> Result<Materials, Fault> {
    Err(Fault::machine(folder.display(), "not written yet"))
}
