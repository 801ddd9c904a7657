//! Generators in which all items of a set are equally likely.

use std::sync::atomic::{AtomicI64, Ordering};

use super::ThreadLocalRandom;

/// Every item equally likely: `site.ycsb.generator.UniformLongGenerator`.
#[derive(Debug, Clone)]
pub struct Uniform {
    low: i64,
    interval: i64,
}

impl Uniform {
    /// Items `low..=high`; `high` must not be below `low`.
    pub fn new(low: i64, high: i64) -> Self {
        Self { low, interval: high - low + 1 }
    }

    /// The next item.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> i64 {
        random.next_long().wrapping_abs() % self.interval + self.low
    }
}

/// A hot set and a cold set, uniform inside each: `site.ycsb.generator.HotspotIntegerGenerator`.
#[derive(Debug, Clone)]
pub struct Hotspot {
    low: i64,
    hot: i64,
    cold: i64,
    operations: f64,
}

impl Hotspot {
    /// Items `low..=high`; the first `data` of them (a fraction, cut to a whole number of items) is hot, and gets the
    /// fraction `operations` of the draws. A set that is used must not be empty.
    pub fn new(low: i64, high: i64, data: f64, operations: f64) -> Self {
        let interval = high - low + 1;
        let hot = i64::from((interval as f64 * data) as i32);
        Self { low, hot, cold: interval - hot, operations }
    }

    /// Items in the hot and in the cold set.
    pub fn sizes(&self) -> (i64, i64) {
        (self.hot, self.cold)
    }

    /// The next item.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> i64 {
        if random.next_double() < self.operations {
            self.low + random.next_long().wrapping_abs() % self.hot
        } else {
            self.low + self.hot + random.next_long().wrapping_abs() % self.cold
        }
    }
}

/// One item after the other, then from the start again: `site.ycsb.generator.SequentialGenerator`.
///
/// The position is shared by all clients, so it is not stored here.
#[derive(Debug, Clone)]
pub struct Sequential {
    start: i64,
    interval: i64,
}

impl Sequential {
    /// Items `start..=end`; `end` must not be below `start`.
    pub fn new(start: i64, end: i64) -> Self {
        Self { start, interval: end - start + 1 }
    }

    /// The next item; moves the shared `position` by one.
    #[inline]
    pub fn next(&self, position: &AtomicI64) -> i64 {
        self.start + position.fetch_add(1, Ordering::Relaxed) % self.interval
    }
}
