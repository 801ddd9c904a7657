//! Sums of plain and protected costs by the unit that varies: the frames of a start vary together.

use std::collections::BTreeMap;

use tithe_model::plan::STARTS_MIN;
use tithe_statistics::{
    pairing::Spent,
    starts::{IntervalOptions, KnownSpread},
};

use super::measured::Measured;
use crate::Interval;

/// The values that a jackknife leaves out one at a time: (plain, protected).
pub(super) struct Sums {
    /// One per start if there are enough starts, else one per frame.
    pub values: Vec<(Spent, Spent)>,
    /// Number of frames of each start.
    of_starts: Vec<usize>,
}

impl Sums {
    /// From the start and the cost of each frame, if known.
    pub fn new(measured: &Measured<'_>, frames: impl Iterator<Item = (u32, Option<(Spent, Spent)>)>) -> Self {
        let frames: Vec<(u32, (Spent, Spent))> = frames.filter_map(|(start, spent)| Some((start, spent?))).collect();
        let mut by_start: BTreeMap<u32, Vec<(Spent, Spent)>> = BTreeMap::new();
        frames.iter().for_each(|(start, spent)| by_start.entry(*start).or_default().push(*spent));
        let of_starts: Vec<usize> = by_start.values().map(Vec::len).collect();
        let values = if of_starts.len() >= STARTS_MIN as usize && measured.starts() < measured.frames.len() {
            by_start.values().map(|of_start| sum(of_start)).collect()
        } else {
            frames.into_iter().map(|(_, spent)| spent).collect()
        };
        Self { values, of_starts }
    }

    /// Number of frames and of starts.
    pub fn stands_on(&self) -> (usize, usize) {
        (self.of_starts.iter().sum(), self.of_starts.len())
    }

    /// There are too few starts to estimate their own spread.
    fn are_few(&self) -> bool {
        self.of_starts.len() < STARTS_MIN as usize
    }

    /// The known spread of starts, if there are few.
    pub fn known(&self, asked: IntervalOptions) -> Option<KnownSpread> {
        asked.known.filter(|known| self.are_few() && known.spread > 0.0)
    }

    /// `interval`, widened by the known spread of starts if there are few.
    pub fn widened(&self, interval: Interval, asked: IntervalOptions) -> Interval {
        let Some(known) = self.known(asked) else { return interval };
        interval.widened(known.at_cost(interval.estimate).widening_over(&self.of_starts, asked.alpha))
    }
}

fn sum(values: &[(Spent, Spent)]) -> (Spent, Spent) {
    (values.iter().map(|(plain, _)| *plain).sum(), values.iter().map(|(_, protected)| *protected).sum())
}
