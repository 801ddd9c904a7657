//! What one lane saw of one arm during a frame: counts and latencies by operation.

use std::collections::BTreeMap;

use tithe_model::{histogram::Histogram, record::PHASES_NS};

use crate::workload::Parts;

/// Counts and latencies of one arm. Memory is reserved once; recording does not allocate.
pub struct Recorder {
    latency: Vec<Histogram>,
    intended: Vec<Histogram>,
    phases: [(u64, f64); PHASES_NS.len() + 1],
    /// Operations that succeeded, guard included.
    pub operations: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations intended but not started or not finished in their slot.
    pub undrained: u64,
    /// Why the frame must not be used.
    pub spoiled: Option<String>,
}

impl Recorder {
    /// A recorder for `operations` kinds of operation.
    pub fn new(operations: usize, open: bool) -> Self {
        Self {
            latency: vec![Histogram::with_capacity(); operations],
            intended: vec![Histogram::with_capacity(); if open { operations } else { 0 }],
            phases: Default::default(),
            operations: 0,
            failed: 0,
            undrained: 0,
            spoiled: None,
        }
    }

    /// Forgets everything, keeps the room.
    pub fn clear(&mut self) {
        self.latency.iter_mut().chain(&mut self.intended).for_each(Histogram::clear);
        self.phases = Default::default();
        (self.operations, self.failed, self.undrained, self.spoiled) = (0, 0, 0, None);
    }

    /// Records the latency of one operation or part, ns.
    #[inline]
    pub fn latency(&mut self, operation: usize, latency_ns: u64) {
        self.latency[operation].record(latency_ns);
    }

    /// Records the latency from the intended start, ns.
    #[inline]
    pub fn from_intended(&mut self, operation: usize, latency_ns: u64) {
        self.intended[operation].record(latency_ns);
    }

    /// Records the latency of an operation that began `since_ns` after its slot did: for the profile of the carry-over.
    #[inline]
    pub fn phase(&mut self, since_ns: u64, latency_ns: u64) {
        let phase = PHASES_NS.iter().position(|end| since_ns < *end).unwrap_or(PHASES_NS.len());
        self.phases[phase].0 += 1;
        self.phases[phase].1 += (latency_ns.max(1) as f64).ln();
    }

    /// Operations and the sum of ln(latency in ns) by phase of the slot.
    pub fn phases(&self) -> &[(u64, f64)] {
        &self.phases
    }

    /// Keeps the first reason why the frame must not be used.
    pub fn spoil(&mut self, reason: impl Into<String>) {
        self.spoiled.get_or_insert_with(|| reason.into());
    }

    /// Latencies from the actual start by the operations' names; kinds that did not occur are left out.
    pub fn latencies(&self, names: &[&str]) -> BTreeMap<String, Histogram> {
        named(names, &self.latency)
    }

    /// Latencies from the intended start by the operations' names.
    pub fn intended(&self, names: &[&str]) -> BTreeMap<String, Histogram> {
        named(names, &self.intended)
    }
}

fn named(names: &[&str], histograms: &[Histogram]) -> BTreeMap<String, Histogram> {
    let seen = names.iter().zip(histograms).filter(|(_, histogram)| histogram.total() > 0);
    seen.map(|(name, histogram)| ((*name).to_owned(), histogram.clone())).collect()
}

/// Times the parts of one compound operation; they are recorded only if the whole counts.
pub struct PartTimes<'a> {
    recorder: &'a mut Recorder,
    now: &'a dyn Fn() -> u64,
    since_ns: u64,
    counts: bool,
}

impl<'a> PartTimes<'a> {
    /// Parts of an operation whose present part began at `since_ns`.
    pub fn new(recorder: &'a mut Recorder, now: &'a dyn Fn() -> u64, since_ns: u64, counts: bool) -> Self {
        Self { recorder, now, since_ns, counts }
    }

    /// When the present part began, ns.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }
}

impl Parts for PartTimes<'_> {
    fn part(&mut self, operation: usize) {
        let now = (self.now)();
        if self.counts {
            self.recorder.latency(operation, now - self.since_ns);
        }
        self.since_ns = now;
    }
}
