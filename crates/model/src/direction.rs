//! Characters that change the direction of writing. Text of files and servers that contains one could read as something
//! else. They are found here, not replaced.

/// True for a character that changes the direction of the text around it (Unicode Standard Annex 9, 2.1 to 2.6), so
/// that it could read as something else.
pub fn turns(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
