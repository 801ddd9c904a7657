//! The ciphers: laws, published vectors, and the effect of a changed byte on each.

use std::collections::HashSet;

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::{cipher::KEY_BYTES, *};

fn ciphers() -> Vec<(&'static str, Arc<dyn PageCipher>)> {
    let key = Zeroizing::new([7; KEY_BYTES]);
    CIPHERS.iter().map(|name| (*name, page_cipher(name, &key).unwrap())).collect()
}

fn sealed(cipher: &dyn PageCipher, plain: &[u8]) -> Vec<u8> {
    let mut stored = vec![0; plain.len() + cipher.overhead()];
    let length = cipher.encrypt(plain, &mut stored).unwrap();
    stored.truncate(length);
    stored
}

fn opened(cipher: &dyn PageCipher, stored: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut plain = vec![0; stored.len()];
    let length = cipher.decrypt(stored, &mut plain)?;
    plain.truncate(length);
    Ok(plain)
}

proptest! {
    #[test]
    fn what_was_encrypted_is_decrypted(plain in prop::collection::vec(any::<u8>(), 0..300)) {
        for (name, cipher) in ciphers() {
            let stored = sealed(cipher.as_ref(), &plain);
            prop_assert!(stored.len() <= plain.len() + cipher.overhead());
            prop_assert_eq!(opened(cipher.as_ref(), &stored), Ok(plain.clone()), "{}", name);
        }
    }

    #[test]
    fn authenticated_ciphers_refuse_every_changed_bit(plain in prop::collection::vec(any::<u8>(), 0..100), place: prop::sample::Index, bit in 0..8u32) {
        for (name, cipher) in ciphers().into_iter().filter(|(name, _)| *name != "aes-256-cbc") {
            let mut stored = sealed(cipher.as_ref(), &plain);
            let place = place.index(stored.len());
            stored[place] ^= 1 << bit;
            prop_assert_eq!(opened(cipher.as_ref(), &stored), Err(Refusal::Tag), "{}", name);
        }
    }

    #[test]
    fn foreign_bytes_are_refused(stored in prop::collection::vec(any::<u8>(), 0..100)) {
        for (name, cipher) in ciphers().into_iter().filter(|(name, _)| *name != "aes-256-cbc") {
            prop_assert!(opened(cipher.as_ref(), &stored).is_err(), "{}", name);
        }
        let _ = opened(ciphers()[0].1.as_ref(), &stored);
    }

    #[test]
    fn too_little_room_is_an_error(plain in prop::collection::vec(any::<u8>(), 0..100), missing in 1usize..40) {
        for (_, cipher) in ciphers() {
            let stored = sealed(cipher.as_ref(), &plain);
            let mut room = vec![0; stored.len().saturating_sub(missing)];
            prop_assert_eq!(cipher.encrypt(&plain, &mut room), Err(Refusal::Room));
        }
    }
}

#[test]
fn bare_cbc_serves_what_was_changed() {
    let (_, cipher) = &ciphers()[0];
    let plain = [0; 64];
    let mut stored = sealed(cipher.as_ref(), &plain);
    // A changed bit of one block changes the same bit of the next block, and garbles the block itself.
    stored[16] ^= 1;
    let served = opened(cipher.as_ref(), &stored).unwrap();
    assert_eq!(served[16], 1);
    assert_ne!(served[..16], plain[..16]);
}

#[test]
fn equal_pages_are_stored_differently() {
    for (name, cipher) in ciphers() {
        let stored: HashSet<_> = (0..100).map(|_| sealed(cipher.as_ref(), &[1; 32])).collect();
        assert_eq!(stored.len(), 100, "{name}");
    }
}

#[test]
fn no_two_threads_get_one_nonce() {
    let (_, cipher) = &ciphers()[2];
    let nonces: HashSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..500).map(|_| sealed(cipher.as_ref(), &[])[..24].to_vec()).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(nonces.len(), 2000);
}

#[test]
fn every_opening_reads_the_pages_of_every_other() {
    let stored: Vec<_> = ciphers().iter().map(|(_, cipher)| sealed(cipher.as_ref(), b"page")).collect();
    for ((name, cipher), stored) in ciphers().iter().zip(stored) {
        assert_eq!(opened(cipher.as_ref(), &stored), Ok(b"page".to_vec()), "{name}");
    }
}

#[test]
fn portable_code_reads_what_the_processor_wrote() {
    let key = Zeroizing::new([7; KEY_BYTES]);
    for (name, cipher) in ciphers() {
        let portable = page_cipher(&arm_cipher(name, Implementation::Portable), &key).unwrap();
        assert_eq!(opened(portable.as_ref(), &sealed(cipher.as_ref(), &[9; 333])), Ok(vec![9; 333]), "{name}");
        assert_eq!(opened(cipher.as_ref(), &sealed(portable.as_ref(), &[9; 333])), Ok(vec![9; 333]), "{name}");
    }
}

#[test]
fn ciphers_share_no_key() {
    let [cbc, hmac, gcm] = <[_; 3]>::try_from(ciphers()).ok().unwrap().map(|(_, cipher)| cipher);
    let page = [5; 64];
    assert_ne!(opened(cbc.as_ref(), &sealed(hmac.as_ref(), &page)).unwrap_or_default()[..], page);
    assert!(opened(gcm.as_ref(), &sealed(hmac.as_ref(), &page)).is_err());
}

#[test]
fn every_key_is_on_locked_pages() {
    let smaps = || std::fs::read_to_string("/proc/self/smaps").unwrap();
    for (name, cipher) in ciphers() {
        let addresses = cipher.addresses();
        assert!(!addresses.is_empty());
        assert!(addresses.iter().all(|range| locked::is_locked(&smaps(), range)), "{name}");
    }
}

#[test]
fn an_unknown_cipher_is_refused() {
    let text = page_cipher("rot13", &Zeroizing::new([0; KEY_BYTES])).err().unwrap().to_string();
    assert_eq!(text, "refused: there is no cipher `rot13`; aes-256-cbc, aes-256-cbc-hmac, aes-256-gcm are");
}
