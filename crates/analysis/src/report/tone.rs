//! The meaning of text pieces, for the code that chooses words and the code that chooses colours.

/// The meaning of a piece of text for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Normal,
    /// To be noticed first.
    Strong,
    /// Unreliable, or of little interest.
    Faint,
    /// Good.
    Good,
    /// Needs a second look.
    Caution,
    /// Wrong.
    Bad,
}
