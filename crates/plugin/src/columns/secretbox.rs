//! NaCl's `crypto_secretbox`, as Kubernetes encrypts values for etcd with its provider `secretbox`: XSalsa20 and
//! Poly1305. RustCrypto's `crypto_secretbox` has had no release that fits its own `aead` since 2023, so its two
//! primitives are put together here; the test is NaCl's example.

use poly1305::Poly1305;
use ring::aead::NONCE_LEN;
use salsa20::{
    XSalsa20,
    cipher::{KeyInit as _, KeyIvInit as _, StreamCipher as _},
};

use crate::setup::KEY_BYTES;

/// Length of a stored nonce.
pub(super) const NONCE_BYTES: usize = 24;

const TAG_BYTES: usize = 16;

/// The rest of a nonce. It must never repeat, and need not be random.
const REST: [u8; NONCE_BYTES - NONCE_LEN] = [0; NONCE_BYTES - NONCE_LEN];

/// Appends the rest of the nonce, the tag and the ciphertext of `plaintext` to `sealed`, which ends with `nonce`.
pub(super) fn seal(key: &[u8; KEY_BYTES], nonce: [u8; NONCE_LEN], plaintext: &[u8], sealed: &mut Vec<u8>) {
    sealed.extend_from_slice(&REST);
    let start = sealed.len();
    sealed.extend_from_slice(&[0; TAG_BYTES]);
    sealed.extend_from_slice(plaintext);
    let (tag, text) = sealed[start..].split_at_mut(TAG_BYTES);
    let (mut cipher, authenticator) = begin(key, &whole(nonce, REST));
    cipher.apply_keystream(text);
    tag.copy_from_slice(&authenticator.compute_unpadded(text));
}

/// The plaintext in `opened`, which holds what [`seal`] appended after `nonce`; `None` if another key made it.
pub(super) fn open<'a>(key: &[u8; KEY_BYTES], nonce: [u8; NONCE_LEN], opened: &'a mut [u8]) -> Option<&'a [u8]> {
    let (rest, boxed) = opened.split_first_chunk_mut()?;
    let (tag, text) = boxed.split_first_chunk_mut::<TAG_BYTES>()?;
    let (mut cipher, authenticator) = begin(key, &whole(nonce, *rest));
    let made = authenticator.compute_unpadded(text);
    // In time that does not depend on where they differ.
    let differs = tag.iter().zip(made.iter()).fold(0, |differs, (found, made)| differs | (found ^ made));
    if differs != 0 {
        return None;
    }
    cipher.apply_keystream(text);
    Some(text)
}

fn whole(nonce: [u8; NONCE_LEN], rest: [u8; NONCE_BYTES - NONCE_LEN]) -> [u8; NONCE_BYTES] {
    let mut all = [0; NONCE_BYTES];
    all[..NONCE_LEN].copy_from_slice(&nonce);
    all[NONCE_LEN..].copy_from_slice(&rest);
    all
}

/// The cipher for the text, and the authenticator, whose key is the beginning of the key stream.
fn begin(key: &[u8; KEY_BYTES], nonce: &[u8; NONCE_BYTES]) -> (XSalsa20, Poly1305) {
    let mut cipher = XSalsa20::new(key.into(), nonce.into());
    let mut first = [0; 32];
    cipher.apply_keystream(&mut first);
    (cipher, Poly1305::new(&first.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex<const N: usize>(text: &str) -> [u8; N] {
        let bytes: Vec<u8> =
            (0..N).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect();
        bytes.try_into().expect("as many bytes")
    }

    /// The example of "Cryptography in NaCl" (Bernstein, 2009), sections 9 and 10: its beginning.
    #[test]
    fn the_example_of_nacl_is_reproduced() {
        let key = unhex::<32>("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
        let nonce = unhex::<24>("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
        let mut plaintext = unhex::<131>(PLAINTEXT);
        let (mut cipher, authenticator) = begin(&key, &nonce);
        cipher.apply_keystream(&mut plaintext);
        assert_eq!(plaintext, unhex::<131>(CIPHERTEXT));
        assert_eq!(authenticator.compute_unpadded(&plaintext)[..], unhex::<16>("f3ffc7703f9400e52a7dfb4b3d3305d9"));
    }

    const PLAINTEXT: &str = "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705";
    const CIPHERTEXT: &str = "8e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5";

    #[test]
    fn a_changed_value_and_another_key_do_not_open() {
        let (key, nonce) = ([7; 32], [9; NONCE_LEN]);
        let mut sealed = Vec::new();
        seal(&key, nonce, b"a value", &mut sealed);
        assert_eq!(sealed.len(), REST.len() + TAG_BYTES + 7);
        assert_eq!(open(&key, nonce, &mut sealed.clone()), Some(&b"a value"[..]));
        assert_eq!(open(&[8; 32], nonce, &mut sealed.clone()), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(&key, nonce, &mut changed), None, "{at}");
        }
        assert_eq!(open(&key, nonce, &mut sealed[..20].to_vec()), None);
    }
}
