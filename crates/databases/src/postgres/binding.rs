//! Channel binding ties a login to its TLS connection by the hash of the server's certificate.
//!
//! Source: RFC 5929, section 4 (`tls-server-end-point`). The hash function is that of the certificate's signature, with
//! SHA-256 in place of MD5 and SHA-1.

use ring::digest::{self, SHA256, SHA384, SHA512};
use tithe_plugin::wire::element;

/// Object identifiers of signatures with another hash than SHA-256, in DER, with the hash.
const OTHERS: [(&[u8], &digest::Algorithm); 4] = [
    // ecdsa-with-SHA384, ecdsa-with-SHA512 (RFC 5758)
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], &SHA384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], &SHA512),
    // sha384WithRSAEncryption, sha512WithRSAEncryption (RFC 8017)
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &SHA384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &SHA512),
];

/// Object identifiers of signatures that name no hash function of their own: Ed25519 and RSASSA-PSS.
const WITHOUT: [&[u8]; 2] = [&[0x2b, 0x65, 0x70], &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10]];

/// The hash of `certificate`, which is DER; `None` if its signature does not name a hash function.
pub fn of_certificate(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(certificate)?;
    // The signed part, and the signature's algorithm, which begins with its identifier (RFC 5280, section 4.1).
    let (_, behind) = element(whole)?;
    let (algorithm, _) = element(behind)?;
    let (identifier, _) = element(algorithm)?;
    if WITHOUT.contains(&identifier) {
        return None;
    }
    let hash = OTHERS.iter().find(|(other, _)| *other == identifier).map_or(&SHA256, |(_, hash)| *hash);
    Some(digest::digest(hash, certificate).as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate of one byte and a signature by `algorithm`.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let length = algorithm.len() as u8;
        let signed = [&[0x30, 1, 7, 0x30, length + 2, 6, length][..], algorithm].concat();
        [&[0x30, 0x81, signed.len() as u8][..], &signed].concat()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let length = |algorithm: &[u8]| of_certificate(&certificate(algorithm)).map(|hash| hash.len());
        assert_eq!(length(OTHERS[0].0), Some(48));
        assert_eq!(length(OTHERS[3].0), Some(64));
        // sha1WithRSAEncryption
        assert_eq!(length(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5]), Some(32));
        assert_eq!(length(WITHOUT[0]), None);
        for end in 0..certificate(WITHOUT[1]).len() {
            let _ = of_certificate(&certificate(WITHOUT[1])[..end]);
        }
        assert_eq!(of_certificate(&[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), None);
    }
}
