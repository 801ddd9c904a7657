//! A log that is read until its records are the expected ones, and stay so.

use std::time::{Duration, Instant};

use tithe_machine::fault::Fault;

use super::marked::Counts;

/// How long a log is read.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// At most.
    pub most: Duration,
    /// After it was complete, for records that should not be there.
    pub afterwards: Duration,
    /// While it is empty, which normally means that nothing is logged.
    pub nothing: Duration,
    /// From one reading to the next.
    pub pause: Duration,
}

/// Reads a log repeatedly until its records have been the `expected` ones, no more and no less, for a while; returns
/// the result of the last reading.
///
/// # Errors
/// The error of a reading.
pub fn settled<T>(
    expected: &Counts,
    patience: Patience,
    mut look: impl FnMut() -> Result<(Counts, T), Fault>,
) -> Result<(Counts, T), Fault> {
    let begun = Instant::now();
    let mut complete = None::<Instant>;
    loop {
        let (logged, rest) = look()?;
        complete = (logged == *expected).then(|| complete.unwrap_or_else(Instant::now));
        let is_over = begun.elapsed() >= patience.most
            || complete.is_some_and(|since| since.elapsed() >= patience.afterwards)
            || logged.is_empty() && begun.elapsed() >= patience.nothing;
        if is_over {
            return Ok((logged, rest));
        }
        std::thread::sleep(patience.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const MOMENT: Duration = Duration::from_millis(30);
    const FOREVER: Patience = Patience { most: HOUR, afterwards: HOUR, nothing: HOUR, pause: Duration::from_millis(1) };

    /// The result of the last reading of a log that has these numbers of records, one per reading, and then keeps the
    /// last number; three records are expected.
    fn last(patience: Patience, records: &[usize]) -> usize {
        let mut looks = 0;
        let counts = |number: usize| Counts::from_iter((number > 0).then(|| ("SELECT".to_owned(), number)));
        let look = || {
            looks += 1;
            let number = records[looks.min(records.len()) - 1];
            Ok((counts(number), number))
        };
        settled(&counts(3), patience, look).expect("no look fails").1
    }

    /// True if the last reading has `expected` records. On a busy machine this thread may sleep through a moment, so it
    /// has some tries.
    fn ends_with(patience: Patience, records: &[usize], expected: usize) -> bool {
        (0..50).any(|_| last(patience, records) == expected)
    }

    #[test]
    fn a_complete_log_is_watched_for_more() {
        let patience = Patience { afterwards: MOMENT, ..FOREVER };
        assert_eq!(last(patience, &[3]), 3);
        assert_eq!(last(patience, &[0, 1, 2, 3]), 3);
        // One record too many, before or after it was complete: the readings only end at the longest time.
        for records in [&[3, 3, 4][..], &[4]] {
            assert!(ends_with(Patience { most: 5 * MOMENT, ..patience }, records, 4), "{records:?}");
        }
        // It must be complete for a while, not only once.
        assert_eq!(last(patience, &[3, 2, 3]), 3);
    }

    #[test]
    fn a_log_that_stays_incomplete_or_empty_ends_by_patience() {
        assert!(ends_with(Patience { most: MOMENT, ..FOREVER }, &[1, 2], 2));
        assert_eq!(last(Patience { nothing: MOMENT, ..FOREVER }, &[0]), 0);
        // Records that have started to arrive are waited for.
        assert!(ends_with(Patience { nothing: MOMENT, afterwards: MOMENT, ..FOREVER }, &[0, 1, 3], 3));
        assert_eq!(last(Patience { most: 3 * MOMENT, nothing: MOMENT, ..FOREVER }, &[1]), 1);
    }

    #[test]
    fn a_look_that_fails_ends_it() {
        let failed = settled(&Counts::new(), FOREVER, || Err::<(Counts, ()), _>(Fault::Refused("no".to_owned())));
        assert!(matches!(failed, Err(Fault::Refused(_))));
    }
}
