//! By how much another machine's clock is ahead of this one's, and how far that may be wrong.

use super::link::Exchange;

/// A slot is at least this many times as long as the bound on a clock's offset. While clocks disagree, two arms are
/// served at once. If two agents are wrong in opposite directions, that is at most 2.5 % of a slot.
pub const SLOT_PER_BOUND: u64 = 80;

/// Longest slot that inexact clocks may need, ns; machines whose clocks are known less exactly cannot take part.
pub const SLOT_MAX_NS: u64 = 250_000_000;

/// By how much a clock is ahead of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The other clock's reading minus ours at the same moment, ns.
    pub offset_ns: i64,
    /// The largest error of the offset, even if the ways there and back differ, ns.
    pub bound_ns: u64,
    /// The time that the exchange took on the way, ns.
    pub delay_ns: u64,
}

impl Offset {
    /// The result of one exchange: RFC 5905, section 8, offset θ = ((t2 − t1) + (t3 − t4)) / 2 and delay δ = (t4 − t1)
    /// − (t3 − t2). The request and the answer each take between 0 and δ, so the error of θ is at most δ / 2. `None` if
    /// the readings contradict each other.
    pub fn of(exchange: &Exchange) -> Option<Self> {
        let Exchange { asked_ns, arrived_ns, answered_ns, heard_ns } = *exchange;
        let there = i128::from(arrived_ns) - i128::from(asked_ns);
        let back = i128::from(answered_ns) - i128::from(heard_ns);
        let delay = i128::from(heard_ns) - i128::from(asked_ns) - (i128::from(answered_ns) - i128::from(arrived_ns));
        if answered_ns < arrived_ns {
            return None;
        }
        // Below zero also if the answer was heard before the request was sent.
        let delay_ns = u64::try_from(delay).ok()?;
        let offset_ns = i64::try_from((there + back).div_euclid(2)).ok()?;
        Some(Self { offset_ns, bound_ns: delay_ns.div_ceil(2), delay_ns })
    }

    /// The best of several exchanges: the one with the shortest delay (RFC 5905, section 10).
    pub fn best<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Option<Self> {
        exchanges.into_iter().filter_map(Self::of).min_by_key(|offset| offset.delay_ns)
    }

    /// The largest error of this offset until `later` was measured, ns: its bound, plus the drift between the two that
    /// is certain.
    pub fn bound_until(&self, later: &Self) -> u64 {
        let changed_ns = self.offset_ns.abs_diff(later.offset_ns);
        self.bound_ns + changed_ns.saturating_sub(self.bound_ns + later.bound_ns)
    }

    /// `ns` of our clock on the other one; `None` if that is before its beginning.
    pub fn there(&self, ns: u64) -> Option<u64> {
        ns.checked_add_signed(self.offset_ns)
    }
}

/// The length of slots, ns, if clocks are known within `bound_ns`: the planned length, or the length that the bound
/// needs. In the second case up to a quarter is added, since later frames may know the clocks less exactly.
///
/// # Errors
/// As text: if the slot is `fixed` and too short, or would have to be longer than [`SLOT_MAX_NS`].
pub fn slot_ns(planned_ns: u64, fixed: bool, bound_ns: u64) -> Result<u64, String> {
    let needed_ns = bound_ns.saturating_mul(SLOT_PER_BOUND);
    let ms = |ns: u64| ns as f64 / 1e6;
    match needed_ns {
        needed if fixed && needed <= planned_ns => Ok(planned_ns),
        needed if fixed => Err(format!(
            "its clock is known within {:.3} ms, which needs slots of at least {:.0} ms, and the experiment has \
             {:.0} ms: leave `slot` out",
            ms(bound_ns),
            ms(needed),
            ms(planned_ns)
        )),
        needed if needed > SLOT_MAX_NS.max(planned_ns) => Err(format!(
            "its clock is known within {:.3} ms, which needs slots of {:.0} ms, and at most {:.0} ms are possible: \
             it is too far away from the coordinator",
            ms(bound_ns),
            ms(needed),
            ms(SLOT_MAX_NS)
        )),
        needed => Ok((needed + needed / 4).min(SLOT_MAX_NS).max(planned_ns)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An exchange with a clock that is `offset` ahead, over ways of these lengths.
    fn exchange(asked_ns: u64, offset: i64, there: u64, works: u64, back: u64) -> Exchange {
        let arrived = asked_ns + there;
        let answered = arrived + works;
        let ahead = |ns: u64| ns.checked_add_signed(offset).expect("after the clock's beginning");
        Exchange { asked_ns, arrived_ns: ahead(arrived), answered_ns: ahead(answered), heard_ns: answered + back }
    }

    const DAY_NS: i64 = 86_400_000_000_000;

    proptest! {
        #[test]
        fn the_truth_lies_within_the_bound_however_unequal_the_ways(
            asked in 10 * DAY_NS as u64..20 * DAY_NS as u64,
            offset in -DAY_NS..DAY_NS,
            ways in proptest::collection::vec((0u64..20_000_000, 0u64..1_000_000, 0u64..20_000_000), 1..16),
        ) {
            let exchanges: Vec<Exchange> =
                ways.iter().map(|(there, works, back)| exchange(asked, offset, *there, *works, *back)).collect();
            let best = Offset::best(&exchanges).expect("exchanges");
            prop_assert!(best.offset_ns.abs_diff(offset) <= best.bound_ns);
            let shortest = ways.iter().map(|(there, _, back)| there + back).min().expect("a way");
            prop_assert_eq!(best.bound_ns, shortest.div_ceil(2));
            prop_assert_eq!(best.there(asked), asked.checked_add_signed(best.offset_ns));
        }

        #[test]
        fn any_readings_are_taken(asked_ns: u64, arrived_ns: u64, answered_ns: u64, heard_ns: u64) {
            let offset = Offset::of(&Exchange { asked_ns, arrived_ns, answered_ns, heard_ns });
            prop_assert!(offset.is_none() || (heard_ns >= asked_ns && answered_ns >= arrived_ns));
        }
    }

    #[test]
    fn an_exchange_that_takes_no_time_is_exact() {
        let exact = Offset { offset_ns: -7, bound_ns: 0, delay_ns: 0 };
        assert_eq!(Offset::of(&exchange(1000, -7, 0, 0, 0)), Some(exact));
    }

    #[test]
    fn a_clock_that_goes_astray_is_seen_beyond_what_both_readings_leave_open() {
        let at = |offset_ns, bound_ns| Offset { offset_ns, bound_ns, delay_ns: 2 * bound_ns };
        assert_eq!(at(1000, 50).bound_until(&at(1060, 40)), 50, "within both bounds nothing is known to have changed");
        assert_eq!(at(1000, 50).bound_until(&at(1400, 40)), 50 + 310);
        assert_eq!(at(1000, 50).bound_until(&at(600, 40)), 50 + 310);
    }

    #[test]
    fn slots_grow_with_the_bound_and_not_for_ever() {
        const US: u64 = 1000;
        const MS: u64 = 1_000_000;
        assert_eq!(slot_ns(20 * MS, true, 250 * US), Ok(20 * MS));
        assert_eq!(slot_ns(20 * MS, false, 200 * US), Ok(20 * MS));
        assert_eq!(slot_ns(20 * MS, false, 240 * US), Ok(24 * MS), "19.2 would be too near");
        assert_eq!(slot_ns(20 * MS, false, 1500 * US), Ok(150 * MS), "3 ms later in one direction");
        assert_eq!(slot_ns(20 * MS, false, 3000 * US), Ok(250 * MS), "240 and no more than the longest");
        assert_eq!(slot_ns(20 * MS, false, 3125 * US), Ok(250 * MS), "the longest itself");
        assert_eq!(slot_ns(300 * MS, false, 3500 * US), Ok(300 * MS), "280, and the plan has more");
        let told = |fixed, bound_ns| slot_ns(20 * MS, fixed, bound_ns).expect_err("refused");
        expect_test::expect![[r#"
            its clock is known within 2.500 ms, which needs slots of at least 200 ms, and the experiment has 20 ms: leave `slot` out
            its clock is known within 3.200 ms, which needs slots of 256 ms, and at most 250 ms are possible: it is too far away from the coordinator
        "#]]
        .assert_eq(&format!("{}\n{}\n", told(true, 2500 * US), told(false, 3200 * US)));
    }
}
