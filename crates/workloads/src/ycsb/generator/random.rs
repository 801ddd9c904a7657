//! The random source of a YCSB client thread: `java.util.concurrent.ThreadLocalRandom` of Java 17.
//!
//! It advances a counter (Steele, Lea, Flood 2014) and mixes each step with the finaliser of MurmurHash3. Since Java 17
//! the step of a thread depends on the thread's number, and `nextInt(bound)` and `nextDouble` are those of
//! `java.util.Random`, which draw 31 bits, and 26 and 27 bits. Earlier versions of Java draw differently.

/// A stream of random numbers, equal to that of a Java thread with number 1 whose field
/// `threadLocalRandomSeed` has been set to the same seed.
#[derive(Debug, Clone)]
pub struct ThreadLocalRandom {
    state: u64,
}

/// Number of the Java thread that is imitated: in Java 17, 1 is the thread of `main`.
const THREAD: u64 = 1;

/// The increment of a step: `ThreadLocalRandom.GOLDEN_GAMMA` and twice the thread's number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15 + 2 * THREAD;

impl ThreadLocalRandom {
    /// The stream that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// `nextInt()`: 32 random bits.
    #[inline]
    pub fn next_int(&mut self) -> i32 {
        (self.half_mixed().wrapping_mul(0xC4CE_B9FE_1A85_EC53) >> 32) as i32
    }

    /// `nextLong()`: 64 random bits.
    #[inline]
    pub fn next_long(&mut self) -> i64 {
        let z = self.half_mixed().wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        (z ^ (z >> 33)) as i64
    }

    /// `nextInt(bound)`: a number in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is not positive.
    pub fn next_int_below(&mut self, bound: i32) -> i32 {
        assert!(bound > 0, "bound must be positive");
        let mut bits = self.next_bits(31);
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(bits)) >> 31) as i32;
        }
        loop {
            let remainder = bits % bound;
            // The last, incomplete run of `bound` numbers is rejected; the sum exceeds 2^31 only within it.
            if (bits - remainder).checked_add(bound - 1).is_some() {
                return remainder;
            }
            bits = self.next_bits(31);
        }
    }

    /// `nextDouble()`: a number in [0, 1) with 53 random bits, from two draws.
    #[inline]
    pub fn next_double(&mut self) -> f64 {
        let high = i64::from(self.next_bits(26)) << 27;
        let low = i64::from(self.next_bits(27));
        (high + low) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Continues as if `draws` numbers had been taken, in constant time.
    #[inline]
    pub fn skip(&mut self, draws: u64) {
        self.state = self.state.wrapping_add(STEP.wrapping_mul(draws));
    }

    /// The position of the stream: the seed of a stream that would continue in the same way.
    #[inline]
    pub fn state(&self) -> u64 {
        self.state
    }

    #[inline]
    fn next_bits(&mut self, count: u32) -> i32 {
        (self.next_int() as u32 >> (32 - count)) as i32
    }

    #[inline]
    fn half_mixed(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let z = (self.state ^ (self.state >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        z ^ (z >> 33)
    }
}
