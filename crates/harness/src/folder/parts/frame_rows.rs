//! The rows of `slots.csv` that one frame has, and whether they are all there.

use crc32fast::Hasher;
use tithe_model::{
    experiment::Design,
    record::{Frame, Slot},
};

use super::{FRAMES, SLOTS};
use crate::folder::seal;

/// The rows of one frame.
#[derive(Debug, Default)]
pub(super) struct FrameRows {
    /// Block, lane and arm of each.
    places: Vec<(u32, u32, u32)>,
    /// Operations by arm.
    operations: Vec<u64>,
    /// Lines of the first and the last row.
    lines: Option<(usize, usize)>,
    /// The first row that cannot be read.
    refused: Option<String>,
    /// The checksum of the rows' text.
    pub(super) text: Hasher,
}

impl FrameRows {
    /// Adds `slot`, which is line `number`.
    pub(super) fn add(&mut self, number: usize, slot: &Slot) {
        self.places.push((slot.block, slot.lane, slot.arm));
        let arm = slot.arm as usize;
        self.operations.resize(self.operations.len().max(arm + 1), 0);
        self.operations[arm] = self.operations[arm].saturating_add(slot.operations);
        self.lines = Some((self.lines.map_or(number, |(first, _)| first), number));
    }

    /// Notes that line `number` is a row of this frame that cannot be read.
    pub(super) fn refuse(&mut self, number: usize, flaw: String) {
        self.refused.get_or_insert_with(|| format!("line {number} of {SLOTS} is damaged: {flaw}"));
    }

    /// What is wrong with the rows of `frame`, whose record is `line`, and whose arms share the machine by `design`.
    /// `strays` are lines that are rows of no frame. `None` when all rows are there as they were written.
    ///
    /// The record does not name the numbers of lanes and blocks. But every lane of every block has a row for each arm,
    /// and the operations of an arm's rows add up to those that the frame counted.
    pub(super) fn flaw(&self, frame: &Frame, line: &str, design: Design, strays: &[usize]) -> Option<String> {
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        let Some((first, last)) = self.lines else { return Some(format!("{SLOTS} has no row of this frame")) };
        let Some(amiss) = self.hole(frame.arms.len(), design).or_else(|| self.miscount(frame)) else {
            let changed = format!("its record in {FRAMES} or a row of lines {first} to {last} of {SLOTS} was changed");
            return (!seal::is_whole(line, self.text.clone()))
                .then(|| format!("its checksum does not match: {changed}"));
        };
        let stray = strays.iter().find(|line| (first.saturating_sub(1)..=last + 1).contains(line));
        Some(match stray {
            Some(line) => format!("line {line} of {SLOTS} is damaged, and {amiss}"),
            None => format!("{SLOTS} lacks rows or has foreign ones, lines {first} to {last}: {amiss}"),
        })
    }

    /// Rows that are missing or duplicate.
    fn hole(&self, arms: usize, design: Design) -> Option<String> {
        let mut places = self.places.clone();
        places.sort_unstable();
        let lanes = u64::from(places.iter().map(|(_, lane, _)| *lane).max()?) + 1;
        let blocks = u64::from(places.last()?.0) + 1;
        let wanted = blocks.saturating_mul(lanes).saturating_mul(arms as u64);
        let stands = |(number, (block, lane, arm)): (usize, &(u32, u32, u32))| {
            let turn = number / arms;
            let of_turn = turn as u64 == u64::from(*block) * lanes + u64::from(*lane);
            // In such a frame all turns belong to one arm.
            of_turn && (design.has_one_arm_a_frame() || number % arms == *arm as usize)
        };
        let whole = places.len() as u64 == wanted && places.iter().enumerate().all(stands);
        (!whole)
            .then(|| format!("{} rows, not {wanted} of {blocks} blocks, {lanes} lanes and {arms} arms", places.len()))
    }

    /// Operations that the frame counted and its rows do not have, or the reverse.
    fn miscount(&self, frame: &Frame) -> Option<String> {
        let of_rows = |arm: usize| self.operations.get(arm).copied().unwrap_or(0);
        let mut counted = frame.arms.iter().map(|arm| arm.operations).enumerate();
        let (arm, operations) = counted.find(|(arm, operations)| of_rows(*arm) != *operations)?;
        Some(format!("{} operations of arm {arm}, and the frame counted {operations}", of_rows(arm)))
    }
}

#[cfg(test)]
mod tests {
    use tithe_model::record::ArmFrame;

    use super::*;

    fn frame() -> Frame {
        let arm = |operations| ArmFrame { operations, ..ArmFrame::default() };
        Frame { arms: vec![arm(40), arm(80)], ..Frame::default() }
    }

    /// Rows of two blocks, two lanes and two arms, from line 10 on, without those that are `left_out`.
    fn rows(left_out: impl Fn(u32, u32, u32) -> bool) -> FrameRows {
        let mut frame_rows = FrameRows::default();
        for row in 0..8 {
            let (block, client, arm) = (row / 4, row / 2 % 2, row % 2);
            if !left_out(block, client, arm) {
                let n = 10 * u64::from(arm + 1);
                frame_rows.add(10 + row as usize, &Slot { block, lane: client, arm, operations: n, ..Slot::default() });
            }
        }
        frame_rows
    }

    fn flaw(frame_rows: &FrameRows, strays: &[usize]) -> String {
        frame_rows.flaw(&frame(), "{}", Design::Interleaved, strays).unwrap_or_else(|| "none".to_owned())
    }

    #[test]
    fn what_is_missing_is_noticed_wherever_it_stood() {
        assert_eq!(flaw(&rows(|_, _, _| false), &[]), "none");
        assert_eq!(flaw(&rows(|_, _, _| true), &[]), "slots.csv has no row of this frame");
        let one = rows(|block, client, arm| (block, client, arm) == (0, 1, 1));
        let told = "7 rows, not 8 of 2 blocks, 2 lanes and 2 arms";
        assert_eq!(flaw(&one, &[3, 99]), format!("slots.csv lacks rows or has foreign ones, lines 10 to 17: {told}"));
        assert_eq!(flaw(&one, &[13]), format!("line 13 of slots.csv is damaged, and {told}"));
        let is_beside = |stray: usize| flaw(&one, &[stray]).starts_with(&format!("line {stray} of "));
        assert_eq!([8, 9, 18, 19].map(is_beside), [false, true, true, false], "lines 10 to 17 are the frame's");
        // The remaining rows look complete: only the count of operations reveals the loss.
        for half in [rows(|block, _, _| block == 1), rows(|_, client, _| client == 1)] {
            assert!(
                flaw(&half, &[]).ends_with("20 operations of arm 0, and the frame counted 40"),
                "{}",
                flaw(&half, &[])
            );
        }
        assert!(flaw(&rows(|_, _, arm| arm == 1), &[]).contains("4 rows, not 8"));
    }

    #[test]
    fn a_row_too_many_is_noticed() {
        let mut twice = rows(|_, _, _| false);
        twice.add(18, &Slot { block: 1, lane: 1, arm: 1, ..Slot::default() });
        assert!(flaw(&twice, &[]).contains("9 rows, not 8"), "{}", flaw(&twice, &[]));
        let mut far = rows(|_, _, _| false);
        far.add(18, &Slot { block: u32::MAX, lane: u32::MAX, ..Slot::default() });
        assert!(flaw(&far, &[]).contains("9 rows"), "{}", flaw(&far, &[]));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_told_first() {
        let mut frame_rows = rows(|_, _, _| false);
        frame_rows.refuse(12, "it is cut short".to_owned());
        frame_rows.refuse(14, "it has 3 of 12 fields".to_owned());
        assert_eq!(flaw(&frame_rows, &[]), "line 12 of slots.csv is damaged: it is cut short");
    }

    #[test]
    fn all_rows_of_a_sequential_frame_are_of_one_arm() {
        let mut frame_rows = FrameRows::default();
        (0..4).for_each(|row| {
            frame_rows.add(row, &Slot { block: row as u32 / 2, arm: 1, operations: 20, ..Slot::default() })
        });
        let mut frame = frame();
        frame.arms[0].operations = 0;
        assert_eq!(frame_rows.flaw(&frame, "{}", Design::Sequential, &[]), None);
        assert!(frame_rows.flaw(&frame, "{}", Design::Interleaved, &[]).is_some());
    }
}
