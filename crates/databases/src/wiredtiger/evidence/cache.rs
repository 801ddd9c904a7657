//! Did the working set fit the cache?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::quantity::size;
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::wiredtiger::{
    opened,
    statistics::{BYTES_READ, CACHE_BYTES, CACHE_LIMIT, PAGES_ASKED, PAGES_READ},
};

/// Asks the engine how often a requested page had to be read. A disclosure: it describes the measurement, not a
/// protection. Id `cache-fits`.
pub struct CacheFits;

/// Share of page requests that may need a read if the working set fits: first accesses, including loading.
const LIMIT: f64 = 0.01;

impl Check for CacheFits {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("cache-fits").own_control()
    }

    fn claim(&self) -> String {
        format!("at most {} % of the page requests since the start needed a read", LIMIT * 100.0)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let statistics = opened(context.server, context.setup)?.engine.statistics()?;
        Ok(judged(|name| statistics.value(name)))
    }
}

/// What the engine's counters show, which `value` gives by name.
fn judged(value: impl Fn(&str) -> u64) -> Observation {
    let (asked, read) = (value(PAGES_ASKED), value(PAGES_READ));
    if asked == 0 {
        return Observation::Unknown("no page was asked for yet".to_owned());
    }
    let share = read as f64 / asked as f64;
    let quotation = format!(
        "{read} of {asked} page requests read from a file ({:.2} %, {}); the cache holds {} of {}",
        share * 100.0,
        size(value(BYTES_READ)),
        size(value(CACHE_BYTES)),
        size(value(CACHE_LIMIT)),
    );
    if share <= LIMIT { Observation::Protected(quotation) } else { Observation::Exposed(quotation) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_fits_if_at_most_one_request_in_a_hundred_is_read() {
        let seen = |asked: u64, read: u64| {
            judged(|name| match name {
                PAGES_ASKED => asked,
                PAGES_READ => read,
                _ => 0,
            })
        };
        for (asked, read) in [(1, 0), (100, 1), (1000, 10)] {
            assert!(matches!(seen(asked, read), Observation::Protected(_)), "{read} of {asked}");
        }
        for (asked, read) in [(1, 1), (100, 2), (1000, 11)] {
            assert!(matches!(seen(asked, read), Observation::Exposed(_)), "{read} of {asked}");
        }
        assert!(matches!(seen(0, 0), Observation::Unknown(_)));
    }
}
