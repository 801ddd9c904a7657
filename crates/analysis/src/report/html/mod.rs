//! The report as one page: a self-contained file that can be opened anywhere.
//!
//! [`render`] is a pure function of the analysis and of a [`PageData`] with the rest: the machine over time, the
//! experiment's text. The page loads nothing and runs nothing: charts are SVG drawn here, values are shown on hover
//! through `title` elements, and every chart either is a table or has one below it. Light and dark follow the reader's
//! system; paper has its own rules.
//!
//! Nothing is decided here: proofs, verdicts and flags come from the analysis.

mod about;
mod answer;
mod atlas;
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
mod profile;
mod proof;
mod scale;
mod statements;
mod sweep;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use tithe_model::ending::CellEnding;

pub use atlas::atlas;
pub use comparison::{compared_matrices, comparison};
pub use history::history;
pub use matrix::matrix;
pub use page_data::{Curve, Moment, PageData, PageDataBuilder};

use self::markup::{concat, is_empty, section};
use super::{cell_name, view, words};
use crate::{Analysis, CellAnalysis, Proof};

/// Up to this number of cells everything is shown; with more, only the costs and the evidence, so that the page stays
/// small.
const CELLS_DRAWN: usize = 60;

/// The page on `analysis`.
pub fn render(analysis: &Analysis, page_data: &PageData) -> String {
    let names = cell_name::names(analysis);
    let costs = costs::chart(analysis, &names);
    let (costs, further) =
        if first_screen::is_drawn(analysis) { (Markup::default(), costs) } else { (costs, Markup::default()) };
    let (id_of_cells, of_cells) = match is_abridged(analysis) {
        true => ("workloads", workloads(analysis)),
        false => ("cells", cells(analysis, &names)),
    };
    let parts = [
        ("costs", costs),
        ("statements", statements(analysis, &names)),
        ("latency", latency(analysis, &names)),
        ("profile", profile::chart(analysis, &names)),
        ("clients", sweep::chart(analysis)),
        ("versions", comparison::versions(analysis)),
        ("drift", drift::chart(analysis, &names)),
        ("costs", further),
        ("levels", levels::chart(analysis, &names)),
        ("evidence", proof::evidence(analysis)),
        (id_of_cells, of_cells),
        ("settings", about::settings(analysis)),
        ("machine", about::machine(analysis, &timeline::chart(analysis, page_data))),
        ("warnings", about::warnings(analysis)),
        ("again", about::again(analysis, page_data)),
        ("how", about::how_to_read(analysis)),
    ];
    let is_there = |id: &str| parts.iter().any(|(part, markup)| *part == id && !is_empty(markup));
    let header = header(analysis, &names, &contents(is_there));
    let about = format!("{} · tithe {}", analysis.run, analysis.tithe);
    page(&analysis.title, &header, &concat(parts.map(|(_, part)| part)), &about)
}

/// The hatching for results that are too noisy.
fn noise() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" {
            defs {
                pattern id="noise" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    path.hatch d="M0 0V4" {}
                }
            }
        }
    }
}

/// What a browser may do with a page: draw it in its own style and with an empty icon, and nothing else.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// A whole page of a `header` and a `body`, as text.
fn page(title: &str, header: &Markup, body: &Markup, about: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                (noise())
                header { (header) }
                main { (body) }
                footer {
                    p {
                        (about)
                        span.paper {
                            " · sections that open on a screen are not printed: report.csv and report.json have \
                             everything"
                        }
                    }
                }
            }
        }
        "\n"
    };
    view::clean_lines(&page.into_string())
}

/// The first screen: the subject, the answer, its picture, and how reliable it is.
fn header(analysis: &Analysis, names: &[String], contents: &Markup) -> Markup {
    html! {
        p.over { (answer::subject(analysis)) }
        h1 { (analysis.title) }
        p.answer { (answer::answer(analysis)) }
        (first_screen::plots(analysis, names))
        (costs::neighbours(analysis))
        (state(analysis))
        (contents)
    }
}

/// How reliable the figures are, at a glance.
fn state(analysis: &Analysis) -> Markup {
    // An arm has a proof in each of its cells, and counts once.
    let mut protected: BTreeMap<&str, bool> = BTreeMap::new();
    for arm in analysis.cells.iter().flat_map(|cell| &cell.arms) {
        if !matches!(arm.proof, Proof::Baseline | Proof::Setting) {
            *protected.entry(&arm.name).or_insert(true) &= arm.proof.stands();
        }
    }
    let (all, proven) = (protected.len(), protected.values().filter(|proven| **proven).count());
    let cells = analysis.cells.len();
    let precise = analysis.cells.iter().filter(|cell| cell.ending == Some(CellEnding::Precision)).count();
    let frames: usize = analysis.cells.iter().map(|cell| cell.frames).sum();
    let estimates = analysis.cells.iter().flat_map(|cell| &cell.arms).flat_map(|arm| &arm.estimates);
    let flags = estimates.flat_map(|estimate| &estimate.flags).map(|flag| words::flag_code(*flag));
    let warnings = analysis.warnings.len() + flags.collect::<BTreeSet<_>>().len();
    let (class, sign) = if proven == all { ("good", "✓") } else { ("warn", "?") };
    html! {
        ul.state {
            @if all > 0 {
                li {
                    (marks::mark(class, sign, &format!("{proven} of {} proven", words::plural(all as u64, "protected arm"))))
                }
                " "
            }
            li { (words::plural(cells as u64, "cell")) ", " (words::plural(frames as u64, "frame")) }
            " "
            li { (precise) " of " (cells) " ended with the asked precision" }
            " "
            li { a href="#warnings" { (words::plural(warnings as u64, "warning")) } }
        }
    }
}

/// Links to the parts for which `is_there` is true.
fn contents(is_there: impl Fn(&str) -> bool) -> Markup {
    let parts = [
        ("costs", "costs"),
        ("statements", "statements"),
        ("latency", "latency"),
        ("profile", "where from"),
        ("clients", "clients"),
        ("versions", "versions"),
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
    html! {
        nav aria-label="Contents" {
            @for (id, name) in parts.into_iter().filter(|(id, _)| is_there(id)) { a href={ "#" (id) } { (name) } " " }
        }
    }
}

/// The heading of the part of a section about the cell called `name`; empty if the run has a single cell.
fn heading(names: &[String], name: &str) -> Markup {
    html! { @if names.len() > 1 { h3 { (name) } } }
}

/// The latency of all cells; empty without latencies or with many cells.
fn latency(analysis: &Analysis, names: &[String]) -> Markup {
    if is_abridged(analysis) {
        return html! {};
    }
    let of_cell = |(cell, name): (&CellAnalysis, &String)| {
        let panels = latency::panels(cell);
        html! { @if !is_empty(&panels) { (heading(names, name)) (panels) } }
    };
    let body = concat(analysis.cells.iter().zip(names).map(of_cell));
    let lead = "What each arm costs at each percentile, with its interval; below a percentile, what the plain arm takes \
                there. An interval that runs over an edge is longer than the panel.";
    if is_empty(&body) { body } else { section("latency", "Latency", lead, &body) }
}

/// The cost of each of the user's statements, by cell; empty if no workload has any.
fn statements(analysis: &Analysis, names: &[String]) -> Markup {
    let of_cell = |(cell, name): (&CellAnalysis, &String)| {
        let table = statements::table(cell);
        html! { @if !is_empty(&table) { (heading(names, name)) (table) } }
    };
    let body = concat(analysis.cells.iter().zip(names).map(of_cell));
    if is_empty(&body) { body } else { section("statements", "Statements", super::statements::LEAD, &body) }
}

/// The address of a cell's section.
fn anchor(cell: &CellAnalysis) -> String {
    let safe = |character: char| if character.is_ascii_alphanumeric() || character == '.' { character } else { '-' };
    format!("cell-{}", cell.id.chars().map(safe).collect::<String>())
}

/// True if there are so many cells that each is only a row of the costs, without a section of its own.
fn is_abridged(analysis: &Analysis) -> bool {
    let has_figures = analysis.cells.iter().flat_map(|cell| &cell.arms).any(|arm| !arm.estimates.is_empty());
    analysis.cells.len() > CELLS_DRAWN && has_figures
}

/// A cell of an abridged page and its method, without what its workload shares with others.
fn brief(cell: &CellAnalysis) -> String {
    let mut parts = view::load(cell);
    parts.push(format!("slots of {} ms", (10.0 * cell.slot_ms).round() / 10.0));
    parts.push(words::repetitions(cell));
    // The number of cells that reached their precision is at the top.
    if cell.ending != Some(CellEnding::Precision) {
        parts.push(words::ending(cell.ending.as_ref()));
    }
    parts.join(" · ")
}

/// A part of an abridged page for all cells at once: each workload, and each way of pairing arms.
fn workloads(analysis: &Analysis) -> Markup {
    let of = |cell: &CellAnalysis| {
        let notes = cell.notes.iter().map(|(name, value)| format!(" · {name} = {value}"));
        let mode = if cell.mode.is_empty() { String::new() } else { format!(" · mode {}", cell.mode) };
        format!("workload {}{}{mode}", cell.workload, notes.collect::<String>())
    };
    let all: BTreeSet<String> = analysis.cells.iter().map(of).collect();
    let lead = "With so many cells, each is shown in short: every figure of each is in report.csv and report.json.";
    section("workloads", "What was offered", lead, &html! { @for workload in all { p { (workload) } } })
}

/// The load of each cell and its method, with every figure.
fn cells(analysis: &Analysis, names: &[String]) -> Markup {
    let of_cell = |(cell, name): (&CellAnalysis, &String)| {
        html! {
            h3 id=(anchor(cell)) { (name) }
            p.how { "Cell " (cell.id) " · " (view::conditions(cell)) }
            p.note { (method(cell)) }
            @if cell.frames == 0 {
                p.doubt { "Nothing was measured here: " (words::ending(cell.ending.as_ref())) "." }
            }
            (figures::all(analysis, cell))
            (figures::log_over_start(cell))
            (figures::connecting(cell))
            (figures::idle(cell))
        }
    };
    let body = concat(analysis.cells.iter().zip(names).map(of_cell));
    if is_empty(&body) { body } else { section("cells", "What was measured", "", &body) }
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
