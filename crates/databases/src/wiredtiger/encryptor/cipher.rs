//! How one page or journal record is encrypted: three ciphers with one data key of 256 bits, and none.
//!
//! | cipher | stored form | a changed byte is |
//! |---|---|---|
//! | `aes-256-cbc` | random vector (16), AES-256-CBC with PKCS#7 | not noticed, except in the padding |
//! | `aes-256-cbc-hmac` | the same, HMAC-SHA-256 over both (32) | refused |
//! | `aes-256-gcm` | counter (8), salt (16), AES-256-GCM, tag (16) | refused |
//!
//! The engine does not identify the page that it passes, so none of the ciphers notices if an old page of the same
//! database replaces its successor. Every cipher uses its own keys, derived from the data key with HMAC-SHA-256 by NIST
//! SP 800-108 (counter mode, one round), so that a data key is never used by two ciphers.
//!
//! # Why no GCM nonce is used twice
//!
//! If a nonce repeats under one key, both pages and the authentication key are disclosed. So its uniqueness must not
//! depend on chance or on a file: a counter in a file repeats when the file is restored from a backup, or when two
//! copies of a database are opened. So nothing is stored. Every opening of the engine draws 128 random bits, the
//! *salt*, and derives its own key from data key and salt. Within it, the nonce is a counter of 64 bits from 0 (RFC
//! 5116, section 3.2, with an empty fixed part), incremented atomically. It cannot wrap: at a million pages a second it
//! lasts half a million years. A repetition needs two openings with the same salt: after 2^32 openings of one database
//! the probability is 2^-65. The stored form contains counter and salt, so that pages of earlier openings are read with
//! their own key.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InOutBuf, InnerIvInit, KeyInit,
    block_padding::Pkcs7,
    consts::{U12, U16, U32},
    typenum::Unsigned,
};
use aes_gcm::{AeadInOut, AesGcm};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tithe_machine::fault::Fault;
use zeroize::Zeroizing;

use super::locked::Locked;

/// Bytes of every key.
pub const KEY_BYTES: usize = 32;
/// A key, zeroed when it is dropped.
pub type Key = Zeroizing<[u8; KEY_BYTES]>;

/// Bytes of an AES block and of the vector of CBC.
const BLOCK: usize = 16;
/// Bytes of an HMAC-SHA-256.
const MAC: usize = 32;
/// Bytes of a salt.
const SALT: usize = 16;
/// Bytes of a counter.
const COUNTER: usize = 8;
/// Bytes of a GCM tag.
const TAG: usize = 16;

/// Why a page or a journal record was not encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It was changed, or belongs to another key.
    Tag,
    /// It was changed, or belongs to another key.
    Padding,
    /// It cannot have been written by this cipher.
    Short,
    /// The engine's buffer is too small.
    Room,
    /// The operating system provides no random bytes.
    Random,
    /// No memory could be locked for a key.
    Memory,
}

impl Refusal {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Tag => "the authentication tag of a page or record is wrong",
            Self::Padding => "the padding of a page or record is wrong",
            Self::Short => "a page or record is too short for the cipher",
            Self::Room => "there is no room for an encrypted or decrypted page",
            Self::Random => "the operating system gives no random bytes",
            Self::Memory => "no memory can be locked for a key (ulimit -l)",
        }
    }
}

/// A cipher with its keys.
pub trait PageCipher: Send + Sync {
    /// Bytes that the stored form is longer, at most.
    fn overhead(&self) -> usize;

    /// Encrypts `plain` to the beginning of `stored`; returns the number of bytes written.
    ///
    /// # Errors
    /// When there is no room, or there are no random bytes.
    fn encrypt(&self, plain: &[u8], stored: &mut [u8]) -> Result<usize, Refusal>;

    /// Decrypts `stored` to the beginning of `plain`; returns the number of bytes written.
    ///
    /// # Errors
    /// If it is not what this cipher wrote with this key. The content of `plain` must then not be used.
    fn decrypt(&self, stored: &[u8], plain: &mut [u8]) -> Result<usize, Refusal>;

    /// Where its keys are in memory.
    fn addresses(&self) -> Vec<Range<usize>>;
}

/// AES-256 of some implementation.
pub trait Aes:
    BlockCipherEncrypt<BlockSize = U16> + BlockCipherDecrypt<BlockSize = U16> + KeyInit<KeySize = U32> + Send + Sync
{
}
impl<T> Aes for T where
    T: BlockCipherEncrypt<BlockSize = U16> + BlockCipherDecrypt<BlockSize = U16> + KeyInit<KeySize = U32> + Send + Sync
{
}

/// AES-256-CBC, with or without HMAC.
pub struct Cbc<A> {
    aes: Locked<A>,
    mac: Option<Locked<Hmac<Sha256>>>,
}

impl<A: Aes> Cbc<A> {
    /// With keys derived from `data_key`.
    ///
    /// # Errors
    /// When no memory can be locked.
    pub fn new(data_key: &Key, authenticated: bool) -> Result<Self, Fault> {
        let label = if authenticated { "aes-256-cbc-hmac" } else { "aes-256-cbc" };
        let mac = if authenticated { Some(lock(keyed(&derive(data_key, "hmac-sha-256", &[])))?) } else { None };
        Ok(Self { aes: lock(A::new(&Array(*derive(data_key, label, &[]))))?, mac })
    }
}

impl<A: Aes> PageCipher for Cbc<A> {
    fn overhead(&self) -> usize {
        BLOCK + BLOCK + if self.mac.is_some() { MAC } else { 0 }
    }

    fn encrypt(&self, plain: &[u8], stored: &mut [u8]) -> Result<usize, Refusal> {
        let (vector, rest) = stored.split_at_mut_checked(BLOCK).ok_or(Refusal::Room)?;
        getrandom::fill(vector).map_err(|_| Refusal::Random)?;
        let vector = Array::try_from(&*vector).map_err(|_| Refusal::Room)?;
        let encryptor = cbc::Encryptor::<&A>::inner_iv_init(&self.aes, &vector);
        let text = encryptor.encrypt_padded_b2b::<Pkcs7>(plain, rest).map_err(|_| Refusal::Room)?.len();
        let length = BLOCK + text;
        let Some(mac) = &self.mac else { return Ok(length) };
        let (written, rest) = stored.split_at_mut(length);
        let tag = mac_of(mac, written).finalize().into_bytes();
        rest.get_mut(..MAC).ok_or(Refusal::Room)?.copy_from_slice(&tag);
        Ok(length + MAC)
    }

    fn decrypt(&self, stored: &[u8], plain: &mut [u8]) -> Result<usize, Refusal> {
        let stored = match &self.mac {
            None => stored,
            Some(mac) => {
                let (text, tag) = stored.split_last_chunk::<MAC>().ok_or(Refusal::Short)?;
                // Compared in constant time.
                mac_of(mac, text).verify_slice(tag).map_err(|_| Refusal::Tag)?;
                text
            }
        };
        let (vector, text) = stored.split_first_chunk::<BLOCK>().ok_or(Refusal::Short)?;
        if text.is_empty() || text.len() % BLOCK != 0 {
            return Err(Refusal::Short);
        }
        if plain.len() < text.len() {
            return Err(Refusal::Room);
        }
        let decryptor = cbc::Decryptor::<&A>::inner_iv_init(&self.aes, &Array(*vector));
        Ok(decryptor.decrypt_padded_b2b::<Pkcs7>(text, plain).map_err(|_| Refusal::Padding)?.len())
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        [self.aes.addresses()].into_iter().chain(self.mac.as_ref().map(Locked::addresses)).collect()
    }
}

/// No cipher: the stored bytes are the given ones, so its cost is that of the call.
pub struct Nothing;

impl Nothing {
    fn copy(from: &[u8], to: &mut [u8]) -> Result<usize, Refusal> {
        to.get_mut(..from.len()).ok_or(Refusal::Room)?.copy_from_slice(from);
        Ok(from.len())
    }
}

impl PageCipher for Nothing {
    fn overhead(&self) -> usize {
        0
    }

    fn encrypt(&self, plain: &[u8], stored: &mut [u8]) -> Result<usize, Refusal> {
        Self::copy(plain, stored)
    }

    fn decrypt(&self, stored: &[u8], plain: &mut [u8]) -> Result<usize, Refusal> {
        Self::copy(stored, plain)
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        Vec::new()
    }
}

fn keyed(key: &Key) -> Hmac<Sha256> {
    <Hmac<Sha256> as KeyInit>::new_from_slice(&key[..]).expect("HMAC takes keys of every length")
}

fn mac_of(keyed: &Hmac<Sha256>, bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed.clone();
    mac.update(bytes);
    mac
}

/// The cipher of one salt.
type SaltedCipher<A> = Locked<AesGcm<A, U12>>;

/// AES-256-GCM.
pub struct Gcm<A> {
    data_key: Locked<Key>,
    salt: [u8; SALT],
    own: SaltedCipher<A>,
    next: AtomicU64,
    earlier: Mutex<BTreeMap<[u8; SALT], Arc<SaltedCipher<A>>>>,
}

impl<A: Aes> Gcm<A> {
    /// A new salt under `data_key`.
    ///
    /// # Errors
    /// When no memory can be locked or there are no random bytes.
    pub fn new(data_key: &Key) -> Result<Self, Fault> {
        let mut salt = [0; SALT];
        getrandom::fill(&mut salt).map_err(|error| Fault::machine("random bytes", error))?;
        let own = Self::salted(data_key, &salt)?;
        let data_key = lock(data_key.clone())?;
        Ok(Self { data_key, salt, own, next: AtomicU64::new(0), earlier: Mutex::default() })
    }

    fn salted(data_key: &Key, salt: &[u8; SALT]) -> Result<SaltedCipher<A>, Fault> {
        lock(AesGcm::new(&Array(*derive(data_key, "aes-256-gcm", salt))))
    }

    fn earlier(&self, salt: [u8; SALT]) -> Result<Arc<SaltedCipher<A>>, Refusal> {
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cipher) = earlier.get(&salt) {
            return Ok(cipher.clone());
        }
        let cipher = Arc::new(Self::salted(&self.data_key, &salt).map_err(|_| Refusal::Memory)?);
        // A changed page can name a salt that never existed: keys for such salts must not fill the locked memory.
        if earlier.len() >= SALTS_KEPT {
            earlier.clear();
        }
        earlier.insert(salt, cipher.clone());
        Ok(cipher)
    }
}

/// Keys of earlier salts that are kept.
const SALTS_KEPT: usize = 64;

fn nonce(counter: [u8; COUNTER]) -> Array<u8, U12> {
    let mut nonce = Array::default();
    nonce[U12::USIZE - COUNTER..].copy_from_slice(&counter);
    nonce
}

impl<A: Aes> PageCipher for Gcm<A> {
    fn overhead(&self) -> usize {
        SALT + COUNTER + TAG
    }

    fn encrypt(&self, plain: &[u8], stored: &mut [u8]) -> Result<usize, Refusal> {
        let length = plain.len() + self.overhead();
        let stored = stored.get_mut(..length).ok_or(Refusal::Room)?;
        let counter = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let (written_counter, rest) = stored.split_at_mut(COUNTER);
        let (salt, rest) = rest.split_at_mut(SALT);
        let (text, written_tag) = rest.split_at_mut(plain.len());
        salt.copy_from_slice(&self.salt);
        written_counter.copy_from_slice(&counter);
        let buffer = InOutBuf::new(plain, text).map_err(|_| Refusal::Room)?;
        let tag = self.own.encrypt_inout_detached(&nonce(counter), &[], buffer).map_err(|_| Refusal::Room)?;
        written_tag.copy_from_slice(&tag);
        Ok(length)
    }

    fn decrypt(&self, stored: &[u8], plain: &mut [u8]) -> Result<usize, Refusal> {
        let (counter, rest) = stored.split_first_chunk::<COUNTER>().ok_or(Refusal::Short)?;
        let (salt, rest) = rest.split_first_chunk::<SALT>().ok_or(Refusal::Short)?;
        let (text, tag) = rest.split_last_chunk::<TAG>().ok_or(Refusal::Short)?;
        let plain = plain.get_mut(..text.len()).ok_or(Refusal::Room)?;
        let buffer = InOutBuf::new(text, plain).map_err(|_| Refusal::Room)?;
        let (nonce, tag) = (nonce(*counter), Array(*tag));
        let decrypted = if *salt == self.salt {
            self.own.decrypt_inout_detached(&nonce, &[], buffer, &tag)
        } else {
            self.earlier(*salt)?.decrypt_inout_detached(&nonce, &[], buffer, &tag)
        };
        decrypted.map_err(|_| Refusal::Tag)?;
        Ok(text.len())
    }

    fn addresses(&self) -> Vec<Range<usize>> {
        let earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        let own = [self.data_key.addresses(), self.own.addresses()];
        own.into_iter().chain(earlier.values().map(|cipher| cipher.addresses())).collect()
    }
}

/// A key for one purpose: NIST SP 800-108r1, section 4.1, with HMAC-SHA-256 and one round.
fn derive(data_key: &Key, label: &str, context: &[u8]) -> Key {
    let mut mac = keyed(data_key);
    for part in [&1u32.to_be_bytes()[..], b"tithe ", label.as_bytes(), &[0], context, &256u32.to_be_bytes()] {
        mac.update(part);
    }
    Zeroizing::new(mac.finalize().into_bytes().into())
}

fn lock<T>(value: T) -> Result<Locked<T>, Fault> {
    Locked::new(value).map_err(|error| Fault::machine("keys cannot be locked in memory (ulimit -l)", error))
}
