//! Threads that a machine may refuse: where a limit of processes or memory is reached, that is a fault in words.

use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::fault::Fault;

/// Does `work` in a thread of `scope`.
///
/// # Errors
/// When the machine refuses the thread.
pub fn within<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Fault> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| Fault::machine(REFUSED, error))
}

/// Does `work` in a thread of its own.
///
/// # Errors
/// When the machine refuses the thread.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Fault> {
    Builder::new().spawn(work).map_err(|error| Fault::machine(REFUSED, error))
}

const REFUSED: &str = "cannot start a thread (limits of processes and memory: `ulimit -a`)";
