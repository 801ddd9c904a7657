//! When the next start of an epoch is due: its load is divided among the starts that are planned or advised.

use tithe_model::plan::{Cell, Starts};

use super::Advice;

/// The starts within one epoch.
pub(super) struct StartsOfEpoch {
    starts: Starts,
    /// Epochs of the cell.
    epochs: u32,
    /// How many there are to be.
    planned: u32,
    /// How many came after the first.
    pub begun: u32,
    /// Load of the epoch before this one, ns.
    before_ns: u64,
}

impl StartsOfEpoch {
    pub fn new(cell: &Cell) -> Self {
        Self { starts: cell.starts, epochs: cell.epochs, planned: cell.starts_per_epoch(), begun: 0, before_ns: 0 }
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

    /// Has the present start had its share of the load, as nearly as whole frames allow?
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

    /// Divides what is left of the load as the observer advises. Several epochs are planned by whoever asks for them.
    pub fn follow(&mut self, advice: Advice) {
        if let (Starts::Several(_), Some(starts), 1) = (self.starts, advice.starts, self.epochs) {
            self.planned = starts.max(self.begun + 1);
        }
    }

    /// The next start begins after `spent_ns` of the epoch's load.
    pub fn next(&mut self, spent_ns: u64) {
        self.begun += 1;
        self.before_ns = spent_ns;
    }
}
