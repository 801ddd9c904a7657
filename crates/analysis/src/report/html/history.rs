//! Costs over runs as a page: the sentence, then for each series a chart of the cost run by run and its table.

use std::fmt::Write;

use super::{
    marks::proof_mark,
    markup::{at, details, section, text, wide},
    page,
    scale::{Scale, cost_ticks},
};
use crate::{
    Interval,
    history::{History, Point, Series},
    report::history::{answer, figure, name, sentences},
};

/// The drawing: its size, and how much of it names the scale.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const NAMES: f64 = 50.0;

/// What only this page draws.
const STYLE: &str = "<style>\n.past{min-width:57rem;width:100%;height:auto}.past .level{stroke:var(--accent);stroke-width:2;fill:none}\
    .past .run{color:var(--cost)}.past .run path{stroke:currentColor;stroke-width:2;opacity:.55}\
    .past .run circle{fill:currentColor}.past .open{color:var(--noise)}.past .open circle{fill:none;stroke:currentColor}\
    .past .change{stroke:var(--bad);stroke-dasharray:4 3;fill:none}\n</style>\n";

/// The page on a `history`.
pub fn history(history: &History) -> String {
    let mut body = String::from(STYLE);
    body.extend(history.series.iter().enumerate().map(|(index, series)| {
        let items: String = sentences(series).iter().map(|it| format!("<li>{}</li>\n", text(it))).collect();
        let told = format!("<ul class=\"notes\">\n{items}</ul>\n");
        section(&format!("series-{index}"), &name(series), "", &[told, chart(series), table(series)].concat())
    }));
    if !history.notes.is_empty() {
        let items: String = history.notes.iter().map(|it| format!("<li>{}</li>\n", text(it))).collect();
        body.push_str(&section("notes", "To know", "", &format!("<ul class=\"notes\">\n{items}</ul>\n")));
    }
    let header = format!("<h1>Costs over time</h1>\n<p class=\"answer\">{}</p>\n", text(&answer(history)));
    page("Costs over time", &header, &body, "Each run is one point, with its interval; a hollow one is not counted.")
}

/// The runs from left to right with their intervals, the level of each stretch, and a line at each change.
fn chart(series: &Series) -> String {
    let ends = series.points.iter().flat_map(|point| [point.estimate.effect.low, point.estimate.effect.high]);
    let finite: Vec<f64> = ends.filter(|end| end.is_finite()).collect();
    let (low, high) = finite.iter().fold((0.0f64, 0.01f64), |(low, high), end| (low.min(*end), high.max(*end)));
    let margin = 0.06 * (high - low);
    let costs = Scale { low: low - margin, high: high + margin, start: HEIGHT, end: 0.0 };
    let across = |index: f64| NAMES + (index + 0.5) * (WIDTH - NAMES) / series.points.len().max(1) as f64;
    let mut drawn = String::new();
    for (effect, name) in cost_ticks(&costs, 18.0) {
        let (place, class) = (at(costs.place(effect)), if effect == 0.0 { "zero" } else { "grid" });
        let _ = writeln!(
            drawn,
            "<path class=\"{class}\" d=\"M{} {place}H{}\"/><text class=\"end\" x=\"{}\" y=\"{place}\" dy=\"3\">{name}</text>",
            at(NAMES),
            at(WIDTH),
            at(NAMES - 6.0)
        );
    }
    for (start, end, level) in series.levels() {
        if level.estimate.is_finite() {
            let [from, to] = [start as f64 - 0.4, end as f64 - 0.6].map(|place| at(across(place)));
            let place = at(costs.place(level.estimate));
            let _ = writeln!(drawn, "<path class=\"level\" d=\"M{from} {place}H{to}\"/>");
        }
    }
    for change in &series.changes {
        let place = at(across(change.point as f64 - 0.5));
        let _ = writeln!(drawn, "<path class=\"change\" d=\"M{place} 0V{}\"/>", at(HEIGHT));
    }
    drawn.extend(series.points.iter().enumerate().map(|(index, it)| point(it, across(index as f64), &costs)));
    let label = text(&format!("{}; every value is in the table below", name(series)));
    let svg = format!(
        "<svg class=\"past\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{label}\">\n{drawn}</svg>\n",
        at(WIDTH),
        at(HEIGHT)
    );
    wide(&name(series), &svg)
}

/// A run: its cost as a point, its interval as a line, both in words on hover.
fn point(point: &Point, across: f64, costs: &Scale) -> String {
    let Interval { estimate, low, high } = point.estimate.effect;
    if !estimate.is_finite() {
        return String::new();
    }
    let class = if point.counts() { "run" } else { "run open" };
    let line = match low.is_finite() && high.is_finite() {
        true => format!("<path d=\"M{} {}V{}\"/>", at(across), at(costs.place(low)), at(costs.place(high))),
        false => String::new(),
    };
    format!(
        "<g class=\"{class}\"><title>{}</title>{line}<circle cx=\"{}\" cy=\"{}\" r=\"3.5\"/></g>\n",
        text(&format!("{}: {}", point.run, figure(point))),
        at(across),
        at(costs.place(estimate))
    )
}

fn table(series: &Series) -> String {
    let row = |point: &Point| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            text(&point.run),
            text(&point.time),
            text(&figure(point)),
            proof_mark(&point.proof),
            text(&point.version)
        )
    };
    let rows: String = series.points.iter().map(row).collect();
    let table = format!(
        "<table class=\"data\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">measured</th><th scope=\"col\">cost, {}</th>\
         <th scope=\"col\">proof</th><th scope=\"col\">server</th></tr></thead><tbody>\n{rows}</tbody></table>\n",
        text(&series.title)
    );
    details("Every run", &wide(&format!("runs of {} · {}", series.cell, series.arm), &table))
}
