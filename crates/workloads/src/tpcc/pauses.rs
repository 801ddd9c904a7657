//! Keying and think times, specification 5.11, clauses 5.2.5.2 to 5.2.5.7.
//!
//! A user thinks after a transaction and types the input of the next one. Both together are the pause before it:
//! showing the menu between them needs no database request.

use super::{input::TransactionKind, random::Random};

const SECOND_NS: u64 = 1_000_000_000;

/// How long a terminal has been in use at its first request, ns. It is many times the longest usual pause, so that
/// terminals are anywhere between two transactions, and not all at the start of the first.
const IN_USE_NS: u64 = 600 * SECOND_NS;

/// The least time to type the input of `kind`, ns (table of clause 5.2.5.7).
fn keying_ns(kind: TransactionKind) -> u64 {
    SECOND_NS
        * match kind {
            TransactionKind::NewOrder => 18,
            TransactionKind::Payment => 3,
            TransactionKind::OrderStatus | TransactionKind::Delivery | TransactionKind::StockLevel => 2,
        }
}

/// The mean think time after `kind`, ns (the same table).
fn think_mean_ns(kind: TransactionKind) -> u64 {
    SECOND_NS
        * match kind {
            TransactionKind::NewOrder | TransactionKind::Payment => 12,
            TransactionKind::OrderStatus => 10,
            TransactionKind::Delivery | TransactionKind::StockLevel => 5,
        }
}

/// A think time after `kind`, ns: negative exponential, cut at ten times the mean (clause 5.2.5.4).
fn think_ns(kind: TransactionKind, random: &mut Random) -> u64 {
    let mean_ns = think_mean_ns(kind);
    ((-random.positive_share().ln() * mean_ns as f64) as u64).min(10 * mean_ns)
}

/// The pauses of one terminal.
#[derive(Debug, Default)]
pub struct Pauses {
    /// The transaction before; `None` if the terminal was never used.
    last: Option<TransactionKind>,
    /// How long it has been in use, ns, up to [`IN_USE_NS`].
    in_use_ns: u64,
    next_ns: u64,
}

impl Pauses {
    /// Draws the pause before a transaction of `kind`. False if it ends before the terminal's first request: then
    /// another transaction is drawn.
    pub fn before(&mut self, kind: TransactionKind, random: &mut Random) -> bool {
        let thought_ns = self.last.map_or(0, |last| think_ns(last, random));
        self.last = Some(kind);
        self.next_ns = thought_ns + keying_ns(kind);
        let unseen_ns = IN_USE_NS - self.in_use_ns;
        self.in_use_ns += unseen_ns.min(self.next_ns);
        let seen = unseen_ns < self.next_ns;
        self.next_ns = self.next_ns.saturating_sub(unseen_ns);
        seen
    }

    /// The pause before the next transaction, ns.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_pause_is_keying_and_at_most_ten_times_the_mean_of_thinking(seed: u64, last in 0usize..5, next in 0usize..5) {
            let (last, next) = (TransactionKind::ALL[last], TransactionKind::ALL[next]);
            let mut pauses = Pauses { last: Some(last), in_use_ns: IN_USE_NS, next_ns: 0 };
            prop_assert!(pauses.before(next, &mut Random::new(seed)));
            let bounds = keying_ns(next)..=keying_ns(next) + 10 * think_mean_ns(last);
            prop_assert!(bounds.contains(&pauses.next_ns()));
        }

        #[test]
        fn a_terminal_in_use_is_found_between_two_transactions(seed: u64) {
            let mut random = Random::new(seed);
            let mut pauses = Pauses::default();
            let drawn = (1..).find(|_| pauses.before(TransactionKind::Payment, &mut random)).unwrap_or(0);
            // Ten minutes of pauses of at least 3 and at most 123 s.
            prop_assert!((5..=201).contains(&drawn), "{drawn}");
            prop_assert!(pauses.next_ns() <= 123 * SECOND_NS);
        }
    }

    #[test]
    fn thinking_takes_its_mean() {
        let mut random = Random::new(7);
        for kind in TransactionKind::ALL {
            let mean = (0..10_000).map(|_| think_ns(kind, &mut random)).sum::<u64>() / 10_000;
            let expected = think_mean_ns(kind);
            // The mean of 10,000 exponential values has a deviation of 1 %.
            assert!(mean.abs_diff(expected) < expected / 20, "{kind:?}: {mean}");
        }
    }
}
