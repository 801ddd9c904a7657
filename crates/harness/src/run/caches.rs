//! What the caches of servers did while measuring.

use tithe_model::fact::Fact;
use tithe_plugin::database::CacheUse;

/// What the cache of each arm's server did while measuring, over all its starts: whether data fit in memory is seen and
/// not assumed.
pub(super) struct Caches {
    /// What stood there when the server of this moment was started.
    pub begun: Vec<Option<CacheUse>>,
    used: Vec<CacheUse>,
}

impl Caches {
    /// Of servers that have just been started, where `begun` is there.
    pub fn of(begun: Vec<Option<CacheUse>>) -> Self {
        Self { used: vec![CacheUse::default(); begun.len()], begun }
    }

    /// Adds what was done since the server's start; `now` is what stands there before it is stopped.
    pub fn stop(&mut self, now: &[Option<CacheUse>]) {
        for ((used, begun), now) in self.used.iter_mut().zip(&self.begun).zip(now) {
            let (Some(begun), Some(now)) = (begun, now) else { continue };
            used.asked += now.asked.saturating_sub(begun.asked);
            used.missed += now.missed.saturating_sub(begun.missed);
        }
    }

    /// The fact on one arm; `None` where its server does not say.
    pub fn hits(&self, arm: usize) -> Option<(Fact, String)> {
        let CacheUse { asked, missed } = self.used[arm];
        let share = 100.0 * (1.0 - missed as f64 / asked as f64);
        (asked > 0).then(|| (Fact::CacheHits, format!("{share:.1} % of {asked} pages, while measuring")))
    }
}
