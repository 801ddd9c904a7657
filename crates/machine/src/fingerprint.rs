//! A short name for bytes, equal only for equal bytes: of a boot, of a plan.

use std::io::{self, Read};

use ring::digest::{Context, SHA256, digest};

use crate::secret::hex;

/// Bytes of the digest that are kept: with 64 bits, the probability that two of a million collide is one in 10⁷.
const BYTES: usize = 8;

/// The first bytes of the SHA-256 of `bytes`, in hexadecimal.
pub fn fingerprint(bytes: &[u8]) -> String {
    hex(&digest(&SHA256, bytes).as_ref()[..BYTES])
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// The SHA-256 of all of `content`, in hexadecimal.
///
/// # Errors
/// When it cannot be read completely.
pub fn sha256_of(mut content: impl Read) -> io::Result<String> {
    let (mut context, mut bytes) = (Context::new(&SHA256), vec![0; 1 << 16]);
    loop {
        match content.read(&mut bytes)? {
            0 => return Ok(hex(context.finish().as_ref())),
            count => context.update(&bytes[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fingerprint, sha256, sha256_of};

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn it_is_the_beginning_of_the_digest() {
        assert_eq!(fingerprint(b"abc"), "ba7816bf8f01cfea");
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_of(&b"abc"[..]).expect("read"), sha256(b"abc"));
    }
}
