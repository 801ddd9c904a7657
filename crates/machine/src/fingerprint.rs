//! A short name for bytes that are equal wherever they are and differ where anything differs: of a boot, of a plan.

use ring::digest::{SHA256, digest};

/// Bytes of the digest that are kept: 64 bits, of which a million differ with a chance of error of one in 10⁷.
const BYTES: usize = 8;

/// The first bytes of the SHA-256 of `bytes`, in hexadecimal.
pub fn fingerprint(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn it_is_the_beginning_of_the_digest() {
        assert_eq!(fingerprint(b"abc"), "ba7816bf8f01cfea");
    }
}
