//! pgbench's random numbers: the generator of PostgreSQL 15 (`pg_prng.c`) and the distributions, hashes and permutation
//! of its `pgbench.c`, bit for bit.

use std::f64::consts::PI;

/// xoroshiro128**.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    s0: u64,
    s1: u64,
}

impl Random {
    /// The generator that `seed` gives.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let (s0, s1) = (splitmix(&mut state), splitmix(&mut state));
        if s0 == 0 && s1 == 0 {
            // An all-zero state would stay zero; Knuth's constants replace it.
            return Self { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        Self { s0, s1 }
    }

    /// A separate generator, seeded with the next number of this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let (s0, sx) = (self.s0, self.s1 ^ self.s0);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A whole number from 0 to `range`.
    #[inline]
    pub fn up_to(&mut self, range: u64) -> u64 {
        if range == 0 {
            return 0;
        }
        // As many leading bits are used as make at least half of all draws fall into the range.
        let shift = range.leading_zeros();
        loop {
            let drawn = self.bits() >> shift;
            if drawn <= range {
                return drawn;
            }
        }
    }

    /// From 0, inclusive, to 1.
    fn fraction(&mut self) -> f64 {
        (self.bits() >> 12) as f64 / (1u64 << 52) as f64
    }

    /// Uniform from `low` to `high`, both inclusive.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.up_to(high.wrapping_sub(low) as u64) as i64)
    }

    /// Exponential from `low` to `high`, with density exp(−`parameter`) at `high`.
    pub fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.fraction();
        let drawn = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        low.wrapping_add((width(low, high) as f64 * drawn) as i64)
    }

    /// Gaussian around the middle of `low` and `high`, cut `parameter` deviations from it.
    pub fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let deviation = loop {
            let first = 1.0 - self.fraction();
            let second = 1.0 - self.fraction();
            // Box and Muller.
            let normal = (-2.0 * first.ln()).sqrt() * (2.0 * PI * second).sin();
            if normal >= -parameter && normal < parameter {
                break normal;
            }
        };
        let drawn = (deviation + parameter) / (parameter * 2.0);
        low.wrapping_add((width(low, high) as f64 * drawn) as i64)
    }

    /// Zipfian from `low`, the most frequent, to `high`: by rejection (Devroye, Non-Uniform Random Variate Generation,
    /// page 550).
    pub fn zipfian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let count = width(low, high);
        if count <= 1 {
            return low;
        }
        let b = 2f64.powf(parameter - 1.0);
        loop {
            let u = self.fraction();
            let v = self.fraction();
            let x = u.powf(-1.0 / (parameter - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
                return low.wrapping_sub(1).wrapping_add(x as i64);
            }
        }
    }
}

fn width(low: i64, high: i64) -> i64 {
    high.wrapping_sub(low).wrapping_add(1)
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// FNV-1a over the eight bytes of `value`.
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xCBF2_9CE4_8422_2325 ^ seed as u64;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    value.to_le_bytes().into_iter().fold(start, step) as i64
}

/// MurmurHash2 of `value`.
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
    const ROTATION: u32 = 47;
    let mut key = (value as u64).wrapping_mul(MULTIPLIER);
    key ^= key >> ROTATION;
    key = key.wrapping_mul(MULTIPLIER);
    // The seed and eight times the multiplier.
    let mut hash = (seed as u64 ^ MULTIPLIER.wrapping_mul(8) ^ key).wrapping_mul(MULTIPLIER);
    hash ^= hash >> ROTATION;
    hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> ROTATION)) as i64
}

/// The place of `value` in the permutation of 0 to `size` − 1 that `seed` gives.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::new(seed as u64);
    let size = size as u64;
    let mut place = value as u64 % size;
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    let turned = |value: u64, by: u64, with: u64| {
        let value = (value.wrapping_mul(by) ^ with) & mask;
        ((value << 1) & mask) | (value >> (bits - 1))
    };
    for _ in 0..6 {
        // The lower part, which holds the largest power of two.
        let (by, with) = ((random.bits() & mask) | 1, random.bits() & mask);
        if place <= mask {
            place = turned(place, by, with);
        }
        // The upper part, as large.
        let (by, with) = ((random.bits() & mask) | 1, random.bits() & mask);
        let from_end = size - 1 - place;
        if from_end <= mask {
            place = size - 1 - turned(from_end, by, with);
        }
        place = (place + random.up_to(size - 1)) % size;
    }
    place as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of pgbench's own regression tests.
    #[test]
    fn values_are_those_of_pgbench() {
        let mut random = Random::new(5432).fork();
        assert_eq!(random.uniform(10, 19), 17);
        assert_eq!(random.exponential(100, 199, 10.0), 104);
        assert_eq!(random.gaussian(1000, 1999, 10.0), 1498);
        assert_eq!(random.zipfian(1, 9, 1.3), 3);
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!([permute(0, 2, 5431), permute(1, 2, 5431), permute(0, 2, 5433)], [0, 1, 1]);
        let size = i64::MAX - 10;
        assert_eq!(permute(size - 1, size, 5432), 520_382_784_483_822_430);
        assert_eq!(permute(size - 7, size, 5432), 4_542_876_852_200_565_125);
    }
}
