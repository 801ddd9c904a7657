//! Latency: what each arm costs at each percentile, all arms of a cell in one panel.
//!
//! Points and bars are the estimates of every table, protected ÷ plain with their intervals; a line only leads the eye
//! from a point of an arm to its next. Percentiles stand equally far apart, with what the plain arm takes there below
//! them. Arms are told apart by their shapes, and by colour for who sees it.

use std::fmt::Write;

use super::{
    marks::doubt_class,
    markup::{at, details, text, wide},
    scale::{Scale, cost_ticks},
};
use crate::{
    ArmAnalysis, CellAnalysis, Estimate, Figure,
    figures::{Percentile, Rank, Start},
    report::{number, summary::decided},
};

/// Height of a panel, px, and the places of its upper and its lower edge.
const HEIGHT: f64 = 250.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Ticks are at least so far apart, px.
const APART: f64 = 26.0;

/// Share of the room between two percentiles that the arms at one of them take.
const BESIDE: f64 = 0.66;

/// How far beyond all points an interval is drawn at most, as a share of the room that the points take.
const BEYOND: f64 = 0.6;

/// Shapes of points, about their place. With five colours thirty arms can be told apart.
const SHAPES: [&str; 6] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-5 4.6 3.5h-9.2z",
    "M0-5.2 5.2 0 0 5.2-5.2 0z",
    "M0 5-4.6-3.5h9.2z",
    "M-1.5-4.7h3v3.2h3.2v3h-3.2v3.2h-3v-3.2h-3.2v-3h3.2z",
];
const COLOURS: usize = 5;

/// The panels of a cell, one for each operation, with their table; nothing where no percentile has an interval.
pub(super) fn panels(cell: &CellAnalysis) -> String {
    let panels: String = operations(cell).into_iter().filter_map(|operation| panel(cell, operation)).collect();
    if panels.is_empty() {
        return panels;
    }
    format!("{}<div class=\"panels\">\n{panels}</div>\n{}", keys(cell), table(cell))
}

/// An operation, and when its latency begins.
type Operation<'a> = (Start, &'a str);

/// The operations in the order of the figures; from the intended start where that is known, because that is what a user
/// of an open system waits.
fn operations(cell: &CellAnalysis) -> Vec<Operation<'_>> {
    let mut found: Vec<Operation<'_>> = Vec::new();
    for Percentile { start, operation, .. } in estimates(cell).filter_map(|it| it.name.percentile()) {
        if !found.contains(&(*start, operation.as_str())) {
            found.push((*start, operation));
        }
    }
    let intended = found.iter().any(|(start, _)| *start == Start::Intended);
    found.retain(|(start, _)| (*start == Start::Intended) == intended);
    found
}

fn estimates(cell: &CellAnalysis) -> impl Iterator<Item = &Estimate> {
    cell.arms.iter().flat_map(|arm| &arm.estimates)
}

/// The percentile `rank` of `operation` of `arm`, where it has an interval.
fn known<'a>(arm: &'a ArmAnalysis, operation: Operation<'_>, rank: Rank) -> Option<&'a Estimate> {
    let is_it = |estimate: &&Estimate| {
        let of = estimate.name.percentile();
        of.is_some_and(|it| (it.start, it.operation.as_str(), it.rank) == (operation.0, operation.1, rank))
    };
    arm.estimates.iter().find(is_it).filter(|it| it.effect.half_width().is_finite())
}

/// The arms that have a figure, the dearest first, with their places in the cell.
fn arms(cell: &CellAnalysis) -> Vec<(usize, &ArmAnalysis)> {
    let mut arms = decided(cell);
    arms.sort_by(|(_, one), (_, other)| other.effect.estimate.total_cmp(&one.effect.estimate));
    let place = |arm: &ArmAnalysis| cell.arms.iter().position(|it| it.name == arm.name).unwrap_or(0);
    arms.into_iter().map(|(arm, _)| (place(arm), arm)).collect()
}

/// The point of the arm at `place` of its cell: its shape, and the class of its colour.
fn sign(place: usize, arm: &ArmAnalysis) -> (&'static str, String) {
    let number = place.saturating_sub(1);
    let class = if arm.aa { "again".to_owned() } else { format!("s{}", number % COLOURS) };
    let doubt = if doubt_class(arm).is_empty() { "" } else { " doubted" };
    (SHAPES[number % SHAPES.len()], class + doubt)
}

/// The name of each arm with its sign.
fn keys(cell: &CellAnalysis) -> String {
    let key = |(place, arm): (usize, &ArmAnalysis)| {
        let (shape, class) = sign(place, arm);
        let doubt = if doubt_class(arm).is_empty() { "" } else { " (not proven)" };
        format!(
            "<li class=\"{class}\"><svg width=\"14\" height=\"12\" viewBox=\"-7 -6 14 12\" aria-hidden=\"true\">\
             <path class=\"sign\" d=\"{shape}\"/></svg>{}{doubt}</li>\n",
            text(&arm.name)
        )
    };
    format!("<ul class=\"keys\">\n{}</ul>\n", arms(cell).into_iter().map(key).collect::<String>())
}

fn panel(cell: &CellAnalysis, operation: Operation<'_>) -> Option<String> {
    let arms = arms(cell);
    let is_known = |rank: &Rank| arms.iter().any(|(_, arm)| known(arm, operation, *rank).is_some());
    let ranks: Vec<Rank> = Rank::ALL.into_iter().filter(is_known).collect();
    let all = || arms.iter().flat_map(|(_, arm)| ranks.iter().filter_map(move |rank| known(arm, operation, *rank)));
    let y = scale(all())?;
    let from = if operation.0 == Start::Intended { ", from the intended start" } else { "" };
    let mut svg = format!(
        "<figure class=\"panel\"><figcaption>{0}{from}</figcaption>\n<svg class=\"drawing\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"Cost of {0} by percentile, every arm; values in the table below\">",
        text(operation.1),
    );
    svg.push_str(&axes(cell, operation, &ranks, &y));
    for (beside, (place, arm)) in arms.iter().enumerate() {
        let at_rank = |(column, rank): (usize, &Rank)| {
            let dodge = BESIDE * ((beside as f64 + 0.5) / arms.len() as f64 - 0.5);
            Some((100.0 * (column as f64 + 0.5 + dodge) / ranks.len() as f64, known(arm, operation, *rank)?))
        };
        let points: Vec<(f64, &Estimate)> = ranks.iter().enumerate().filter_map(at_rank).collect();
        svg.push_str(&series(*place, arm, &points, &y));
    }
    Some(svg + "</svg></figure>\n")
}

/// A scale that holds every estimate and no cost; long intervals run over its edges. `None` of nothing.
fn scale<'a>(estimates: impl Iterator<Item = &'a Estimate> + Clone) -> Option<Scale> {
    estimates.clone().next()?;
    let points = |of: fn(f64, f64) -> f64| estimates.clone().map(|it| it.effect.estimate).fold(0.0, of);
    let (low, high) = (points(f64::min), points(f64::max));
    let beyond = BEYOND * (high - low).max(0.02);
    let lowest = estimates.clone().map(|it| it.effect.low).fold(low, f64::min).max(low - beyond);
    let highest = estimates.map(|it| it.effect.high).fold(high, f64::max).min(high + beyond);
    let room = (highest - lowest).max(0.01) * 0.06;
    Some(Scale { low: lowest - room, high: highest + room, start: BOTTOM, end: TOP })
}

/// Costs at the left; percentiles below, with the level of the plain arm.
fn axes(cell: &CellAnalysis, operation: Operation<'_>, ranks: &[Rank], y: &Scale) -> String {
    let mut svg = String::new();
    for (effect, name) in cost_ticks(y, APART) {
        let (place, class) = (at(y.place(effect)), if effect == 0.0 { "zero" } else { "grid" });
        let _ = write!(
            svg,
            "<line class=\"{class}\" x2=\"100%\" y1=\"{place}\" y2=\"{place}\"/>\
             <text class=\"end\" x=\"-6\" y=\"{place}\" dy=\".35em\">{name}</text>"
        );
    }
    for (column, rank) in ranks.iter().enumerate() {
        let place = at(100.0 * (column as f64 + 0.5) / ranks.len() as f64);
        let (start, operation) = (operation.0, operation.1.to_owned());
        let name = Figure::Percentile(Percentile { start, rank: *rank, operation });
        let _ = write!(svg, "<text x=\"{place}%\" y=\"{}\">{}</text>", HEIGHT - 20.0, rank.name());
        if let Some(level) = cell.arms.first().and_then(|plain| plain.levels.iter().find(|it| it.name == name)) {
            let level = number::amount(level.value, &level.unit);
            let _ = write!(svg, "<text x=\"{place}%\" y=\"{}\">{}</text>", HEIGHT - 5.0, text(&level));
        }
    }
    svg
}

/// The points of one arm with their intervals, and the lines between them.
fn series(place: usize, arm: &ArmAnalysis, points: &[(f64, &Estimate)], y: &Scale) -> String {
    let (shape, class) = sign(place, arm);
    let mut svg = format!("<g class=\"series {class}\">");
    for pair in points.windows(2) {
        let [(from, one), (to, other)] = pair else { continue };
        let _ = write!(
            svg,
            "<line class=\"path\" x1=\"{}%\" x2=\"{}%\" y1=\"{}\" y2=\"{}\"/>",
            at(*from),
            at(*to),
            at(y.place(one.effect.estimate)),
            at(y.place(other.effect.estimate))
        );
    }
    for (x, estimate) in points {
        let effect = &estimate.effect;
        let _ = write!(
            svg,
            "<g><line class=\"bar\" x1=\"{0}%\" x2=\"{0}%\" y1=\"{1}\" y2=\"{2}\"/><svg class=\"mark-at\" width=\"1\" \
             height=\"1\" x=\"{0}%\" y=\"{3}\"><path class=\"sign\" d=\"{shape}\"/></svg><title>{4}, {5}: {6}</title></g>",
            at(*x),
            at(y.place(effect.low)),
            at(y.place(effect.high)),
            at(y.place(effect.estimate)),
            text(&arm.name),
            text(&estimate.title),
            told(arm, estimate)
        );
    }
    svg + "</g>"
}

/// A cost with its interval, in parentheses where the arm is not proven.
fn told(arm: &ArmAnalysis, estimate: &Estimate) -> String {
    let figure = number::cost(&estimate.effect, estimate.verdict);
    if doubt_class(arm).is_empty() { figure.to_string() } else { format!("({figure})") }
}

/// What is drawn in figures: the levels of the plain arm, and what the others cost.
fn table(cell: &CellAnalysis) -> String {
    let arms = arms(cell);
    let plain = cell.arms.first();
    let mut html = String::from("<table class=\"data\"><thead><tr><th scope=\"col\">percentile</th>");
    for name in plain.into_iter().chain(arms.iter().map(|(_, arm)| *arm)).map(|arm| &arm.name) {
        let _ = write!(html, "<th scope=\"col\">{}</th>", text(name));
    }
    html.push_str("</tr></thead><tbody>\n");
    for operation in operations(cell) {
        for rank in Rank::ALL {
            let Some(any) = arms.iter().find_map(|(_, arm)| known(arm, operation, rank)) else { continue };
            let level = plain.and_then(|plain| plain.levels.iter().find(|level| level.name == any.name));
            let level =
                level.map_or("–".to_owned(), |it| number::level(it.value, it.low, it.high, &it.unit).to_string());
            let _ = write!(html, "<tr><th scope=\"row\">{}</th><td>{level}</td>", text(&any.title));
            for (_, arm) in &arms {
                let cost = known(arm, operation, rank).map_or("–".to_owned(), |it| told(arm, it));
                let _ = write!(html, "<td>{cost}</td>");
            }
            html.push_str("</tr>\n");
        }
    }
    html.push_str("</tbody></table>\n");
    details("Latency in figures", &wide("latency of every arm", &html))
}
