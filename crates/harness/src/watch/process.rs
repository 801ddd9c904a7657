//! Processor time, memory and bytes of one process, one thread, or a server with all its descendants.

use std::{collections::HashMap, fs::File, os::unix::fs::FileExt};

use crate::{
    clock::{self, Modes},
    sandbox::cgroup::{self, Account},
    session::ServerTask,
};

/// Reads the processor time and the run-queue wait of one task again and again, without allocating.
pub struct TaskWatch {
    cpu_clock: Option<libc::clockid_t>,
    /// Clocks of further processes that do the same work.
    others: Vec<libc::clockid_t>,
    schedstat: Option<File>,
    simulated: Option<std::sync::Arc<clock::VirtualTime>>,
    /// Counts all processes of a control group, ended ones included.
    account: Option<Account>,
    parts: u64,
}

/// Processor time and run-queue wait so far, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskUsage {
    /// Time on a processor.
    pub cpu_ns: u64,
    /// Time ready to run but without a processor.
    pub wait_ns: u64,
}

impl TaskWatch {
    /// Watches the calling thread.
    pub fn this_thread() -> Self {
        Self {
            cpu_clock: Some(libc::CLOCK_THREAD_CPUTIME_ID),
            others: Vec::new(),
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            simulated: None,
            account: None,
            parts: 1,
        }
    }

    /// Watches the client side of a simulated lane: its waits are those of the whole lane.
    pub fn simulated_client(time: std::sync::Arc<clock::VirtualTime>) -> Self {
        Self { cpu_clock: None, others: Vec::new(), schedstat: None, simulated: Some(time), account: None, parts: 1 }
    }

    /// Watches one of `parts` equal parts of all threads of `process` and of its descendants, which are the nodes of a
    /// cluster; its waits cannot be seen. `None` when there is no such process.
    pub fn whole(process: i32, parts: usize) -> Option<Self> {
        let watch = Self::server(&ServerTask::Process(process))?;
        let descendants = Census::take().tree(process).into_iter().skip(1);
        let others = descendants.filter_map(|member| Self::server(&ServerTask::Process(member))?.cpu_clock).collect();
        Some(Self { schedstat: None, others, parts: parts.max(1) as u64, ..watch })
    }

    /// Watches one of `parts` equal parts of a server whose connections come and go, each served as `task` says; its waits
    /// cannot be seen. A process for each connection that has ended is found in the server's control group alone: `None`
    /// where it has none of its own. Threads that have ended are counted by their process.
    pub fn of_changing(process: i32, task: &ServerTask, parts: usize) -> Option<Self> {
        match (cgroup::account_of(process), task) {
            (Some(account), _) => Some(Self {
                cpu_clock: None,
                others: Vec::new(),
                schedstat: None,
                simulated: None,
                account: Some(account),
                parts: parts.max(1) as u64,
            }),
            (None, ServerTask::Process(_)) => None,
            (None, _) => Self::whole(process, parts),
        }
    }

    /// Watches whoever serves a connection; `None` when that cannot be seen or is the caller itself.
    pub fn server(task: &ServerTask) -> Option<Self> {
        match task {
            ServerTask::Process(process) => {
                let mut cpu_clock: libc::clockid_t = 0;
                // SAFETY: `cpu_clock` is a valid place for the answer; an unknown process makes the call fail.
                let status = unsafe { libc::clock_getcpuclockid(*process, &raw mut cpu_clock) };
                let schedstat = File::open(format!("/proc/{process}/schedstat")).ok();
                // A process that exists has run, if only to start.
                let lives = status == 0 && clock::read(cpu_clock) > 0;
                lives.then_some(Self {
                    cpu_clock: Some(cpu_clock),
                    others: Vec::new(),
                    schedstat,
                    simulated: None,
                    account: None,
                    parts: 1,
                })
            }
            ServerTask::Thread { process, thread } => {
                let schedstat = File::open(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
                Some(Self {
                    cpu_clock: None,
                    others: Vec::new(),
                    schedstat: Some(schedstat),
                    simulated: None,
                    account: None,
                    parts: 1,
                })
            }
            ServerTask::Virtual(_) | ServerTask::Caller | ServerTask::Unknown => None,
        }
    }

    /// The task's usage so far; zeros once it is gone.
    pub fn read(&self) -> TaskUsage {
        if let Some(time) = &self.simulated {
            let load = |value: &std::sync::atomic::AtomicU64| value.load(std::sync::atomic::Ordering::Relaxed);
            return TaskUsage { cpu_ns: load(&time.client_cpu), wait_ns: load(&time.wait) };
        }
        if let Some(account) = &self.account {
            return TaskUsage { cpu_ns: account.cpu_ns() / self.parts, wait_ns: 0 };
        }
        let mut usage = TaskUsage::default();
        let mut buffer = [0u8; 96];
        if let Some(length) = self.schedstat.as_ref().and_then(|file| file.read_at(&mut buffer, 0).ok()) {
            let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
            let mut fields = text.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0));
            usage.cpu_ns = fields.next().unwrap_or(0);
            usage.wait_ns = fields.next().unwrap_or(0);
        }
        // The clock counts up to this instant; schedstat may lag by a tick while the task runs.
        if let Some(cpu_clock) = self.cpu_clock {
            let all = self.others.iter().map(|other| clock::read(*other)).sum::<u64>() + clock::read(cpu_clock);
            usage.cpu_ns = all / self.parts;
        }
        usage
    }
}

/// Binds a thread or process (all its later threads) to one logical processor. Best effort: `false` when the
/// kernel refuses, as for another user's process.
pub fn pin(task: i32, processor: usize) -> bool {
    // SAFETY: `set` is a plain bit set, zeroed and then filled by the macro's function within its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(task, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// The logical processors that this process may use.
pub fn processors() -> Vec<usize> {
    // SAFETY: `set` is zeroed, and the kernel fills it within the size that it is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize).filter(|processor| libc::CPU_ISSET(*processor, &set)).collect()
    }
}

/// One look at every process of the machine, to sum up servers with all their descendants.
pub struct Census {
    children: HashMap<i32, Vec<i32>>,
    reaped_ns: HashMap<i32, u64>,
    modes: HashMap<i32, Modes>,
}

/// What a server with all its descendants has used so far. Levels and sums, not growth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeUsage {
    /// Processor time, ended children included, ns.
    pub cpu_ns: u64,
    /// The same by mode, in ticks of 10 ms as a rule (proc(5), `utime` and `stime`); `None` where it is not looked at.
    pub modes: Option<Modes>,
    /// Bytes fetched from storage.
    pub read_bytes: Option<u64>,
    /// Bytes sent to storage.
    pub written_bytes: Option<u64>,
    /// Context switches.
    pub switches: Option<u64>,
    /// Private memory of all processes and, once, the largest shared part, bytes.
    pub memory_bytes: u64,
}

impl Census {
    /// Looks at `/proc`.
    pub fn take() -> Self {
        let mut census = Self { children: HashMap::new(), reaped_ns: HashMap::new(), modes: HashMap::new() };
        // SAFETY: sysconf has no preconditions.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
        let Ok(entries) = std::fs::read_dir("/proc") else { return census };
        for process in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
            let fields: Vec<&str> = stat_fields(&stat).collect();
            if fields.is_empty() {
                continue;
            }
            let field = |number: usize| fields.get(number).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
            census.children.entry(field(1) as i32).or_default().push(process);
            let ns = |number: usize| field(number).max(0) as u64 * (1_000_000_000 / ticks);
            census.reaped_ns.insert(process, ns(13) + ns(14));
            census.modes.insert(process, Modes { user_ns: ns(11) + ns(13), system_ns: ns(12) + ns(14) });
        }
        census
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
            if let Some(modes) = self.modes.get(&member) {
                *usage.modes.get_or_insert_default() += *modes;
            }
            usage.cpu_ns += TaskWatch::server(&ServerTask::Process(member)).map_or(0, |watch| watch.read().cpu_ns);
            if let Ok(io) = std::fs::read_to_string(format!("/proc/{member}/io")) {
                add(&mut usage.read_bytes, value(&io, "read_bytes:"));
                add(&mut usage.written_bytes, value(&io, "write_bytes:"));
            }
            if let Ok(status) = std::fs::read_to_string(format!("/proc/{member}/status")) {
                add(&mut usage.switches, value(&status, "voluntary_ctxt_switches:"));
                add(&mut usage.switches, value(&status, "nonvoluntary_ctxt_switches:"));
                usage.memory_bytes += 1024 * value(&status, "RssAnon:").unwrap_or(0);
                shared = shared.max(1024 * value(&status, "RssShmem:").unwrap_or(0));
            }
        }
        usage.memory_bytes += shared;
        usage
    }
}

/// Adds to a sum that exists only once something was seen.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}

/// The fields of a process's or thread's `stat` from the third on, its state (proc(5)). The name before may hold spaces and
/// brackets, so they are counted from the last bracket.
pub(crate) fn stat_fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace()
}

/// The first number after `name` at the start of a line.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_thread_uses_processor_time() {
        let watch = TaskWatch::this_thread();
        let before = watch.read().cpu_ns;
        let mut sum = 0u64;
        while watch.read().cpu_ns == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(watch.read().cpu_ns > before);
    }

    #[test]
    fn census_finds_a_child_below_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let tree = Census::take().tree(std::process::id() as i32);
        child.kill().expect("sleep can be killed");
        child.wait().expect("sleep ends");
        assert!(tree.contains(&(child.id() as i32)), "{tree:?}");
    }

    /// A tick more or less stands between the clocks. They are read one after the other, so the process stands still
    /// then.
    #[test]
    fn modes_add_up_to_the_processor_time() {
        // Should this test die, the kernel ends the shell after a minute of its processor time.
        let script = "ulimit -t 60; while :; do :; done";
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().expect("sh starts");
        let process = child.id() as i32;
        let pause = || std::thread::sleep(std::time::Duration::from_millis(10));
        while Census::take().usage(process).cpu_ns < 100_000_000 {
            assert_eq!(child.try_wait().expect("a state"), None, "no processor time was seen");
            pause();
        }
        // SAFETY: the process is a child that nobody has waited for.
        unsafe { libc::kill(process, libc::SIGSTOP) };
        while !std::fs::read_to_string(format!("/proc/{process}/stat")).expect("its state").contains(") T ") {
            pause();
        }
        let usage = Census::take().usage(process);
        child.kill().expect("sh can be killed");
        child.wait().expect("sh ends");
        let modes = usage.modes.expect("this process can be seen");
        let apart = usage.cpu_ns.abs_diff(modes.user_ns + modes.system_ns);
        assert!(apart < 50_000_000, "{usage:?}");
    }

    #[test]
    fn values_are_read_by_name() {
        assert_eq!(value("rchar: 5\nread_bytes: 77\n", "read_bytes:"), Some(77));
        assert_eq!(value("rchar: 5\n", "read_bytes:"), None);
    }

    #[test]
    fn a_process_that_does_not_exist_is_not_watched() {
        // One more than the largest process number that Linux gives (PID_MAX_LIMIT).
        assert!(TaskWatch::server(&ServerTask::Process(4_194_305)).is_none());
    }
}
