//! The chart of all costs that are not in another chart. It is a table: arms down, metrics across, one interval per
//! cell.
//!
//! A column has one scale for all cells, so further right means a higher cost. The scale is logarithmic: twice as much
//! and half as much are equally far from zero. Shape and words repeat what colour shows: too noisy is a hatched band
//! without a point, unproven a hollow point on a dashed line. If there are very many cells, only the first column is
//! drawn; the others are figures, so that the page stays small.

use maud::{Markup, html};

use super::{
    first_screen,
    marks::{class, doubt_class, doubt_mark, is_doubted},
    markup::{anchor, at, breakable, concat, heads, is_empty, section, wide},
    scale::{Scale, cost_ticks},
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Figure, Outcome, Proof, PublishedCost,
    report::{
        headline::{control_interval, control_of},
        number,
        view::{costs, published},
        words,
    },
};

/// Width for all drawings of a row, and the smallest and largest width of one.
const ROOM: f64 = 900.0;
const WIDTHS: std::ops::RangeInclusive<f64> = 128.0..=300.0;
/// Smallest width of the band of noise, so that it is visible.
const FOG_MIN: f64 = 14.0;
const HEIGHT: f64 = 16.0;
/// Margin at both ends, for half of a point.
const EDGE: f64 = 5.0;
/// Maximum number of columns; further percentiles are in the tables of the cells.
const COLUMNS: usize = 6;

/// One metric over all cells.
struct Column {
    name: Figure,
    title: String,
    scale: Scale,
    /// Its intervals are drawn, not only written.
    drawn: bool,
}

impl Column {
    fn width(&self) -> f64 {
        self.scale.end + EDGE
    }
}

/// The section with the chart of the cells called `names`, and published costs; empty without either.
///
/// Figures that the first screen or the percentile panels already draw are not repeated.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> Markup {
    let columns = columns(analysis);
    let body = html! {
        @if !columns.is_empty() {
            (backgrounds(&columns, analysis.margin))
            (wide("costs of every arm", &table(analysis, names, &columns)))
            (legend(analysis))
        }
        (quotations(analysis))
    };
    let title = if first_screen::is_drawn(analysis) { "What else it costs" } else { "What it costs" };
    if is_empty(&body) { body } else { section("costs", title, "", &body) }
}

fn table(analysis: &Analysis, names: &[String], columns: &[Column]) -> Markup {
    html! {
        // All columns have the same width, so it is set once and not for each drawing.
        table.forest.few[columns.len() == 1] style={ "--width:" (columns[0].width()) "px" } {
            thead {
                tr {
                    th scope="col" { "arm" }
                    @for column in columns { th scope="col" { (column.title) @if column.drawn { (axis(column)) } } }
                }
            }
            @for (cell, name) in analysis.cells.iter().zip(names) { (rows(analysis, cell, name, columns)) }
        }
    }
}

fn columns(analysis: &Analysis) -> Vec<Column> {
    let mut names: Vec<(Figure, String)> = Vec::new();
    let few_cells = first_screen::is_drawn(analysis);
    for cell in &analysis.cells {
        // Figures with a published cost get a column too, so that both can be compared.
        let quoted = cell.arms.iter().flat_map(|arm| &arm.published).map(|published| &published.estimate);
        let quoted = quoted.filter(|name| !(few_cells && of_all(analysis, name).any(|it| it.primary)));
        let told_above = |name: &&Figure| of_all(analysis, name).any(|it| it.primary) || name.percentile().is_some();
        let headline = costs::headline(cell).into_iter().filter(|name| !(few_cells && told_above(name)));
        for name in headline.chain(quoted) {
            if !names.iter().any(|(known, _)| known == name) {
                names.push((name.clone(), costs::title(cell, name)));
            }
        }
    }
    // A figure that has "not enough data" everywhere gets no column.
    names.retain(|(name, _)| of_all(analysis, name).any(|it| it.primary || has_data(it)));
    // Costs per operation first, then percentiles in the order of their appearance.
    names.sort_by_key(|(name, _)| name.percentile().is_some());
    names.truncate(COLUMNS);
    let arms = || analysis.cells.iter().flat_map(|cell| &cell.arms);
    let of = |name: &Figure| arms().flat_map(|arm| &arm.estimates).filter(|it| it.name == *name).collect::<Vec<_>>();
    let quoted = |name: &Figure| {
        let of_name = arms().flat_map(|arm| &arm.published).filter(|it| it.estimate == *name);
        of_name.flat_map(|it| [it.low, it.high]).collect::<Vec<_>>()
    };
    let width = (ROOM / names.len().max(1) as f64 - 16.0).clamp(*WIDTHS.start(), *WIDTHS.end()).round();
    let few = !super::is_abridged(analysis);
    let column = |(index, (name, title)): (usize, (Figure, String))| Column {
        scale: scale(&of(&name), &quoted(&name), analysis.margin, width),
        drawn: few || index == 0,
        name,
        title,
    };
    names.into_iter().enumerate().map(column).collect()
}

/// The figure `name` of every arm except the A/A arms, which are only a reference.
fn of_all<'a>(analysis: &'a Analysis, name: &Figure) -> impl Iterator<Item = &'a Estimate> {
    let arms = analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| !arm.aa);
    arms.flat_map(|arm| &arm.estimates).filter(move |estimate| estimate.name == *name)
}

/// True if there is an interval, or only one arm has any of it.
fn has_data(estimate: &Estimate) -> bool {
    estimate.effect.half_width().is_finite() || estimate.effect.estimate.is_infinite()
}

/// A scale with zero, the margin, published costs and every interval with an answer; intervals that are too noisy may
/// exceed it.
fn scale(estimates: &[&Estimate], quoted: &[f64], margin: f64, width: f64) -> Scale {
    let told = |estimate: &&&Estimate| estimate.verdict != Outcome::TooNoisy;
    let ends = |of: fn(&Estimate) -> f64| {
        let ends: Vec<f64> = estimates.iter().filter(told).map(|it| of(it)).filter(|end| end.is_finite()).collect();
        let noise = estimates.iter().map(|it| of(it)).filter(|end| end.is_finite()).collect::<Vec<_>>();
        (ends, noise)
    };
    let (highs, noise_highs) = ends(|it| it.effect.high);
    let (lows, noise_lows) = ends(|it| it.effect.low);
    let known_high = highs.iter().chain(quoted).copied().fold(margin.max(0.02) * 1.25, f64::max);
    let known_low = lows.iter().chain(quoted).copied().fold(0.0, f64::min);
    let high = noise_highs.iter().copied().fold(known_high, f64::max).min(known_high * 1.5);
    let span = high - known_low;
    let low = noise_lows.iter().copied().fold(known_low, f64::min).max(known_low - span * 0.3) - span * 0.04;
    Scale { low, high: high + span * 0.04, start: EDGE, end: width - EDGE }
}

/// The background of all intervals of a column, drawn once: the margin and the ticks.
fn backgrounds(columns: &[Column], margin: f64) -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" {
            defs {
                @for (index, column) in columns.iter().enumerate() {
                    @let zero = at(column.scale.place(0.0));
                    g id={ "b" (index) } {
                        path.band d={ "M" (zero) " 0H" (at(column.scale.place(margin))) "V" (HEIGHT) "H" (zero) "z" } {}
                        @for (effect, _) in cost_ticks(&column.scale, 38.0) {
                            path class=(if effect == 0.0 { "zero" } else { "grid" })
                                d={ "M" (at(column.scale.place(effect))) " 0V" (HEIGHT) } {}
                        }
                    }
                }
            }
        }
    }
}

fn axis(column: &Column) -> Markup {
    let width = column.width();
    html! {
        svg.axis width=(width) height="14" viewBox={ "0 0 " (width) " 14" } aria-hidden="true" {
            @for (effect, name) in cost_ticks(&column.scale, 38.0) {
                @let place = column.scale.place(effect);
                text class=[anchor(place, 12.0, width - 16.0)] x=(at(place)) y="11" { (name) }
            }
        }
    }
}

/// The protected arms of a cell, under a row with its name.
fn rows(analysis: &Analysis, cell: &CellAnalysis, name: &str, columns: &[Column]) -> Markup {
    let id = super::anchor(cell);
    let abridged = super::is_abridged(analysis);
    let told = |arm: &&ArmAnalysis| arm.proof != Proof::Baseline || !arm.estimates.is_empty();
    html! {
        tbody {
            tr.cell {
                th scope="rowgroup" colspan=(columns.len() + 1) id=[abridged.then_some(&id)] {
                    @if abridged {
                        (name) " " span.mark { (super::brief(cell)) }
                    } @else {
                        a href={ "#" (id) } { (name) }
                    }
                }
            }
            @for arm in cell.arms.iter().filter(told) {
                tr class=[doubt_class(arm)] {
                    th scope="row" { (breakable(&arm.name)) (doubt_mark(arm)) }
                    @for (index, column) in columns.iter().enumerate() {
                        (place(analysis, (cell, arm), index, column))
                    }
                }
            }
        }
    }
}

/// One interval with its figure.
fn place(analysis: &Analysis, (cell, arm): (&CellAnalysis, &ArmAnalysis), index: usize, column: &Column) -> Markup {
    let Some(estimate) = arm.estimates.iter().find(|estimate| estimate.name == column.name) else {
        return html! { td.none { span.v { "–" } } };
    };
    let (figure, difference) =
        number::both(&estimate.effect, estimate.difference.as_ref(), &estimate.unit, estimate.verdict);
    let (open, close) = if is_doubted(arm) { ("(", ")") } else { ("", "") };
    let flags = estimate.flags.iter().map(|flag| words::flag_code(*flag)).collect::<Vec<_>>().join(", ");
    let class = class(estimate.verdict);
    let told = html! {
        (open) (lead(estimate, &figure)) small { (figure.rest) } (close)
        @if !flags.is_empty() { " " a.flag href="#warnings" title=(flags) { "⚑" span.sr { (flags) } } }
        @if let Some(it) = difference {
            span.d {
                (open) @if estimate.verdict != Outcome::TooNoisy { (it.lead) " " } small { (it.rest) } (close)
            }
        }
    };
    if !column.drawn || !has_data(estimate) {
        return html! { td.(class) data-of=(column.title) { (told) } };
    }
    let said = if arm.aa { words::control(estimate).to_owned() } else { words::outcome(estimate, analysis.margin) };
    let quoted = arm.published.iter().filter(|it| it.estimate == column.name);
    let beside = html! { @if !arm.aa { (control(cell, estimate, column)) } (marks(quoted, column)) };
    html! {
        td.(class) data-of=(column.title) title=(said) {
            (interval(estimate, column, index, &beside))
            span.v { (told) }
        }
    }
}

/// How much the plain arm differs from itself, as lines above and below an interval; empty if unknown.
fn control(cell: &CellAnalysis, estimate: &Estimate, column: &Column) -> Markup {
    html! {
        @if let Some(control) = control_interval(cell, estimate) {
            @let (low, high) = (at(column.scale.place(control.low)), at(column.scale.place(control.high)));
            path.aa d={ "M" (low) " .5H" (high) "M" (low) " " (HEIGHT - 0.5) "H" (high) } {}
        }
    }
}

/// Published costs, above the measured interval: a triangle for a figure, a beam between two for a range.
fn marks<'a>(quoted: impl Iterator<Item = &'a PublishedCost>, column: &Column) -> Markup {
    let triangle = |effect: f64| format!("M{} -1h7l-3.5 5z", at(column.scale.place(effect) - 3.5));
    let shape = |it: &PublishedCost| {
        if it.low == it.high {
            return triangle(it.low);
        }
        let [low, high] = [it.low, it.high].map(|end| at(column.scale.place(end)));
        format!("{}M{low} -1H{high}v1.6H{low}z{}", triangle(it.low), triangle(it.high))
    };
    html! {
        @for it in quoted {
            path.quoted d=(shape(it)) {
                title { "published: " (it.printed) ", a cost of " (number::published(it.low, it.high)) " (" (it.source) ")" }
            }
        }
    }
}

/// Every published figure with the measured one, and its source.
fn quotations(analysis: &Analysis) -> Markup {
    let row = |cell: &CellAnalysis, arm: &ArmAnalysis, quoted: &PublishedCost| {
        let measured = published::beside(arm, quoted).map_or("–".to_owned(), |estimate| {
            let figure = estimate.reported();
            let figure = if is_doubted(arm) { format!("({figure})") } else { figure };
            format!("{} {figure}", estimate.title)
        });
        html! {
            tr class=[doubt_class(arm)] {
                th scope="row" { (cell.id) " · " (arm.name) }
                td { (quoted.printed) }
                td { (number::published(quoted.low, quoted.high)) }
                td { (measured) }
                td.long { (quoted.source) }
            }
        }
    };
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let rows = concat(arms.flat_map(|(cell, arm)| arm.published.iter().map(move |it| row(cell, arm, it))));
    if is_empty(&rows) {
        return rows;
    }
    let heads = heads(["cell · arm", "published by others", "as a cost", "measured here", "source"]);
    html! {
        h3 { "Published by others, next to the figures measured here" }
        (wide("published figures", &html! { table.data { (heads) tbody { (rows) } } }))
        p.legend {
            "Other machines, versions and loads than here. A loss of throughput is shown as the time that it adds to an \
             operation."
        }
    }
}

/// The estimate, or a word if there is none.
fn lead(estimate: &Estimate, figure: &number::Figure) -> Markup {
    match estimate.verdict {
        Outcome::TooNoisy if estimate.effect.half_width().is_finite() => html! { "noisy " },
        Outcome::TooNoisy => html! {},
        _ => html! { b { (figure.lead) } " " },
    }
}

/// The drawing of one interval and of its additions `beside`, in the size that the table sets.
fn interval(estimate: &Estimate, column: &Column, index: usize, beside: &Markup) -> Markup {
    let effect = &estimate.effect;
    let (low, high) = (column.scale.place(effect.low), column.scale.place(effect.high));
    let middle = HEIGHT / 2.0;
    let more = (FOG_MIN - (high - low)).max(0.0) / 2.0;
    let (from, to) = (at(low - more), at(high + more));
    html! {
        svg aria-hidden="true" {
            use href={ "#b" (index) } {}
            @if estimate.verdict == Outcome::TooNoisy {
                path.fog d={ "M" (from) " 2H" (to) "V" (HEIGHT - 2.0) "H" (from) "z" } {}
            } @else {
                path.line d={ "M" (at(low)) " " (middle) "H" (at(high)) } {}
                circle.point cx=(at(column.scale.place(effect.estimate))) cy=(middle) r="3.5" {}
            }
            (beside)
        }
    }
}

/// The effect of other programs on the percentages, for the cell in which clients waited most.
pub(super) fn neighbours(analysis: &Analysis) -> Markup {
    let told = |cell: &&CellAnalysis| words::neighbours(cell).is_some();
    let most = analysis.cells.iter().filter(told).max_by(|a, b| a.wait_share.total_cmp(&b.wait_share));
    html! {
        @if let Some(said) = most.and_then(words::neighbours) {
            p.legend.doubt { @if analysis.cells.len() > 1 { "Worst cell: " } (said) }
        }
    }
}

/// How to read the chart; below a first screen only what the first screen does not explain.
fn legend(analysis: &Analysis) -> Markup {
    let control = analysis.cells.iter().find_map(control_of).map(|arm| &arm.name);
    if first_screen::is_drawn(analysis) {
        return html! {
            p.legend {
                "Drawn as above, each column on a logarithmic scale of its own; below a cost, the difference per operation."
                @if let Some(name) = control {
                    " The lines above and below an interval are as long as that of " (name) ": a saving counts only \
                     if its interval lies below."
                }
            }
        };
    }
    let quoted = analysis.cells.iter().flat_map(|cell| &cell.arms).any(|arm| !arm.published.is_empty());
    html! {
        p.legend {
            "Cost of an arm against the plain one, with its " (number::share(analysis.confidence)) " interval, simultaneous \
             over the arms of a cell; below it, where a figure is an amount per operation, the difference with an interval of \
             its own. Shaded: up to your margin of " (number::digits(number::percent(analysis.margin))) " %. A hatched band \
             without a point is too noisy to tell. Hollow, in parentheses: not proven to be on."
            @if quoted { " " span aria-hidden="true" { "▾" } " A triangle above: published by others." }
            @if let Some(name) = control {
                " " b { (name) } " " (words::CONTROL)
                " The lines above and below an interval are as long as the interval of that arm."
            }
            " The scale is logarithmic."
        }
    }
}
