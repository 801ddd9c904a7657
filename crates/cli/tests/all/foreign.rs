//! What reads bytes of others takes its seeds, and seeds that are changed a little, without a panic. `fuzz/run` does
//! the same without end, and looks for inputs that reach new code.

#[path = "../../../../fuzz/targets/mod.rs"]
mod targets;

use std::panic::catch_unwind;

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Changes to each seed.
const CHANGES: u64 = 40;
/// Larger seeds are not changed: reading them takes long.
const LARGEST: usize = 30_000;

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 7
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// `seed` with one to three bytes or pieces changed, removed, repeated or added.
fn changed(seed: &[u8], random: &mut Random) -> Vec<u8> {
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

#[test]
fn foreign_bytes_never_panic() {
    let mut failed = Vec::new();
    for (name, target) in targets::all() {
        let mut random = Random(1);
        let mut seeds = targets::seeds(name);
        if seeds.is_empty() {
            failed.push(format!("{name}: put a file into fuzz/corpus/{name}"));
        }
        seeds.push(Vec::new());
        for seed in &seeds {
            let count = if seed.len() > LARGEST { 0 } else { CHANGES };
            let mut inputs = std::iter::once(seed.clone()).chain((0..count).map(|_| changed(seed, &mut random)));
            let bad = inputs.find(|input| catch_unwind(|| target(input)).is_err());
            failed.extend(bad.map(|input| format!("{name}: {}", input.escape_ascii())));
        }
    }
    targets::clean_up();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
