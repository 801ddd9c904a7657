//! The single output path: all text for a terminal, in any format, goes through here.
//!
//! Servers, files and their authors control much of that text. Characters that change the direction of writing could
//! make it look like another text, and terminals obey control characters beyond ASCII, which JSON does not escape. They
//! are never printed: an escape such as `\u202e` replaces them, which is the same text in JSON.

use std::{
    borrow::Cow,
    io::{self, Write as _},
    sync::OnceLock,
};

use tithe_model::direction::turns;

/// `text` with direction changes and controls beyond ASCII replaced by their escapes.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |character: char| turns(character) || matches!(character, '\u{7f}'..='\u{9f}');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let written = text.chars().map(|character| match character {
        character if steers(character) => format!("\\u{:04x}", u32::from(character)),
        character => character.to_string(),
    });
    Cow::Owned(written.collect())
}

/// The first error of writing to standard output.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Writes `text` to standard output. An error is reported when the program ends: before that, servers may have to be
/// restored.
pub fn write_out(text: &str) {
    let mut stdout = anstream::stdout();
    if let Err(error) = stdout.write_all(harmless(text).as_bytes()).and_then(|()| stdout.flush()) {
        let _ = UNWRITTEN.set(error);
    }
}

/// Writes `text` to standard error. If the terminal was closed or the disk is full, the error is ignored.
pub fn write_err(text: &str) {
    let mut stderr = anstream::stderr();
    let _ = stderr.write_all(harmless(text).as_bytes()).and_then(|()| stderr.flush());
}

/// The error of writing to standard output, if there was one. A reader that stops early, like `head`, is no error.
pub fn unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// As `print!`.
macro_rules! show {
    ($($words:tt)*) => { $crate::shown::write_out(&format!($($words)*)) };
}

/// As `println!`.
macro_rules! showln {
    () => { $crate::shown::write_out("\n") };
    ($($words:tt)*) => { $crate::shown::write_out(&(format!($($words)*) + "\n")) };
}

/// As `eprint!`.
macro_rules! tell {
    ($($words:tt)*) => { $crate::shown::write_err(&format!($($words)*)) };
}

/// As `eprintln!`.
macro_rules! telln {
    () => { $crate::shown::write_err("\n") };
    ($($words:tt)*) => { $crate::shown::write_err(&(format!($($words)*) + "\n")) };
}

pub(crate) use {show, showln, tell, telln};

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_changes_the_direction_is_written_out() {
        assert_eq!(harmless("a\u{202e}b\u{2066}c\u{200f}"), r"a\u202eb\u2066c\u200f");
        assert_eq!(harmless("a\u{9b}31m\u{7f}"), r"a\u009b31m\u007f");
        assert_eq!(harmless("שלום, \u{1b}[1mthere\u{1b}[0m"), "שלום, \u{1b}[1mthere\u{1b}[0m");
        let text = "name\u{202e}\"x";
        let json = serde_json::to_string(text).expect("JSON");
        assert_eq!(serde_json::from_str::<String>(&harmless(&json)).expect("JSON still"), text);
    }
}
