//! What reads bytes of others takes its seeds, and seeds that are changed a little, without a panic. `fuzz/run` does
//! the same for as long as it is asked to, and looks for inputs that reach new code.

#[path = "../../../../fuzz/targets/mod.rs"]
mod targets;

use std::{
    panic::catch_unwind,
    time::{Duration, Instant, SystemTime},
};

use targets::changes::{LARGEST, Random, changed};

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Changes to each seed in a round.
const CHANGES: u64 = 40;

/// Where the changes begin, and how long all readers together get: one round of the same changes or, in CI, a minute of
/// others each time. A failure prints its input.
fn drawn() -> (u64, Duration) {
    if std::env::var_os("CI").is_none() {
        return (1, Duration::ZERO);
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    (now.as_secs(), Duration::from_secs(60))
}

#[test]
fn foreign_bytes_never_panic() {
    let mut failed = Vec::new();
    let (from, patience) = drawn();
    let targets = targets::all();
    let share = patience / u32::try_from(targets.len()).expect("few readers");
    for (name, target) in targets {
        let mut random = Random(from);
        let mut seeds = targets::seeds(name);
        if seeds.is_empty() {
            failed.push(format!("{name}: put a file into fuzz/corpus/{name}"));
        }
        seeds.push(Vec::new());
        let begun = Instant::now();
        let mut bad = Vec::new();
        while bad.is_empty() {
            for seed in &seeds {
                let count = if seed.len() > LARGEST { 0 } else { CHANGES };
                let mut inputs = std::iter::once(seed.clone()).chain((0..count).map(|_| changed(seed, &mut random)));
                let panics = inputs.find(|input| catch_unwind(|| target(input)).is_err());
                bad.extend(panics.map(|input| format!("{name}: {}", input.escape_ascii())));
            }
            if begun.elapsed() >= share {
                break;
            }
        }
        failed.append(&mut bad);
    }
    targets::clean_up();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
