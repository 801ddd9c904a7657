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
