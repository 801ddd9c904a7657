//! The report as one page: a file that holds everything it needs and can be opened anywhere.
//!
//! [`render`] is a pure function of the analysis and of a [`PageData`], which is what a page tells beyond the
//! analysis: the machine over time, the experiment's text. The page loads nothing and runs
//! nothing: charts are SVG drawn here, values show on hover through `title` elements, and every chart either is
//! a table or has one below it. Light and dark follow the reader's system; paper gets its own rules.
//!
//! Left out: whatever decides. Proofs, verdicts and flags come from the analysis.

mod about;
mod answer;
mod comparison;
mod costs;
mod drift;
mod figures;
mod first_screen;
mod history;
mod latency;
mod levels;
mod marks;
mod markup;
mod matrix;
mod page_data;
mod proof;
mod scale;
mod sweep;
mod timeline;

use std::collections::BTreeSet;

use tithe_model::ending::CellEnding;

pub use comparison::{compared_matrices, comparison};
pub use history::history;
pub use matrix::matrix;
pub use page_data::{Curve, Moment, PageData, PageDataBuilder};

use self::markup::{section, text};
use super::{cell_name, view, words};
use crate::{Analysis, CellAnalysis, Proof};

/// Cells up to which everything is shown; of more, only the costs and the evidence, so that the page stays small.
const CELLS_DRAWN: usize = 60;

/// The page on `analysis`.
pub fn render(analysis: &Analysis, page_data: &PageData) -> String {
    let names = cell_name::names(analysis);
    let costs = costs::chart(analysis, &names);
    let (costs, further) =
        if first_screen::is_drawn(analysis) { (String::new(), costs) } else { (costs, String::new()) };
    let of_cells = match is_abridged(analysis) {
        true => workloads(analysis),
        false => cells(analysis, &names),
    };
    let body = [
        costs,
        latency(analysis, &names),
        sweep::chart(analysis),
        drift::chart(analysis, &names),
        further,
        levels::chart(analysis, &names),
        proof::evidence(analysis),
        of_cells,
        about::settings(analysis),
        about::machine(analysis, &timeline::chart(analysis, page_data)),
        about::warnings(analysis),
        about::again(analysis, page_data),
        about::how_to_read(analysis),
    ]
    .concat();
    let about = format!("{} · tithe {}", analysis.run, analysis.tithe);
    page(&analysis.title, &header(analysis, &names, &body), &body, &about)
}

/// The hatching of what is too noisy to tell.
const NOISE: &str = "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" class=\"defs\"><defs><pattern id=\"noise\" \
                     width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
                     <path d=\"M0 0V4\" class=\"hatch\"/></pattern></defs></svg>\n";

/// A whole page of a `header` and a `body` of markup.
fn page(title: &str, header: &str, body: &str, about: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{}</style>\n</head>\n<body>\n{NOISE}<header>\n{header}</header>\n<main>\n{body}</main>\n\
         <footer><p>{}<span class=\"paper\"> · what can be opened on a screen is left out on paper: report.csv and report.json \
         have all of it</span></p></footer>\n</body>\n</html>\n",
        text(title),
        include_str!("style.css"),
        text(about),
    )
}

/// The first screen: what was measured where, the answer, its picture, and in how far it can be relied on.
fn header(analysis: &Analysis, names: &[String], body: &str) -> String {
    format!(
        "<p class=\"over\">{}</p>\n<h1>{}</h1>\n<p class=\"answer\">{}</p>\n{}{}{}{}",
        text(&answer::subject(analysis)),
        text(&analysis.title),
        answer::answer(analysis),
        first_screen::plots(analysis, names),
        costs::neighbours(analysis),
        state(analysis),
        contents(body),
    )
}

/// In how far the figures can be relied on, at a glance.
fn state(analysis: &Analysis) -> String {
    let protected = || analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| arm.proof != Proof::Baseline);
    let (all, proven) = (protected().count(), protected().filter(|arm| arm.proof == Proof::Proven).count());
    let cells = analysis.cells.len();
    let precise = analysis.cells.iter().filter(|cell| cell.ending == Some(CellEnding::Precision)).count();
    let frames: usize = analysis.cells.iter().map(|cell| cell.frames).sum();
    let mut items = Vec::new();
    if all > 0 {
        let (class, sign) = if proven == all { ("good", "✓") } else { ("warn", "?") };
        items.push(format!(
            "<span class=\"mark {class}\"><span aria-hidden=\"true\">{sign}</span> {proven} of {} proven</span>",
            words::plural(all as u64, "protected arm")
        ));
    }
    items.push(format!("{}, {}", words::plural(cells as u64, "cell"), words::plural(frames as u64, "frame")));
    items.push(format!("{precise} of {cells} ended with the asked precision"));
    let estimates = analysis.cells.iter().flat_map(|cell| &cell.arms).flat_map(|arm| &arm.estimates);
    let flags = estimates.flat_map(|estimate| &estimate.flags).map(|flag| words::flag_code(*flag));
    let warnings = analysis.warnings.len() + flags.collect::<BTreeSet<_>>().len();
    items.push(format!("<a href=\"#warnings\">{}</a>", words::plural(warnings as u64, "warning")));
    format!("<ul class=\"state\">\n<li>{}</li>\n</ul>\n", items.join("</li>\n<li>"))
}

/// Links to the parts that `body` has.
fn contents(body: &str) -> String {
    let parts = [
        ("costs", "costs"),
        ("latency", "latency"),
        ("clients", "clients"),
        ("drift", "over the run"),
        ("levels", "levels"),
        ("evidence", "evidence"),
        ("cells", "what was measured"),
        ("workloads", "what was offered"),
        ("settings", "settings"),
        ("machine", "machine"),
        ("again", "run it again"),
        ("how", "how to read this"),
    ];
    let is_there = |(id, _): &(&str, &str)| body.contains(&format!("<section id=\"{id}\""));
    let link = |(id, name): (&str, &str)| format!("<a href=\"#{id}\">{name}</a>");
    let links: Vec<String> = parts.into_iter().filter(is_there).map(link).collect();
    format!("<nav aria-label=\"Contents\">{}</nav>\n", links.join("\n"))
}

/// The heading of the part of a section that is about the cell called `name`; nothing where a single cell is the whole
/// run.
fn heading(names: &[String], name: &str) -> String {
    if names.len() > 1 { format!("<h3>{}</h3>\n", text(name)) } else { String::new() }
}

/// The latency of all cells; nothing where none was seen, and of many cells.
fn latency(analysis: &Analysis, names: &[String]) -> String {
    if is_abridged(analysis) {
        return String::new();
    }
    let of_cell = |(cell, name): (&CellAnalysis, &String)| match latency::panels(cell) {
        panels if panels.is_empty() => panels,
        panels => heading(names, name) + &panels,
    };
    let body: String = analysis.cells.iter().zip(names).map(of_cell).collect();
    let lead = "What each arm costs at each percentile, with its interval; below a percentile, what the plain arm takes \
                there. What runs over an edge is longer than the panel.";
    if body.is_empty() { body } else { section("latency", "Latency", lead, &body) }
}

/// The address of a cell's section.
fn anchor(cell: &CellAnalysis) -> String {
    let safe = |character: char| if character.is_ascii_alphanumeric() || character == '.' { character } else { '-' };
    format!("cell-{}", cell.id.chars().map(safe).collect::<String>())
}

/// True where the cells are so many that each is told in its row of the costs, and has no section of its own.
fn is_abridged(analysis: &Analysis) -> bool {
    let has_figures = analysis.cells.iter().flat_map(|cell| &cell.arms).any(|arm| !arm.estimates.is_empty());
    analysis.cells.len() > CELLS_DRAWN && has_figures
}

/// What a cell of an abridged page was, and how it was measured, but for what its workload has in common with others.
fn brief(cell: &CellAnalysis) -> String {
    let mut parts = view::load(cell);
    parts.push(format!("slots of {} ms", (10.0 * cell.slot_ms).round() / 10.0));
    parts.push(words::repetitions(cell));
    // How many cells reached their precision is said at the top.
    if cell.ending != Some(CellEnding::Precision) {
        parts.push(words::ending(cell.ending.as_ref()));
    }
    parts.join(" · ")
}

/// What an abridged page says of all cells at once: each workload, and each way in which arms were paired.
fn workloads(analysis: &Analysis) -> String {
    let of = |cell: &CellAnalysis| {
        let notes = cell.notes.iter().map(|(name, value)| format!(" · {name} = {value}"));
        let mode = if cell.mode.is_empty() { String::new() } else { format!(" · mode {}", cell.mode) };
        format!("<p>{}</p>\n", text(&format!("workload {}{}{mode}", cell.workload, notes.collect::<String>())))
    };
    let all: BTreeSet<String> = analysis.cells.iter().map(of).collect();
    let lead = "So many cells are told in short: every figure of each is in report.csv and report.json.";
    section("workloads", "What was offered", lead, &all.into_iter().collect::<String>())
}

/// What was offered in each cell and how it was measured, with every figure.
fn cells(analysis: &Analysis, names: &[String]) -> String {
    let of_cell = |(cell, name): (&CellAnalysis, &String)| {
        let mut html = format!(
            "<h3 id=\"{}\">{}</h3>\n<p class=\"how\">{}</p>\n<p class=\"note\">{}</p>\n",
            anchor(cell),
            text(name),
            text(&format!("Cell {} · {}", cell.id, view::conditions(cell))),
            text(&method(cell))
        );
        if cell.frames == 0 {
            let why = text(&words::ending(cell.ending.as_ref()));
            html.push_str(&format!("<p class=\"doubt\">Nothing was measured here: {why}.</p>\n"));
        }
        html.push_str(&figures::all(analysis, cell));
        html + &figures::log_over_start(cell)
    };
    let body: String = analysis.cells.iter().zip(names).map(of_cell).collect();
    if body.is_empty() { body } else { section("cells", "What was measured", "", &body) }
}

/// How the cell was measured.
fn method(cell: &CellAnalysis) -> String {
    let mut parts = Vec::new();
    if !cell.mode.is_empty() {
        parts.push(format!("mode {}", cell.mode));
    }
    parts.push(format!("slots of {} ms", (10.0 * cell.slot_ms).round() / 10.0));
    parts.push(words::repetitions(cell));
    if !cell.warm_up.is_empty() {
        parts.push(format!("warm-up: {}", cell.warm_up));
    }
    parts.push(words::ending(cell.ending.as_ref()));
    format!("Measured: {}.", parts.join(" · "))
}

#[cfg(test)]
mod tests;
