//! What decides in a cell, while it is measured and in its analysis: the error of its intervals, and the metric that is
//! known from its slots.

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::{ending::CellEnding, experiment::Metric, record::Slot};
use tithe_statistics::{
    inference::{Inference, sidak},
    precision::{self, STOPPING_FACTOR},
    starts::OverStarts,
};

use crate::CONFIDENCE;

/// How the end of a cell is chosen. Choosing it by results requires a smaller error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndsBy {
    /// By its budget: results are not checked.
    Budget,
    /// By the width of its intervals.
    Width,
    /// By its answers, or by its budget if there are none. Half of the error is for the answers on the way, which use
    /// confidence sequences, and half for the intervals at the end (Bonferroni).
    Answers,
}

impl EndsBy {
    /// For a cell that waits for its answers, or that has ended for the reason `ending`.
    pub fn of(until_decided: bool, ending: Option<&CellEnding>) -> Self {
        match ending {
            _ if until_decided => Self::Answers,
            Some(CellEnding::Precision) => Self::Width,
            _ => Self::Budget,
        }
    }

    /// The remaining share of the error.
    fn share(self) -> f64 {
        match self {
            Self::Budget => 1.0,
            Self::Width => STOPPING_FACTOR,
            Self::Answers => 0.5,
        }
    }
}

/// The error of each arm's interval, so that the intervals of all `protected` arms hold simultaneously with
/// [`CONFIDENCE`] in a cell that `ends_by` this.
pub fn alpha(protected: usize, ends_by: EndsBy) -> f64 {
    sidak(ends_by.share() * (1.0 - CONFIDENCE), protected)
}

/// Number of lanes (client threads) in `slots`.
pub fn lanes<'a>(slots: impl IntoIterator<Item = &'a Slot>) -> usize {
    slots.into_iter().map(|slot| slot.lane).collect::<BTreeSet<_>>().len()
}

/// The largest share of net time that clients may have slept because other programs stalled other clients.
const SLEPT_MOST: f64 = 0.1;

/// Totals over the slots of a cell, added frame by frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlotTotals {
    /// Some slot has a measured background load.
    neighbours: bool,
    /// Some slot has processor time of the server.
    server: bool,
    /// Net time of the slots, ns.
    net_ns: u64,
    /// Upper bound of the part of it that clients slept because another program had the processor of another lane, ns.
    slept_ns: u64,
}

impl SlotTotals {
    /// The totals of `frames`, each the slots of one frame.
    pub fn of<'a>(frames: impl IntoIterator<Item = &'a [Slot]>) -> Self {
        let mut seen = Self::default();
        frames.into_iter().for_each(|slots| seen.push(slots));
        seen
    }

    /// Adds the slots of one frame.
    pub fn push(&mut self, slots: &[Slot]) {
        self.neighbours |= slots.iter().any(|slot| slot.stalled_ns.is_some());
        self.server |= slots.iter().any(|slot| slot.server_cpu_ns > 0);
        // Slots with unknown background load are left out: they have no net time.
        let told = || slots.iter().filter_map(|slot| Some((slot, slot.stalled_ns?)));
        let mut stalled_together: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (slot, stalled_ns) in told() {
            *stalled_together.entry((slot.block, slot.arm)).or_default() += stalled_ns;
        }
        for (slot, stalled_ns) in told() {
            let net = slot.wall_ns.saturating_sub(stalled_ns);
            let asleep = net.saturating_sub(slot.client_cpu_ns + slot.server_cpu_ns);
            self.net_ns += net;
            self.slept_ns += asleep.min(stalled_together[&(slot.block, slot.arm)] - stalled_ns);
        }
    }

    /// True if the processor time of the server is known.
    pub fn server(&self) -> bool {
        self.server
    }

    /// True if net time is known: slots have a measured background load, and clients cannot have slept for long because
    /// another program had the processor of another lane. If a client waits for a lock and another program keeps the
    /// lock's holder off its processor, the client just sleeps. Then its own lane's slots do not show the cause.
    pub fn net(&self) -> bool {
        self.neighbours && self.slept_share() <= SLEPT_MOST
    }

    /// True if slots have a measured background load.
    pub fn neighbours(&self) -> bool {
        self.neighbours
    }

    /// Upper bound of the share of net time that clients slept because another program had the processor of another
    /// lane.
    pub fn slept_share(&self) -> f64 {
        self.slept_ns as f64 / self.net_ns.max(1) as f64
    }

    /// The metric that decides if `asked` was requested.
    ///
    /// Processor time replaces net time if that is unknown, and the server's processor time if the server cannot be
    /// seen.
    pub fn deciding(&self, asked: Metric) -> Metric {
        match asked {
            Metric::Net if !self.net() => Metric::Cpu,
            Metric::ServerCpu if !self.server => Metric::Cpu,
            asked => asked,
        }
    }

    /// True if `metric` is known.
    pub fn tells(&self, metric: Metric) -> bool {
        self.deciding(metric) == metric
    }
}

/// Seconds of measured load that `over_starts` still needs for `target`, at least for one value.
///
/// `seconds_each` is the length of one frame, or group of frames. `None` if unknown, and if only further starts would
/// narrow the interval.
pub fn more_s(over_starts: &OverStarts, target: f64, seconds_each: f64, alpha: f64) -> Option<f64> {
    let OverStarts { inference: Inference { merged, batch, .. }, count, widened, .. } = over_starts;
    // A value may cover several frames: consecutive ones that were averaged, or those of one start.
    let frames_each = (*count as f64 / merged.len().max(1) as f64).max((*batch).max(1) as f64);
    let seconds_each = seconds_each * frames_each;
    let more_s = if *widened { None } else { precision::predict_more(merged, target, seconds_each, alpha) };
    Some(more_s?.max(seconds_each))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot of 100 ns of one arm on `lane`: 40 ns of processor time, `stalled_ns` of background load, the rest
    /// asleep.
    fn slot(lane: u32, block: u32, stalled_ns: u64) -> Slot {
        let ran = Slot { wall_ns: 100, client_cpu_ns: 25, server_cpu_ns: 15, ..Slot::default() };
        Slot { lane, block, operations: 1, counted: 1, stalled_ns: Some(stalled_ns), ..ran }
    }

    fn slept(slots: &[Slot]) -> (f64, bool) {
        let seen = SlotTotals::of([slots]);
        (seen.slept_share(), seen.net())
    }

    #[test]
    fn net_time_is_known_unless_clients_may_have_slept_for_a_neighbour_of_another_lane() {
        // Of 70 and 100 ns of net time the first lane slept 30 and the second 60, 30 of them while the first was
        // stalled.
        assert_eq!(slept(&[slot(0, 0, 30), slot(1, 0, 0)]), (30.0 / 170.0, false));
        // The first lane was stalled in another block.
        assert_eq!(slept(&[slot(0, 0, 30), slot(1, 1, 0)]), (0.0, true));
        // A lane's own stall is no cause of its own sleep.
        assert_eq!(slept(&[slot(0, 0, 30), slot(0, 1, 10)]), (0.0, true));
        // Both lanes were stalled whenever they did not run.
        assert_eq!(slept(&[slot(0, 0, 60), slot(1, 0, 60)]), (0.0, true));
        assert_eq!(slept(&[slot(0, 0, 0), slot(1, 0, 0)]), (0.0, true));
        // Slots with unknown background load do not reduce the share.
        let unseen = |lane| Slot { stalled_ns: None, ..slot(lane, 1, 0) };
        assert_eq!(slept(&[slot(0, 0, 30), slot(1, 0, 0), unseen(0), unseen(1)]), (30.0 / 170.0, false));
    }

    #[test]
    fn cpu_decides_where_net_time_or_the_server_cannot_be_seen() {
        let told = SlotTotals::of([&[slot(0, 0, 0)][..]]);
        let doubtful = SlotTotals::of([&[slot(0, 0, 30), slot(1, 0, 0)][..]]);
        let alone = Slot { server_cpu_ns: 0, stalled_ns: None, ..slot(0, 0, 0) };
        let unseen = SlotTotals::of([&[alone][..]]);
        let asked = [Metric::Net, Metric::ServerCpu, Metric::Time];
        let decides = |seen: SlotTotals| asked.map(|metric| seen.deciding(metric));
        assert_eq!(decides(told), [Metric::Net, Metric::ServerCpu, Metric::Time]);
        assert_eq!(decides(doubtful), [Metric::Cpu, Metric::ServerCpu, Metric::Time]);
        assert_eq!(decides(unseen), [Metric::Cpu, Metric::Cpu, Metric::Time]);
    }
}
