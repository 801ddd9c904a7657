//! The known run-to-run variation: how much the measured cost differs between identical runs on one machine, beyond the
//! interval of each.
//!
//! An interval holds for the next start of the servers. It cannot show effects that are the same for all starts of one
//! run (background load, where the kernel had free memory); comparisons of runs add these figures. They have the form
//! of the start-to-start variation ([`crate::start_spread`]).

use crate::start_spread::{StartSpread, of_or_other};

/// Built-in figures; measured by `cargo bench --bench truth -- pairs`.
const BUILT_IN: &str = include_str!("../data/run-spread.csv");

/// Built-in figures for `database`, one for each measured metric; never empty.
pub fn built_in(database: &str) -> Vec<StartSpread> {
    of_or_other(BUILT_IN, database)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiment::Metric,
        start_spread::{of_metric, parse},
    };

    #[test]
    fn what_tithe_brings_can_be_read() {
        let lines = parse(BUILT_IN).expect("readable");
        assert!(!lines.is_empty());
        let largest = lines.iter().map(|(_, known)| known.spread).fold(0.0, f64::max);
        let other = &built_in("a database of tomorrow")[0];
        assert_eq!(other.spread, largest, "what was not measured is as bad as the worst");
    }

    #[test]
    fn invented_times_are_the_same_in_every_run() {
        assert_eq!(of_metric(&built_in("simulated"), Metric::Net), None);
    }
}
