//! How much room text takes.

/// Columns that `text` takes on a terminal: two for the wide characters of East Asia and pictographs, none
/// for the usual combining marks. Enough for names in any script; it is not all of Unicode Annex 11.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Columns that one character takes.
pub(super) fn char_width(character: char) -> usize {
    match character as u32 {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
