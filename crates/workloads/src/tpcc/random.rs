//! Random values of TPC-C, specification 5.11, clauses 2.1.6 and 4.3.2.

use tithe_model::schedule::SplitMix64;

/// The constant C of `NURand` for customer numbers; clause 2.1.6 leaves its choice to the implementation.
const C_CUSTOMER: u64 = 259;
/// The same for item numbers.
const C_ITEM: u64 = 7911;
/// The same for last names while loading.
pub const C_LAST_LOAD: u64 = 157;
/// The same for last names while measuring. Clause 2.1.6.1: it differs from that of loading by 65 to 119, but not by 96
/// or 112.
pub const C_LAST_RUN: u64 = 223;

/// Parts of last names, clause 4.3.2.3.
const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A stream of random values.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream that `seed` begins.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A number in `low..=high`, uniform.
    pub fn uniform(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// A number above 0, at most 1, uniform.
    pub fn positive_share(&mut self) -> f64 {
        // The 53 bits that a double holds.
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// `NURand(a, low, high)` with the constant `c`, clause 2.1.6.
    pub fn nurand(&mut self, a: u64, c: u64, low: u64, high: u64) -> u64 {
        let mixed = self.uniform(0, a) | self.uniform(low, high);
        (mixed + c) % (high - low + 1) + low
    }

    /// A customer number in `1..=customers`.
    pub fn customer(&mut self, customers: u64) -> u64 {
        self.nurand(1023, C_CUSTOMER, 1, customers)
    }

    /// An item number in `1..=items`.
    pub fn item(&mut self, items: u64) -> u64 {
        self.nurand(8191, C_ITEM, 1, items)
    }

    /// The number of a last name, in `0..1000`; fewer if a district has fewer customers.
    pub fn last_name(&mut self, c: u64, customers: u64) -> u64 {
        self.nurand(255, c, 0, customers.min(1000) - 1)
    }

    /// Letters and digits, `low` to `high` of them, appended to `out`.
    pub fn text(&mut self, low: u64, high: u64, out: &mut Vec<u8>) {
        let length = self.uniform(low, high) as usize;
        let mut bits = 0;
        for position in 0..length {
            // Ten letters from 64 bits: multiplying by 62 and taking the whole part has a bias below 2⁻⁵⁸.
            if position % 10 == 0 {
                bits = self.0.next_u64();
            }
            let wide = u128::from(bits) * 62;
            out.push(LETTERS[(wide >> 64) as usize]);
            bits = wide as u64;
        }
    }

    /// Digits, `count` of them, appended to `out`.
    pub fn digits(&mut self, count: usize, out: &mut Vec<u8>) {
        out.extend((0..count).map(|_| b'0' + self.0.below(10) as u8));
    }

    /// The numbers `1..=count` in a random order (Fisher–Yates).
    pub fn permutation(&mut self, count: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (1..=count).collect();
        for i in (1..numbers.len()).rev() {
            numbers.swap(i, self.0.below(i as u64 + 1) as usize);
        }
        numbers
    }
}

/// Appends the last name of `number`, which is below 1000: three syllables, one per decimal digit.
pub fn last_name(number: u64, out: &mut Vec<u8>) {
    for digit in [number / 100, number / 10, number] {
        out.extend_from_slice(SYLLABLES[(digit % 10) as usize].as_bytes());
    }
}
