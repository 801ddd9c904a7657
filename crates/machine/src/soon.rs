//! Waiting, for tests: the kernel and other processes take their time.

use std::{
    fmt::Debug,
    thread,
    time::{Duration, Instant},
};

use crate::proc::state;

/// Longer than anything that a test waits for takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Calls `attempt` until it succeeds, and returns its result; `wanted` names this result.
///
/// # Panics
/// With the last error, when it has not succeeded after two minutes.
#[track_caller]
pub fn soon<T, E: Debug>(wanted: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{wanted}: {error:?}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `process` is in one of the `states` of [`state`]: a signal takes effect only when its receiver runs.
///
/// # Panics
/// When it is in none of them after two minutes.
#[track_caller]
pub fn await_state(process: i32, states: &[&str]) {
    soon(&format!("process {process} in one of the states {states:?}"), || {
        let now = state(process);
        if states.contains(&now.as_str()) { Ok(()) } else { Err(now) }
    });
}
