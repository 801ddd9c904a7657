//! The width of text in columns of a terminal, which is neither its bytes nor its characters.

use unicode_width::UnicodeWidthChar;

/// Columns that `text` takes on a terminal. Combined characters count separately, so that text can be cut anywhere.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Columns of one character, as in Unicode Standard Annex 11; zero for one that is not shown.
pub(super) fn char_width(character: char) -> usize {
    character.width().unwrap_or(0)
}
