//! The components of each cost: a table, and an icicle chart of stacks.
//!
//! In the icicle chart a function is below its caller. The width is the difference of processor time per operation:
//! additional time in red, saved time in blue.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::markup::{at, concat, heads, is_empty, section, wide};
use crate::{
    Analysis, ArmProfile, CellAnalysis, Interval, Outcome, Part,
    profiled::StackPart,
    report::{number, view},
};

const WIDTH: f64 = 960.0;
const ROW: f64 = 17.0;

/// Maximum number of rows in the drawing; deeper calls are not drawn.
const DEPTH: usize = 24;

/// The smallest share of the width that is drawn.
const NARROWEST: f64 = 0.004;

/// Approximate width of a letter.
const LETTER: f64 = 6.2;

/// The section; empty if no cell was profiled.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> Markup {
    let body = concat(analysis.cells.iter().zip(names).map(|(cell, name)| of_cell(cell, name)));
    if is_empty(&body) {
        return body;
    }
    let lead = "Processor time per operation that each protection adds, by component and by function, from separate \
        frames that were sampled. In the picture a function is below its caller; width is the difference, added red, \
        saved blue.";
    section("profile", "Where the cost comes from", lead, &body)
}

fn of_cell(cell: &CellAnalysis, name: &str) -> Markup {
    let Some(profile) = &cell.profile else { return Markup::default() };
    html! {
        h3 { (name) }
        @if profile.frames > 1 {
            @for arm in &profile.arms {
                h4 { (arm.name) }
                (wide(&format!("parts of the cost of {}", arm.name), &table(arm)))
                (icicle(arm))
                p { (view::profile::adds_up(arm).text) }
            }
        }
        p { (view::profile::conditions(profile)) }
    }
}

fn table(arm: &ArmProfile) -> Markup {
    let row = |part: &Part, lead: &str| {
        html! {
            tr {
                th scope="row" { (lead) (part.side.words()) ", " (part.component) }
                td { (amount(&part.difference)) }
                td { (part.function) }
                td { @if !part.lever.is_empty() { "--protect " (part.lever) } }
            }
        }
    };
    let sum = |words: &str, difference: &Interval| {
        html! { tr { th scope="row" { (words) } td { (amount(difference)) } td {} td {} } }
    };
    html! {
        table.data {
            (heads(["part", "more per operation", "mostly in", "try"]))
            tbody {
                @for part in arm.parts(true) { (row(part, "")) }
                (sum("elsewhere", &arm.elsewhere))
                (sum("sum of client and server", &arm.sum))
                @for part in arm.parts(false) { (row(part, view::profile::NOT_IN_SUM)) }
            }
        }
    }
}

fn amount(difference: &Interval) -> String {
    number::difference(difference, "µs/op", Outcome::Costs).to_string()
}

/// A function with the functions that it called.
#[derive(Default)]
struct Node<'a> {
    plain: f64,
    protected: f64,
    called: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, frames: &'a [String], stack: &StackPart) {
        self.plain += stack.plain;
        self.protected += stack.protected;
        if let [first, rest @ ..] = frames {
            self.called.entry(first).or_default().add(rest, stack);
        }
    }

    fn more(&self) -> f64 {
        self.protected - self.plain
    }

    /// Its width in the drawing, µs: wide enough for time added in one called function and saved in another.
    fn width(&self, narrowest: f64) -> f64 {
        let called: f64 =
            self.called.values().map(|node| node.width(narrowest)).filter(|width| *width >= narrowest).sum();
        self.more().abs().max(called)
    }
}

/// The picture of one arm; empty without differences.
fn icicle(arm: &ArmProfile) -> Markup {
    let mut root = Node::default();
    arm.stacks.iter().for_each(|stack| root.add(&stack.frames, stack));
    let rough = root.width(0.0);
    let narrowest = NARROWEST * rough;
    let width = root.width(narrowest);
    if width <= 0.0 {
        return Markup::default();
    }
    let mut drawn = Vec::new();
    let rows = draw("all", &root, (0.0, 0), (WIDTH / width, narrowest), &mut drawn);
    let height = ROW * rows as f64;
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (at(height)) } role="img"
            aria-label={ "Difference of processor time by stack, " (arm.name) "; components in the table above" }
        { @for node in &drawn { (node) } }
    }
}

/// Draws `node` and everything that it called from `place` (µs, row) on; returns the number of rows.
fn draw(name: &str, node: &Node<'_>, place: (f64, usize), scale: (f64, f64), drawn: &mut Vec<Markup>) -> usize {
    let ((from, row), (scale_x, narrowest)) = (place, scale);
    let width = node.width(narrowest);
    let (x, y, wide) = (from * scale_x, ROW * row as f64, width * scale_x);
    let colour = if node.more() > 0.0 { "var(--bad)" } else { "var(--s0)" };
    let strength = 0.18 + 0.5 * (node.more().abs() / width.max(f64::MIN_POSITIVE)).min(1.0);
    let letters = (wide / LETTER) as usize;
    let label: String = if letters < 4 { String::new() } else { name.chars().take(letters - 1).collect() };
    drawn.push(html! {
        g {
            rect x=(at(x)) y=(at(y)) width=(at(wide)) height=(at(ROW - 1.0))
                style={ "fill:" (colour) ";fill-opacity:" (format!("{strength:.2}")) } {}
            @if !label.is_empty() { text.start.ink x=(at(x + 3.0)) y=(at(y + 12.0)) { (label) } }
            title { (name) ": " (format!("{:+.2} µs, {:.2} → {:.2} µs", node.more(), node.plain, node.protected)) }
        }
    });
    let mut rows = row + 1;
    let mut next = from;
    if row + 1 < DEPTH {
        let called = node.called.iter().map(|(name, node)| (name, node, node.width(narrowest)));
        for (name, node, width) in called.filter(|(_, _, width)| *width >= narrowest) {
            rows = rows.max(draw(name, node, (next, row + 1), scale, drawn));
            next += width;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_and_what_is_saved_are_both_as_wide_as_they_are() {
        let stack = |frames: &[&str], plain, protected| StackPart {
            frames: frames.iter().map(|name| (*name).to_owned()).collect(),
            plain,
            protected,
        };
        let stacks = [stack(&["server", "f", "g"], 1.0, 4.0), stack(&["server", "f", "h"], 3.0, 1.0)];
        let mut root = Node::default();
        stacks.iter().for_each(|stack| root.add(&stack.frames, stack));
        assert_eq!((root.more(), root.width(0.1)), (1.0, 5.0));
        let mut drawn = Vec::new();
        assert_eq!(draw("all", &root, (0.0, 0), (WIDTH / 5.0, 0.1), &mut drawn), 4);
        let text: String = drawn.into_iter().map(|node| node.into_string()).collect();
        assert!(text.contains("g: +3.00 µs, 1.00 → 4.00 µs") && text.contains("h: -2.00 µs"), "{text}");
        assert!(text.contains("width=\"576\"") && text.contains("width=\"384\""), "{text}");
        assert!(
            text.contains("class=\"start ink\"") && !text.contains("text-anchor"),
            "the style sheet decides: {text}"
        );
    }
}
