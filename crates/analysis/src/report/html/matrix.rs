//! A gathered matrix as a page: cells × protections as a heat map with marks of proof, and below it a forest plot for
//! each place: its hosts, the dearest first, with the facts in which they differ.
//!
//! Shade repeats what the figure says, and every figure is text, so the page can be read without colour.

use std::fmt::Write;

use tithe_statistics::verdict::outcome;

use super::{
    marks::{class, proof_mark},
    markup::{at, section, text, wide},
    page,
    scale::{Scale, cost_ticks},
};
use crate::{
    Interval,
    matrix::{Answer, Basis, Gathered, HostFigure, MatrixFigure, facts},
    report::matrix::{basis, both, cost, legend, missing, next, of_host, progress, spread, strays, tasks},
};

/// A drawing of a forest plot: its width, its height a row, and room for the half of a point.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 16.0;
const EDGE: f64 = 5.0;

/// The deepest shade of the heat map, percent, which the dearest of its costs has.
const SHADE: f64 = 35.0;

/// The page on `gathered` and what it says.
pub fn matrix(gathered: &Gathered, figures: &[MatrixFigure]) -> String {
    let header = format!(
        "<p class=\"over\">plan {}</p>\n<h1>{}</h1>\n<p class=\"answer\">{}.</p>\n",
        text(&gathered.plan),
        text(&gathered.title),
        text(&progress(gathered)),
    );
    let mut body = String::new();
    if !figures.is_empty() {
        body.push_str(&section("costs", "What it costs on hosts of a kind", &legend(), &maps(figures)));
        let forests: String = figures.iter().enumerate().map(|(index, figure)| forest(index, figure)).collect();
        body.push_str(&section("hosts", "Host by host", "", &forests));
    }
    for (id, title, reasons) in
        [("missing", "What is missing", missing(gathered, figures)), ("strays", "Not of this matrix", strays(gathered))]
    {
        if !reasons.is_empty() {
            let items: String = reasons.iter().map(|it| format!("<li>{}</li>\n", text(it))).collect();
            body.push_str(&section(id, title, "", &format!("<ul class=\"notes\">\n{items}</ul>\n")));
        }
    }
    page(&gathered.title, &header, &body, &format!("{} · tithe {}", gathered.plan, gathered.tithe))
}

/// A heat map for each kind of machine: cells down, arms across.
fn maps(figures: &[MatrixFigure]) -> String {
    let dearest = figures.iter().filter_map(MatrixFigure::together).map(|it| it.estimate).fold(0.01, f64::max);
    let numbered: Vec<(usize, &MatrixFigure)> = figures.iter().enumerate().collect();
    let of_kind = numbered.chunk_by(|one, other| one.1.machine == other.1.machine);
    of_kind.map(|kind| map(kind, dearest)).collect()
}

fn map(kind: &[(usize, &MatrixFigure)], dearest: f64) -> String {
    let mut arms: Vec<&str> = Vec::new();
    kind.iter().for_each(|(_, figure)| {
        if !arms.contains(&figure.arm.as_str()) {
            arms.push(&figure.arm);
        }
    });
    let heads: String = arms.iter().map(|arm| format!("<th scope=\"col\">{}</th>", text(arm))).collect();
    let mut table = format!(
        "<table class=\"data\"><thead><tr><th scope=\"col\">database, experiment, cell</th>{heads}</tr></thead>\n<tbody>\n"
    );
    let cell = |figure: &MatrixFigure| (figure.experiment.clone(), figure.cell.clone());
    for row in kind.chunk_by(|one, other| cell(one.1) == cell(other.1)) {
        let first = row[0].1;
        let name = format!("{} · {} · {}", first.database, first.experiment, first.cell);
        let _ = write!(table, "<tr><th scope=\"row\">{}</th>", text(&name));
        for arm in &arms {
            let found = row.iter().find(|(_, figure)| figure.arm == *arm);
            table.push_str(&found.map_or("<td>–</td>".to_owned(), |(index, figure)| place(*index, figure, dearest)));
        }
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody></table>\n");
    let machine = &kind[0].1.machine;
    format!("<h3>{}</h3>\n{}", text(machine), wide(&format!("costs on {machine}"), &table))
}

/// One place of the heat map.
fn place(index: usize, figure: &MatrixFigure, dearest: f64) -> String {
    let shade = figure.together().map_or(0.0, |it| SHADE * (it.estimate / dearest).clamp(0.0, 1.0));
    let (proven, all) = (figure.counting().count(), figure.hosts.len());
    let (mark, sign) = if all > 0 && proven == all { ("good", "✓") } else { ("warn", "?") };
    let told = cost(figure).map_or_else(
        || text(&both(figure).unwrap_or_else(|| basis(&figure.answer))),
        |it| format!("<b>{}</b> <small>{}</small>", text(&it.lead), text(&it.rest)),
    );
    format!(
        "<td class=\"shaded\" style=\"background:color-mix(in srgb,var(--cost) {}%,transparent)\"><a href=\"#f{index}\">{told}</a> \
         <span class=\"mark {mark}\"><span aria-hidden=\"true\">{sign}</span> {proven} of {all} proven</span></td>",
        at(shade)
    )
}

/// The hosts of a figure below each other, and what they show together.
fn forest(index: usize, figure: &MatrixFigure) -> String {
    let scale = scale(figure);
    let facts = facts::differing(&figure.hosts);
    let heads: String = facts.iter().map(|(name, _)| format!("<th scope=\"col\">{}</th>", text(name))).collect();
    let mut table = format!(
        "<table class=\"data\"><thead><tr><th scope=\"col\">host</th><th scope=\"col\">{}{}</th>\
         <th scope=\"col\">cost</th><th scope=\"col\">tasks</th>{heads}</tr></thead>\n<tbody>\n",
        text(figure.title()),
        axis(&scale),
    );
    for (place, host) in figure.hosts.iter().enumerate() {
        let values: String = facts.iter().map(|(_, values)| format!("<td>{}</td>", text(&values[place]))).collect();
        let doubted = if host.counts() { "" } else { " class=\"doubted\"" };
        let _ = writeln!(
            table,
            "<tr{doubted}><th scope=\"row\">{} {}</th>{}<td>{}</td>{values}</tr>",
            text(&host.host),
            proof_mark(&host.proof),
            drawn(&host.effect(), &of_host(host, figure.margin), &scale, figure.margin),
            text(&tasks(host)),
        );
    }
    table.push_str(&summary(figure, &scale, facts.len()));
    table.push_str("</tbody></table>\n");
    let name = format!("{} · {} · {} · {}", figure.machine, figure.experiment, figure.cell, figure.arm);
    format!("<h3 id=\"f{index}\">{}</h3>\n{}", text(&name), wide(&name, &table))
}

/// The rows on all hosts together.
fn summary(figure: &MatrixFigure, scale: &Scale, facts: usize) -> String {
    let blank = "<td></td>".repeat(facts + 1);
    let row = |name: &str, effect: &Interval, told: &str| {
        let drawn = drawn(effect, told, scale, figure.margin);
        format!("<tr><th scope=\"row\">{}</th>{drawn}{blank}</tr>\n", text(name))
    };
    let Answer::Over(basis_of, over) = &figure.answer else {
        let told = text(&basis(&figure.answer));
        return format!("<tr><th scope=\"row\">together</th><td></td><td>{told}</td>{blank}</tr>\n");
    };
    let told = cost(figure).map(|it| it.to_string()).unwrap_or_default();
    let spread = spread(&figure.answer).map_or(String::new(), |it| format!(" · spread {it}"));
    let mut rows = row(&basis(&figure.answer), &over.effect, &format!("{told}{spread}"));
    if let (Some(interval), Some(told)) = (&over.next, next(&figure.answer)) {
        let name = if matches!(basis_of, Basis::Hosts(_)) { "another host" } else { "another repeat" };
        rows.push_str(&row(name, interval, &told));
    }
    rows
}

/// Two places of a row: the drawing of an interval, and its words.
fn drawn(effect: &Interval, told: &str, scale: &Scale, margin: f64) -> String {
    let class = class(outcome(*effect, margin));
    let (low, high, point) = (scale.place(effect.low), scale.place(effect.high), scale.place(effect.estimate));
    let middle = HEIGHT / 2.0;
    format!(
        "<td class=\"{class}\"><svg width=\"{WIDTH}\" height=\"{HEIGHT}\" aria-hidden=\"true\">\
         <path class=\"zero\" d=\"M{} 0V{HEIGHT}\"/><path class=\"line\" d=\"M{} {middle}H{}\"/>\
         <circle class=\"point\" cx=\"{}\" cy=\"{middle}\" r=\"3.5\"/></svg></td><td class=\"{class}\">{}</td>",
        at(scale.place(0.0)),
        at(low),
        at(high),
        at(point),
        text(told)
    )
}

fn axis(scale: &Scale) -> String {
    let mut axis = format!("<svg class=\"axis\" width=\"{WIDTH}\" height=\"14\" aria-hidden=\"true\">");
    for (effect, name) in cost_ticks(scale, 38.0) {
        let _ = write!(axis, "<text x=\"{}\" y=\"11\">{name}</text>", at(scale.place(effect)));
    }
    axis + "</svg>"
}

/// A scale that holds zero and every interval of a host and of all together; the next host's may run over its edges.
fn scale(figure: &MatrixFigure) -> Scale {
    let of_hosts = figure.hosts.iter().map(HostFigure::effect);
    let all: Vec<Interval> = of_hosts.chain(figure.together()).collect();
    let ends = || all.iter().flat_map(|it| [it.low, it.high]).filter(|end| end.is_finite());
    let (low, high) = (ends().fold(0.0, f64::min), ends().fold(figure.margin.max(0.01), f64::max));
    let room = 0.1 * (high - low);
    Scale { low: low - room, high: high + room, start: EDGE, end: WIDTH - EDGE }
}

#[cfg(test)]
mod tests {
    use crate::{matrix::figures, report::matrix::sample};

    #[test]
    fn every_link_has_its_place_and_nothing_foreign_is_markup() {
        let gathered = sample::full();
        let page = super::matrix(&gathered, &figures(&gathered));
        let links = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
        assert!(!page.contains("<on our hosts>") && !page.contains("<here>") && !page.contains('\u{1b}'));
    }
}
