//! The number of the last inserted record, as far as all inserts before it have been answered.

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

/// Hands out record numbers, and knows up to which all of them are inserted:
/// `site.ycsb.generator.AcknowledgedCounterGenerator`.
///
/// Shared by all clients. Reading is one atomic load. Acknowledging takes a lock; in YCSB a thread that does not get it
/// at once leaves the work to the next.
#[derive(Debug)]
pub struct AcknowledgedCounter {
    next: AtomicI64,
    limit: AtomicI64,
    /// One bit for each of the [`WINDOW`] numbers after the limit: already answered.
    window: Mutex<Box<[u64]>>,
}

/// Numbers that can be in flight at the same time.
const WINDOW: i64 = 1 << 20;

/// More than 2^20 inserts wait for an earlier one that is never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowFull;

impl fmt::Display for WindowFull {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "more than {WINDOW} inserts wait for the answer to an earlier one")
    }
}

impl std::error::Error for WindowFull {}

impl AcknowledgedCounter {
    /// The next number is `start`; all before it count as inserted. Takes 128 KiB.
    pub fn new(start: i64) -> Self {
        let window = vec![0; (WINDOW / 64) as usize].into_boxed_slice();
        Self { next: AtomicI64::new(start), limit: AtomicI64::new(start - 1), window: Mutex::new(window) }
    }

    /// A number for a new record.
    #[inline]
    pub fn next(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The last number up to which all are acknowledged.
    #[inline]
    pub fn last(&self) -> i64 {
        self.limit.load(Ordering::Acquire)
    }

    /// Record `number` is inserted, or never will be.
    ///
    /// # Errors
    /// If a number 2^20 before it is not acknowledged yet.
    pub fn acknowledge(&self, number: i64) -> Result<(), WindowFull> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let (word, bit) = slot(number);
        if window[word] & bit != 0 {
            return Err(WindowFull);
        }
        window[word] |= bit;
        let mut limit = self.limit.load(Ordering::Relaxed);
        loop {
            let (word, bit) = slot(limit + 1);
            if window[word] & bit == 0 {
                break;
            }
            window[word] &= !bit;
            limit += 1;
        }
        self.limit.store(limit, Ordering::Release);
        Ok(())
    }

    /// The next number, and those before it that are not acknowledged, in order. No client may be at work meanwhile.
    pub fn reached(&self) -> (i64, Vec<i64>) {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.next.load(Ordering::Relaxed);
        let is_open = |number: &i64| {
            let (word, bit) = slot(*number);
            window[word] & bit == 0
        };
        (next, (self.last() + 1..next).filter(is_open).collect())
    }

    /// Continues from the values that another counter has [`reached`](Self::reached).
    pub fn go_on(&self, next: i64, open: &[i64]) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = open.first().copied().unwrap_or(next) - 1;
        window.fill(0);
        for (word, bit) in (limit + 1..next).filter(|number| !open.contains(number)).map(slot) {
            window[word] |= bit;
        }
        self.next.store(next, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Release);
    }
}

/// Word and bit of `number` in the window.
fn slot(number: i64) -> (usize, u64) {
    let place = (number & (WINDOW - 1)) as usize;
    (place / 64, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_moves_over_a_gap_only_when_it_closes() {
        let counter = AcknowledgedCounter::new(1000);
        let numbers: Vec<i64> = (0..4).map(|_| counter.next()).collect();
        assert_eq!(numbers, [1000, 1001, 1002, 1003]);
        let after = |number| {
            counter.acknowledge(number).unwrap();
            counter.last()
        };
        assert_eq!([after(1001), after(1003), after(1000), after(1002)], [999, 999, 1001, 1003]);
    }

    #[test]
    fn another_goes_on_where_one_has_reached_to() {
        let counter = AcknowledgedCounter::new(WINDOW - 3);
        for _ in 0..6 {
            counter.next();
        }
        for number in [WINDOW - 3, WINDOW - 1, WINDOW, WINDOW + 2] {
            counter.acknowledge(number).unwrap();
        }
        let (next, open) = counter.reached();
        assert_eq!((next, open.as_slice()), (WINDOW + 3, [WINDOW - 2, WINDOW + 1].as_slice()));
        let other = AcknowledgedCounter::new(0);
        other.next();
        other.acknowledge(0).unwrap();
        other.go_on(next, &open);
        for counter in [&counter, &other] {
            assert_eq!(counter.last(), WINDOW - 3);
            counter.acknowledge(WINDOW - 2).unwrap();
            assert_eq!(counter.last(), WINDOW);
            counter.acknowledge(WINDOW + 1).unwrap();
            assert_eq!((counter.last(), counter.next()), (WINDOW + 2, WINDOW + 3));
        }
        assert_eq!(AcknowledgedCounter::new(7).reached(), (7, Vec::new()));
    }

    #[test]
    fn the_window_goes_round_and_can_be_full() {
        let counter = AcknowledgedCounter::new(0);
        for number in 0..2 * WINDOW + 5 {
            counter.acknowledge(number).unwrap();
        }
        let last = counter.last();
        assert_eq!(last, 2 * WINDOW + 4);
        for number in last + 2..=last + 1 + WINDOW - 1 {
            counter.acknowledge(number).unwrap();
        }
        assert_eq!(counter.last(), last);
        assert_eq!(counter.acknowledge(last + 2 + WINDOW), Err(WindowFull));
    }
}
