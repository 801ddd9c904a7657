//! Latency: the cost of each arm at each percentile, all arms of a cell in one panel.
//!
//! Points and bars are the same estimates as in the tables, protected ÷ plain with their intervals; lines only connect
//! the points of an arm. Percentiles are equally spaced, with the plain arm's latency below. Arms are distinguished by
//! shape, and additionally by colour.

use maud::{Markup, html};

use super::{
    marks::is_doubted,
    markup::{at, breakable, concat, details, heads, is_empty, percent, wide},
    scale::{Scale, cost_ticks},
};
use crate::{
    ArmAnalysis, CellAnalysis, Estimate, Figure,
    figures::{Percentile, Rank, Start},
    report::{number, summary::decided},
};

/// Height of a panel, px, and the positions of its upper and its lower edge.
const HEIGHT: f64 = 250.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Minimum distance of ticks, px.
const APART: f64 = 26.0;

/// Share of the space between two percentiles that the arms at one of them take.
const BESIDE: f64 = 0.66;

/// How far an interval may extend beyond all points, as a share of the points' range.
const BEYOND: f64 = 0.6;

/// Shapes of points, relative to their centre. With five colours they distinguish thirty arms.
const SHAPES: [&str; 6] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-5 4.6 3.5h-9.2z",
    "M0-5.2 5.2 0 0 5.2-5.2 0z",
    "M0 5-4.6-3.5h9.2z",
    "M-1.5-4.7h3v3.2h3.2v3h-3.2v3.2h-3v-3.2h-3.2v-3h3.2z",
];
const COLOURS: usize = 5;

/// The panels of a cell, one for each operation, with their table; empty if no percentile has an interval.
pub(super) fn panels(cell: &CellAnalysis) -> Markup {
    let panels = concat(operations(cell).into_iter().filter_map(|operation| panel(cell, operation)));
    html! { @if !is_empty(&panels) { (keys(cell)) div.panels { (panels) } (table(cell)) } }
}

/// An operation, and the start of its latency.
type Operation<'a> = (Start, &'a str);

/// The operations in the order of the figures; from the intended start if known, because that is how long a user of an
/// open system waits.
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

/// The percentile `rank` of `operation` of `arm`, if it has an interval.
fn known<'a>(arm: &'a ArmAnalysis, operation: Operation<'_>, rank: Rank) -> Option<&'a Estimate> {
    let is_it = |estimate: &&Estimate| {
        let of = estimate.name.percentile();
        of.is_some_and(|it| (it.start, it.operation.as_str(), it.rank) == (operation.0, operation.1, rank))
    };
    arm.estimates.iter().find(is_it).filter(|it| it.effect.half_width().is_finite())
}

/// The arms with a figure, most expensive first, with their index in the cell.
fn arms(cell: &CellAnalysis) -> Vec<(usize, &ArmAnalysis)> {
    let mut arms = decided(cell);
    arms.sort_by(|(_, one), (_, other)| other.effect.estimate.total_cmp(&one.effect.estimate));
    let place = |arm: &ArmAnalysis| cell.arms.iter().position(|it| it.name == arm.name).unwrap_or(0);
    arms.into_iter().map(|(arm, _)| (place(arm), arm)).collect()
}

/// The point of the arm with index `place` in its cell: its shape, and the class of its colour.
fn sign(place: usize, arm: &ArmAnalysis) -> (&'static str, String) {
    let number = place.saturating_sub(1);
    let class = if arm.aa { "again".to_owned() } else { format!("s{}", number % COLOURS) };
    let doubt = if is_doubted(arm) { " doubted" } else { "" };
    (SHAPES[number % SHAPES.len()], class + doubt)
}

/// The name of each arm with its sign.
fn keys(cell: &CellAnalysis) -> Markup {
    let key = |(place, arm): (usize, &ArmAnalysis)| {
        let (shape, class) = sign(place, arm);
        html! {
            li class=(class) {
                svg width="14" height="12" viewBox="-7 -6 14 12" aria-hidden="true" { path.sign d=(shape) {} }
                span { (breakable(&arm.name)) @if is_doubted(arm) { " (not proven)" } }
            }
        }
    };
    html! { ul.keys { (concat(arms(cell).into_iter().map(key))) } }
}

fn panel(cell: &CellAnalysis, operation: Operation<'_>) -> Option<Markup> {
    let arms = arms(cell);
    let is_known = |rank: &Rank| arms.iter().any(|(_, arm)| known(arm, operation, *rank).is_some());
    let ranks: Vec<Rank> = Rank::ALL.into_iter().filter(is_known).collect();
    let all = || arms.iter().flat_map(|(_, arm)| ranks.iter().filter_map(move |rank| known(arm, operation, *rank)));
    let y = scale(all())?;
    let from = if operation.0 == Start::Intended { ", from the intended start" } else { "" };
    let of_arm = |(beside, (place, arm)): (usize, &(usize, &ArmAnalysis))| {
        let at_rank = |(column, rank): (usize, &Rank)| {
            let dodge = BESIDE * ((beside as f64 + 0.5) / arms.len() as f64 - 0.5);
            Some((100.0 * (column as f64 + 0.5 + dodge) / ranks.len() as f64, known(arm, operation, *rank)?))
        };
        let points: Vec<(f64, &Estimate)> = ranks.iter().enumerate().filter_map(at_rank).collect();
        series(*place, arm, &points, &y)
    };
    Some(html! {
        figure.panel {
            figcaption { (operation.1) (from) }
            svg.drawing height=(HEIGHT) role="img"
                aria-label={ "Cost of " (operation.1) " by percentile, every arm; values in the table below" }
            {
                (axes(cell, operation, &ranks, &y))
                (concat(arms.iter().enumerate().map(of_arm)))
            }
        }
    })
}

/// A scale that includes every estimate and zero cost; long intervals may exceed it. `None` without estimates.
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

/// Costs on the left; percentiles below, with the level of the plain arm.
fn axes(cell: &CellAnalysis, operation: Operation<'_>, ranks: &[Rank], y: &Scale) -> Markup {
    let plain_level = |rank: Rank| {
        let (start, operation) = (operation.0, operation.1.to_owned());
        let name = Figure::Percentile(Percentile { start, rank, operation });
        let level = cell.arms.first()?.levels.iter().find(|it| it.name == name)?;
        Some(number::amount(level.value, &level.unit))
    };
    html! {
        @for (effect, name) in cost_ticks(y, APART) {
            @let place = at(y.place(effect));
            line class=(if effect == 0.0 { "zero" } else { "grid" }) x2="100%" y1=(place) y2=(place) {}
            text.end x="-6" y=(place) dy=".35em" { (name) }
        }
        @for (column, rank) in ranks.iter().enumerate() {
            @let place = percent(100.0 * (column as f64 + 0.5) / ranks.len() as f64);
            text x=(place) y=(HEIGHT - 20.0) { (rank.name()) }
            @if let Some(level) = plain_level(*rank) { text x=(place) y=(HEIGHT - 5.0) { (level) } }
        }
    }
}

/// The points of one arm with their intervals, and the lines between them.
fn series(place: usize, arm: &ArmAnalysis, points: &[(f64, &Estimate)], y: &Scale) -> Markup {
    let (shape, class) = sign(place, arm);
    let height = |estimate: &Estimate| at(y.place(estimate.effect.estimate));
    html! {
        g class={ "series " (class) } {
            @for ((from, one), (to, other)) in points.iter().zip(points.iter().skip(1)) {
                line.path x1=(percent(*from)) x2=(percent(*to)) y1=(height(one)) y2=(height(other)) {}
            }
            @for (x, estimate) in points {
                @let x = percent(*x);
                g {
                    line.bar x1=(x) x2=(x) y1=(at(y.place(estimate.effect.low))) y2=(at(y.place(estimate.effect.high))) {}
                    svg.mark-at width="1" height="1" x=(x) y=(height(estimate)) { path.sign d=(shape) {} }
                    title { (arm.name) ", " (estimate.title) ": " (told(arm, estimate)) }
                }
            }
        }
    }
}

/// A cost with its interval, in parentheses if the arm is not proven.
fn told(arm: &ArmAnalysis, estimate: &Estimate) -> String {
    let figure = number::cost(&estimate.effect, estimate.verdict);
    if is_doubted(arm) { format!("({figure})") } else { figure.to_string() }
}

/// The figures of the drawing: the levels of the plain arm, and the costs of the others.
fn table(cell: &CellAnalysis) -> Markup {
    let arms = arms(cell);
    let plain = cell.arms.first();
    let level = |estimate: &Estimate| {
        let level = plain.and_then(|plain| plain.levels.iter().find(|level| level.name == estimate.name));
        level.map_or("–".to_owned(), |it| number::level(it.value, it.low, it.high, &it.unit).to_string())
    };
    let names = plain.into_iter().chain(arms.iter().map(|(_, arm)| *arm)).map(|arm| arm.name.as_str());
    let row = |operation: Operation<'_>, rank: Rank| {
        let any = arms.iter().find_map(|(_, arm)| known(arm, operation, rank))?;
        let cost = |arm| known(arm, operation, rank).map_or("–".to_owned(), |it| told(arm, it));
        Some(html! {
            tr { th scope="row" { (any.title) } td { (level(any)) } @for (_, arm) in &arms { td { (cost(arm)) } } }
        })
    };
    let rows = operations(cell).into_iter().flat_map(|it| Rank::ALL.map(|rank| row(it, rank)));
    let table = html! {
        table.data { (heads(["percentile"].into_iter().chain(names))) tbody { (concat(rows.flatten())) } }
    };
    details("Latency in figures", &wide("latency of every arm", &table))
}
