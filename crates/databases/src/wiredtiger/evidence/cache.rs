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
        let (asked, read) = (statistics.value(PAGES_ASKED), statistics.value(PAGES_READ));
        if asked == 0 {
            return Ok(Observation::Unknown("no page was asked for yet".to_owned()));
        }
        let share = read as f64 / asked as f64;
        let quotation = format!(
            "{read} of {asked} page requests read from a file ({:.2} %, {}); the cache holds {} of {}",
            share * 100.0,
            size(statistics.value(BYTES_READ)),
            size(statistics.value(CACHE_BYTES)),
            size(statistics.value(CACHE_LIMIT)),
        );
        Ok(if share <= LIMIT { Observation::Protected(quotation) } else { Observation::Exposed(quotation) })
    }
}
