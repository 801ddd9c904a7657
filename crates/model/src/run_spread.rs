//! What is known of run-to-run variation: how much the cost that identical runs find differs from run to run on one
//! machine, beyond what the interval of each leaves open.
//!
//! An interval holds for the next start of the servers. What stays the same for all starts of one run (the hour, and
//! where in memory the kernel had room) it cannot show; comparisons of runs reckon with it by these figures. They have
//! the form of the spread between starts ([`crate::start_spread`]).

use crate::start_spread::{StartSpread, of_or_other};

/// What Tithe brings; measured by `cargo bench --bench truth -- pairs`.
const BUILT_IN: &str = include_str!("../data/run-spread.csv");

/// What Tithe knows of `database`, one for each metric that was measured; never empty.
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
