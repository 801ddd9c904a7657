//! What pieces of a report mean to the reader, for the code that chooses words and the code that chooses colours.

/// What a piece of text means to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Normal,
    /// What the eye should find first.
    Strong,
    /// Not to be relied on, or of little interest.
    Faint,
    /// As it should be.
    Good,
    /// Needs a second look.
    Caution,
    /// Wrong.
    Bad,
}
