//! The values that are written into a field, and whether a value read from it was ever written.
//!
//! YCSB makes new random bytes for every write, which costs as much as half a round trip and cannot be checked later.
//! Here a value is a slice of a pool of random bytes, about 1 MiB, made once: its start depends on the key, the field
//! and one of eight versions. Writing borrows the slice; reading finds the version in the first six bytes and compares
//! the rest.
//!
//! This finds a value of another record or of another field, a value that was cut or grew, and any changed byte. It
//! does not find an old value of the same field that should have been overwritten, nor a write that was lost as a
//! whole.
//!
//! With `dataintegrity=true` a value is the text that YCSB derives from key and field, and no other value is right.
//!
//! The pool consists of YCSB's printable bytes, in the six-byte groups of `RandomByteIterator`, or of uniformly random
//! bytes. Parts of it occur again in other records, so a compressor with a window of more than about 64 KiB compresses
//! the data better than YCSB's own.

use tithe_model::experiment::Values as Look;

use super::{
    config::Length,
    generator::{Histogram, ThreadLocalRandom, Uniform, Zipfian, printable_word},
    key::push_decimal,
};

/// Draws the lengths of values.
#[derive(Debug, Clone)]
pub enum Lengths {
    /// Always the same.
    Constant(usize),
    /// Between two lengths.
    Uniform(Uniform, usize),
    /// Between two lengths, short ones more frequent.
    Zipfian(Zipfian, usize),
    /// According to a histogram.
    Histogram(Histogram),
}

impl Lengths {
    /// Lengths by `length`; `read` reads the histogram's file.
    ///
    /// # Errors
    /// The problem with the histogram.
    pub fn new(length: &Length, read: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Self, String> {
        Ok(match length {
            &Length::Constant(length) => Self::Constant(length as usize),
            &Length::Uniform(low, high) => Self::Uniform(Uniform::new(low, high), high as usize),
            &Length::Zipfian(low, high) => Self::Zipfian(Zipfian::new(low, high), high as usize),
            Length::Histogram(path) => {
                let text = read(path).map_err(|error| format!("{path}: {error}"))?;
                Self::Histogram(Histogram::parse(&text).map_err(|problem| format!("{path}: {problem}"))?)
            }
        })
    }

    /// The next length, bytes.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> usize {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform(uniform, _) => uniform.next(random) as usize,
            Self::Zipfian(zipfian, _) => zipfian.next(random) as usize,
            Self::Histogram(histogram) => histogram.next(random) as usize,
        }
    }

    /// The largest length, bytes.
    pub fn longest(&self) -> usize {
        match self {
            &Self::Constant(length) | &Self::Uniform(_, length) | &Self::Zipfian(_, length) => length,
            Self::Histogram(histogram) => histogram.longest() as usize,
        }
    }
}

/// Bytes in a word, the step at which values can begin: YCSB makes a word from one random number.
const WORD: usize = 6;

/// Values that can be in the same field.
pub const VERSIONS: usize = 8;

/// Words at which a value of a given version can begin; 8 times as many words are about 1 MiB.
const STARTS: u64 = 21_845;

/// Random bytes that values are slices of.
///
/// The word at index `i` is chosen such that its `version_of` is `i % 8`, so that the beginning of a value gives its
/// version.
pub struct Pool {
    bytes: Box<[u8]>,
    lengths: Lengths,
}

/// The place of a value in a [`Pool`].
#[derive(Debug, Clone, Copy)]
pub struct Place {
    offset: usize,
    length: usize,
}

/// Size of a processor's cache line, bytes, on all processors so far.
const LINE: usize = 64;
/// Lines of a value to prefetch; the processor finds the rest of a longer one by itself.
const FETCHED_LINES: usize = 4;

/// Makes the processor fetch `byte` from memory, without waiting for it.
#[inline]
fn fetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint without effect on any value, and `byte` is a valid address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(byte).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

/// The hash of a key, which values depend on.
#[derive(Debug, Clone, Copy)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Eight bytes at a time: multiply, and fold the high half down.
    #[inline]
    pub fn new(key: &[u8]) -> Self {
        let mut hash = key.len() as u64;
        let mut add = |word: u64| {
            hash = (hash ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25);
            hash ^= hash >> 32;
        };
        let (words, rest) = key.as_chunks::<8>();
        for word in words {
            add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        add(u64::from_le_bytes(last));
        Self(hash)
    }

    /// A different number for each field and version.
    #[inline]
    fn of(self, field: usize, version: usize) -> u64 {
        let place = (field * VERSIONS + version) as u64 + 1;
        let hash = (self.0 ^ place.wrapping_mul(0xD1B5_4A32_D192_ED03)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^ (hash >> 32)
    }
}

impl Pool {
    /// A pool whose bytes look like `look`, from `seed`, for values of these lengths. Takes some 10 ms.
    pub fn new(look: Look, lengths: Lengths, seed: u64) -> Self {
        let words = STARTS as usize * VERSIONS + lengths.longest().div_ceil(WORD);
        let mut random = ThreadLocalRandom::new(seed);
        let mut bytes = Vec::with_capacity(words * WORD);
        for index in 0..words {
            let word = loop {
                let word = match look {
                    Look::Ycsb => printable_word(random.next_int()),
                    Look::Incompressible => *random.next_long().to_le_bytes().first_chunk().expect("6 of 8 bytes"),
                };
                if version_of(&word) == index % VERSIONS {
                    break word;
                }
            };
            bytes.extend_from_slice(&word);
        }
        Self { bytes: bytes.into_boxed_slice(), lengths }
    }

    /// The value of `field` of the record with this key, in one of [`VERSIONS`] versions.
    #[inline]
    pub fn value(&self, key: KeyHash, field: usize, version: usize) -> &[u8] {
        self.at(self.place(key, field, version))
    }

    #[inline]
    fn place(&self, key: KeyHash, field: usize, version: usize) -> Place {
        let hash = key.of(field, version);
        // Maps the upper half of the hash onto 0..STARTS (Lemire 2019).
        let start = ((hash >> 32) * STARTS) >> 32;
        let offset = (start as usize * VERSIONS + version) * WORD;
        let length = match &self.lengths {
            Lengths::Constant(length) => *length,
            // A separate stream for each value, so that the length can be computed again when it is read.
            drawn => drawn.next(&mut ThreadLocalRandom::new(hash)),
        };
        Place { offset, length }
    }

    /// The value at `place`, which must be of this pool.
    #[inline]
    pub fn at(&self, place: Place) -> &[u8] {
        &self.bytes[place.offset..place.offset + place.length]
    }

    /// Where `value` must be in the pool if it is a value of `field` of the record with this key; `None` if its length
    /// is wrong, or it is too short to decide. On return its memory is being fetched, so that several values can be
    /// fetched at the same time.
    #[inline]
    pub fn expect(&self, key: KeyHash, field: usize, value: &[u8]) -> Option<Place> {
        let place = self.place(key, field, version_of(value.first_chunk()?));
        if place.length != value.len() {
            return None;
        }
        self.at(place).chunks(LINE).take(FETCHED_LINES).for_each(|line| {
            fetch(&line[0]);
            fetch(&line[line.len() - 1]);
        });
        Some(place)
    }

    /// True when `value` is one of the versions of `field` of the record with this key.
    #[inline]
    pub fn is_value(&self, key: KeyHash, field: usize, value: &[u8]) -> bool {
        match value.first_chunk() {
            Some(word) => self.value(key, field, version_of(word)) == value,
            None => (0..VERSIONS).any(|version| self.value(key, field, version) == value),
        }
    }
}

/// The version of a value that begins with `word`: three bits that depend on all of it.
#[inline]
fn version_of(word: &[u8; WORD]) -> usize {
    let mut bytes = [0; 8];
    bytes[..WORD].copy_from_slice(word);
    (u64::from_le_bytes(bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize
}

/// Appends the text that YCSB derives from key and field, `length` bytes of it: `CoreWorkload.buildDeterministicValue`.
///
/// The text is `key:field`, and then again and again a colon and the `String.hashCode` of all text up to it.
pub fn write_derived(key: &[u8], prefix: &[u8], field: usize, length: usize, values: &mut Vec<u8>) {
    let start = values.len();
    values.extend_from_slice(key);
    values.push(b':');
    values.extend_from_slice(prefix);
    push_decimal(field as i64, 0, values);
    let mut hash: i32 = 0;
    let mut hashed = start;
    while values.len() - start < length {
        values.push(b':');
        // The hash code of a text continues from the hash code of its beginning.
        hash = values[hashed..].iter().fold(hash, |hash, &byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte)));
        hashed = values.len();
        push_decimal(i64::from(hash), 0, values);
    }
    values.truncate(start + length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools() -> Vec<Pool> {
        let lengths = [
            Lengths::Constant(100),
            Lengths::Constant(3),
            Lengths::Uniform(Uniform::new(1, 50), 50),
            Lengths::Zipfian(Zipfian::new(1, 50), 50),
        ];
        let looks = [Look::Ycsb, Look::Incompressible];
        looks.into_iter().flat_map(|look| lengths.iter().map(move |it| Pool::new(look, it.clone(), 7))).collect()
    }

    #[test]
    fn every_version_is_recognised() {
        for pool in pools() {
            for field in 0..10 {
                for version in 0..VERSIONS {
                    let key = KeyHash::new(b"user6284781860667377211");
                    assert!(pool.is_value(key, field, pool.value(key, field, version)));
                }
            }
        }
    }

    #[test]
    fn values_of_others_and_changed_values_are_not() {
        let pool = Pool::new(Look::Ycsb, Lengths::Constant(100), 7);
        let (key, other) = (KeyHash::new(b"user1"), KeyHash::new(b"user2"));
        let value = pool.value(key, 3, 5).to_vec();
        assert!(!pool.is_value(other, 3, &value), "another record's");
        assert!(!pool.is_value(key, 4, &value), "another field's");
        assert!(!pool.is_value(key, 3, &value[..99]), "cut");
        assert!(!pool.is_value(key, 3, &[]), "empty");
        assert!(!pool.is_value(key, 3, &[&value[..], b"x"].concat()), "grown");
        for place in 0..value.len() {
            let mut changed = value.clone();
            changed[place] ^= 1;
            assert!(!pool.is_value(key, 3, &changed), "byte {place}");
        }
    }

    #[test]
    fn ycsb_values_are_what_the_iterator_can_make() {
        let pool = Pool::new(Look::Ycsb, Lengths::Constant(100), 7);
        let word = |value: &[u8]| {
            let bits = |index: usize| i32::from(value[index] - b' ');
            let number = bits(0) | bits(1) << 5 | (bits(2) & 31) << 10 | bits(3) << 15 | bits(4) << 20;
            let number = number | (bits(5) & 31) << 25 | (bits(5) >> 6) << 31;
            printable_word(number) == value[..WORD]
        };
        let value = pool.value(KeyHash::new(b"user77"), 2, 1);
        assert!(value.chunks_exact(WORD).all(word));
    }

    #[test]
    fn incompressible_values_use_all_bytes_about_alike() {
        let pool = Pool::new(Look::Incompressible, Lengths::Constant(100), 7);
        let mut counts = [0_i64; 256];
        pool.bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let mean = pool.bytes.len() as i64 / 256;
        // Six standard deviations of a binomial count.
        let tolerance = (6.0 * (mean as f64).sqrt()) as i64;
        assert!(counts.iter().all(|count| (count - mean).abs() < tolerance), "{counts:?}");
    }

    #[test]
    fn derived_values_grow_by_hash_codes() {
        let mut text = Vec::new();
        write_derived(b"user1", b"field", 0, 40, &mut text);
        expect_test::expect!["user1:field0:-1268391216:957204686:-1707"].assert_eq(&String::from_utf8(text).unwrap());
    }
}
