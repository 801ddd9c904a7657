//! Processor time of a server with its descendants, where a connection may be a process that ends with it.

use std::time::{Duration, Instant};

use tithe_machine::proc::{ProcessSnapshot, TreeUsage};

/// How long a server may take to end the processes of connections that were closed.
const REST: Duration = Duration::from_millis(500);

/// What `process` with its descendants has used, and how many they are.
pub(super) fn usage(process: i32) -> (TreeUsage, usize) {
    let snapshot = ProcessSnapshot::take();
    (snapshot.usage(process), snapshot.tree(process).len())
}

/// The same once there are no more than `members` of them: a process that served a connection ends a moment after it,
/// and until its parent has taken note its time may be counted nowhere.
pub(super) fn idle(process: i32, members: usize) -> TreeUsage {
    let deadline = Instant::now() + REST;
    loop {
        let (used, now) = usage(process);
        if now <= members || Instant::now() > deadline {
            return used;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
