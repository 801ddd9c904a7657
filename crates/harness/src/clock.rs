//! Time as the load loop sees it: the machine's clock, or invented time in the simulated database.
//!
//! With a [`Clock::Virtual`] the whole program runs on times that a test chose, thousands of times faster
//! than they say and the same on every machine.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Where "now" and "processor time so far" come from.
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
            Self::Real => read(libc::CLOCK_MONOTONIC),
            Self::Virtual(time) => time.now.load(Ordering::Relaxed),
        }
    }

    /// Processor time of the calling thread, ns.
    pub fn thread_cpu(&self) -> u64 {
        match self {
            Self::Real => read(libc::CLOCK_THREAD_CPUTIME_ID),
            Self::Virtual(time) => time.client_cpu.load(Ordering::Relaxed),
        }
    }

    /// Returns at `deadline` or a little later; sleeps through what is far away, and spins through the rest
    /// so that the wake-up of a sleeping thread does not land in the measured slot.
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

/// Reads `clock` in ns.
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; a wrong clock id makes the call fail and leaves it unchanged.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if status != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
