//! Processor time and waits of one thread, one process or a whole server, read again and again; and to which processors
//! threads are bound.

use std::{fs::File, os::unix::fs::FileExt};

use crate::{
    cgroup::{self, Account},
    clock,
    proc::{Census, ServerTask, cpu_clock},
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

    /// Watches one of `parts` equal parts of a server whose connections come and go, each served as `task` says; its
    /// waits cannot be seen. A process for each connection that has ended is found in the server's control group alone:
    /// `None` where it has none of its own. Threads that have ended are counted by their process.
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
                let cpu_clock = cpu_clock(*process)?;
                let schedstat = File::open(format!("/proc/{process}/schedstat")).ok();
                Some(Self {
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
    fn a_process_that_does_not_exist_is_not_watched() {
        // One more than the largest process number that Linux gives (PID_MAX_LIMIT).
        assert!(TaskWatch::server(&ServerTask::Process(4_194_305)).is_none());
    }
}
