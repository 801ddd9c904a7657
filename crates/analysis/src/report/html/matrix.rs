//! A gathered matrix as a page: a heat map of cells × protections with marks of proof, and below it a forest plot for
//! each of its figures: the hosts, most expensive first, with the facts that differ between them.
//!
//! Shades only repeat figures, and every figure is text, so the page can be read without colour.

use maud::{Markup, html};
use tithe_statistics::verdict::outcome;

use super::{
    marks::{class, mark, proof_mark},
    markup::{at, concat, heads, notes, section, wide},
    page,
    scale::{Scale, cost_ticks},
};
use crate::{
    Interval, Outcome,
    matrix::{Answer, Basis, Gathered, HostFigure, MatrixFigure, facts},
    report::matrix::{basis, both, cost, legend, missing, next, of_host, progress, spread, strays, tasks},
};

/// A drawing of a forest plot: its width, its height per row, and the margin for half of a point.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 16.0;
const EDGE: f64 = 5.0;

/// The darkest shade of the heat map, percent, for the highest cost.
const SHADE: f64 = 35.0;

/// The page on `gathered` and its `figures`.
pub fn matrix(gathered: &Gathered, figures: &[MatrixFigure]) -> String {
    let header = html! {
        p.over { "plan " (gathered.plan) }
        h1 { (gathered.title) }
        p.answer { (progress(gathered)) "." }
    };
    let forests = figures.iter().enumerate().map(|(index, figure)| forest(index, figure));
    let body = html! {
        @if !figures.is_empty() {
            (section("costs", "What it costs on hosts of a kind", &legend(), &maps(figures)))
            (section("hosts", "Host by host", "", &concat(forests)))
        }
        @for (id, title, reasons) in
            [("missing", "What is missing", missing(gathered, figures)), ("strays", "Not of this matrix", strays(gathered))]
        {
            @if !reasons.is_empty() { (section(id, title, "", &notes(reasons))) }
        }
    };
    page(&gathered.title, &header, &body, &format!("{} · tithe {}", gathered.plan, gathered.tithe))
}

/// A heat map for each kind of machine: cells down, arms across.
fn maps(figures: &[MatrixFigure]) -> Markup {
    let highest = figures.iter().filter_map(MatrixFigure::together).map(|it| it.estimate).fold(0.01, f64::max);
    let numbered: Vec<(usize, &MatrixFigure)> = figures.iter().enumerate().collect();
    let of_kind = numbered.chunk_by(|one, other| one.1.machine == other.1.machine);
    concat(of_kind.map(|kind| map(kind, highest)))
}

fn map(kind: &[(usize, &MatrixFigure)], highest: f64) -> Markup {
    let mut arms: Vec<&str> = Vec::new();
    kind.iter().for_each(|(_, figure)| {
        if !arms.contains(&figure.arm.as_str()) {
            arms.push(&figure.arm);
        }
    });
    let cell = |figure: &MatrixFigure| (figure.experiment.clone(), figure.cell.clone());
    let table = html! {
        table.data {
            (heads(["database, experiment, cell"].into_iter().chain(arms.iter().copied())))
            tbody {
                @for row in kind.chunk_by(|one, other| cell(one.1) == cell(other.1)) {
                    @let first = row[0].1;
                    tr {
                        th scope="row" { (first.database) " · " (first.experiment) " · " (first.cell) }
                        @for arm in &arms {
                            @match row.iter().find(|(_, figure)| figure.arm == *arm) {
                                Some((index, figure)) => { (place(*index, figure, highest)) }
                                None => { td { "–" } }
                            }
                        }
                    }
                }
            }
        }
    };
    let machine = &kind[0].1.machine;
    html! { h3 { (machine) } (wide(&format!("costs on {machine}"), &table)) }
}

/// One place of the heat map.
fn place(index: usize, figure: &MatrixFigure, highest: f64) -> Markup {
    let shade = figure.together().map_or(0.0, |it| SHADE * (it.estimate / highest).clamp(0.0, 1.0));
    let (proven, all) = (figure.counting().count(), figure.hosts.len());
    let (class, sign) = if all > 0 && proven == all { ("good", "✓") } else { ("warn", "?") };
    html! {
        td.shaded style={ "background:color-mix(in srgb,var(--cost) " (at(shade)) "%,transparent)" } {
            a href={ "#f" (index) } {
                @match cost(figure) {
                    Some(it) => { b { (it.lead) } " " small { (it.rest) } }
                    None => { (both(figure).unwrap_or_else(|| basis(&figure.answer))) }
                }
            }
            " " (mark(class, sign, &format!("{proven} of {all} proven")))
        }
    }
}

/// The hosts of a figure below each other, and their combined result.
fn forest(index: usize, figure: &MatrixFigure) -> Markup {
    let scale = scale(figure);
    let facts = facts::differing(&figure.hosts);
    let judged = |effect: Interval| outcome(effect, figure.margin);
    let table = html! {
        table.data {
            thead {
                tr {
                    th scope="col" { "host" }
                    th scope="col" { (figure.title()) (axis(&scale)) }
                    @for name in ["cost", "tasks"] { th scope="col" { (name) } }
                    @for (name, _) in &facts { th scope="col" { (name) } }
                }
            }
            tbody {
                @for (place, host) in figure.hosts.iter().enumerate() {
                    tr class=[(!host.counts()).then_some("doubted")] {
                        th scope="row" { (host.host) " " (proof_mark(&host.proof)) }
                        (drawn(&host.effect(), &of_host(host, figure.margin), &scale, judged(host.effect())))
                        td { (tasks(host)) }
                        @for (_, values) in &facts { td { (values[place]) } }
                    }
                }
                (summary(figure, &scale, facts.len()))
            }
        }
    };
    let name = format!("{} · {} · {} · {}", figure.machine, figure.experiment, figure.cell, figure.arm);
    html! { h3 id={ "f" (index) } { (name) } (wide(&name, &table)) }
}

/// The rows on all hosts together.
fn summary(figure: &MatrixFigure, scale: &Scale, facts: usize) -> Markup {
    let blank = html! { @for _ in 0..=facts { td {} } };
    let row = |name: &str, effect: &Interval, told: &str, judged: Outcome| {
        html! { tr { th scope="row" { (name) } (drawn(effect, told, scale, judged)) (blank) } }
    };
    let Answer::Over(basis_of, over) = &figure.answer else {
        return html! { tr { th scope="row" { "together" } td {} td { (basis(&figure.answer)) } (blank) } };
    };
    let told = cost(figure).map(|it| it.to_string()).unwrap_or_default();
    let spread = spread(&figure.answer).map_or(String::new(), |it| format!(" · spread {it}"));
    let another = if matches!(basis_of, Basis::Hosts(_)) { "another host" } else { "another repeat" };
    let judged = figure.verdict().unwrap_or(Outcome::TooNoisy);
    html! {
        (row(&basis(&figure.answer), &over.effect, &format!("{told}{spread}"), judged))
        @if let (Some(interval), Some(told)) = (&over.next, next(&figure.answer)) {
            (row(another, interval, &told, outcome(*interval, figure.margin)))
        }
    }
}

/// Two cells of a row: the drawing of an interval that was `judged` so, and its text.
fn drawn(effect: &Interval, told: &str, scale: &Scale, judged: Outcome) -> Markup {
    let class = class(judged);
    let place = |effect: f64| at(scale.place(effect));
    let middle = HEIGHT / 2.0;
    html! {
        td.(class) {
            svg width=(WIDTH) height=(HEIGHT) aria-hidden="true" {
                path.zero d={ "M" (place(0.0)) " 0V" (HEIGHT) } {}
                path.line d={ "M" (place(effect.low)) " " (middle) "H" (place(effect.high)) } {}
                circle.point cx=(place(effect.estimate)) cy=(middle) r="3.5" {}
            }
        }
        td.(class) { (told) }
    }
}

fn axis(scale: &Scale) -> Markup {
    html! {
        svg.axis width=(WIDTH) height="14" aria-hidden="true" {
            @for (effect, name) in cost_ticks(scale, 38.0) { text x=(at(scale.place(effect))) y="11" { (name) } }
        }
    }
}

/// A scale that includes zero and every interval of a host and of all together; the next host's may exceed it.
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
