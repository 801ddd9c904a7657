//! The one way out: what is shown on a terminal, whatever format it has, passes here.
//!
//! Servers, files and their authors choose much of that text. Characters that change the direction of writing could
//! make it read as something else, and terminals obey controls beyond ASCII, which JSON does not escape. None is shown:
//! `\u202e` replaces it, which is the same text in JSON.

use std::{
    borrow::Cow,
    io::{self, Write as _},
    sync::OnceLock,
};

use tithe_model::direction::turns;

/// `text` with every character written out that changes its direction or is a control beyond ASCII's.
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

/// Why standard output could not be written, since the first time that it could not.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Writes `text` on standard output. What cannot be written is reported when the program ends: servers may have to be
/// left as they were found before.
pub fn write_out(text: &str) {
    let mut stdout = anstream::stdout();
    if let Err(error) = stdout.write_all(harmless(text).as_bytes()).and_then(|()| stdout.flush()) {
        let _ = UNWRITTEN.set(error);
    }
}

/// Writes `text` on standard error, where somebody listens: a terminal that was closed and a full disk end nothing.
pub fn write_err(text: &str) {
    let mut stderr = anstream::stderr();
    let _ = stderr.write_all(harmless(text).as_bytes()).and_then(|()| stderr.flush());
}

/// Why standard output could not be written, where that is so. Readers who had enough, as `head` has, are no reason.
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
