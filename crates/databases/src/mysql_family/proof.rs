//! How a client proves a password without sending it.
//!
//! `mysql_native_password`: SHA-1(password) ⊕ SHA-1(salt ‖ SHA-1(SHA-1(password))). `caching_sha2_password`:
//! SHA-256(password) ⊕ SHA-256(SHA-256(SHA-256(password)) ‖ salt). `client_ed25519` (MariaDB): an Ed25519 signature of
//! the salt; a password of any length replaces the seed, so the key is its SHA-512. Sources: MariaDB documentation,
//! "Authentication Plugins"; MySQL internals, "Authentication Method".

use ed25519_dalek::{
    Digest as _, Sha512, VerifyingKey,
    hazmat::{ExpandedSecretKey, raw_sign},
};
use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use tithe_machine::{fault::Fault, secret::Secret};

/// MariaDB's default.
pub const NATIVE: &str = "mysql_native_password";
/// MySQL's default.
pub const CACHING_SHA2: &str = "caching_sha2_password";
/// MariaDB's stronger one, as the client knows it; the server calls it `ed25519`.
pub const ED25519: &str = "client_ed25519";

/// MySQL's first one with SHA-256, which always sends the password itself.
pub const SHA256_PASSWORD: &str = "sha256_password";
/// The password itself, for servers that forward it to another service (PAM, LDAP, tokens of a cloud).
pub const CLEAR: &str = "mysql_clear_password";

/// The proof that `plugin` requires; empty for an account without a password.
///
/// # Errors
/// [`Fault::Refused`] for an unsupported plugin, including those that send the password itself.
pub fn prove(plugin: &str, password: Option<&Secret>, salt: &[u8]) -> Result<Vec<u8>, Fault> {
    let Some(password) = password.map(Secret::expose).filter(|password| !password.is_empty()) else {
        return Ok(Vec::new());
    };
    // The zero at the end of the salt is not part of it.
    let salt = salt.get(..if plugin == ED25519 { 32 } else { 20 }).unwrap_or(salt);
    match plugin {
        NATIVE => {
            let once = hash(&SHA1_FOR_LEGACY_USE_ONLY, &[password]);
            let twice = hash(&SHA1_FOR_LEGACY_USE_ONLY, &[&once]);
            Ok(mixed(once, &hash(&SHA1_FOR_LEGACY_USE_ONLY, &[salt, &twice])))
        }
        CACHING_SHA2 => {
            let once = hash(&SHA256, &[password]);
            let twice = hash(&SHA256, &[&once]);
            Ok(mixed(once, &hash(&SHA256, &[&twice, salt])))
        }
        ED25519 => {
            let key = ExpandedSecretKey::from_bytes(&Sha512::digest(password).into());
            Ok(raw_sign::<Sha512>(&key, salt, &VerifyingKey::from(&key)).to_bytes().to_vec())
        }
        _ => Err(Fault::Refused(format!(
            "the server asks for {plugin}; {NATIVE}, {CACHING_SHA2}, {SHA256_PASSWORD}, {CLEAR} and {ED25519} are spoken"
        ))),
    }
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    let mut context = Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().to_vec()
}

fn mixed(mut left: Vec<u8>, right: &[u8]) -> Vec<u8> {
    left.iter_mut().zip(right).for_each(|(left, right)| *left ^= right);
    left
}

#[cfg(test)]
mod tests {
    use tithe_machine::secret::hex;

    use super::*;

    fn proof(plugin: &str, password: &str, salt: &[u8]) -> Result<String, Fault> {
        prove(plugin, Some(&Secret::new(password)), salt).map(|proof| hex(&proof))
    }

    /// Computed with Python's hashlib from the formulas in the sources.
    #[test]
    fn proofs_are_as_published() {
        let salt = b"12345678abcdefghijkl";
        assert_eq!(proof(NATIVE, "secret", salt).as_deref(), Ok("4f1522d6eb54737eda413b3e219ca6caebe3df2c"));
        assert_eq!(
            proof(CACHING_SHA2, "secret", salt).as_deref(),
            Ok("7f7e3878fe488ed45081455d0d6e89e26d4ef86ef6c6aeed02397b6fe8ad5422")
        );
        // A zero after the salt changes nothing.
        assert_eq!(proof(NATIVE, "secret", b"12345678abcdefghijkl\0"), proof(NATIVE, "secret", salt));
    }

    #[test]
    fn no_password_is_no_proof_and_what_is_not_spoken_is_refused() {
        assert_eq!(prove(NATIVE, None, b"12345678abcdefghijkl"), Ok(Vec::new()));
        assert!(matches!(proof("mysql_clear_password", "secret", b""), Err(Fault::Refused(_))));
    }

    /// A password as long as a seed is a seed; tests with servers check other lengths.
    #[test]
    fn a_signature_is_the_usual_one_and_of_a_password_of_any_length() {
        let seed = "0123456789abcdef0123456789abcdef";
        let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(seed.as_bytes()).expect("a seed");
        assert_eq!(proof(ED25519, seed, &[1; 32]), Ok(hex(pair.sign(&[1; 32]).as_ref())));
        assert_eq!(proof(ED25519, "secret", &[1; 32]).map(|proof| proof.len()), Ok(128));
    }
}
