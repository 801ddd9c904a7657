//! Random choices for each start of the servers, so that nothing is the same in all of them by accident.
//!
//! A server's speed depends on accidental conditions: which server was started before it; where its stack begins, which
//! follows from the size of its environment (Mytkowicz et al., "Producing wrong data without doing anything obviously
//! wrong", ASPLOS 2009); where on the disk its data are. Drawn, they vary from start to start and average out over
//! several. The kernel itself draws where it puts the memory of a process (address-space randomisation stays on) and
//! the port of a server: a port that a seed names may be in use.

use std::collections::BTreeMap;

use tithe_model::schedule::{SplitMix64, block_order};

/// The variable that makes an environment as large as was drawn.
const PADDING: &str = "TITHE_PADDING";

/// Longest text that is added to an environment, bytes: a page of memory, because only the last bits of addresses
/// matter.
const PADDING_MAX: u64 = 4096;

/// Number of this draw among all draws from a cell's seed.
const START: u64 = u64::MAX - 1;

/// The same of places.
const PLACES: u64 = u64::MAX - 3;

/// What is drawn for one start of all servers of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Draw {
    /// The arms in the order in which their servers are started.
    pub order: Vec<usize>,
    /// The bytes to add to the environment of each arm's server.
    pub paddings: Vec<usize>,
    /// The arm whose place on the disk each arm's data get.
    pub places: Vec<usize>,
}

impl Draw {
    /// The draw of start number `start` of a cell with this `seed`.
    pub fn of(seed: u64, start: u32, arms: usize) -> Self {
        let order = block_order(seed, start.into(), START, arms);
        let mut random = SplitMix64::new(seed ^ u64::from(start).wrapping_add(1).wrapping_mul(0xA24B_AED4_963E_E407));
        let paddings = (0..arms).map(|_| random.below(PADDING_MAX) as usize).collect();
        Self { order, paddings, places: block_order(seed, start.into(), PLACES, arms) }
    }
}

/// The number and the value of each arm, in this `order`; arms that have none are left out.
pub(super) fn in_order<'v, V>(order: &[usize], values: &'v mut BTreeMap<usize, V>) -> Vec<(usize, &'v mut V)> {
    let mut by_number: BTreeMap<usize, &mut V> = values.iter_mut().map(|(number, value)| (*number, value)).collect();
    order.iter().filter_map(|number| Some((*number, by_number.remove(number)?))).collect()
}

/// Adds `padding` bytes to an `environment`.
pub(super) fn pad(environment: &mut BTreeMap<String, String>, padding: usize) {
    environment.insert(PADDING.to_owned(), "x".repeat(padding));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn values_come_in_the_order_that_is_asked_for() {
        let mut values = BTreeMap::from([(0, 'a'), (1, 'b'), (3, 'd')]);
        let found: Vec<(usize, char)> =
            in_order(&[3, 2, 0], &mut values).into_iter().map(|(number, value)| (number, *value)).collect();
        assert_eq!(found, [(3, 'd'), (0, 'a')]);
    }

    #[test]
    fn starts_differ_and_the_same_seed_draws_the_same() {
        let of = |seed| (0..100).map(|start| Draw::of(seed, start, 4)).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        let draws = of(7);
        for draw in &draws {
            for (of, what) in [(&draw.order, "is started"), (&draw.places, "gives up its place")] {
                let arms: BTreeSet<usize> = of.iter().copied().collect();
                assert_eq!(arms, (0..4).collect(), "each arm {what} once");
            }
            assert!(draw.paddings.iter().all(|bytes| *bytes < 4096));
        }
        let different: BTreeSet<Vec<usize>> = draws.iter().map(|draw| draw.paddings.clone()).collect();
        assert_eq!(different.len(), 100);
        // Each arm has each place in the order about equally often: 25 times in 100, give or take.
        for arm in 0..4 {
            let first = draws.iter().filter(|draw| draw.order[0] == arm).count();
            assert!((10..=40).contains(&first), "arm {arm} is the first of {first} starts");
            let stays = draws.iter().filter(|draw| draw.places[arm] == arm).count();
            assert!((10..=40).contains(&stays), "arm {arm} keeps its place in {stays} starts");
        }
    }
}
