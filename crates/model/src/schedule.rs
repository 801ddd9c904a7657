//! Which arm runs when: the only source of randomness of a run.
//!
//! Every order and every key stream follows from the plan's seed through [`SplitMix64`], so that a run
//! can be repeated and a report can be recomputed. The order inside a block is a pure function of
//! (seed, frame, block): all clients compute it alone, without a coordinator in the measured path.

/// Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"; the constants of the
/// reference implementation.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound` without bias (rejection).
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The largest multiple of `bound` that fits; 2^64 itself is written as 0.
        let limit = 0u64.wrapping_sub((u64::MAX % bound + 1) % bound);
        loop {
            let x = self.next_u64();
            if limit == 0 || x < limit {
                return x % bound;
            }
        }
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// The order of `arms` arms inside one block (Fisher–Yates).
pub fn block_order(seed: u64, frame: u64, block: u64, arms: usize) -> Vec<usize> {
    let mix = frame
        .wrapping_mul(0xD1B5_4A32_D192_ED03)
        .wrapping_add(block.wrapping_mul(0xABC9_8388_FB8F_AC03))
        .wrapping_add(1);
    let mut random = SplitMix64::new(seed ^ mix);
    let mut order: Vec<usize> = (0..arms).collect();
    for i in (1..arms).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// The seed of the key stream that client `client` offers to every arm of one block.
///
/// It does not depend on the arm: all arms of a block get the same operations (common random numbers).
pub fn stream_seed(seed: u64, frame: u64, block: u64, client: u64) -> u64 {
    let mut random = SplitMix64::new(seed ^ frame.rotate_left(40) ^ block.rotate_left(20) ^ client);
    random.next_u64();
    random.next_u64()
}
