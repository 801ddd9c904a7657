//! Did the working set fit the cache?

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_model::quantity::size;
use tithe_plugin::evidence::{CheckEntry, Evidence, Scene};

use crate::wiredtiger::{engine, opened};

/// Asks the engine how often a page that was wanted had to be read. A disclosure: it says what was measured, not that
/// something is guarded. Id `cache-fits`.
pub struct CacheFits;

/// Share of page requests that may need a read where the working set fits: what is touched the first time, loading
/// included.
const LIMIT: f64 = 0.01;

impl Evidence for CacheFits {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("cache-fits").own_control()
    }

    fn claim(&self) -> String {
        format!("at most {} % of the page requests since the start needed a read", LIMIT * 100.0)
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        let statistics = opened(scene.server, scene.setup)?.engine.statistics()?;
        let (asked, read) = (statistics.value(engine::PAGES_ASKED), statistics.value(engine::PAGES_READ));
        if asked == 0 {
            return Ok(Sight::Unknown("no page was asked for yet".to_owned()));
        }
        let share = read as f64 / asked as f64;
        let quotation = format!(
            "{read} of {asked} page requests read from a file ({:.2} %, {}); the cache holds {} of {}",
            share * 100.0,
            size(statistics.value(engine::BYTES_READ)),
            size(statistics.value(engine::CACHE_BYTES)),
            size(statistics.value(engine::CACHE_LIMIT)),
        );
        Ok(if share <= LIMIT { Sight::Protected(quotation) } else { Sight::Exposed(quotation) })
    }
}
