//! Slots to effects: the cost of a slot, the effect of a frame, the ratio of sums.

use std::ops::Add;

use tithe_model::{experiment::Metric, record::Slot};

use crate::{distribution::t_upper, interval::Interval, order::midmean, variance};

/// A slot with fewer successful operations gives no cost per operation.
pub const MIN_OPERATIONS: u64 = 20;

/// A frame with so many pairs of slots has an effect; [`fewest_pairs`] also serves frames for which fewer are planned.
pub const MIN_PAIRS: usize = 8;

/// The smallest number of pairs of slots with which the frame with these `slots` has an effect: [`MIN_PAIRS`], or three
/// quarters of all that it can have (blocks times `lanes`) if that is fewer, and at least one.
///
/// A server that stalls, as at a checkpoint, or an operation longer than a slot, leaves a slot without operations. Then
/// only its pair is lost: frames without stalls alone would be a biased choice. The number of blocks is counted in the
/// frame itself, because it is lower than planned if slots were made longer.
pub fn fewest_pairs(slots: &[Slot], lanes: usize) -> usize {
    let blocks = slots.iter().map(|slot| slot.block + 1).max().unwrap_or(0);
    fewest_of(blocks as usize * lanes)
}

/// As [`fewest_pairs`], of `most` pairs.
pub fn fewest_of(most: usize) -> usize {
    MIN_PAIRS.min(most - most / 4).max(1)
}

/// Cost in ns and the number of operations that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Cost, ns (or bytes, switches: whatever is divided).
    pub cost: f64,
    /// Operations.
    pub operations: f64,
}

impl Spent {
    /// Cost per operation; NaN without operations.
    pub fn per_operation(self) -> f64 {
        self.cost / self.operations
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cost: self.cost + other.cost, operations: self.operations + other.operations }
    }
}

impl std::ops::Sub for Spent {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { cost: self.cost - other.cost, operations: self.operations - other.operations }
    }
}

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::default(), |sum, value| sum + value)
    }
}

/// The cost of `slot` by `metric`, ns; `None` if unknown.
///
/// `Time` counts the operations that started after the settling time. `Net` is wall time less the time in which other
/// programs had the processor while client or server could have run: the duration of an operation without background
/// load. It is never less than the processor time of both, except for the process that writes the server's log, which
/// may run on another processor. It is unknown if other programs cannot be observed.
pub fn spent(slot: &Slot, metric: Metric) -> Option<Spent> {
    let all = |cost: f64| Spent { cost, operations: slot.operations as f64 };
    Some(match metric {
        Metric::Time => Spent { cost: slot.latency_sum_ns as f64, operations: slot.counted as f64 },
        Metric::Net => all(slot.wall_ns as f64 - slot.stalled_ns? as f64),
        Metric::Cpu => all(slot.client_cpu_ns as f64 + slot.server_cpu_ns as f64),
        Metric::ClientCpu => all(slot.client_cpu_ns as f64),
        Metric::ServerCpu => all(slot.server_cpu_ns as f64),
    })
}

/// ns per operation of a slot; `None` if it has too few operations or its cost is unknown.
pub fn slot_cost(slot: &Slot, metric: Metric) -> Option<f64> {
    let cost = spent(slot, metric)?.per_operation();
    (slot.operations >= MIN_OPERATIONS && slot.counted >= 1 && cost > 0.0).then_some(cost)
}

/// The effect of one frame: the midmean over blocks and lanes of ln(cost of `protected` / cost of `plain`).
///
/// `slots` are those of the frame, in any order. `None` if fewer than `fewest` pairs can be used, or if more than a
/// tenth of the slots have no cost: if nearly all of the time is waiting, chance decides which slots are left.
pub fn frame_effect(slots: &[Slot], plain: u32, protected: u32, metric: Metric, fewest: usize) -> Option<f64> {
    let pairs = pairs(slots, plain, protected, metric, fewest)?;
    Some(midmean(&pairs.into_iter().map(|(plain, protected)| protected.ln() - plain.ln()).collect::<Vec<_>>()))
}

/// The difference of one frame, ns per operation: the midmean over blocks and lanes of cost of `protected` − cost of
/// `plain`.
///
/// It uses the same pairs as [`frame_effect`]. Exchanging the labels changes its sign too, so the same inference holds
/// for it. `None` where that is `None`.
pub fn frame_difference(slots: &[Slot], plain: u32, protected: u32, metric: Metric, fewest: usize) -> Option<f64> {
    let pairs = pairs(slots, plain, protected, metric, fewest)?;
    Some(midmean(&pairs.into_iter().map(|(plain, protected)| protected - plain).collect::<Vec<_>>()))
}

/// Cost of an operation in the slots of both arms that share a block and a lane, ns: plain, protected.
fn pairs(slots: &[Slot], plain: u32, protected: u32, metric: Metric, fewest: usize) -> Option<Vec<(f64, f64)>> {
    let costs = |arm: u32| {
        let of_arm = slots.iter().filter(|slot| slot.arm == arm);
        let mut costs: Vec<_> =
            of_arm.filter_map(|slot| Some(((slot.block, slot.lane), slot_cost(slot, metric)?))).collect();
        costs.sort_unstable_by_key(|(place, _)| *place);
        costs
    };
    let busy = |slot: &&Slot| {
        (slot.arm == plain || slot.arm == protected) && slot.operations >= MIN_OPERATIONS && slot.counted >= 1
    };
    let lost = slots.iter().filter(busy).filter(|slot| slot_cost(slot, metric).is_none()).count();
    if lost * 10 > slots.iter().filter(busy).count() {
        return None;
    }
    let (plain, protected) = (costs(plain), costs(protected));
    let pairs: Vec<(f64, f64)> = protected
        .iter()
        .filter_map(|(place, cost)| {
            let partner = plain.binary_search_by_key(place, |(place, _)| *place).ok()?;
            Some((plain[partner].1, *cost))
        })
        .collect();
    (pairs.len() >= fewest).then_some(pairs)
}

/// The cost of `arm` in a frame, over every slot whose cost is known; `None` if there is none in `slots`.
pub fn frame_spent(slots: &[Slot], arm: u32, metric: Metric) -> Option<Spent> {
    slots.iter().filter(|slot| slot.arm == arm).filter_map(|slot| spent(slot, metric)).reduce(Spent::add)
}

/// The total effect: ln of protected over plain, each a ratio of sums over all frames, including every stall.
///
/// `frames` are (plain, protected) pairs; the interval is that of [`jackknife`].
pub fn ratio_effect(frames: &[(Spent, Spent)], alpha: f64) -> Interval {
    jackknife(frames, alpha, |plain, protected| (protected.per_operation() / plain.per_operation()).ln())
}

/// The total difference: protected less plain, each a ratio of sums over all frames, including every stall, in the
/// costs' unit.
///
/// `frames` are (plain, protected) pairs; the interval is that of [`jackknife`].
pub fn total_difference(frames: &[(Spent, Spent)], alpha: f64) -> Interval {
    jackknife(frames, alpha, |plain, protected| protected.per_operation() - plain.per_operation())
}

/// The value of `of` for the sums over all frames, with the interval of confidence 1 − `alpha` from the jackknife that
/// leaves out one frame at a time, with Student's t (Quenouille 1956, Tukey 1958).
///
/// Its ends are infinite for fewer than two frames, and if leaving one out leaves nothing to divide. The estimate is
/// NaN without frames.
fn jackknife(frames: &[(Spent, Spent)], alpha: f64, of: impl Fn(Spent, Spent) -> f64) -> Interval {
    let plain: Spent = frames.iter().map(|(plain, _)| *plain).sum();
    let protected: Spent = frames.iter().map(|(_, protected)| *protected).sum();
    let estimate = of(plain, protected);
    let n = frames.len() as f64;
    let pseudo: Vec<f64> =
        frames.iter().map(|(p, g)| n * estimate - (n - 1.0) * of(plain - *p, protected - *g)).collect();
    if frames.len() < 2 || pseudo.iter().any(|value| !value.is_finite()) {
        return Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    let half = t_upper(alpha / 2.0, n - 1.0) * (variance(&pseudo) / n).sqrt();
    Interval { estimate, low: estimate - half, high: estimate + half }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of ten blocks; in the first `hidden` of them the protected arm waits for longer than its slot lasts.
    fn frame(hidden: u32) -> Vec<Slot> {
        let slot = |block: u32, arm: u32| {
            let stalled_ns = (arm != 1 || block >= hidden).then_some(0);
            Slot { block, arm, operations: 50, counted: 50, wall_ns: 1_000_000, stalled_ns, ..Slot::default() }
        };
        (0..10).flat_map(|block| [slot(block, 0), slot(block, 1)]).collect()
    }

    #[test]
    fn a_frame_of_which_too_much_is_waiting_says_nothing() {
        assert_eq!(frame_effect(&frame(0), 0, 1, Metric::Net, 5), Some(0.0));
        assert_eq!(frame_effect(&frame(2), 0, 1, Metric::Net, 5), Some(0.0), "two of twenty");
        assert_eq!(frame_effect(&frame(3), 0, 1, Metric::Net, 5), None);
        assert_eq!(frame_difference(&frame(3), 0, 1, Metric::Net, 5), None);
    }

    #[test]
    fn a_frames_difference_is_the_midmean_of_its_pairs() {
        // By hand: the protected arm costs 3, 5, 9, 7, 100, −20, 6 and 8 µs more than 20.5 µs. Without the lowest and
        // the highest two, (5 + 6 + 7 + 8) / 4 = 6.5 µs.
        let more = [3, 5, 9, 7, 100, -20, 6, 8];
        let slot = |block: usize, arm: u32, cost_ns: i64| Slot {
            block: block as u32,
            arm,
            operations: 50,
            counted: 50,
            wall_ns: (50 * cost_ns) as u64,
            stalled_ns: Some(0),
            ..Slot::default()
        };
        let pair = |(block, more): (usize, &i64)| [slot(block, 0, 20_500), slot(block, 1, 20_500 + more * 1000)];
        let slots: Vec<Slot> = more.iter().enumerate().flat_map(pair).collect();
        assert_eq!(frame_difference(&slots, 0, 1, Metric::Net, 8), Some(6500.0));
        assert_eq!(frame_difference(&slots, 1, 0, Metric::Net, 8), Some(-6500.0));
        assert_eq!(frame_difference(&slots, 0, 1, Metric::Net, 9), None);
    }

    #[test]
    fn a_total_difference_is_that_of_the_sums() {
        // By hand: plain 10, 10, 10 and protected 12, 14, 16, each frame with one operation. The jackknife of the
        // difference equals that of the mean of 2, 4 and 6: standard error 2/√3, and t(0.975, 2) = 4.302653.
        let spent = |cost: f64| Spent { cost, operations: 1.0 };
        let frames = [12.0, 14.0, 16.0].map(|protected| (spent(10.0), spent(protected)));
        let Interval { estimate, low, high } = total_difference(&frames, 0.05);
        let half = 4.302_652_729_911_275 * 2.0 / 3f64.sqrt();
        assert!((estimate - 4.0).abs() < 1e-12, "{estimate}");
        assert!((low - (4.0 - half)).abs() < 1e-9 && (high - (4.0 + half)).abs() < 1e-9, "{low} {high}");
    }
}
