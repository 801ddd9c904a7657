//! Where the stack and the heap of a lane begin.
//!
//! The kernel randomises the address of a thread's stack, but only in whole pages, and an allocator gives the same
//! addresses for the same requests. Some processor features depend on the last twelve bits of addresses (lines of the
//! first-level cache, loads that wait for an earlier store). They would find the same bits in every frame of every
//! start, and that accident would look like a cost (Mytkowicz et al. 2009, "Producing wrong data without doing anything
//! obviously wrong").

use std::hint::black_box;

use tithe_model::schedule::SplitMix64;

/// Number of stack steps to draw from: together they are longer than a page.
const STEPS: u64 = 64;

/// Minimum length of a step, bytes.
const STEP: usize = 64;

/// Number of heap places to draw from: 16 bytes apart, as an allocator aligns, within a page.
const PLACES: u64 = 256;

/// How far the stack and the heap of one thread are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    steps: u64,
    heap_bytes: usize,
}

impl Placement {
    /// The placement of `lane` in frame `frame` of a cell with this seed.
    pub fn drawn(seed: u64, frame: u32, lane: usize) -> Self {
        let mix =
            u64::from(frame).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ (lane as u64).wrapping_mul(0xA076_1D64_78BD_642F);
        let mut random = SplitMix64::new(seed ^ mix);
        Self { steps: random.below(STEPS), heap_bytes: 16 * random.below(PLACES) as usize }
    }

    /// Moves the stack and the heap of the calling thread, which has just begun, and does `work`.
    pub fn within<T>(self, work: impl FnOnce() -> T) -> T {
        // Never touched; the next allocation lies behind it.
        let before = black_box(Vec::<u8>::with_capacity(self.heap_bytes));
        let done = below(self.steps, work);
        drop(before);
        done
    }
}

/// Does `work` this number of steps further down the stack.
#[inline(never)]
fn below<T, W: FnOnce() -> T>(steps: u64, work: W) -> T {
    let step = black_box([0_u8; STEP]);
    let done = if steps == 0 { work() } else { below(steps - 1, work) };
    // Keeps the step on the stack until here.
    black_box(&step);
    done
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Where a variable on the stack lies within its page, in each of 200 frames of a lane.
    fn places(seed: u64, lane: usize) -> Vec<usize> {
        let place = |frame| {
            Placement::drawn(seed, frame, lane).within(|| {
                let variable = 0_u8;
                std::ptr::from_ref(black_box(&variable)).addr() % 4096
            })
        };
        (0..200).map(place).collect()
    }

    #[test]
    fn stacks_begin_where_seed_frame_and_lane_say() {
        assert_eq!(places(3, 0), places(3, 0));
        assert_ne!(places(3, 0), places(3, 1));
        assert_ne!(places(3, 0), places(4, 0));
        // 64 places, of which 200 draws leave out three on average.
        assert!(places(3, 0).into_iter().collect::<BTreeSet<_>>().len() > 50);
    }

    #[test]
    fn heaps_begin_anywhere_in_a_page() {
        let lengths: BTreeSet<usize> = (0..2000).map(|frame| Placement::drawn(3, frame, 0).heap_bytes).collect();
        assert_eq!((lengths.len(), lengths.first(), lengths.last()), (256, Some(&0), Some(&4080)));
    }
}
