//! How one field value is encrypted, and why no nonce is used twice.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::secret::Secret;

/// How much longer a stored value is than its plaintext, bytes: nonce and tag.
pub const OVERHEAD: usize = NONCE_LEN + ring::aead::MAX_TAG_LEN;

/// AES-256-GCM with `key`, which must have 32 bytes.
pub(super) fn cipher(key: &Secret) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.expose()).expect("a column key has 32 bytes"))
}

/// The additional data of a value: its field number, 4 bytes, then its record's key.
#[derive(Default)]
pub(super) struct FieldAad(Vec<u8>);

impl FieldAad {
    const FIELD_BYTES: usize = 4;

    pub(super) fn set_key(&mut self, key: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(&[0; Self::FIELD_BYTES]);
        self.0.extend_from_slice(key);
    }

    pub(super) fn key(&self) -> &[u8] {
        self.0.get(Self::FIELD_BYTES..).unwrap_or_default()
    }

    pub(super) fn of(&mut self, field: usize) -> &[u8] {
        if self.0.is_empty() {
            self.set_key(&[]);
        }
        self.0[..Self::FIELD_BYTES].copy_from_slice(&(field as u32).to_be_bytes());
        &self.0
    }
}

/// Appends `nonce ‖ ciphertext ‖ tag` of `plaintext` to `sealed`.
pub(super) fn seal(cipher: &LessSafeKey, nonce: [u8; NONCE_LEN], aad: &[u8], plaintext: &[u8], sealed: &mut Vec<u8>) {
    sealed.extend_from_slice(&nonce);
    let start = sealed.len();
    sealed.extend_from_slice(plaintext);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = cipher
        .seal_in_place_separate_tag(nonce, Aad::from(aad), &mut sealed[start..])
        .expect("a value is far shorter than the 64 GiB that GCM can encrypt");
    sealed.extend_from_slice(tag.as_ref());
}

/// The plaintext of `stored`, in `opened`; `None` when it was not made with this key for this place.
pub(super) fn open<'a>(cipher: &LessSafeKey, aad: &[u8], stored: &[u8], opened: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let (nonce, ciphertext) = stored.split_first_chunk::<NONCE_LEN>()?;
    opened.clear();
    opened.extend_from_slice(ciphertext);
    let nonce = Nonce::assume_unique_for_key(*nonce);
    cipher.open_in_place(nonce, Aad::from(aad), opened).ok().map(|plaintext| &*plaintext)
}

/// Nonces that never repeat under one key: 8 bytes that name the session, 4 bytes that count.
///
/// This is the deterministic construction of NIST SP 800-38D, section 8.2.1: a fixed field that no other user of the
/// key has, and an invocation field that counts. A session that has counted to its end takes a new fixed field.
///
/// Fixed fields are consecutive numbers from a start that is drawn at random once in the life of the program, so within
/// one program they are distinct for certain. Should a key ever be used by p programs with n sessions each, two of their
/// ranges overlap with a probability below p²n/2⁶⁴: with p = 16 and n = 2²⁰ that is 2⁻³⁶, below the 2⁻³² that section
/// 8 allows.
pub(super) struct Nonces {
    prefix: u64,
    /// `None`: all values of this prefix are used up.
    counter: Option<u32>,
}

impl Nonces {
    pub(super) fn new() -> Self {
        Self { prefix: Self::fresh_prefix(), counter: Some(0) }
    }

    fn fresh_prefix() -> u64 {
        static NEXT: OnceLock<AtomicU64> = OnceLock::new();
        let next = NEXT.get_or_init(|| {
            let random = Secret::random(8);
            AtomicU64::new(u64::from_be_bytes(random.expose().try_into().expect("8 bytes were asked for")))
        });
        next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn next(&mut self) -> [u8; NONCE_LEN] {
        let counter = self.counter.unwrap_or_else(|| {
            self.prefix = Self::fresh_prefix();
            0
        });
        self.counter = counter.checked_add(1);
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&self.prefix.to_be_bytes());
        nonce[8..].copy_from_slice(&counter.to_be_bytes());
        nonce
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    #[test]
    fn nonces_differ_within_and_between_sessions() {
        let mut seen = HashSet::new();
        for _ in 0..100 {
            let mut nonces = Nonces::new();
            assert!((0..100).all(|_| seen.insert(nonces.next())));
        }
    }

    #[test]
    fn a_session_that_has_counted_to_its_end_takes_a_new_name() {
        let mut nonces = Nonces { counter: Some(u32::MAX - 1), ..Nonces::new() };
        let before = nonces.prefix;
        let drawn: Vec<_> = (0..4).map(|_| nonces.next()).collect();
        let prefixes: Vec<_> = drawn.iter().map(|nonce| nonce[..8] == before.to_be_bytes()).collect();
        assert_eq!(prefixes, [true, true, false, false]);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 4);
    }
}
