//! The simulated database on real time: an operation is a loop of known length on a real processor.
//!
//! Its noise is the machine's own, and its true cost is known: an arm whose protection costs 5 % runs 5 % more
//! iterations of the same loop. With it the whole instrument can be checked on the machine that is to measure.

use std::{
    hint::black_box,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Iterations of the loop that take about `length_ns`. Their ratio is exact, whatever an iteration takes.
pub(super) fn turns(length_ns: f64) -> u64 {
    const TRIAL: u64 = 200_000;
    static TURN_NS: OnceLock<f64> = OnceLock::new();
    let turn_ns = TURN_NS.get_or_init(|| {
        let trial = || {
            let begun = Instant::now();
            spin(TRIAL);
            begun.elapsed()
        };
        // The fastest of some: the others were disturbed.
        let fastest = (0..20).map(|_| trial()).min().unwrap_or(Duration::from_millis(1));
        fastest.as_nanos().max(1) as f64 / TRIAL as f64
    });
    (length_ns / turn_ns).round() as u64
}

/// A chain of multiplications, each of which depends on the one before.
pub(super) fn spin(turns: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..turns {
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    }
    black_box(value);
}
