//! Time in the load loop: the machine's clock, or invented time in the simulated database.
//!
//! With a [`Clock::Virtual`] the whole program runs on times that a test chose, thousands of times faster than real
//! time and identical on every machine.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Source of "now" and "processor time so far".
#[derive(Debug, Clone)]
pub enum Clock {
    /// CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, /proc.
    Real,
    /// Invented time of one lane.
    Virtual(Arc<VirtualTime>),
}

/// Invented time of one lane, advanced by its simulated sessions. ns.
#[derive(Debug, Default)]
pub struct VirtualTime {
    /// Wall clock.
    pub now: AtomicU64,
    /// Processor time of the client.
    pub client_cpu: AtomicU64,
    /// Processor time of the server on behalf of this lane.
    pub server_cpu: AtomicU64,
    /// Time waited for a processor.
    pub wait: AtomicU64,
}

impl Clock {
    /// Nanoseconds since an arbitrary start.
    #[inline]
    pub fn now(&self) -> u64 {
        match self {
            Self::Real => read(ClockId::Monotonic),
            Self::Virtual(time) => time.now.load(Ordering::Relaxed),
        }
    }

    /// Processor time of the calling thread, ns.
    pub fn thread_cpu(&self) -> u64 {
        match self {
            Self::Real => read(ClockId::ThreadCPUTime),
            Self::Virtual(time) => time.client_cpu.load(Ordering::Relaxed),
        }
    }

    /// Processor time of the calling thread in user mode and in the kernel, ns; `None` with invented time.
    ///
    /// getrusage(2). If the kernel counts by ticks, one reading is a guess, but the sum over many slots is accurate:
    /// ticks fall into a mode as often as the thread is in it.
    pub fn thread_cpu_times(&self) -> Option<CpuTimes> {
        match self {
            Self::Real => CpuTimes::of_this_thread(),
            Self::Virtual(_) => None,
        }
    }

    /// Processor time of a simulated server on behalf of this lane, ns; 0 with the machine's clock.
    pub fn simulated_server_cpu(&self) -> u64 {
        match self {
            Self::Real => 0,
            Self::Virtual(time) => time.server_cpu.load(Ordering::Relaxed),
        }
    }

    /// True with invented time: then nothing of the machine is checked.
    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// Returns at `deadline` or a little later. It sleeps until shortly before and spins for the rest, so that the
    /// wake-up of a sleeping thread does not fall into the measured slot.
    pub fn wait_until(&self, deadline: u64) {
        match self {
            Self::Real => {
                const SPIN_NS: u64 = 60_000;
                loop {
                    let now = self.now();
                    if now >= deadline {
                        return;
                    }
                    let left = deadline - now;
                    if left > SPIN_NS {
                        std::thread::sleep(std::time::Duration::from_nanos(left - SPIN_NS));
                    } else {
                        std::hint::spin_loop();
                    }
                }
            }
            Self::Virtual(time) => {
                time.now.fetch_max(deadline, Ordering::Relaxed);
            }
        }
    }
}

/// Processor time by the mode of the processor, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// In user mode: the program's own work.
    pub user_ns: u64,
    /// In the kernel, on behalf of the program: network, files, memory.
    pub system_ns: u64,
}

impl CpuTimes {
    fn of_this_thread() -> Option<Self> {
        // SAFETY: rustix does not have this call. `usage` is zeroed plain data and lives through it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) == 0).then_some(usage)
        }?;
        Some(Self::of(&usage))
    }

    /// The processor time in `usage`.
    pub fn of(usage: &libc::rusage) -> Self {
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

impl std::ops::AddAssign for CpuTimes {
    fn add_assign(&mut self, more: Self) {
        self.user_ns += more.user_ns;
        self.system_ns += more.system_ns;
    }
}

/// Reads `clock` in ns.
#[inline]
pub fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock that counts the processor time of one thread or process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// That of the calling thread.
    pub const THREAD: Self = Self(libc::CLOCK_THREAD_CPUTIME_ID);

    /// The clock of `process`, all its threads together; `None` if there is no such process.
    pub fn of_process(process: i32) -> Option<Self> {
        // The kernel's own encoding (`include/linux/posix-timers_types.h`): the complement of the process, then
        // CPUCLOCK_SCHED.
        let clock = Self(!process << 3 | 2);
        // A process that exists has run, if only to start.
        (process > 0 && clock.read() > 0).then_some(clock)
    }

    /// The time so far, ns; 0 once the process is gone.
    pub fn read(self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: rustix reads no clocks of other processes. `time` is a valid timespec, which a failed call leaves
        // unchanged.
        unsafe { libc::clock_gettime(self.0, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}
