//! A log-linear histogram of latencies in nanoseconds: cheap to record, exact to merge.
//!
//! Buckets are 2^7 per power of two, so that a bucket is less than 0.8 % wide. The layout is the one of
//! HdrHistogram's bucket/sub-bucket scheme with a unit of 1 ns; files for other tools are written as
//! HdrHistogram logs by the run folder.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;

/// Index of the bucket that holds `value` (ns).
pub fn index(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros() - SUB_BITS;
    (((exponent as u64 + 1) << SUB_BITS) + ((value >> exponent) - SUB)) as usize
}

/// Lower bound (inclusive) and upper bound (exclusive) of bucket `index`, in ns.
pub fn bounds(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < SUB {
        return (index, index + 1);
    }
    let exponent = (index >> SUB_BITS) - 1;
    let mantissa = (index & (SUB - 1)) + SUB;
    (mantissa << exponent, (mantissa + 1) << exponent)
}

/// Counts by bucket. Serialised as `[[bucket, count], …]` with the empty buckets left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// An empty histogram with room for latencies up to about 70 s, so that recording does not allocate.
    pub fn with_capacity() -> Self {
        Self { counts: vec![0; index(70_000_000_000) + 1], total: 0 }
    }

    /// Counts one latency (ns).
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.add(index(value), 1);
    }

    /// Adds `count` to bucket `index`.
    #[inline]
    pub fn add(&mut self, index: usize, count: u64) {
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += count;
        self.total += count;
    }

    /// Number of recorded values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (index, count) in other.buckets() {
            self.add(index, count);
        }
    }

    /// Forgets everything, keeps the room.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The buckets that hold something, in ascending order, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| (index, *count))
    }

    /// The value (ns) at rank `quantile`·total, linear inside the bucket; `None` when empty.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = quantile * self.total as f64;
        let mut below = 0.0;
        for (index, count) in self.buckets() {
            let count = count as f64;
            if below + count >= rank {
                let (low, high) = bounds(index);
                return Some(low as f64 + (high - low) as f64 * (rank - below) / count);
            }
            below += count;
        }
        None
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A bucket above 2^64 ns does not exist; a foreign file must not make us allocate for it.
        let highest = index(u64::MAX);
        let mut histogram = Self::default();
        for (index, count) in Vec::<(usize, u64)>::deserialize(deserializer)? {
            if index > highest {
                return Err(serde::de::Error::custom(format!("histogram bucket {index} does not exist")));
            }
            if histogram.total.checked_add(count).is_none() {
                return Err(serde::de::Error::custom("a histogram counts more than there can be"));
            }
            histogram.add(index, count);
        }
        Ok(histogram)
    }
}
