//! The parsers of this module for bytes that others wrote, for `fuzz/targets`.

use rustls::pki_types::CertificateDer;

use super::{der, tls};

/// A target of the fuzzer: a name, and what is done with the bytes.
pub type Parser = (&'static str, fn(&[u8]));

/// All of them.
pub const PARSERS: &[Parser] = &[("certificate", |bytes| {
    let _ = (tls::key_of(&CertificateDer::from(bytes)), tls::key_kind(bytes), der::element(bytes));
})];
