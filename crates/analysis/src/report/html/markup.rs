//! The pieces of markup that all parts of the page use.
//!
//! A part of the page is a function from values to [`Markup`]: [`html!`] escapes every value, and closes every element
//! that it opens. Only a whole page becomes text.

use maud::{Markup, Render, html};

/// A coordinate of a drawing: one decimal, and none if it would be zero.
pub(super) fn at(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A share of the width of a drawing, in percent.
pub(super) fn percent(share: f64) -> String {
    at(share) + "%"
}

/// The class of a name at `place`, so that it stays within the drawing: centred, unless the place is before
/// `first` or behind `last`.
pub(super) fn anchor(place: f64, first: f64, last: f64) -> Option<&'static str> {
    match place {
        place if place > last => Some("end"),
        place if place < first => Some("start"),
        _ => None,
    }
}

/// True if nothing is visible.
pub(super) fn is_empty(markup: &Markup) -> bool {
    markup.0.is_empty()
}

/// Parts one after the other.
pub(super) fn concat(parts: impl IntoIterator<Item = Markup>) -> Markup {
    html! { @for part in parts { (part) } }
}

/// A section with its heading and an address for links.
pub(super) fn section(id: &str, heading: &str, lead: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) }
            @if !lead.is_empty() { p.lead { (lead) } }
            (body)
        }
        "\n"
    }
}

/// An element that can be opened.
pub(super) fn details(summary: &str, body: &Markup) -> Markup {
    html! { details { summary { (summary) } (body) } }
}

/// A part that may be wider than the screen and can be scrolled sideways by finger, mouse or keyboard.
pub(super) fn wide(label: &str, body: &Markup) -> Markup {
    html! { div.wide tabindex="0" role="region" aria-label=(label) { (body) } }
}

/// A name that may break after a separator, so that no word of it is broken if there is room.
pub(super) fn breakable(name: &str) -> Markup {
    let parts = name.split_inclusive(['+', ':', ',', '-', '_', '=']);
    html! { @for (index, part) in parts.enumerate() { @if index > 0 { wbr; } (part) } }
}

/// The names of a table's columns.
pub(super) fn heads<T: Render>(names: impl IntoIterator<Item = T>) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

/// A list of sentences; empty without any.
pub(super) fn notes<T: Render>(sentences: impl IntoIterator<Item = T>) -> Markup {
    let mut sentences = sentences.into_iter().peekable();
    html! {
        @if sentences.peek().is_some() {
            ul.notes { @for sentence in sentences { li { (sentence) } } }
        }
    }
}

/// A list of labels with their values; empty without any.
pub(super) fn facts<'a>(facts: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    let mut facts = facts.peekable();
    html! {
        @if facts.peek().is_some() {
            dl { @for (label, value) in facts { dt { (label) } dd { (value) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([0.04, -0.04, 12.0, 3.25, -7.06].map(at).join(" "), "0 0 12 3.2 -7.1");
    }
}
