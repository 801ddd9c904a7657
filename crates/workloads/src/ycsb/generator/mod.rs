//! YCSB's random generators, draw for draw.
//!
//! Each generator gives the same numbers as its namesake in `site.ycsb:core:0.17.0` on Java 17, from the same
//! random source in the same state; `tests/ycsb_conformance` compares them with the real classes. None
//! allocates or locks per draw.
//!
//! One thing can differ: `Math.pow` and `Math.log` of a Java virtual machine and `powf` and `ln` of the C library may
//! round the last bit differently. In a result, such a bit moves a zipfian draw of 10^10 items to the adjacent item
//! about once in a million draws; in the constants behind it, about once in ten thousand. No stream compared so far has
//! shown one. Java itself has such differences between processor architectures.
//!
//! Left out: YCSB's generators that its core workload does not use (files, time stamps, strings).

mod choice;
mod counter;
mod exponential;
mod histogram;
mod random;
mod uniform;
mod zipfian;

pub use choice::Choice;
pub use counter::{AcknowledgedCounter, WindowFull};
pub use exponential::Exponential;
pub use histogram::Histogram;
pub use random::ThreadLocalRandom;
pub use uniform::{Hotspot, Sequential, Uniform};
pub use zipfian::{Latest, ScrambledZipfian, Zipfian};

/// FNV-1a of the eight octets of `value`, low octet first, then `Math.abs`: `site.ycsb.Utils.fnvhash64`.
///
/// The hash is by Fowler, Noll and Vo (draft-eastlake-fnv), with its 64-bit offset basis and prime.
/// The result is negative only when the hash is `i64::MIN`, as in Java.
#[inline]
pub fn fnv_hash(value: i64) -> i64 {
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for octet in value.to_le_bytes() {
        hash = (hash ^ u64::from(octet)).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).wrapping_abs()
}

/// The six printable bytes that YCSB makes from one random `int`: `site.ycsb.RandomByteIterator`.
///
/// They carry 5, 6, 6, 5, 6 and 6 bits, in `' '..='\x7f'`; bytes 3 and 6 share bits with adjacent bytes.
#[inline]
pub fn printable_word(random: i32) -> [u8; 6] {
    let bits = |shift: u32, mask: i32| ((random >> shift) & mask) as u8 + b' ';
    [bits(0, 31), bits(5, 63), bits(10, 95), bits(15, 31), bits(20, 63), bits(25, 95)]
}

/// Random `int`s that a `RandomByteIterator` of `length` bytes takes: one when it is made, and one for each started
/// group of six bytes, if all of it is read at once.
#[inline]
pub fn draws_of_bytes(length: usize) -> u64 {
    1 + length.div_ceil(6) as u64
}

/// Fills `bytes` as `new RandomByteIterator(bytes.len()).toArray()` does.
pub fn random_bytes(random: &mut ThreadLocalRandom, bytes: &mut [u8]) {
    random.skip(1);
    for chunk in bytes.chunks_mut(6) {
        chunk.copy_from_slice(&printable_word(random.next_int())[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_the_published_one_before_its_sign_is_dropped() {
        // 0xA8C7F832281A39C5 is FNV-1a of eight zero octets.
        assert_eq!(fnv_hash(0), (0xA8C7_F832_281A_39C5_u64 as i64).abs());
    }

    #[test]
    fn counted_draws_are_the_draws_that_bytes_take() {
        for length in 0..40 {
            let mut read = ThreadLocalRandom::new(5);
            let mut skipped = read.clone();
            random_bytes(&mut read, &mut vec![0; length]);
            skipped.skip(draws_of_bytes(length));
            assert_eq!(read.next_long(), skipped.next_long(), "{length} bytes");
        }
    }
}
