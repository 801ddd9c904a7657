//! Processor time and waits of one thread, one process or a whole server, read repeatedly; and binding of threads to
//! processors.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::{
    cgroup::{self, Account},
    clock::{CpuClock, VirtualTime},
    proc::{ProcessSnapshot, ServerTask},
};

/// Reads the processor time, and the run-queue wait if it can be seen, of the same tasks repeatedly, without
/// allocating.
pub enum TaskWatch {
    /// A thread, or a process with one thread at work.
    Task {
        /// Its clock, which is exact at the moment of reading; `None` if only `schedstat` is available.
        cpu_clock: Option<CpuClock>,
        /// Its waits, and its processor time up to the last tick; `None` if the kernel does not count them.
        schedstat: Option<File>,
    },
    /// One of several equal parts of all threads of some processes.
    Processes {
        /// The clock of each process.
        clocks: Vec<CpuClock>,
        /// Number of parts.
        parts: u64,
    },
    /// One of several equal parts of all processes of a control group, including ended ones.
    Group {
        /// The group's usage.
        account: Account,
        /// Number of parts.
        parts: u64,
    },
    /// The client side of a simulated lane: its waits are those of the whole lane.
    Simulated(Arc<VirtualTime>),
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
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        Self::Task { cpu_clock: Some(CpuClock::THREAD), schedstat }
    }

    /// Watches one of `parts` equal parts of all threads of `process` and of its descendants, which are the nodes of a
    /// cluster. Its waits cannot be seen. `None` if the process does not exist.
    pub fn whole(process: i32, parts: usize) -> Option<Self> {
        let mut clocks = vec![CpuClock::of_process(process)?];
        clocks.extend(ProcessSnapshot::take().tree(process).into_iter().skip(1).filter_map(CpuClock::of_process));
        Some(Self::Processes { clocks, parts: parts.max(1) as u64 })
    }

    /// Watches one of `parts` equal parts of a server whose connections come and go, each served by a `task` of the
    /// given kind. Its waits cannot be seen. If each connection has its own process, ended ones are counted only in the
    /// server's control group: `None` if it has none of its own. Ended threads are counted by their process.
    pub fn of_changing(process: i32, task: &ServerTask, parts: usize) -> Option<Self> {
        match (cgroup::account_of(process), task) {
            (Some(account), _) => Some(Self::Group { account, parts: parts.max(1) as u64 }),
            (None, ServerTask::Process(_)) => None,
            (None, _) => Self::whole(process, parts),
        }
    }

    /// Watches the task that serves a connection; `None` if it cannot be seen or is the caller itself.
    pub fn server(task: &ServerTask) -> Option<Self> {
        match task {
            ServerTask::Process(process) => {
                let cpu_clock = CpuClock::of_process(*process)?;
                let schedstat = File::open(format!("/proc/{process}/schedstat")).ok();
                Some(Self::Task { cpu_clock: Some(cpu_clock), schedstat })
            }
            ServerTask::Thread { process, thread } => {
                let schedstat = File::open(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
                Some(Self::Task { cpu_clock: None, schedstat: Some(schedstat) })
            }
            ServerTask::Virtual(_) | ServerTask::Caller | ServerTask::Unknown => None,
        }
    }

    /// Usage of the tasks so far; zeros once they are gone.
    pub fn read(&self) -> TaskUsage {
        match self {
            Self::Task { cpu_clock, schedstat } => {
                let mut usage = schedstat.as_ref().map(scheduled).unwrap_or_default();
                // The clock is exact at this moment; schedstat may lag by a tick while the task runs.
                if let Some(cpu_clock) = cpu_clock {
                    usage.cpu_ns = cpu_clock.read();
                }
                usage
            }
            Self::Processes { clocks, parts } => {
                TaskUsage { cpu_ns: clocks.iter().map(|one| one.read()).sum::<u64>() / parts, wait_ns: 0 }
            }
            Self::Group { account, parts } => TaskUsage { cpu_ns: account.cpu_ns() / parts, wait_ns: 0 },
            Self::Simulated(time) => {
                let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
                TaskUsage { cpu_ns: load(&time.client_cpu), wait_ns: load(&time.wait) }
            }
        }
    }
}

/// The contents of a `schedstat` file (Documentation/scheduler/sched-stats.rst).
fn scheduled(file: &File) -> TaskUsage {
    let mut buffer = [0u8; 96];
    let Ok(length) = file.read_at(&mut buffer, 0) else { return TaskUsage::default() };
    let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0));
    TaskUsage { cpu_ns: fields.next().unwrap_or(0), wait_ns: fields.next().unwrap_or(0) }
}

/// Binds a thread or process (with all its later threads) to one logical processor. Best effort: `false` if the kernel
/// refuses, as for another user's process.
pub fn pin(task: i32, processor: usize) -> bool {
    bind(task, &[processor])
}

/// Restricts a thread to `processors`. Best effort, as [`pin`].
pub fn bind(task: i32, processors: &[usize]) -> bool {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    sched_setaffinity(Pid::from_raw(task), &set).is_ok()
}

/// True when thread or process `task` is bound to this one processor.
pub fn is_bound(task: i32, processor: usize) -> bool {
    processors_of(task).is_some_and(|processors| processors == [processor])
}

/// The logical processors that this process may use.
pub fn processors() -> Vec<usize> {
    processors_of(0).unwrap_or_else(|| vec![0])
}

/// The logical processors that `task` may use, 0 being the calling thread; `None` if unknown.
pub fn processors_of(task: i32) -> Option<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(task)).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// Gives the calling thread real-time priority, so that it runs as soon as it is due. No effect if not permitted.
pub fn come_first() {
    let priority: libc::c_int = 1;
    // SAFETY: rustix does not have this call, and musl's function of this name does nothing, so the call uses its
    // number. The kernel reads the priority, which lives through the call, as the parameters. It affects only this
    // thread.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const priority)
    };
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
    fn who_is_bound_to_a_processor_is_bound_to_no_other() {
        std::thread::spawn(|| {
            let all = processors();
            let processor = all[0];
            assert!(pin(0, processor) && is_bound(0, processor));
            assert!(!is_bound(0, processor + 1));
            assert!(bind(0, &all) && processors() == all);
        })
        .join()
        .expect("the thread ends");
    }

    #[test]
    fn several_processes_are_summed_and_told_in_equal_parts() {
        let watch = |count, parts| {
            let own = CpuClock::of_process(std::process::id() as i32).expect("its own");
            TaskWatch::Processes { clocks: vec![own; count], parts }.read().cpu_ns
        };
        let (before, third_of_six, after) = (watch(1, 1), watch(6, 3), watch(1, 1));
        assert!((2 * before..=2 * after).contains(&third_of_six), "{before} {third_of_six} {after}");
        assert!(before > 0);
    }

    #[test]
    fn a_process_that_does_not_exist_is_not_watched() {
        // One more than the largest process number that Linux gives (PID_MAX_LIMIT).
        let nobody = 4_194_305;
        assert!(TaskWatch::server(&ServerTask::Process(nobody)).is_none());
        assert!(TaskWatch::whole(nobody, 1).is_none());
    }
}
