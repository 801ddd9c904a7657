//! What is wrong with an input, where, and how to fix it.
//!
//! Libraries collect diagnostics; only the command line renders them.

use std::ops::Range;

/// Longest word that is compared with others, in characters; a longer one is no typing error.
const WORD_MAX: usize = 40;

/// One problem in a text that the user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Byte range in the text; `None` when the problem is not in one place (a missing server, a full disk).
    pub range: Option<Range<usize>>,
    /// What is wrong, in one sentence without a full stop.
    pub problem: String,
    /// How to fix it, in one sentence without a full stop.
    pub help: String,
}

impl Diagnostic {
    /// A diagnostic about the text in `range`.
    pub fn at(range: Range<usize>, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { range: Some(range), problem: problem.into(), help: help.into() }
    }

    /// A diagnostic without a place in the text.
    pub fn general(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { range: None, problem: problem.into(), help: help.into() }
    }
}

/// `bytes` as text.
///
/// # Errors
/// The number, from 1, of the first line that is not UTF-8.
pub fn text_of(bytes: &[u8]) -> Result<&str, usize> {
    std::str::from_utf8(bytes)
        .map_err(|error| bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1)
}

/// The name among `names` that `word` was probably meant to be: at most a third of its letters differ, or one of two.
/// Case does not count, and two swapped adjacent letters count as one difference.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > WORD_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let letters = |name: &str| name.chars().count().max(word.chars().count());
    names
        .into_iter()
        .map(|name| (strsim::osa_distance(&word, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (letters(name) / 3).max(1) && *distance < letters(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slip_of_the_finger_is_guessed_at() {
        let names = ["tls", "pgaudit", "recordcount", "readproportion"];
        let near = |word: &str| nearest(word, names);
        assert_eq!(near("TSL"), Some("tls"));
        assert_eq!(near("pgaudti"), Some("pgaudit"));
        assert_eq!(near("recordCont"), Some("recordcount"));
        assert_eq!(near("redproportion"), Some("readproportion"));
        let long = "a".repeat(WORD_MAX);
        assert_eq!(nearest(&long, [long.as_str()]), Some(long.as_str()));
        assert_eq!(nearest(&(long + "a"), ["a"]), None, "longer than any name");
        assert_eq!([near(""), near("xyz"), near("encryption"), near(&"tls".repeat(14))], [None; 4]);
    }
}
