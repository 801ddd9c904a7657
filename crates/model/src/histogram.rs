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
    let low = mantissa << exponent;
    // The last bucket ends at the largest number.
    (low, low.saturating_add(1 << exponent))
}

/// Counts by bucket, from the lowest to the highest that holds something. Serialised as `[[bucket, count], …]` with the
/// empty buckets left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The bucket of the first of `counts`.
    first: usize,
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// An empty histogram with room for latencies up to about 70 s, so that recording does not allocate.
    pub fn with_capacity() -> Self {
        Self { first: 0, counts: vec![0; index(70_000_000_000) + 1], total: 0 }
    }

    /// Counts one latency (ns).
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.add(index(value), 1);
    }

    /// Adds `count` to bucket `index`.
    #[inline]
    pub fn add(&mut self, index: usize, count: u64) {
        if index.wrapping_sub(self.first) >= self.counts.len() {
            self.make_room(index, index);
        }
        self.counts[index - self.first] += count;
        self.total += count;
    }

    /// Makes room for the buckets from `low` to `high`, and no more: the records of a long run hold many histograms.
    #[cold]
    fn make_room(&mut self, low: usize, high: usize) {
        if self.counts.is_empty() {
            self.first = low;
        }
        let below = self.first.saturating_sub(low);
        let length = (self.first + self.counts.len()).max(high + 1) - (self.first - below);
        self.counts.reserve_exact(length - self.counts.len());
        self.counts.splice(0..0, std::iter::repeat_n(0, below));
        self.counts.resize(length, 0);
        self.first -= below;
    }

    /// Number of recorded values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        let holds = |count: &u64| *count > 0;
        let ends = other.counts.iter().position(holds).zip(other.counts.iter().rposition(holds));
        if let Some((low, high)) = ends {
            self.make_room(other.first + low, other.first + high);
        }
        for (index, count) in other.buckets() {
            self.add(index, count);
        }
    }

    /// Clears all counts, keeps the allocation.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The buckets that hold something, in ascending order, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        (self.first..).zip(&self.counts).filter(|(_, count)| **count > 0).map(|(index, count)| (index, *count))
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
        // A bucket above 2^64 ns does not exist; an index in a foreign file must not make us allocate for one.
        let highest = index(u64::MAX);
        let mut histogram = Self::default();
        let buckets = Vec::<(usize, u64)>::deserialize(deserializer)?;
        let indexes = || buckets.iter().map(|(index, _)| (*index).min(highest));
        if let (Some(low), Some(high)) = (indexes().min(), indexes().max()) {
            histogram.make_room(low, high);
        }
        for (index, count) in buckets {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of every magnitude alike.
    fn value() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn buckets_join_without_a_gap_up_to_the_last_number() {
        let last = index(u64::MAX);
        for number in 0..last {
            let (low, high) = bounds(number);
            assert_eq!((index(low), index(high - 1), bounds(number + 1).0), (number, number, high));
            // Less than 0.8 % wide, or of one number.
            assert!(high - low == 1 || (high - low) * SUB <= low, "{low} to {high}");
        }
        assert_eq!(bounds(0).0, 0);
        assert_eq!(bounds(last).1, u64::MAX);
        assert!(of(&[u64::MAX]).quantile(1.0).is_some_and(|value| value >= bounds(last).0 as f64));
        assert_eq!(of(&[u64::MAX]), of(&[bounds(last).0]));
    }

    #[test]
    fn room_for_usual_latencies_is_there_before_they_come() {
        let mut histogram = Histogram::with_capacity();
        let room = histogram.counts.capacity();
        histogram.record(69_000_000_000);
        assert_eq!(histogram.counts.capacity(), room);
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(index(69_000_000_000), 1)]);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn what_no_histogram_can_hold_is_refused() {
        let read = |text: &str| serde_json::from_str::<Histogram>(text).map_err(|error| error.to_string());
        let (last, most) = (index(u64::MAX), u64::MAX);
        assert_eq!(read(&format!("[[{last},{most}]]")).map(|it| it.total()), Ok(most));
        assert!(read(&format!("[[{},1]]", last + 1)).is_err_and(|words| words.contains("does not exist")));
        assert!(read(&format!("[[1,{most}],[2,1]]")).is_err_and(|words| words.contains("more than there can be")));
        assert!(read("[[1,-1]]").is_err() && read("[[1]]").is_err());
    }

    #[test]
    fn a_histogram_has_room_for_what_it_holds_alone() {
        let (low, high) = (index(1_000_000), index(1_100_000));
        let text = format!("[[{low},3],[{high},1]]");
        let read: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!((read.counts.capacity(), read.first), (high - low + 1, low));
        let mut merged = Histogram::default();
        let mut recorded = Histogram::with_capacity();
        recorded.merge(&read);
        merged.merge(&recorded);
        assert_eq!((merged.counts.capacity(), serde_json::to_string(&merged).unwrap()), (high - low + 1, text));
        merged.record(1);
        assert_eq!(merged.buckets().collect::<Vec<_>>(), [(1, 1), (low, 3), (high, 1)]);
    }

    proptest! {
        #[test]
        fn recording_apart_and_merging_is_recording_together(
            one in prop::collection::vec(value(), 0..50), other in prop::collection::vec(value(), 0..50)
        ) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            let buckets = |histogram: &Histogram| histogram.buckets().collect::<Vec<_>>();
            let together = of(&[one.clone(), other].concat());
            prop_assert_eq!(buckets(&merged), buckets(&together));
            prop_assert_eq!(merged.total(), together.total());
            prop_assert_eq!(merged.total(), buckets(&merged).iter().map(|(_, count)| count).sum::<u64>());
            let text = serde_json::to_string(&merged).unwrap();
            let read: Histogram = serde_json::from_str(&text).unwrap();
            prop_assert_eq!((buckets(&read), read.total()), (buckets(&merged), merged.total()));
            merged.clear();
            prop_assert_eq!((buckets(&merged), merged.total()), (Vec::new(), 0));
            one.iter().for_each(|value| merged.record(*value));
            prop_assert_eq!(buckets(&merged), buckets(&of(&one)));
        }

        #[test]
        fn a_quantile_is_in_the_bucket_of_the_value_at_its_rank(
            mut values in prop::collection::vec(value(), 1..60), quantile in 0.0f64..=1.0, less in 0.0f64..=1.0
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = (quantile * values.len() as f64).ceil().max(1.0) as usize;
            let (low, high) = bounds(index(values[rank - 1]));
            let found = histogram.quantile(quantile).unwrap();
            prop_assert!(low as f64 <= found && found <= high as f64, "{found} is not in {low} to {high}");
            prop_assert!(histogram.quantile(quantile * less).unwrap() <= found);
            // Within one bucket the quantile is proportional to the share.
            let (low, high) = bounds(index(values[0]));
            let one = of(&[values[0]; 8]).quantile(quantile).unwrap();
            let share = (one - low as f64) / (high - low) as f64;
            prop_assert!((share - quantile).abs() < 1e-3, "{share} for {quantile}");
        }
    }
}
