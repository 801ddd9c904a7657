//! Processor time of servers with their descendants, if a connection may be a process that ends with it.

use std::{
    cell::LazyCell,
    time::{Duration, Instant},
};

use tithe_machine::proc::{ProcessSnapshot, TreeUsage};

/// How long a server may take to end the processes of connections that were closed.
const SETTLING_MAX: Duration = Duration::from_millis(500);

/// A process with its descendants at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessTree {
    process: i32,
    /// What they have used.
    pub usage: TreeUsage,
    /// The number of processes.
    members: usize,
}

/// Each of `processes` with its descendants, all read at the same moment; nothing is read if there are none.
pub(super) fn trees(processes: impl Iterator<Item = Option<i32>>) -> Vec<Option<ProcessTree>> {
    let snapshot = LazyCell::new(ProcessSnapshot::take);
    let tree = |process| {
        let (usage, members) = (snapshot.usage(process), snapshot.tree(process).len());
        ProcessTree { process, usage, members }
    };
    processes.map(|process| process.map(tree)).collect()
}

/// The same trees once none has more members than `before`. A process that served a connection ends a moment after it,
/// and until its parent has noticed, its time may be counted nowhere.
pub(super) fn settled(before: &[Option<ProcessTree>]) -> Vec<Option<ProcessTree>> {
    let deadline = Instant::now() + SETTLING_MAX;
    loop {
        let now = trees(before.iter().map(|tree| Some(tree.as_ref()?.process)));
        let grown =
            before.iter().zip(&now).any(|both| matches!(both, (Some(was), Some(is)) if is.members > was.members));
        if !grown || Instant::now() > deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
