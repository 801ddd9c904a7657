//! Which key opens the pages of an encrypted InnoDB file, determined from the file alone, without the server.
//!
//! Layout and key schedule are those of MariaDB's source (`storage/innobase/include/fil0fil.h`, `fsp0types.h`,
//! `fil/fil0crypt.cc`, `sql/encryption.cc`), for files with `full_crc32` checksums, the default since 10.5. The file's
//! first page holds a random vector and the number of one key. That key encrypts the vector, which gives the key of all
//! pages. Each page has its own vector, from its position and its log position.
//!
//! Left out: files with older checksums, compressed pages, and everything in a page except the two fixed records with
//! which every index page begins.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::Path,
};

use aes::{
    Aes128, Aes256,
    cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit},
};
use tithe_machine::{fault::Fault, secret::Secret};

/// Bytes of an AES block.
const BLOCK: usize = 16;
/// `CRYPT_MAGIC`: the first bytes of the encryption description in the first page.
const MAGIC: [u8; 6] = *b"s\x0e\x0cREt";
/// `CRYPT_SCHEME_1`, the only one.
const SCHEME: u8 = 1;
/// `FIL_PAGE_LSN`.
const LSN: usize = 16;
/// `FIL_PAGE_TYPE`.
const TYPE: usize = 24;
/// `FIL_PAGE_INDEX`: a page of records.
const INDEX: u16 = 17855;
/// Where the encrypted part of a page begins (`FIL_PAGE_FILE_FLUSH_LSN_OR_KEY_VERSION`).
const ENCRYPTED: usize = 26;
/// `FSP_SPACE_ID`, in the first page.
const SPACE: usize = 38;
/// `FSP_SPACE_FLAGS`, in the first page, and `FSP_FLAGS_FCRC32_MASK_MARKER` in it.
const FLAGS: (usize, u32) = (54, 1 << 4);
/// Sizes that a page may have.
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 4096..=65536;
/// The two blocks of the encrypted part with the fixed records, and the positions of the records in them
/// (`PAGE_NEW_INFIMUM` and `PAGE_NEW_SUPREMUM` minus the 90 bytes before).
const FIXED: ([usize; 2], [(usize, &[u8]); 2]) = ([4, 5], [(9, b"infimum"), (22, b"supremum")]);

/// How pages are encrypted (`file_key_management_encryption_algorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cipher {
    /// `AES_CTR`.
    Ctr,
    /// `AES_CBC`.
    Cbc,
}

/// What a file shows about its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The number of the key that it names.
    pub named: u32,
    /// Its pages of records.
    pub pages: usize,
    /// How many of them open with each of the keys.
    pub opened: [usize; 2],
}

/// Tries both `keys` on every record page of the file `path`, whose pages have `page_bytes`.
///
/// # Errors
/// When it cannot be read, or is not an encrypted file of this form.
pub fn examine(path: &Path, page_bytes: usize, cipher: Cipher, keys: &[&Secret; 2]) -> Result<Keys, Fault> {
    let failed = |error| Fault::machine(path.display(), error);
    let file = File::open(path).map_err(failed)?;
    examine_all(BufReader::new(file), page_bytes, cipher, keys).map_err(failed)
}

/// As [`examine`], from the bytes of `file`.
///
/// # Errors
/// As [`examine`].
pub fn examine_all(
    mut file: impl Read,
    page_bytes: usize,
    cipher: Cipher,
    keys: &[&Secret; 2],
) -> std::io::Result<Keys> {
    if !PAGE_BYTES.contains(&page_bytes) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut page = vec![0; page_bytes];
    file.read_exact(&mut page)?;
    let foreign = || std::io::Error::new(ErrorKind::InvalidData, "no encrypted file with full_crc32 checksums");
    let head = Head::of(&page).ok_or_else(foreign)?;
    let keys = [head.key_of_pages(keys[0])?, head.key_of_pages(keys[1])?];
    let mut seen = Keys { named: head.key, pages: 0, opened: [0, 0] };
    for number in 1u32.. {
        match file.read_exact(&mut page) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        if page[TYPE..TYPE + 2] == INDEX.to_be_bytes() {
            seen.pages += 1;
            for (opened, key) in seen.opened.iter_mut().zip(&keys) {
                *opened += usize::from(head.opens(&page, number, cipher, key));
            }
        }
    }
    Ok(seen)
}

/// The content of the first page.
struct Head {
    space: u32,
    vector: [u8; BLOCK],
    key: u32,
}

impl Head {
    fn of(page: &[u8]) -> Option<Self> {
        let described = page.windows(MAGIC.len()).position(|window| window == MAGIC)? + MAGIC.len();
        let described = page.get(described..)?;
        let (&[scheme, length], rest) = described.split_first_chunk()?;
        let (vector, rest) = rest.split_first_chunk()?;
        // The oldest version of the key precedes its number.
        let key = number(rest, 4)?;
        let this_form = number(page, FLAGS.0)? & FLAGS.1 != 0 && scheme == SCHEME && usize::from(length) == BLOCK;
        this_form.then_some(Self { space: number(page, SPACE)?, vector: *vector, key })
    }

    /// The key of all pages of the file, if `key` is the one that it names.
    fn key_of_pages(&self, key: &Secret) -> std::io::Result<[u8; BLOCK]> {
        let key = <[u8; 32]>::try_from(key.expose()).map_err(|_| ErrorKind::InvalidInput)?;
        let mut block = Array(self.vector);
        Aes256::new(&Array(key)).encrypt_block(&mut block);
        Ok(block.0)
    }

    /// True when page `number` shows the fixed records under `key`.
    fn opens(&self, page: &[u8], number: u32, cipher: Cipher, key: &[u8; BLOCK]) -> bool {
        let aes = Aes128::new(&Array(*key));
        let vector = self.vector_of(page, number);
        let block = |index: usize| <[u8; BLOCK]>::try_from(&page[ENCRYPTED + BLOCK * index..][..BLOCK]).ok();
        let open = |index: usize| {
            let (sealed, before) = (block(index)?, block(index - 1)?);
            let (mut work, mask) = match cipher {
                Cipher::Ctr => (Array(vector.wrapping_add(index as u128).to_be_bytes()), sealed),
                Cipher::Cbc => (Array(sealed), before),
            };
            match cipher {
                Cipher::Ctr => aes.encrypt_block(&mut work),
                Cipher::Cbc => aes.decrypt_block(&mut work),
            }
            Some(std::array::from_fn::<u8, BLOCK, _>(|byte| work[byte] ^ mask[byte]))
        };
        let (blocks, records) = FIXED;
        let Some(text) = blocks.map(open).into_iter().collect::<Option<Vec<_>>>() else { return false };
        let text = text.concat();
        records.iter().all(|(at, record)| text[*at..].starts_with(record))
    }

    /// The vector of page `number`: space, page number and log position, least byte first, as a counter of 128 bits.
    fn vector_of(&self, page: &[u8], number: u32) -> u128 {
        let mut vector = [0; BLOCK];
        vector[..4].copy_from_slice(&self.space.to_le_bytes());
        vector[4..8].copy_from_slice(&number.to_le_bytes());
        vector[8..].copy_from_slice(&page[LSN..LSN + 8]);
        vector[8..].reverse();
        u128::from_be_bytes(vector)
    }
}

/// The number of four bytes at `at`, most significant first.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = 4096;

    fn keys() -> [Secret; 2] {
        [Secret::new([7; 32]), Secret::new([8; 32])]
    }

    /// A first page that names key `key`.
    fn head(key: u32) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[SPACE..SPACE + 4].copy_from_slice(&9u32.to_be_bytes());
        page[FLAGS.0..FLAGS.0 + 4].copy_from_slice(&(FLAGS.1 | 5).to_be_bytes());
        let described = [MAGIC.as_slice(), &[SCHEME, 16], &[3; 16], &1u32.to_be_bytes(), &key.to_be_bytes()].concat();
        page[3000..3000 + described.len()].copy_from_slice(&described);
        page
    }

    /// Page `number` of records, encrypted with `key` as the server would.
    fn records(number: u32, cipher: Cipher, key: &Secret) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[LSN..LSN + 8].copy_from_slice(&0x0123_4567_89ab_cdefu64.to_be_bytes());
        page[TYPE..TYPE + 2].copy_from_slice(&INDEX.to_be_bytes());
        page[99..106].copy_from_slice(b"infimum");
        page[112..120].copy_from_slice(b"supremum");
        let head = Head::of(&head(1)).expect("a head");
        let aes = Aes128::new(&Array(head.key_of_pages(key).expect("a key")));
        let vector = head.vector_of(&page, number);
        let mut before = vector.to_be_bytes();
        for (index, block) in page[ENCRYPTED..].chunks_exact_mut(BLOCK).enumerate() {
            let plain = <[u8; BLOCK]>::try_from(&*block).expect("a block");
            let xor = |one: [u8; BLOCK], other: [u8; BLOCK]| std::array::from_fn(|byte| one[byte] ^ other[byte]);
            let mut work = match cipher {
                Cipher::Ctr => Array((vector + index as u128).to_be_bytes()),
                Cipher::Cbc => Array(xor(plain, before)),
            };
            aes.encrypt_block(&mut work);
            before = if cipher == Cipher::Ctr { xor(plain, work.0) } else { work.0 };
            block.copy_from_slice(&before);
        }
        page
    }

    fn seen(file: &[Vec<u8>], cipher: Cipher) -> std::io::Result<Keys> {
        let [first, second] = keys();
        examine_all(file.concat().as_slice(), PAGE, cipher, &[&first, &second])
    }

    #[test]
    fn pages_open_with_their_own_key_alone() {
        let [first, second] = keys();
        // In CBC a block depends on the one before it, so a page's vector only affects the first block: a moved page
        // still opens.
        for (cipher, other, opened) in [(Cipher::Ctr, Cipher::Cbc, [1, 2]), (Cipher::Cbc, Cipher::Ctr, [1, 3])] {
            let file = [
                head(2),
                vec![0; PAGE],
                records(2, cipher, &second),
                records(3, cipher, &first),
                records(4, cipher, &second),
                // Moved from another place.
                records(4, cipher, &second),
            ];
            let expected = Keys { named: 2, pages: 4, opened };
            assert_eq!(seen(&file, cipher).expect("a file"), expected);
            assert_eq!(seen(&file, other).expect("a file"), Keys { opened: [0, 0], ..expected });
        }
    }

    #[test]
    fn a_file_of_another_form_is_refused() {
        let words = |file: Vec<u8>| seen(&[file], Cipher::Ctr).expect_err("refused").to_string();
        assert_eq!(words(vec![0; PAGE]), "no encrypted file with full_crc32 checksums");
        let mut older = head(1);
        older[FLAGS.0 + 3] = 0;
        assert_eq!(words(older), "no encrypted file with full_crc32 checksums");
        assert_eq!(words(vec![0; PAGE - 1]), "failed to fill whole buffer");
    }

    proptest! {
        #[test]
        fn nothing_in_a_file_makes_it_panic(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            at in 0..2 * PAGE,
            cut in 0..=2 * PAGE,
        ) {
            let mut file = [head(1), records(1, Cipher::Cbc, &keys()[0])].concat();
            let room = noise.len().min(file.len() - at);
            file[at..at + room].copy_from_slice(&noise[..room]);
            file.truncate(cut);
            let _ = seen(&[file], Cipher::Cbc);
        }
    }
}
