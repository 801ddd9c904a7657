//! How diagnostics quote the user's text, list names and suggest a similar one. Without places in files.

use crate::{diagnostic::nearest, experiment::mask};

/// Longest piece of the user's text that a diagnostic quotes, in characters.
const QUOTE_MAX: usize = 60;

/// `text` in backquotes, on one line, without a password and shortened to the limit.
pub(crate) fn quote(text: &str) -> String {
    let masked = mask::lines(text);
    let mut shown: String = masked.chars().take(QUOTE_MAX).flat_map(char::escape_debug).collect();
    if masked.chars().nth(QUOTE_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// `a`, `b`, `c` — or the word "none".
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

/// "did you mean `x`? " if a name is close, then the possible names: `lead` and the list.
pub(crate) fn suggest(word: &str, names: &[&str], lead: &str) -> String {
    let guess = nearest(word, names.iter().copied()).map_or(String::new(), |name| format!("did you mean `{name}`? "));
    format!("{guess}{lead}: {}", list(names.iter().copied()))
}
