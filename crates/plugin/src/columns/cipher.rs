//! How one value is encrypted, and why no nonce is used twice.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit, consts::U12, inout::InOutBuf},
};
use aes_siv::siv::{Aes256Siv, CmacSiv};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf,
};
use sm4::Sm4;
use tithe_machine::{fault::Fault, secret::Secret};

use super::secretbox;
use crate::setup::{ColumnCipher, Columns, KEY_BYTES};

/// How much longer a stored value is than its plaintext at most, bytes: nonce and tag.
pub const OVERHEAD: usize = secretbox::NONCE_BYTES + TAG_BYTES;

/// The same with a cipher in GCM.
pub(super) const GCM_OVERHEAD: usize = NONCE_LEN + TAG_BYTES;

/// The same for deterministic encryption: the synthetic initialisation vector.
pub const DETERMINISTIC_OVERHEAD: usize = TAG_BYTES;

const TAG_BYTES: usize = 16;

/// Randomised encryption of single values: AES-256-GCM by ring, SM4-128-GCM (RFC 8998) by RustCrypto, and NaCl's
/// secretbox, which binds no value to its place.
pub(super) enum Randomised {
    Aes(Box<LessSafeKey>),
    Sm4(Box<AesGcm<Sm4, U12>>),
    Secretbox(Box<[u8; KEY_BYTES]>),
}

impl Randomised {
    /// `cipher` with `key`. AES and secretbox use it unchanged, SM4 a key of 16 bytes derived from it.
    ///
    /// # Errors
    /// [`Fault::Refused`] if it does not have [`KEY_BYTES`].
    pub(super) fn new(cipher: ColumnCipher, key: &Secret) -> Result<Self, Fault> {
        let wrong = |bytes: usize| Fault::Refused(format!("a column key has {KEY_BYTES} bytes, and this one {bytes}"));
        let bytes = key.expose();
        if bytes.len() != KEY_BYTES {
            return Err(wrong(bytes.len()));
        }
        Ok(match cipher {
            ColumnCipher::Aes256Gcm => {
                let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| wrong(bytes.len()))?;
                Self::Aes(Box::new(LessSafeKey::new(key)))
            }
            ColumnCipher::Sm4Gcm => Self::Sm4(Box::new(from_derived(&derived::<16>(key, b"tithe columns sm4-gcm")))),
            ColumnCipher::Secretbox => Self::Secretbox(Box::new(bytes.try_into().map_err(|_| wrong(bytes.len()))?)),
        })
    }

    /// How much longer a stored value is than its plaintext, bytes.
    fn overhead(&self) -> usize {
        match self {
            Self::Aes(_) | Self::Sm4(_) => GCM_OVERHEAD,
            Self::Secretbox(_) => OVERHEAD,
        }
    }
}

/// Deterministic encryption: equal values of one domain have equal ciphertexts; besides that, only lengths are
/// revealed. SIV of Rogaway and Shrimpton (RFC 5297), with AES-256 or with SM4.
pub(super) enum Deterministic {
    Aes(Box<Aes256Siv>),
    Sm4(Box<CmacSiv<Sm4>>),
}

impl Deterministic {
    /// The block cipher of `cipher` in SIV mode with keys derived from `key`; AES if it has none.
    pub(super) fn new(cipher: ColumnCipher, key: &Secret) -> Self {
        match cipher {
            ColumnCipher::Aes256Gcm | ColumnCipher::Secretbox => {
                Self::Aes(Box::new(from_derived(&derived::<64>(key, b"tithe columns aes-256-siv"))))
            }
            ColumnCipher::Sm4Gcm => Self::Sm4(Box::new(from_derived(&derived::<32>(key, b"tithe columns sm4-siv")))),
        }
    }

    /// Appends `synthetic vector ‖ ciphertext` of `plaintext` in `domain` to `sealed`.
    pub(super) fn seal(&mut self, domain: &[u8], plaintext: &[u8], sealed: &mut Vec<u8>) {
        let start = sealed.len();
        sealed.extend_from_slice(&[0; TAG_BYTES]);
        sealed.extend_from_slice(plaintext);
        let (vector, text) = sealed[start..].split_at_mut(TAG_BYTES);
        let text = InOutBuf::from(text);
        let tag = match self {
            Self::Aes(siv) => siv.encrypt_inout_detached([domain], text),
            Self::Sm4(siv) => siv.encrypt_inout_detached([domain], text),
        };
        vector.copy_from_slice(&tag.expect("one header is fewer than the 126 that SIV can take"));
    }

    /// The plaintext of `stored`, in `opened`; `None` if it was not made with this key for this domain.
    pub(super) fn open<'a>(&mut self, domain: &[u8], stored: &[u8], opened: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let (vector, ciphertext) = stored.split_first_chunk::<TAG_BYTES>()?;
        opened.clear();
        opened.extend_from_slice(ciphertext);
        let (text, vector) = (InOutBuf::from(opened.as_mut_slice()), (*vector).into());
        match self {
            Self::Aes(siv) => siv.decrypt_inout_detached([domain], text, &vector),
            Self::Sm4(siv) => siv.decrypt_inout_detached([domain], text, &vector),
        }
        .ok()?;
        Some(opened)
    }
}

/// How the fields of records by key are encrypted, each value bound to its place.
pub(super) enum FieldCipher {
    /// Bound to record and field, with a nonce that never repeats.
    Randomised(Randomised, Nonces),
    /// Bound to the field alone: equal values of one field look equal in every record.
    Deterministic(Deterministic),
}

impl FieldCipher {
    /// According to `columns`.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the key does not have [`KEY_BYTES`].
    pub(super) fn new(columns: &Columns) -> Result<Self, Fault> {
        let randomised = Randomised::new(columns.cipher, &columns.key)?;
        Ok(if columns.deterministic {
            Self::Deterministic(Deterministic::new(columns.cipher, &columns.key))
        } else {
            Self::Randomised(randomised, Nonces::new())
        })
    }

    /// How much longer a stored value is than its plaintext, bytes.
    pub(super) fn overhead(&self) -> usize {
        match self {
            Self::Randomised(cipher, _) => cipher.overhead(),
            Self::Deterministic(_) => DETERMINISTIC_OVERHEAD,
        }
    }

    /// Appends the stored form of `plaintext`, which is `field` of the record in `aad`, to `sealed`.
    pub(super) fn seal(&mut self, aad: &mut FieldAad, field: usize, plaintext: &[u8], sealed: &mut Vec<u8>) {
        match self {
            Self::Randomised(cipher, nonces) => seal(cipher, nonces.next(), aad.of(field), plaintext, sealed),
            Self::Deterministic(cipher) => cipher.seal(&FieldAad::field(field), plaintext, sealed),
        }
    }

    /// The plaintext of `stored`, in `opened`; `None` if it was not made with this key for this place.
    pub(super) fn open<'a>(
        &mut self,
        aad: &mut FieldAad,
        field: usize,
        stored: &[u8],
        opened: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        match self {
            Self::Randomised(cipher, _) => open(cipher, aad.of(field), stored, opened),
            Self::Deterministic(cipher) => cipher.open(&FieldAad::field(field), stored, opened),
        }
    }
}

/// A key of `N` bytes for the purpose in `label`, from the arm's column key: HKDF-SHA-256 (RFC 5869) without salt,
/// which a key of 32 random bytes does not need.
fn derived<const N: usize>(key: &Secret, label: &[u8]) -> [u8; N] {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = [0; N];
    hkdf::Salt::new(hkdf::HKDF_SHA256, &[])
        .extract(key.expose())
        .expand(&[label], Length(N))
        .and_then(|okm| okm.fill(&mut out))
        .expect("64 bytes are fewer than the 8160 that HKDF-SHA-256 can make");
    out
}

fn from_derived<C: KeyInit>(key: &[u8]) -> C {
    C::new_from_slice(key).expect("the derived key has the cipher's length")
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

    /// The part of a value's place that all records share.
    fn field(field: usize) -> [u8; Self::FIELD_BYTES] {
        (field as u32).to_be_bytes()
    }

    pub(super) fn of(&mut self, field: usize) -> &[u8] {
        if self.0.is_empty() {
            self.set_key(&[]);
        }
        self.0[..Self::FIELD_BYTES].copy_from_slice(&Self::field(field));
        &self.0
    }
}

/// Appends `nonce ‖ ciphertext ‖ tag` of `plaintext` to `sealed`; with secretbox `nonce ‖ tag ‖ ciphertext`, as in NaCl
/// and Kubernetes.
pub(super) fn seal(cipher: &Randomised, nonce: [u8; NONCE_LEN], aad: &[u8], plaintext: &[u8], sealed: &mut Vec<u8>) {
    const SHORT: &str = "a value is far shorter than the 64 GiB that GCM can encrypt";
    sealed.extend_from_slice(&nonce);
    match cipher {
        Randomised::Aes(key) => {
            let text = appended(plaintext, sealed);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), text).expect(SHORT);
            sealed.extend_from_slice(tag.as_ref());
        }
        Randomised::Sm4(key) => {
            let text = InOutBuf::from(appended(plaintext, sealed));
            let tag = key.encrypt_inout_detached(&nonce.into(), aad, text).expect(SHORT);
            sealed.extend_from_slice(&tag);
        }
        Randomised::Secretbox(key) => secretbox::seal(key, nonce, plaintext, sealed),
    }
}

/// `plaintext`, at the end of `sealed`.
fn appended<'a>(plaintext: &[u8], sealed: &'a mut Vec<u8>) -> &'a mut [u8] {
    let start = sealed.len();
    sealed.extend_from_slice(plaintext);
    &mut sealed[start..]
}

/// The plaintext of `stored`, in `opened`; `None` if it was not made with this key for this place.
pub(super) fn open<'a>(cipher: &Randomised, aad: &[u8], stored: &[u8], opened: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let (nonce, ciphertext) = stored.split_first_chunk::<NONCE_LEN>()?;
    opened.clear();
    opened.extend_from_slice(ciphertext);
    match cipher {
        Randomised::Aes(key) => {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            key.open_in_place(nonce, Aad::from(aad), opened).ok().map(|plaintext| &*plaintext)
        }
        Randomised::Sm4(key) => {
            let length = opened.len().checked_sub(TAG_BYTES)?;
            let (text, tag) = opened.split_at_mut(length);
            let tag: [u8; TAG_BYTES] = (&*tag).try_into().ok()?;
            key.decrypt_inout_detached(&(*nonce).into(), aad, InOutBuf::from(&mut *text), &tag.into()).ok()?;
            Some(text)
        }
        Randomised::Secretbox(key) => secretbox::open(key, *nonce, opened),
    }
}

/// Nonces that never repeat under one key: 8 bytes that identify the session, 4 bytes that count.
///
/// This is the deterministic construction of NIST SP 800-38D, section 8.2.1: a fixed field that no other user of the
/// key has, and an invocation field that counts. When its counter is used up, a session takes a new fixed field.
///
/// Fixed fields are consecutive numbers from a start that is drawn at random once per process, so they are always
/// distinct within one process. If a key is ever used by p processes with n sessions each, two of their ranges overlap
/// with a probability below p²n/2⁶⁴: with p = 16 and n = 2²⁰ that is 2⁻³⁶, below the 2⁻³² that section 8 allows.
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
