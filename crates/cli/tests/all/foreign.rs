//! What reads bytes of others takes its seeds, and seeds that are changed a little, without a panic. `fuzz/run` does
//! the same for as long as it is asked to, and looks for inputs that reach new code.

#[path = "../../../../fuzz/targets/mod.rs"]
mod targets;

use std::panic::catch_unwind;

use targets::changes::{LARGEST, Random, changed};

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Changes to each seed.
const CHANGES: u64 = 40;

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
