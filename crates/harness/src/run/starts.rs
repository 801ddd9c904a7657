//! When the next start of an epoch is due: its load is divided among the starts that are planned or advised.

use tithe_model::plan::{Cell, Starts};

use super::Advice;

/// The starts within one epoch.
pub(super) struct StartsOfEpoch {
    starts: Starts,
    /// Epochs of the cell.
    epochs: u32,
    /// Starts of a cell with one planned epoch in earlier runs that this one continues.
    earlier: u32,
    /// The number that is planned.
    planned: u32,
    /// The number after the first.
    pub begun: u32,
    /// Load of the epoch before the current start, ns.
    before_ns: u64,
}

impl StartsOfEpoch {
    /// For `cell`, which has had `first_start` starts.
    pub fn new(cell: &Cell, first_start: u32) -> Self {
        let earlier = if cell.epochs == 1 { first_start } else { 0 };
        let planned = cell.starts_per_epoch().saturating_sub(earlier).max(1);
        Self { starts: cell.starts, epochs: cell.epochs, earlier, planned, begun: 0, before_ns: 0 }
    }

    /// Is another start due before the next frame, after `spent_ns` of the epoch's `load_ns`? A frame that is `free`
    /// belongs to the last start, unless every frame has one.
    pub fn is_due(&self, spent_ns: u64, frame_ns: u64, load_ns: u64, free: bool) -> bool {
        match self.starts {
            Starts::Once => false,
            Starts::EveryFrame => true,
            Starts::Several(_) => !free && self.begun + 1 < self.planned && self.is_whole(spent_ns, frame_ns, load_ns),
        }
    }

    /// Has the current start had its share of the load, as exactly as whole frames allow?
    pub fn is_whole(&self, spent_ns: u64, frame_ns: u64, load_ns: u64) -> bool {
        match self.starts {
            Starts::Once | Starts::EveryFrame => true,
            Starts::Several(_) => {
                let left_ns = load_ns.saturating_sub(self.before_ns);
                let share_ns = left_ns / u64::from((self.planned - self.begun).max(1));
                spent_ns > self.before_ns && spent_ns + frame_ns / 2 >= self.before_ns + share_ns
            }
        }
    }

    /// Divides the remaining load as the listener advises. The caller plans several epochs.
    pub fn follow(&mut self, advice: Advice) {
        if let (Starts::Several(_), Some(starts), 1) = (self.starts, advice.starts, self.epochs) {
            self.planned = starts.saturating_sub(self.earlier).max(self.begun + 1);
        }
    }

    /// The next start begins after `spent_ns` of the epoch's load.
    pub fn next(&mut self, spent_ns: u64) {
        self.begun += 1;
        self.before_ns = spent_ns;
    }
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::{Arrivals, Design};

    use super::*;
    use crate::load::frame::tests::cell;

    fn of(starts: Starts, epochs: u32) -> StartsOfEpoch {
        let planned = if let Starts::Several(several) = starts { several } else { 1 };
        StartsOfEpoch { starts, epochs, earlier: 0, planned, begun: 0, before_ns: 0 }
    }

    /// Frames of each start, as a run measures those of `frame_ns` within `load_ns`, with `advice` after the
    /// frame of that number.
    fn measured(mut starts: StartsOfEpoch, (frame_ns, load_ns): (u64, u64), advice: (u64, Option<u32>)) -> Vec<u32> {
        let mut frames = vec![0];
        for number in 0..load_ns / frame_ns {
            if number > 0 && starts.is_due(number * frame_ns, frame_ns, load_ns, false) {
                starts.next(number * frame_ns);
                frames.push(0);
            }
            *frames.last_mut().expect("a start") += 1;
            if number == advice.0 {
                starts.follow(Advice { enough: false, starts: advice.1 });
            }
        }
        assert_eq!(frames.len() as u32, starts.begun + 1);
        frames
    }

    #[test]
    fn the_load_is_divided_among_the_starts_as_nearly_as_frames_allow() {
        let frames =
            |several, frame_ns, load_ns| measured(of(Starts::Several(several), 1), (frame_ns, load_ns), (0, None));
        assert_eq!(frames(4, 10, 160), [4, 4, 4, 4]);
        assert_eq!(frames(4, 30, 300), [2, 3, 2, 3]);
        // A start has a frame, however short its share is.
        assert_eq!(frames(4, 50, 100), [1, 1]);
        assert_eq!(frames(1, 10, 160), [16]);
    }

    #[test]
    fn a_run_that_is_taken_up_again_has_the_starts_that_are_left() {
        let taken_up = StartsOfEpoch { earlier: 7, planned: 1, ..of(Starts::Several(8), 1) };
        assert_eq!(measured(taken_up, (10, 100), (2, Some(8))), [10]);
        let taken_up = StartsOfEpoch { earlier: 3, planned: 5, ..of(Starts::Several(8), 1) };
        assert_eq!(measured(taken_up, (10, 100), (2, Some(8))), [2, 2, 2, 2, 2]);
    }

    #[test]
    fn earlier_starts_count_where_one_epoch_is_planned() {
        let planned = |starts, epochs, first_start| {
            let cell = Cell { epochs, starts, ..cell(Design::Interleaved, Arrivals::Closed) };
            let starts = StartsOfEpoch::new(&cell, first_start);
            (starts.earlier, starts.planned)
        };
        assert_eq!(planned(Starts::Several(8), 1, 0), (0, 8));
        assert_eq!(planned(Starts::Several(8), 1, 3), (3, 5));
        assert_eq!(planned(Starts::Several(8), 1, 9), (9, 1), "at least one");
        assert_eq!(planned(Starts::Several(8), 2, 4), (0, 4), "each epoch has its own");
    }

    #[test]
    fn servers_are_started_once_or_for_every_frame_where_that_is_planned() {
        for (starts, is_due) in [(Starts::Once, false), (Starts::EveryFrame, true)] {
            for (spent_ns, free) in [(10, false), (10, true), (1000, false)] {
                assert_eq!(of(starts, 1).is_due(spent_ns, 10, 100, free), is_due, "{starts:?}");
                assert!(of(starts, 1).is_whole(spent_ns, 10, 100), "{starts:?}");
            }
        }
    }

    #[test]
    fn a_free_frame_belongs_to_the_last_start() {
        let starts = of(Starts::Several(4), 1);
        assert!(starts.is_due(25, 10, 100, false) && !starts.is_due(25, 10, 100, true));
    }

    #[test]
    fn a_start_is_whole_within_half_a_frame_of_its_share_and_never_without_a_frame() {
        let mut starts = of(Starts::Several(4), 1);
        assert_eq!([10, 19, 20, 30].map(|spent_ns| starts.is_whole(spent_ns, 10, 100)), [false, false, true, true]);
        starts.next(20);
        // A third of the remaining load.
        assert_eq!([20, 30, 41, 42].map(|spent_ns| starts.is_whole(spent_ns, 10, 100)), [false, false, true, true]);
        assert!(!starts.is_whole(20, 1000, 100));
    }

    #[test]
    fn what_is_left_is_divided_as_advised() {
        let advised = |several, advice| measured(of(Starts::Several(several), 1), (10, 160), advice);
        assert_eq!(advised(2, (3, Some(8))), [4, 2, 2, 2, 1, 2, 1, 2]);
        // Starts that have begun stay.
        assert_eq!(advised(8, (4, Some(1))), [2, 2, 12]);
        assert_eq!(advised(4, (4, None)), [4, 4, 4, 4]);
        assert_eq!(measured(of(Starts::Several(2), 3), (10, 160), (3, Some(8))), [8, 8], "epochs were asked for");
        assert_eq!(measured(of(Starts::Once, 1), (10, 160), (3, Some(8))), [16]);
    }
}
