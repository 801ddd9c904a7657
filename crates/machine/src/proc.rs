//! Processes as the kernel reports them: the task that serves a connection, descendants, and the usage of a server with
//! all its descendants.

use std::{collections::HashMap, ops::Add as _};

use rustix::{
    io::Errno,
    param::clock_ticks_per_second,
    process::{Pid, Signal, kill_process},
};
use serde::{Deserialize, Serialize};

use crate::clock::{CpuClock, CpuTimes};

/// The tasks that work for one connection.
#[derive(Debug, Clone)]
pub enum ServerTask {
    /// A process of its own (PostgreSQL's backend).
    Process(i32),
    /// A thread of a process (MariaDB).
    Thread {
        /// Process.
        process: i32,
        /// Thread.
        thread: i32,
    },
    /// The calling thread itself: an embedded database.
    Caller,
    /// Invented time.
    Virtual(std::sync::Arc<crate::clock::VirtualTime>),
    /// Another machine, or a pool of threads.
    Unknown,
}

impl ServerTask {
    /// The thread that serves the connection, unless it is the caller's; for a process its first one.
    pub fn thread(&self) -> Option<i32> {
        match self {
            Self::Process(thread) | Self::Thread { thread, .. } => Some(*thread),
            Self::Caller | Self::Virtual(_) | Self::Unknown => None,
        }
    }
}

/// One scan of all processes of the machine, to sum up servers with all their descendants.
pub struct ProcessSnapshot {
    children: HashMap<i32, Vec<i32>>,
    own_ns: HashMap<i32, u64>,
    reaped_ns: HashMap<i32, u64>,
    cpu_times: HashMap<i32, CpuTimes>,
}

/// Usage of a server with all its descendants so far. Levels and sums, not growth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeUsage {
    /// Processor time, including ended children, ns.
    pub cpu_ns: u64,
    /// The same by mode, usually in ticks of 10 ms (proc(5), `utime` and `stime`); `None` if unknown.
    pub cpu_times: Option<CpuTimes>,
    /// Bytes fetched from storage.
    pub read_bytes: Option<u64>,
    /// Bytes sent to storage.
    pub written_bytes: Option<u64>,
    /// Context switches.
    pub switches: Option<u64>,
    /// Private memory of all processes and, once, the largest shared part, bytes.
    pub memory_bytes: u64,
}

impl ProcessSnapshot {
    /// Reads `/proc`.
    pub fn take() -> Self {
        let mut snapshot = Self {
            children: HashMap::new(),
            own_ns: HashMap::new(),
            reaped_ns: HashMap::new(),
            cpu_times: HashMap::new(),
        };
        let ticks = clock_ticks_per_second().max(1);
        for process in processes() {
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
            let fields: Vec<&str> = stat_fields(&stat).collect();
            if fields.is_empty() {
                continue;
            }
            let field = |number: usize| fields.get(number).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
            snapshot.children.entry(field(1) as i32).or_default().push(process);
            let ns = |number: usize| field(number).max(0) as u64 * (1_000_000_000 / ticks);
            snapshot.own_ns.insert(process, ns(11) + ns(12));
            snapshot.reaped_ns.insert(process, ns(13) + ns(14));
            snapshot.cpu_times.insert(process, CpuTimes { user_ns: ns(11) + ns(13), system_ns: ns(12) + ns(14) });
        }
        snapshot
    }

    /// The server `process` and all its descendants.
    pub fn tree(&self, process: i32) -> Vec<i32> {
        let mut tree = vec![process];
        let mut next = 0;
        while next < tree.len() {
            if let Some(children) = self.children.get(&tree[next]) {
                tree.extend(children);
            }
            next += 1;
        }
        tree
    }

    /// Sums up the server `process` and all its descendants.
    pub fn usage(&self, process: i32) -> TreeUsage {
        let mut usage = TreeUsage::default();
        let mut shared = 0;
        for member in self.tree(process) {
            usage.cpu_ns += self.reaped_ns.get(&member).copied().unwrap_or(0);
            if let Some(cpu_times) = self.cpu_times.get(&member) {
                *usage.cpu_times.get_or_insert_default() += *cpu_times;
            }
            // A process that has ended since the scan is not yet in its parent's sum of ended children.
            let gone_ns = || self.own_ns.get(&member).copied().unwrap_or(0);
            usage.cpu_ns += CpuClock::of_process(member).map_or_else(gone_ns, CpuClock::read);
            if let Ok(io) = std::fs::read_to_string(format!("/proc/{member}/io")) {
                add(&mut usage.read_bytes, value(&io, "read_bytes:"));
                add(&mut usage.written_bytes, value(&io, "write_bytes:"));
            }
            add(&mut usage.switches, switches(member));
            if let Ok(status) = std::fs::read_to_string(format!("/proc/{member}/status")) {
                usage.memory_bytes += 1024 * value(&status, "RssAnon:").unwrap_or(0);
                shared = shared.max(1024 * value(&status, "RssShmem:").unwrap_or(0));
            }
        }
        usage.memory_bytes += shared;
        usage
    }
}

/// Context switches of all current threads of `process`; the kernel's figure for a process covers only its first thread
/// (proc(5)). `None` if access is denied.
fn switches(process: i32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let of_thread = |status: String| {
        Some(value(&status, "voluntary_ctxt_switches:")? + value(&status, "nonvoluntary_ctxt_switches:")?)
    };
    // A thread that has ended since it was listed is skipped.
    threads.filter_map(|thread| of_thread(std::fs::read_to_string(thread.path().join("status")).ok()?)).reduce(u64::add)
}

/// The processes of this machine that this user can see.
pub fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Adds to a sum that is `None` until the first value.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}

/// The fields of a process's or thread's `stat` from the third on, its state (proc(5)). The name before may contain
/// spaces and brackets, so fields are counted from the last bracket.
fn stat_fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace()
}

/// The state of `process`, a letter (proc(5)); `gone` if there is no such process.
pub fn state(process: i32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat_fields(&stat).next().unwrap_or("gone").to_owned()
}

/// True if a signal has stopped `process`.
pub fn is_stopped(process: i32) -> bool {
    state(process) == "T"
}

/// The parent of `process`; `None` if there is none, or access is denied.
pub fn parent_of(process: i32) -> Option<i32> {
    // State, then parent (proc(5)).
    stat_fields(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?).nth(1)?.parse().ok()
}

/// When a process or thread started, in ticks since the machine did; `None` if it does not exist.
pub fn start_of(id: i32) -> Option<u64> {
    // Field 22 of proc(5); the state is the third.
    stat_fields(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?).nth(19)?.parse().ok()
}

/// The memory of this process that is in use, bytes; `None` if it is hidden.
pub fn resident_bytes() -> Option<u64> {
    value(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:").map(|kilobytes| kilobytes << 10)
}

/// The first number after `name` at the start of a line.
pub fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// True if `signal` is in `set` (`SigIgn:`) of the text of a process's or thread's `status` (proc(5)).
pub fn has_signal(status: &str, set: &str, signal: Signal) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix(set));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal.as_raw() - 1) & 1 == 1)
}

/// Sends `signal` to one process.
///
/// # Errors
/// The kernel's error, and [`Errno::SRCH`] for a number that cannot be a process.
pub fn signal(process: i32, signal: Signal) -> Result<(), Errno> {
    // A negative number would mean a group, and 0 this program's own group.
    let process = Some(process).filter(|number| *number > 0).and_then(Pid::from_raw);
    kill_process(process.ok_or(Errno::SRCH)?, signal)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests start what they watch")]
mod tests {
    use super::*;
    use crate::soon::{await_state, soon};

    #[test]
    fn a_snapshot_finds_a_child_below_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let tree = ProcessSnapshot::take().tree(std::process::id() as i32);
        child.kill().expect("sleep can be killed");
        child.wait().expect("sleep ends");
        assert!(tree.contains(&(child.id() as i32)), "{tree:?}");
    }

    /// The sleeping thread is not the process's first one, which is the only one in its own `status`. Threads of other
    /// tests come and go.
    #[test]
    fn switches_of_all_threads_count() {
        let meeting = std::sync::Barrier::new(2);
        let (of_first, of_all) = std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..500).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(10)));
                meeting.wait();
                // The thread exists until it was checked.
                meeting.wait();
            });
            meeting.wait();
            let status = std::fs::read_to_string("/proc/self/status").expect("it is seen");
            let of_first = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|name| value(&status, name));
            let of_all = ProcessSnapshot::take().usage(std::process::id() as i32).switches;
            meeting.wait();
            (of_first, of_all)
        });
        let of_first = of_first.into_iter().sum::<Option<u64>>().expect("they are seen");
        assert!(of_all.is_some_and(|of_all| of_all >= of_first + 500), "{of_first} {of_all:?}");
    }

    /// The clocks may differ by a tick. They are read one after the other, so the process is paused for it.
    #[test]
    fn cpu_times_add_up_to_the_processor_time() {
        // If this test dies, the kernel ends the shell after a minute of its processor time.
        let script = "ulimit -t 60; while :; do :; done";
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().expect("sh starts");
        let process = child.id() as i32;
        soon("100 ms of processor time", || {
            let cpu_ns = ProcessSnapshot::take().usage(process).cpu_ns;
            assert_eq!(child.try_wait().expect("a state"), None, "no processor time was seen");
            if cpu_ns < 100_000_000 { Err(cpu_ns) } else { Ok(()) }
        });
        signal(process, Signal::STOP).expect("it is there");
        await_state(process, &["T"]);
        let usage = ProcessSnapshot::take().usage(process);
        child.kill().expect("sh can be killed");
        child.wait().expect("sh ends");
        let cpu_times = usage.cpu_times.expect("this process can be seen");
        let apart = usage.cpu_ns.abs_diff(cpu_times.user_ns + cpu_times.system_ns);
        assert!(apart < 50_000_000, "{usage:?}");
    }

    #[test]
    fn values_are_read_by_name() {
        assert_eq!(value("rchar: 5\nread_bytes: 77\n", "read_bytes:"), Some(77));
        assert_eq!(value("rchar: 5\n", "read_bytes:"), None);
    }
}
