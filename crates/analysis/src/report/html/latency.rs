//! Latency curves: each protected arm beside the plain one, on a percentile axis.
//!
//! The axis is −log10(1 − share), which gives every further nine the same room. Small panels with two curves
//! each are read faster than one panel with many, and need no colours to be told apart.

use std::fmt::Write;

use super::{
    markup::{at, details, text, wide},
    page_data::{Curve, PageData},
    scale::{Scale, decade_ticks},
};
use crate::{CellAnalysis, Figure, Level, Proof, figures::Rank, report::number};

pub(super) const WIDTH: f64 = 250.0;
pub(super) const HEIGHT: f64 = 150.0;
pub(super) const LEFT: f64 = 44.0;
const BOTTOM: f64 = 20.0;

/// The legend of a panel, behind the name of the plain arm.
pub(super) const PROTECTED_AND_PLAIN: &str =
    "<i class=\"key\"></i>protected arm; bars are the intervals of the median over frames.";

/// Percentiles that the axis names, with their places.
const NAMED: [(Rank, f64); 5] =
    [(Rank::P50, 0.301), (Rank::P90, 1.0), (Rank::P95, 1.301), (Rank::P99, 2.0), (Rank::P999, 3.0)];

/// The panels of a cell with their table; nothing where no latency was seen.
pub(super) fn curves(cell: &CellAnalysis, index: usize, page_data: &PageData) -> String {
    let curves: Vec<&Curve> = page_data.curves.iter().filter(|curve| curve.cell == index).collect();
    let mut operations: Vec<&str> = Vec::new();
    for curve in &curves {
        if !operations.contains(&curve.operation.as_str()) {
            operations.push(&curve.operation);
        }
    }
    // Levels stand in the order of the operations' shares.
    let levels = || cell.arms.iter().flat_map(|arm| &arm.levels);
    let is_of = |level: &Level, operation: &str| {
        level.name.percentile().is_some_and(|percentile| percentile.operation == operation)
    };
    operations.sort_by_key(|operation| levels().position(|level| is_of(level, operation)).unwrap_or(usize::MAX));
    let mut html = String::new();
    for operation in operations {
        let of_operation: Vec<&Curve> = curves.iter().copied().filter(|curve| curve.operation == operation).collect();
        html.push_str(&panels(cell, operation, &of_operation));
    }
    if html.is_empty() {
        return html;
    }
    let legend = format!(
        "<p class=\"legend\"><i class=\"key grey\"></i>{} {PROTECTED_AND_PLAIN} Both axes are logarithmic: every further nine has the same room.</p>\n",
        text(cell.arms.first().map_or("plain", |arm| &arm.name))
    );
    format!("<h3>Latency</h3>\n{html}{legend}{}", table(cell))
}

fn panels(cell: &CellAnalysis, operation: &str, curves: &[&Curve]) -> String {
    let Some(plain) = curves.iter().find(|curve| curve.arm == 0) else { return String::new() };
    let protected: Vec<&&Curve> = curves.iter().filter(|curve| curve.arm > 0 && curve.arm < cell.arms.len()).collect();
    let (x, y) = scales(cell, operation, curves);
    let mut html = format!("<h4>{}</h4>\n<div class=\"panels\">\n", text(operation));
    for curve in protected {
        html.push_str(&panel(cell, operation, plain, curve, (&x, &y)));
    }
    html + "</div>\n"
}

fn scales(cell: &CellAnalysis, operation: &str, curves: &[&Curve]) -> (Scale, Scale) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let ends =
        cell.arms.iter().flat_map(|arm| levels(&arm.levels, operation)).flat_map(|(_, level)| [level.low, level.high]);
    let latencies = points().map(|point| point.1).chain(ends).filter(|it| it.is_finite() && *it > 0.0).map(f64::log10);
    let (low, high) = latencies.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    let furthest = points().map(|point| point.0).fold(1.0, f64::max);
    let room = (high - low).max(0.1) * 0.06;
    (
        Scale { low: 0.0, high: furthest + 0.1, start: LEFT, end: WIDTH - 6.0 },
        Scale { low: low - room, high: high + room, start: HEIGHT - BOTTOM, end: 6.0 },
    )
}

/// The percentiles of `operation`, with their places on the axis.
fn levels<'a>(levels: &'a [Level], operation: &'a str) -> impl Iterator<Item = (f64, &'a Level)> {
    levels.iter().filter_map(move |level| {
        let percentile = level.name.percentile().filter(|it| it.operation == operation)?;
        let (_, place) = NAMED.iter().find(|(rank, _)| *rank == percentile.rank)?;
        Some((*place, level))
    })
}

fn panel(cell: &CellAnalysis, operation: &str, plain: &Curve, protected: &Curve, (x, y): (&Scale, &Scale)) -> String {
    let arm = &cell.arms[protected.arm];
    let doubted = if matches!(arm.proof, Proof::Proven | Proof::Baseline) { "" } else { " doubted" };
    let mut svg = format!(
        "<figure class=\"panel{doubted}\"><figcaption><i class=\"key\"></i>{0}{1}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{2} latency by percentile, {3} and {0}; values in the table below\">",
        text(&arm.name),
        if doubted.is_empty() { "" } else { " (not proven)" },
        text(operation),
        text(&cell.arms[0].name),
    );
    svg.push_str(&axes(x, y));
    for (class, curve, levels_of) in [("plain", plain, &cell.arms[0]), ("protected", protected, arm)] {
        let path: Vec<String> = curve
            .points
            .iter()
            .map(|(place, latency)| format!("{} {}", at(x.place(*place)), at(y.place(latency.log10()))))
            .collect();
        let _ = write!(svg, "<g class=\"{class}\"><path d=\"M{}\"/>", path.join("L"));
        for (place, level) in levels(&levels_of.levels, operation).filter(|(place, _)| *place <= x.high) {
            svg.push_str(&mark(x.place(place), level, y, &levels_of.name));
        }
        svg.push_str("</g>");
    }
    svg + "</svg></figure>\n"
}

fn axes(x: &Scale, y: &Scale) -> String {
    let (left, right, bottom) = (at(x.start), at(x.end), at(y.start));
    let mut svg = String::from("<g class=\"axes\">");
    for (logarithm, name) in decade_ticks(y, "µs", 22.0) {
        let place = at(y.place(logarithm));
        let _ = write!(
            svg,
            "<path d=\"M{left} {place}H{right}\"/><text x=\"{}\" y=\"{place}\" dy=\".35em\" class=\"end\">{name}</text>",
            at(x.start - 5.0)
        );
    }
    for (rank, step) in NAMED.into_iter().filter(|(_, step)| *step <= x.high) {
        if rank == Rank::P95 {
            continue;
        }
        let place = at(x.place(step));
        let _ = write!(svg, "<text x=\"{place}\" y=\"{}\">{}</text>", at(y.start + 14.0), rank.name());
    }
    let _ = write!(svg, "<path class=\"base\" d=\"M{left} {bottom}H{right}\"/></g>");
    svg
}

/// A percentile with its interval and, on hover, its figure.
fn mark(place: f64, level: &Level, y: &Scale, arm: &str) -> String {
    let x = at(place);
    let bar = if level.low.is_finite() && level.high.is_finite() && level.low > 0.0 {
        format!(
            "<path class=\"bar\" d=\"M{x} {}V{}\"/>",
            at(y.place(level.low.log10())),
            at(y.place(level.high.log10()))
        )
    } else {
        String::new()
    };
    format!(
        "<g>{bar}<circle cx=\"{x}\" cy=\"{}\" r=\"2.4\"/><title>{} {}: {}</title></g>",
        at(y.place(level.value.log10())),
        text(arm),
        text(&level.name.to_string().replace('_', " ")),
        figure(level)
    )
}

/// A level with its interval.
pub(super) fn figure(level: &Level) -> String {
    number::level(level.value, level.low, level.high, &level.unit).to_string()
}

/// Every percentile of every operation and arm.
fn table(cell: &CellAnalysis) -> String {
    let mut names: Vec<&Figure> = Vec::new();
    for level in cell.arms.iter().flat_map(|arm| &arm.levels) {
        if level.name.percentile().is_some() && !names.contains(&&level.name) {
            names.push(&level.name);
        }
    }
    let mut html = String::from("<table class=\"data\"><thead><tr><th scope=\"col\">percentile</th>");
    for arm in &cell.arms {
        let _ = write!(html, "<th scope=\"col\">{}</th>", text(&arm.name));
    }
    html.push_str("</tr></thead><tbody>\n");
    for name in names {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", text(&name.to_string().replace('_', " ")));
        for arm in &cell.arms {
            let level = arm.levels.iter().find(|level| level.name == *name);
            let _ = write!(html, "<td>{}</td>", level.map_or("–".to_owned(), figure));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
    details("Latency in figures", &wide("latency of every arm", &html))
}
