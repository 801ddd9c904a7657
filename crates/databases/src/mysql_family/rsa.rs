//! Encrypts a password for the server: RSA with OAEP padding, SHA-1 and its mask (RFC 8017, section 7.1). This is what
//! `caching_sha2_password` accepts on a connection without TLS (MySQL internals, "Caching_sha2_password information").
//!
//! No private key is used here. A key does not show whose it is; the caller must know that.

use num_bigint::BigUint;
use ring::{
    digest::{SHA1_FOR_LEGACY_USE_ONLY, digest},
    rand::{SecureRandom, SystemRandom},
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use tithe_machine::fault::Fault;

/// Bytes of a SHA-1 hash.
const HASH: usize = 20;
/// Accepted lengths of a modulus, bytes: servers create 2048 bits, and less is no longer safe.
const MODULUS: std::ops::RangeInclusive<usize> = 256..=1024;
/// Longest public exponent, bytes; 65537 has three.
const LONGEST_EXPONENT: usize = 8;
/// `rsaEncryption`, with its parameters (RFC 8017, appendix A.1).
const ALGORITHM: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
/// Tags of DER (ITU-T X.690).
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
    /// Bytes of the modulus.
    length: usize,
}

impl PublicKey {
    /// Reads a key in PEM (`BEGIN PUBLIC KEY`).
    ///
    /// # Errors
    /// [`Fault::Protocol`] for anything else; [`Fault::Refused`] for a key that is too short to be safe, or far too
    /// long.
    pub fn of_pem(pem: &[u8]) -> Result<Self, Fault> {
        let foreign = || Fault::Protocol("the server's public key is not an RSA key in PEM".to_owned());
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| foreign())?;
        let (modulus, exponent) = parts(&der).ok_or_else(foreign)?;
        if !MODULUS.contains(&modulus.len()) || exponent.len() > LONGEST_EXPONENT {
            return Err(Fault::Refused(format!("the server's RSA key has {} bits", 8 * modulus.len())));
        }
        let number = BigUint::from_bytes_be;
        Ok(Self { modulus: number(modulus), exponent: number(exponent), length: modulus.len() })
    }

    /// Encrypts `text`.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a text that is too long for the key; [`Fault::Machine`] if the system provides no random
    /// bytes.
    pub fn encrypt(&self, text: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut seed = [0; HASH];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| Fault::Machine("the system gives no random bytes".to_owned()))?;
        self.encrypt_with(text, seed)
    }

    fn encrypt_with(&self, text: &[u8], mut seed: [u8; HASH]) -> Result<Vec<u8>, Fault> {
        let room = self.length - 2 * HASH - 2;
        let padding = room
            .checked_sub(text.len())
            .ok_or_else(|| Fault::Refused(format!("a password of more than {} bytes", room - 1)))?;
        let mut block = [hash(&[]).as_slice(), &vec![0; padding], &[1], text].concat();
        mask(&mut block, &seed);
        mask(&mut seed, &block);
        let padded = BigUint::from_bytes_be(&[&seed[..], &block].concat());
        let sealed = padded.modpow(&self.exponent, &self.modulus).to_bytes_be();
        Ok([vec![0; self.length - sealed.len()], sealed].concat())
    }
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
}

/// Mixes the mask of `seed` into `bytes` (MGF1).
fn mask(bytes: &mut [u8], seed: &[u8]) {
    for (number, chunk) in (0u32..).zip(bytes.chunks_mut(HASH)) {
        let mask = hash(&[seed, &number.to_be_bytes()].concat());
        chunk.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// Modulus and exponent of a key, without leading zeros.
fn parts(mut der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut info = element(&mut der, SEQUENCE)?;
    let algorithm = element(&mut info, SEQUENCE)?;
    let (&0, mut key) = element(&mut info, BIT_STRING)?.split_first()? else { return None };
    let mut key = element(&mut key, SEQUENCE)?;
    let mut number = || {
        let bytes = element(&mut key, INTEGER)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Some(&bytes[zeros..]).filter(|bytes| !bytes.is_empty())
    };
    let parts = (number()?, number()?);
    (algorithm == ALGORITHM).then_some(parts)
}

/// The content of the element with `tag` at the start of `der`, which is removed from it.
fn element<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    // Above 127 the low bits say how many bytes the length has.
    let (length, rest) = match first {
        0..=127 => (usize::from(first), rest),
        0x81 => rest.split_first().map(|(&length, rest)| (usize::from(length), rest))?,
        0x82 => rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?,
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *der = rest;
    (found == tag).then_some(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tithe_machine::secret::hex;

    use super::*;

    /// Made by OpenSSL for this test.
    const PEM: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu6leiKwdibYy5BUYb9p2\n\
6aobHP7a+qyXO53jrLVWIaVDyNcOp/rNk0d8BTjGQkAVKkP+JmoATRQpvYvH5okD\n\
m6GnMpQXjVQXTkJlCYCuQsNvmSesUuhL2GjVqk6tFdGkJpBcsC4/Pnv8w/5F27/r\n\
7ziDFyjWfrvPRWaZo/dZUeN6rzUfX/pZdEW3lkBZIax7eaXRCXOUDqiIzBv+Hg1s\n\
eocKIEvcrhcxTO0H7523YecUaqjfX1S+dN5IbLGacWmS+VRLnuGIY6PBXjJUpLfD\n\
IRYjO6AuOKqi68xl7x95i7SYsQAIzFxP0C2ifGCG2U21scQAMJLWDSuQ/VTj4D5E\n\
IQIDAQAB\n\
-----END PUBLIC KEY-----\n";

    /// The SHA-256 of the result of the RFC's formulas in Python, which OpenSSL decrypted.
    #[test]
    fn a_password_is_encrypted_as_openssl_reads_it() {
        let key = PublicKey::of_pem(PEM.as_bytes()).expect("a key");
        let sealed = key.encrypt_with(b"correct horse\0", std::array::from_fn(|byte| byte as u8)).expect("sealed");
        assert_eq!(sealed.len(), 256);
        let expected = "d6f2ece0362c026d4d4e570c39ba61e47e21b8807bed08a1eba8644954bb3619";
        assert_eq!(hex(digest(&ring::digest::SHA256, &sealed).as_ref()), expected);
        assert_ne!(key.encrypt(b"twice"), key.encrypt(b"twice"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let key = PublicKey::of_pem(PEM.as_bytes()).expect("a key");
        assert!(key.encrypt(&[7; 256 - 42]).is_ok());
        assert!(matches!(key.encrypt(&[7; 256 - 41]), Err(Fault::Refused(_))));
        assert!(matches!(PublicKey::of_pem(b"no key"), Err(Fault::Protocol(_))));
    }

    proptest! {
        #[test]
        fn nothing_in_a_key_makes_it_panic(at in 0..300usize, byte: u8, cut in 0..300usize) {
            let whole = SubjectPublicKeyInfoDer::from_pem_slice(PEM.as_bytes()).expect("a key").to_vec();
            let mut der = whole.clone();
            let at = at % der.len();
            der[at] = byte;
            der.truncate(cut.max(1));
            let _ = parts(&der);
            prop_assert!(parts(&whole).is_some());
        }
    }
}
