//! Inputs by changing known ones: for the test, and for `fuzz/changes.rs`.

/// Larger seeds are not changed: reading them takes long.
pub const LARGEST: usize = 30_000;

/// Random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 7
    }

    /// Below `limit`, which counts as at least one.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// `seed` with one to three bytes or pieces changed, removed, repeated or added.
pub fn changed(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(20)).min(bytes.len());
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 0xff, b'9', b'-', b'"', b'\n'][random.below(6)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, random.next().to_le_bytes())),
        }
    }
    bytes
}
