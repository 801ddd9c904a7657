//! Cache use of servers during the measurement.

use tithe_model::{fact::Fact, quantity::count};
use tithe_plugin::database::CacheUse;

/// Cache use of each arm's server during the measurement, over all its starts: whether data fit in memory is measured
/// and not assumed.
pub(super) struct Caches {
    /// The counters when the current server was started.
    pub begun: Vec<Option<CacheUse>>,
    used: Vec<CacheUse>,
}

impl Caches {
    /// For servers that have just been started, with their counters in `begun`.
    pub fn of(begun: Vec<Option<CacheUse>>) -> Self {
        Self { used: vec![CacheUse::default(); begun.len()], begun }
    }

    /// Adds the use since the server's start; `now` has the counters before it is stopped.
    pub fn stop(&mut self, now: &[Option<CacheUse>]) {
        for ((used, begun), now) in self.used.iter_mut().zip(&self.begun).zip(now) {
            let (Some(begun), Some(now)) = (begun, now) else { continue };
            used.asked += now.asked.saturating_sub(begun.asked);
            used.missed += now.missed.saturating_sub(begun.missed);
        }
    }

    /// The fact about one arm; `None` if its server does not report it.
    pub fn hits(&self, arm: usize) -> Option<(Fact, String)> {
        let CacheUse { asked, missed } = self.used[arm];
        let share = 100.0 * (1.0 - missed as f64 / asked as f64);
        (asked > 0).then(|| (Fact::CacheHits, format!("{share:.1} % of {} pages, while measuring", count(asked))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: u64, missed: u64) -> Option<CacheUse> {
        Some(CacheUse { asked, missed })
    }

    #[test]
    fn hits_are_those_of_all_starts_and_of_nothing_before_them() {
        let mut caches = Caches::of(vec![of(1000, 900), None, of(50, 5)]);
        // The second server reports nothing, the third only at its start.
        caches.stop(&[of(2000, 910), None, None]);
        caches.begun = vec![of(0, 0), None, of(0, 0)];
        caches.stop(&[of(1000, 10), of(7, 7), of(0, 0)]);
        // Of 1,000 and 1,000 pages, 10 and 10 were read from a file.
        let told = Some((Fact::CacheHits, "99.0 % of 2,000 pages, while measuring".to_owned()));
        assert_eq!([caches.hits(0), caches.hits(1), caches.hits(2)], [told, None, None]);
        // Counters that began again are no use.
        let mut caches = Caches::of(vec![of(1000, 900)]);
        caches.stop(&[of(10, 1)]);
        assert_eq!(caches.hits(0), None);
    }
}
