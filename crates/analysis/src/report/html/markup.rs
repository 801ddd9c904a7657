//! The few pieces of markup that every part of the page is made of.
//!
//! Everything that comes from outside passes [`text`]; nothing else puts foreign text into the page.

use crate::report::view;

/// `foreign` as text of the page or of a quoted attribute, whatever it holds.
pub(super) fn text(foreign: &str) -> String {
    let mut cleaned = foreign.to_owned();
    view::clean(&mut cleaned);
    escape(&cleaned)
}

/// Several lines of `foreign` text, for `pre`: each line cleaned, the breaks kept.
pub(super) fn lines(foreign: &str) -> String {
    foreign.lines().map(text).collect::<Vec<_>>().join("\n")
}

fn escape(cleaned: &str) -> String {
    let mut escaped = String::with_capacity(cleaned.len());
    for character in cleaned.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A coordinate of a drawing: one decimal, and none where it would be zero.
pub(super) fn at(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A section with its heading and an address for links.
pub(super) fn section(id: &str, heading: &str, lead: &str, body: &str) -> String {
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{}</p>\n", text(lead)) };
    format!("<section id=\"{id}\">\n<h2>{}</h2>\n{lead}{body}</section>\n", text(heading))
}

/// Something to be opened.
pub(super) fn details(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>\n{body}</details>\n", text(summary))
}

/// A part that may be wider than the screen, to be moved sideways by finger, mouse or keyboard.
pub(super) fn wide(label: &str, body: &str) -> String {
    format!("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{body}</div>\n", text(label))
}

/// A list of labels with what belongs to them.
pub(super) fn facts<'a>(facts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows: String =
        facts.map(|(label, value)| format!("<dt>{}</dt><dd>{}</dd>\n", text(label), text(value))).collect();
    if rows.is_empty() { rows } else { format!("<dl>\n{rows}</dl>\n") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([0.04, -0.04, 12.0, 3.25, -7.06].map(at).join(" "), "0 0 12 3.2 -7.1");
    }

    proptest! {
        #[test]
        fn no_text_is_markup(foreign in "\\PC{0,40}|[<>&\"'a\u{1b}\u{202e}]{0,20}") {
            let escaped = text(&foreign);
            let harmless = !escaped.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}']);
            prop_assert!(harmless, "{}", escaped);
            let back = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
            let mut cleaned = foreign;
            view::clean(&mut cleaned);
            prop_assert_eq!(back.replace("&amp;", "&"), cleaned);
        }
    }
}
