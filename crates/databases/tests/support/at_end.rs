//! State that all tests of this program share is undone when it ends, whatever their result.

use std::sync::{Mutex, MutexGuard, PoisonError};

static CALLS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Has `undo` called when this program ends by itself. If it is killed, the sandbox cleans up: servers die with the
/// program, and folders are removed with the next sandbox.
pub fn call(undo: fn()) {
    let mut calls = locked(&CALLS);
    if calls.is_empty() {
        // SAFETY: `end` is a function of this program, which does not unwind.
        assert_eq!(unsafe { libc::atexit(end) }, 0, "what is shared could not be undone");
    }
    calls.push(undo);
}

/// The value in `shared`. A test that failed while it held this does not poison it for the others.
pub fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn end() {
    let calls = std::mem::take(&mut *locked(&CALLS));
    for undo in calls {
        // A panic here can no longer be reported.
        let _ = std::panic::catch_unwind(undo);
    }
}
