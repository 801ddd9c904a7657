//! The one way out: what is shown on a terminal, whatever format it has, passes here.
//!
//! Servers, files and their authors choose much of that text. Characters that change the direction of writing could
//! make it read as something else, and terminals obey controls beyond ASCII, which JSON does not escape. None is shown:
//! `\u202e` replaces it, which is the same text in JSON.

use std::borrow::Cow;

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

/// As `print!`.
macro_rules! show {
    ($($words:tt)*) => { anstream::print!("{}", $crate::shown::harmless(&format!($($words)*))) };
}

/// As `println!`.
macro_rules! showln {
    () => { anstream::println!() };
    ($($words:tt)*) => { anstream::println!("{}", $crate::shown::harmless(&format!($($words)*))) };
}

/// As `eprint!`.
macro_rules! tell {
    ($($words:tt)*) => { anstream::eprint!("{}", $crate::shown::harmless(&format!($($words)*))) };
}

/// As `eprintln!`.
macro_rules! telln {
    () => { anstream::eprintln!() };
    ($($words:tt)*) => { anstream::eprintln!("{}", $crate::shown::harmless(&format!($($words)*))) };
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
