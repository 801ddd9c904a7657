//! Texts of one length that are determined by a number: pieces of one long random text.

use tithe_model::schedule::SplitMix64;

/// Letters of the texts. None is special in a file of rows.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz012345";
/// Length of the long text, in addition to that of a piece.
const ROOM: usize = 1 << 16;

/// Texts of one length.
pub struct RandomText {
    text: Vec<u8>,
    length: usize,
}

impl RandomText {
    /// Texts of `length` bytes determined by `seed`.
    pub fn new(seed: u64, length: usize) -> Self {
        let mut random = SplitMix64::new(seed);
        let text = (0..ROOM + length).map(|_| LETTERS[(random.next_u64() % 32) as usize]).collect();
        Self { text, length }
    }

    /// The text of `number`.
    pub fn of(&self, number: u64) -> &[u8] {
        let start = SplitMix64::new(number).next_u64() as usize % ROOM;
        &self.text[start..start + self.length]
    }
}
