//! How much room text takes.

use unicode_width::UnicodeWidthChar;

/// Columns that `text` takes on a terminal. Of what several characters make together, each counts by itself, so that
/// text can be cut anywhere.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Columns that one character takes, as in Unicode Standard Annex 11; none for one that is not shown.
pub(super) fn char_width(character: char) -> usize {
    character.width().unwrap_or(0)
}
