//! Costs over runs as a page: the sentence, then for each series a chart of the cost run by run and its table.

use maud::{Markup, PreEscaped, html};

use super::{
    marks::proof_mark,
    markup::{at, concat, details, heads, notes, section, wide},
    page,
    scale::{Scale, cost_ticks},
};
use crate::{
    Interval,
    history::{History, Point, Series},
    report::history::{answer, figure, name, sentences},
};

/// The drawing: its size, and the part of it for the scale's labels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const NAMES: f64 = 50.0;

/// Styles for this page only.
const STYLE: &str = ".past{min-width:57rem;width:100%;height:auto}.past .level{stroke:var(--accent);stroke-width:2;fill:none}\
    .past .run{color:var(--cost)}.past .run path{stroke:currentColor;stroke-width:2;opacity:.55}\
    .past .run circle{fill:currentColor}.past .open{color:var(--noise)}.past .open circle{fill:none;stroke:currentColor}\
    .past .change{stroke:var(--bad);stroke-dasharray:4 3;fill:none}";

/// The page on a `history`.
pub fn history(history: &History) -> String {
    let body = html! {
        style { (PreEscaped(STYLE)) }
        @for (index, series) in history.series.iter().enumerate() {
            @let told = [notes(sentences(series)), chart(series), table(series)];
            (section(&format!("series-{index}"), &name(series), "", &concat(told)))
        }
        @if !history.notes.is_empty() { (section("notes", "To know", "", &notes(&history.notes))) }
    };
    let header = html! { h1 { "Costs over time" } p.answer { (answer(history)) } };
    page("Costs over time", &header, &body, "Each run is one point, with its interval; a hollow one is not counted.")
}

/// The runs from left to right with their intervals, the level of each part, and a line at each change.
fn chart(series: &Series) -> Markup {
    let ends = series.points.iter().flat_map(|point| [point.estimate.effect.low, point.estimate.effect.high]);
    let finite: Vec<f64> = ends.filter(|end| end.is_finite()).collect();
    let (low, high) = finite.iter().fold((0.0f64, 0.01f64), |(low, high), end| (low.min(*end), high.max(*end)));
    let margin = 0.06 * (high - low);
    let costs = Scale { low: low - margin, high: high + margin, start: HEIGHT, end: 0.0 };
    let across = |index: f64| NAMES + (index + 0.5) * (WIDTH - NAMES) / series.points.len().max(1) as f64;
    let level = |(start, end, level): (usize, usize, Interval)| {
        let [from, to] = [start as f64 - 0.4, end as f64 - 0.6].map(|place| at(across(place)));
        let place = at(costs.place(level.estimate));
        html! { @if level.estimate.is_finite() { path.level d={ "M" (from) " " (place) "H" (to) } {} } }
    };
    let svg = html! {
        svg.past viewBox={ "0 0 " (at(WIDTH)) " " (at(HEIGHT)) } role="img"
            aria-label={ (name(series)) "; every value is in the table below" }
        {
            @for (effect, name) in cost_ticks(&costs, 18.0) {
                @let place = at(costs.place(effect));
                path class=(if effect == 0.0 { "zero" } else { "grid" })
                    d={ "M" (at(NAMES)) " " (place) "H" (at(WIDTH)) } {}
                text.end x=(at(NAMES - 6.0)) y=(place) dy="3" { (name) }
            }
            (concat(series.levels().into_iter().map(level)))
            @for change in &series.changes {
                path.change d={ "M" (at(across(change.point as f64 - 0.5))) " 0V" (at(HEIGHT)) } {}
            }
            @for (index, it) in series.points.iter().enumerate() { (point(it, across(index as f64), &costs)) }
        }
    };
    wide(&name(series), &svg)
}

/// A run: its cost as a point, its interval as a line, both as text on hover; empty for a run without a figure.
fn point(point: &Point, across: f64, costs: &Scale) -> Markup {
    let Interval { estimate, low, high } = point.estimate.effect;
    html! {
        @if estimate.is_finite() {
            g.run.open[!point.counts()] {
                title { (point.run) ": " (figure(point)) }
                @if low.is_finite() && high.is_finite() {
                    path d={ "M" (at(across)) " " (at(costs.place(low))) "V" (at(costs.place(high))) } {}
                }
                circle cx=(at(across)) cy=(at(costs.place(estimate))) r="3.5" {}
            }
        }
    }
}

fn table(series: &Series) -> Markup {
    let table = html! {
        table.data {
            (heads(["run", "measured", &format!("cost, {}", series.title), "proof", "server"]))
            tbody {
                @for point in &series.points {
                    tr {
                        th scope="row" { (point.run) }
                        td { (point.time) }
                        td { (figure(point)) }
                        td { (proof_mark(&point.proof)) }
                        td { (point.version) }
                    }
                }
            }
        }
    };
    details("Every run", &wide(&format!("runs of {} · {}", series.cell, series.arm), &table))
}
