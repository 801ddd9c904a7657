//! The results of one lane for one arm during a frame: counts and latencies by operation.

use std::collections::BTreeMap;

use tithe_machine::clock::CpuTimes;
use tithe_model::{histogram::Histogram, record::PHASES_NS};
use tithe_plugin::workload::PartRecorder;

/// Counts and latencies of one arm. Memory is reserved once; recording does not allocate.
pub struct Recorder {
    latency: Vec<Histogram>,
    intended: Vec<Histogram>,
    phases: Vec<PhaseTimes>,
    /// Operations that succeeded in slots that count, settling time included.
    pub operations: u64,
    /// Operations that succeeded during warm-up or in lead-in slots, which do not count.
    pub lead_in: u64,
    /// Operations that failed.
    pub failed: u64,
    /// The error of the first one.
    pub first_failure: Option<String>,
    /// Operations intended but not started or not finished in their slot.
    pub unfinished: u64,
    /// Processor time of the client by mode; `None` if it is unknown.
    pub cpu_times: Option<CpuTimes>,
    /// Why the frame must not be used.
    pub invalid: Option<String>,
}

impl Recorder {
    /// A recorder for this number of kinds of operation. `reconnects`: connections are opened during the measurement,
    /// and are one more kind after the others.
    pub fn new(operations: usize, reconnects: bool, open: bool) -> Self {
        let operations = operations + usize::from(reconnects);
        Self {
            latency: vec![Histogram::with_capacity(); operations],
            intended: vec![Histogram::with_capacity(); if open { operations } else { 0 }],
            phases: vec![PhaseTimes::default(); PHASES_NS.len() + 1],
            operations: 0,
            lead_in: 0,
            failed: 0,
            first_failure: None,
            unfinished: 0,
            cpu_times: None,
            invalid: None,
        }
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.latency.iter_mut().chain(&mut self.intended).for_each(Histogram::clear);
        self.phases.fill(PhaseTimes::default());
        (self.operations, self.lead_in, self.failed, self.unfinished) = (0, 0, 0, 0);
        (self.first_failure, self.cpu_times, self.invalid) = (None, None, None);
    }

    /// Counts `operations` that failed with `message`.
    pub fn fail(&mut self, message: String, operations: u64) {
        self.failed += operations;
        self.first_failure.get_or_insert(message);
    }

    /// Adds processor time of the client, if it is known by mode.
    pub fn spent(&mut self, cpu_times: Option<CpuTimes>) {
        if let Some(cpu_times) = cpu_times {
            *self.cpu_times.get_or_insert_default() += cpu_times;
        }
    }

    /// Records the latency of one operation or part, ns.
    #[inline]
    pub fn latency(&mut self, operation: usize, latency_ns: u64) {
        self.latency[operation].record(latency_ns);
    }

    /// Records how long a connection took to open, ns. No connection has a planned time, so this counts from its start
    /// in an open loop, too.
    pub fn connection(&mut self, latency_ns: u64) {
        for kinds in [&mut self.latency, &mut self.intended] {
            if let Some(histogram) = kinds.last_mut() {
                histogram.record(latency_ns);
            }
        }
    }

    /// Records the latency from the intended start, ns.
    #[inline]
    pub fn from_intended(&mut self, operation: usize, latency_ns: u64) {
        self.intended[operation].record(latency_ns);
    }

    /// Records the latency of an operation that began `since_ns` after its slot, for the carry-over profile.
    #[inline]
    pub fn phase(&mut self, since_ns: u64, latency_ns: u64) {
        let phase = PHASES_NS.iter().position(|end| since_ns < *end).unwrap_or(PHASES_NS.len());
        self.phases[phase].record(latency_ns);
    }

    /// By phase of the slot: the number of operations, and that number times ln(median latency in ns).
    pub fn phases(&self) -> impl Iterator<Item = (u64, f64)> {
        self.phases.iter().map(PhaseTimes::weighted_median)
    }

    /// Keeps the first reason why the frame must not be used.
    pub fn invalidate(&mut self, reason: impl Into<String>) {
        self.invalid.get_or_insert_with(|| reason.into());
    }

    /// Latencies from the actual start, by the operations' names; kinds that did not occur are left out.
    pub fn latencies(&self, names: &[&str]) -> BTreeMap<String, Histogram> {
        named(names, &self.latency)
    }

    /// Latencies from the intended start, by the operations' names.
    pub fn intended(&self, names: &[&str]) -> BTreeMap<String, Histogram> {
        named(names, &self.intended)
    }
}

fn named(names: &[&str], histograms: &[Histogram]) -> BTreeMap<String, Histogram> {
    let seen = names.iter().zip(histograms).filter(|(_, histogram)| histogram.total() > 0);
    seen.map(|(name, histogram)| ((*name).to_owned(), histogram.clone())).collect()
}

/// Latencies of one phase of the slots: a small histogram with 16 buckets per power of two, whose median is not
/// affected by stalls.
#[derive(Debug, Clone, Copy)]
struct PhaseTimes {
    buckets: [u32; Self::BUCKETS],
    count: u64,
}

impl Default for PhaseTimes {
    fn default() -> Self {
        Self { buckets: [0; Self::BUCKETS], count: 0 }
    }
}

impl PhaseTimes {
    /// From 16 ns to 2^36 ns, a minute.
    const BUCKETS: usize = 32 * 16;

    #[inline]
    fn record(&mut self, latency_ns: u64) {
        let latency_ns = latency_ns.max(16);
        let exponent = latency_ns.ilog2() - 4;
        let bucket = exponent as usize * 16 + (latency_ns >> exponent) as usize - 16;
        self.buckets[bucket.min(Self::BUCKETS - 1)] += 1;
        self.count += 1;
    }

    /// The count, and the count times ln(median); the median is linear within its bucket.
    fn weighted_median(&self) -> (u64, f64) {
        let half = self.count as f64 / 2.0;
        let mut below = 0.0;
        for (bucket, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            if below + count >= half {
                let width = (1_u64 << (bucket / 16)) as f64;
                let median = width * (16.0 + (bucket % 16) as f64 + (half - below) / count);
                return (self.count, self.count as f64 * median.ln());
            }
            below += count;
        }
        (0, 0.0)
    }
}

/// Times the parts of one compound operation; they are recorded only if the whole counts.
pub struct PartTimes<'a> {
    recorder: &'a mut Recorder,
    now: &'a dyn Fn() -> u64,
    since_ns: u64,
    counts: bool,
}

impl<'a> PartTimes<'a> {
    /// Parts of an operation whose current part began at `since_ns`.
    pub fn new(recorder: &'a mut Recorder, now: &'a dyn Fn() -> u64, since_ns: u64, counts: bool) -> Self {
        Self { recorder, now, since_ns, counts }
    }

    /// When the current part began, ns.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }
}

impl PartRecorder for PartTimes<'_> {
    fn part(&mut self, operation: usize) {
        let now = (self.now)();
        if self.counts {
            self.recorder.latency(operation, now - self.since_ns);
        }
        self.since_ns = now;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_recorder_keeps_the_first_reasons_and_forgets_everything_at_once() {
        let mut recorder = Recorder::new(1, false, false);
        for end_ns in PHASES_NS {
            [end_ns - 1, end_ns].into_iter().for_each(|since_ns| recorder.phase(since_ns, 1000));
        }
        for (message, count) in [("first", 3), ("second", 4)] {
            recorder.fail(message.to_owned(), count);
            recorder.invalidate(message);
            recorder.spent(Some(CpuTimes { user_ns: 1, system_ns: 2 }));
            recorder.spent(None);
        }
        let seen = |recorder: &Recorder| {
            let phases: Vec<u64> = recorder.phases().map(|(count, _)| count).collect();
            let reasons = (recorder.first_failure.clone(), recorder.invalid.clone());
            (phases, recorder.failed, reasons, recorder.cpu_times)
        };
        let first = Some("first".to_owned());
        let spent = Some(CpuTimes { user_ns: 2, system_ns: 4 });
        // A phase begins where the one before ends.
        assert_eq!(seen(&recorder), (vec![1, 2, 2, 2, 2, 2, 2, 2, 1], 7, (first.clone(), first), spent));
        recorder.clear();
        assert_eq!(seen(&recorder), seen(&Recorder::new(1, false, false)));
    }

    proptest! {
        #[test]
        fn a_phase_knows_its_median(mut latencies in proptest::collection::vec(16u64..10_000_000_000, 1..200)) {
            let mut times = PhaseTimes::default();
            latencies.iter().for_each(|latency| times.record(*latency));
            latencies.sort_unstable();
            let (count, sum) = times.weighted_median();
            prop_assert_eq!(count, latencies.len() as u64);
            let median = (sum / count as f64).exp();
            let nearest = latencies[(latencies.len() - 1) / 2] as f64;
            prop_assert!((median / nearest - 1.0).abs() < 0.07, "{} is not {}", median, nearest);
        }
    }
}
