//! Samples what the processors run: one kernel software clock (`cpu-clock`) per processor.
//!
//! It is a software clock, so it works in virtual machines without performance counters. Its samples carry the time of
//! `CLOCK_MONOTONIC`, as slots do. User-space stacks are followed by frame pointers: in a program that was compiled
//! without them only the topmost function is reliable.

pub mod symbols;

use std::fmt;

use perf_event::{Builder, Clock, SampleFlag, data::Record, events::Software};

use crate::watch::process;

/// Time between two samples of a processor, ns: about 1,000 a second, because in a virtual machine each costs tens of
/// microseconds. No slot length is a multiple of it, so samples fall on all phases of a slot.
pub const PERIOD_NS: u64 = 991_873;

/// Approximate size of the samples of one processor for a second, bytes.
const BYTES_A_SECOND: u64 = 1 << 20;

/// The largest buffer of one processor, bytes.
const BUFFER_MAX: u64 = 64 << 20;

/// The smallest of the markers that the kernel puts into stacks (`PERF_CONTEXT_MAX` of perf_event_open(2)).
const CONTEXTS: u64 = -4095_i64 as u64;

/// The marker after which the addresses are those of user space (`PERF_CONTEXT_USER`).
const CONTEXT_USER: u64 = -512_i64 as u64;

/// The marker after which the addresses are those of the kernel (`PERF_CONTEXT_KERNEL`).
const CONTEXT_KERNEL: u64 = -128_i64 as u64;

/// Why processors cannot be sampled.
#[derive(Debug)]
pub struct Refused(std::io::Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => f.write_str(
                "the kernel lets only root sample all processors: run tithe as root, give it CAP_PERFMON and \
                 CAP_SYS_PTRACE, or set kernel.perf_event_paranoid to 0 or less (a container needs the same of its host)",
            ),
            Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
                write!(f, "this kernel has no perf_event_open with the clock cpu-clock ({})", self.0)
            }
            _ => write!(f, "perf_event_open: {}", self.0),
        }
    }
}

/// What a processor ran when its clock ticked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// On `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// The process.
    pub process: i32,
    /// Its thread.
    pub thread: i32,
    /// The processor.
    pub processor: u32,
    /// Addresses of the kernel stack, innermost first.
    pub kernel: Vec<u64>,
    /// Addresses of the user-space stack, innermost first.
    pub user: Vec<u64>,
}

/// The result of sampling.
#[derive(Debug, Default)]
pub struct Sampled {
    /// In no order.
    pub samples: Vec<Sample>,
    /// Number of samples that were lost for lack of buffer space.
    pub lost: u64,
}

/// A sampling clock on every processor that this process may use.
pub struct Sampler(Vec<perf_event::Sampler>);

impl Sampler {
    /// Begins to sample, with room for about `length_ns`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(length_ns: u64) -> Result<Self, Refused> {
        let bytes = (BYTES_A_SECOND * length_ns.div_ceil(1_000_000_000)).clamp(BYTES_A_SECOND, BUFFER_MAX);
        let sampler = |processor: usize| {
            let mut builder = Builder::new(Software::CPU_CLOCK);
            builder
                .any_pid()
                .one_cpu(processor)
                .include_kernel()
                .exclude_idle(true)
                .sample_period(PERIOD_NS)
                .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::CALLCHAIN)
                .clockid(Clock::MONOTONIC)
                .enabled(true);
            builder.build()?.sampled(bytes.next_power_of_two() as usize)
        };
        process::processors().into_iter().map(sampler).collect::<Result<_, _>>().map(Self).map_err(Refused)
    }

    /// Ends sampling and returns the samples.
    pub fn end(mut self) -> Sampled {
        let mut sampled = Sampled::default();
        for ring in &mut self.0 {
            // A clock that cannot be stopped only adds samples after the frame, which belong to no slot.
            let _ = ring.disable();
            while let Some(record) = ring.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => sampled.samples.extend(taken(&sample)),
                    Ok(Record::Lost(lost)) => sampled.lost += lost.lost,
                    Ok(_) => {}
                    Err(_) => sampled.lost += 1,
                }
            }
        }
        sampled
    }
}

/// Converts a record of the kernel; `None` if it is incomplete.
fn taken(sample: &perf_event::data::Sample<'_>) -> Option<Sample> {
    let (kernel, user) = divided(sample.callchain()?);
    Some(Sample {
        time_ns: sample.time()?,
        process: sample.pid()? as i32,
        thread: sample.tid()? as i32,
        processor: sample.cpu()?,
        kernel,
        user,
    })
}

/// The addresses of a stack in the kernel and in user space, without the markers between them.
fn divided(chain: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut context = CONTEXT_USER;
    for address in chain {
        match (*address, context) {
            (marker, _) if marker >= CONTEXTS => context = marker,
            (address, CONTEXT_KERNEL) => kernel.push(address),
            (address, CONTEXT_USER) => user.push(address),
            _ => {}
        }
    }
    (kernel, user)
}

/// Why processors cannot be sampled here; `None` if they can.
pub fn refused() -> Option<Refused> {
    Sampler::begin(0).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_divide_a_stack() {
        let chain = [CONTEXT_KERNEL, 11, 12, CONTEXT_USER, 21, CONTEXTS + 7, 31];
        assert_eq!(divided(&chain), (vec![11, 12], vec![21]));
        assert_eq!(divided(&[]), (vec![], vec![]));
    }
}
