//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_machine::secret::Secret;
use tithe_plugin::wire::foreign::Parser;

use super::evidence::innodb_file::{self, Cipher};

/// All of them.
pub const PARSERS: &[Parser] = &[("innodb-page", |bytes| {
    let key = Secret::new([7; 32]);
    for cipher in [Cipher::Cbc, Cipher::Ctr] {
        let _ = innodb_file::examine_all(bytes, 4096, cipher, &[&key, &key]);
    }
})];
