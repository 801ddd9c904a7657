//! The chart of costs that no other picture shows, which is a table: arms down, metrics across, one interval a place.
//!
//! A column has one scale for all cells, so that what stands further right costs more. The scale is of
//! logarithms: twice as much and half as much are equally far from nothing. Shape and words carry what colour
//! says: too noisy is a hatched band without a point, unproven a hollow point on a dashed line. Of very many cells only
//! the first column is drawn; the others are figures, so that the page stays small.

use std::fmt::Write;

use super::{
    first_screen,
    marks::{class, doubt_class, doubt_mark},
    markup::{at, section, text, wide},
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

/// Room for all drawings of a row, and the least and the most for one.
const ROOM: f64 = 900.0;
const WIDTHS: std::ops::RangeInclusive<f64> = 128.0..=300.0;
/// Least width of the band of noise: what cannot be told must be seen.
const FOG_MIN: f64 = 14.0;
const HEIGHT: f64 = 16.0;
/// Room at both ends, for the half of a point.
const EDGE: f64 = 5.0;
/// Columns at most; the further percentiles are in the tables of the cells.
const COLUMNS: usize = 6;

/// One metric over all cells.
struct Column {
    name: Figure,
    title: String,
    scale: Scale,
    /// Its intervals are drawn, and not only told.
    drawn: bool,
}

impl Column {
    fn width(&self) -> f64 {
        self.scale.end + EDGE
    }
}

/// The section with the chart of the cells called `names`, and what others published; nothing where there is neither.
///
/// Where the first screen draws the deciding figure and percentiles have their panels, neither is told again.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> String {
    let columns = columns(analysis);
    let mut body = String::new();
    if !columns.is_empty() {
        body.push_str(&backgrounds(&columns, analysis.margin));
        body.push_str(&wide("costs of every arm", &table(analysis, names, &columns)));
        body.push_str(&legend(analysis));
    }
    body.push_str(&quotations(analysis));
    let title = if first_screen::is_drawn(analysis) { "What else it costs" } else { "What it costs" };
    if body.is_empty() { body } else { section("costs", title, "", &body) }
}

fn table(analysis: &Analysis, names: &[String], columns: &[Column]) -> String {
    // All columns are equally wide: said once, and not for each drawing.
    let mut table = format!(
        "<table class=\"forest{}\" style=\"--width:{}px\">\n<thead><tr><th scope=\"col\">arm</th>",
        if columns.len() == 1 { " few" } else { "" },
        columns[0].width()
    );
    for column in columns {
        let axis = if column.drawn { axis(column) } else { String::new() };
        let _ = write!(table, "<th scope=\"col\">{}{axis}</th>", text(&column.title));
    }
    table.push_str("</tr></thead>\n");
    for (cell, name) in analysis.cells.iter().zip(names) {
        table.push_str(&rows(analysis, cell, name, columns));
    }
    table + "</table>\n"
}

fn columns(analysis: &Analysis) -> Vec<Column> {
    let mut names: Vec<(Figure, String)> = Vec::new();
    let few_cells = first_screen::is_drawn(analysis);
    for cell in &analysis.cells {
        // What others published gets its column too, so that it stands beside what can be compared with it.
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
    // A figure of which there is nowhere anything but "not enough data" is no column.
    names.retain(|(name, _)| of_all(analysis, name).any(|it| it.primary || has_data(it)));
    // Costs per operation first, then percentiles in the order in which they were met.
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

/// The figure `name` of every arm but the A/A arms, which are there for the others.
fn of_all<'a>(analysis: &'a Analysis, name: &Figure) -> impl Iterator<Item = &'a Estimate> {
    let arms = analysis.cells.iter().flat_map(|cell| &cell.arms).filter(|arm| !arm.aa);
    arms.flat_map(|arm| &arm.estimates).filter(move |estimate| estimate.name == *name)
}

/// True where there is an interval, or only one arm has any of it at all.
fn has_data(estimate: &Estimate) -> bool {
    estimate.effect.half_width().is_finite() || estimate.effect.estimate.is_infinite()
}

/// A scale that holds zero, the margin, what others published and every interval that says something; noise may run
/// over its edges.
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

/// What lies behind every interval of a column, drawn once: the margin and the ticks.
fn backgrounds(columns: &[Column], margin: f64) -> String {
    let mut defs = String::from("<svg width=\"0\" height=\"0\" aria-hidden=\"true\" class=\"defs\"><defs>\n");
    for (index, column) in columns.iter().enumerate() {
        let (zero, edge) = (column.scale.place(0.0), column.scale.place(margin));
        let _ = write!(
            defs,
            "<g id=\"b{index}\"><path class=\"band\" d=\"M{} 0H{}V{HEIGHT}H{}z\"/>",
            at(zero),
            at(edge),
            at(zero)
        );
        for (effect, _) in cost_ticks(&column.scale, 38.0) {
            let class = if effect == 0.0 { "zero" } else { "grid" };
            let _ = write!(defs, "<path class=\"{class}\" d=\"M{} 0V{HEIGHT}\"/>", at(column.scale.place(effect)));
        }
        defs.push_str("</g>\n");
    }
    defs + "</defs></svg>\n"
}

fn axis(column: &Column) -> String {
    let width = column.width();
    let mut axis =
        format!("<svg class=\"axis\" width=\"{width}\" height=\"14\" viewBox=\"0 0 {width} 14\" aria-hidden=\"true\">");
    for (effect, name) in cost_ticks(&column.scale, 38.0) {
        let place = column.scale.place(effect);
        let anchor = match place {
            place if place > width - 16.0 => " text-anchor=\"end\"",
            place if place < 12.0 => " text-anchor=\"start\"",
            _ => "",
        };
        let _ = write!(axis, "<text x=\"{}\" y=\"11\"{anchor}>{name}</text>", at(place));
    }
    axis + "</svg>"
}

/// The protected arms of a cell, under a row with its name.
fn rows(analysis: &Analysis, cell: &CellAnalysis, name: &str, columns: &[Column]) -> String {
    let (anchor, id, columns_all) = (super::anchor(cell), text(name), columns.len() + 1);
    let name = match super::is_abridged(analysis) {
        true => format!(" id=\"{anchor}\">{id} <span class=\"mark\">{}</span>", text(&super::brief(cell))),
        false => format!("><a href=\"#{anchor}\">{id}</a>"),
    };
    let mut rows =
        format!("<tbody>\n<tr class=\"cell\"><th scope=\"rowgroup\" colspan=\"{columns_all}\"{name}</th></tr>\n");
    for arm in cell.arms.iter().filter(|arm| arm.proof != Proof::Baseline || !arm.estimates.is_empty()) {
        let _ = write!(rows, "<tr{}><th scope=\"row\">{}{}</th>", doubt_class(arm), text(&arm.name), doubt_mark(arm));
        for (index, column) in columns.iter().enumerate() {
            rows.push_str(&place(analysis, (cell, arm), index, column));
        }
        rows.push_str("</tr>\n");
    }
    rows + "</tbody>\n"
}

/// One interval with its figure.
fn place(analysis: &Analysis, (cell, arm): (&CellAnalysis, &ArmAnalysis), index: usize, column: &Column) -> String {
    let Some(estimate) = arm.estimates.iter().find(|estimate| estimate.name == column.name) else {
        return "<td class=\"none\"><span class=\"v\">–</span></td>".to_owned();
    };
    let doubted = !doubt_class(arm).is_empty();
    let (figure, difference) =
        number::both(&estimate.effect, estimate.difference.as_ref(), &estimate.unit, estimate.verdict);
    let (open, close) = if doubted { ("(", ")") } else { ("", "") };
    let flags: Vec<&str> = estimate.flags.iter().map(|flag| words::flag_code(*flag)).collect();
    let flag = if flags.is_empty() {
        String::new()
    } else {
        format!(
            " <a class=\"flag\" href=\"#warnings\" title=\"{}\">⚑<span class=\"sr\">{0}</span></a>",
            flags.join(", ")
        )
    };
    let class = class(estimate.verdict);
    let quoted: Vec<&PublishedCost> = arm.published.iter().filter(|it| it.estimate == column.name).collect();
    let difference = difference.map_or(String::new(), |it| {
        let lead = if estimate.verdict == Outcome::TooNoisy { String::new() } else { format!("{} ", it.lead) };
        format!("<span class=\"d\">{open}{lead}<small>{}</small>{close}</span>", it.rest)
    });
    let told = format!("{open}{}<small>{}</small>{close}{flag}{difference}", lead(estimate, &figure), figure.rest);
    if !column.drawn || !has_data(estimate) {
        return format!("<td class=\"{class}\" data-of=\"{}\">{told}</td>", text(&column.title));
    }
    let said = if arm.aa { words::control(estimate).to_owned() } else { words::outcome(estimate, analysis.margin) };
    let behind = if arm.aa { String::new() } else { control(cell, estimate, column) };
    format!(
        "<td class=\"{class}\" data-of=\"{}\" title=\"{}\">{}<span class=\"v\">{told}</span></td>",
        text(&column.title),
        text(&said),
        interval(estimate, column, index, &(behind + &marks(&quoted, column)))
    )
}

/// What the plain arm differs from itself, as lines above and below an interval; nothing where that is not known.
fn control(cell: &CellAnalysis, estimate: &Estimate, column: &Column) -> String {
    control_interval(cell, estimate).map_or(String::new(), |control| {
        let (low, high) = (at(column.scale.place(control.low)), at(column.scale.place(control.high)));
        format!("<path class=\"aa\" d=\"M{low} .5H{high}M{low} {}H{high}\"/>", HEIGHT - 0.5)
    })
}

/// What others published, above the measured interval: a triangle for a figure, a beam between two for a range.
fn marks(quoted: &[&PublishedCost], column: &Column) -> String {
    let triangle = |effect: f64| format!("M{} -1h7l-3.5 5z", at(column.scale.place(effect) - 3.5));
    let mark = |it: &&PublishedCost| {
        let shape = if it.low == it.high {
            triangle(it.low)
        } else {
            let (low, high) = (column.scale.place(it.low), column.scale.place(it.high));
            format!("{}M{} -1H{}v1.6H{}z{}", triangle(it.low), at(low), at(high), at(low), triangle(it.high))
        };
        let cost = number::published(it.low, it.high);
        format!(
            "<path class=\"quoted\" d=\"{shape}\"><title>published: {}, a cost of {cost} ({})</title></path>",
            text(&it.printed),
            text(&it.source)
        )
    };
    quoted.iter().map(mark).collect()
}

/// Every published figure with the measured one, and who said so.
fn quotations(analysis: &Analysis) -> String {
    let mut rows = String::new();
    for (cell, arm) in analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm))) {
        for quoted in &arm.published {
            let measured = published::beside(arm, quoted).map_or("–".to_owned(), |estimate| {
                let figure = estimate.reported();
                let figure = if doubt_class(arm).is_empty() { figure } else { format!("({figure})") };
                format!("{} {figure}", text(&estimate.title))
            });
            let _ = writeln!(
                rows,
                "<tr{}><th scope=\"row\">{} · {}</th><td>{}</td><td>{}</td><td>{measured}</td><td class=\"long\">{}</td></tr>",
                doubt_class(arm),
                text(&cell.id),
                text(&arm.name),
                text(&quoted.printed),
                number::published(quoted.low, quoted.high),
                text(&quoted.source)
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let table = format!(
        "<table class=\"data\"><thead><tr><th scope=\"col\">cell · arm</th><th scope=\"col\">published by others</th>\
         <th scope=\"col\">as a cost</th><th scope=\"col\">measured here</th><th scope=\"col\">source</th></tr></thead><tbody>\n\
         {rows}</tbody></table>\n"
    );
    format!(
        "<h3>Published by others, beside what was measured here</h3>\n{}<p class=\"legend\">Other machines, versions and \
         loads than here. A loss of throughput is shown as the time that it adds to an operation.</p>\n",
        wide("published figures", &table)
    )
}

/// The estimate, or the word for none.
fn lead(estimate: &Estimate, figure: &number::Figure) -> String {
    match estimate.verdict {
        Outcome::TooNoisy if estimate.effect.half_width().is_finite() => "noisy ".to_owned(),
        Outcome::TooNoisy => String::new(),
        _ => format!("<b>{}</b> ", figure.lead),
    }
}

/// The drawing of one interval and of what is `beside` it, as large as the table says.
fn interval(estimate: &Estimate, column: &Column, index: usize, beside: &str) -> String {
    let effect = &estimate.effect;
    let (low, high) = (column.scale.place(effect.low), column.scale.place(effect.high));
    let middle = HEIGHT / 2.0;
    let drawing = if estimate.verdict == Outcome::TooNoisy {
        let more = (FOG_MIN - (high - low)).max(0.0) / 2.0;
        format!("<path class=\"fog\" d=\"M{} 2H{}V{}H{0}z\"/>", at(low - more), at(high + more), HEIGHT - 2.0)
    } else {
        let point = column.scale.place(effect.estimate);
        format!(
            "<path class=\"line\" d=\"M{} {middle}H{}\"/><circle class=\"point\" cx=\"{}\" cy=\"{middle}\" r=\"3.5\"/>",
            at(low),
            at(high),
            at(point)
        )
    };
    format!("<svg aria-hidden=\"true\"><use href=\"#b{index}\"/>{drawing}{beside}</svg>")
}

/// What neighbours mean for the percentages, told of the cell in which clients waited most.
pub(super) fn neighbours(analysis: &Analysis) -> String {
    let told = |cell: &&CellAnalysis| words::neighbours(cell).is_some();
    let most = analysis.cells.iter().filter(told).max_by(|a, b| a.wait_share.total_cmp(&b.wait_share));
    most.and_then(words::neighbours).map_or(String::new(), |said| {
        let at_most = if analysis.cells.len() > 1 { "At most: " } else { "" };
        format!("<p class=\"legend doubt\">{at_most}{}</p>\n", text(&said))
    })
}

/// How the chart is read; below a first screen only what that does not say.
fn legend(analysis: &Analysis) -> String {
    let control = analysis.cells.iter().find_map(control_of).map(|arm| text(&arm.name));
    let lines = "The lines above and below an interval are as long as the interval of that arm.";
    if first_screen::is_drawn(analysis) {
        let control = control.map_or(String::new(), |name| {
            format!(
                " The lines above and below an interval are as long as that of {name}: a saving is called one only where \
                 its interval lies below."
            )
        });
        return format!(
            "<p class=\"legend\">Drawn as above, each column on a logarithmic scale of its own; below a cost, the difference \
             per operation.{control}</p>\n"
        );
    }
    format!(
        "<p class=\"legend\">Cost of an arm against the plain one, with its {} interval, simultaneous over the arms of a cell; below \
         it, where a figure is an amount per operation, the difference with an interval of its own. \
         Shaded: up to your margin of {}%. A hatched band without a point is too noisy to tell. Hollow, in parentheses: \
         not proven to be on.{}{} The scale is logarithmic.</p>\n",
        number::share(analysis.confidence),
        number::digits(number::percent(analysis.margin)),
        if analysis.cells.iter().flat_map(|cell| &cell.arms).any(|arm| !arm.published.is_empty()) {
            " <span aria-hidden=\"true\">▾</span> A triangle above: published by others."
        } else {
            ""
        },
        control.map_or(String::new(), |name| format!(" <b>{name}</b> {} {lines}", words::CONTROL)),
    )
}
