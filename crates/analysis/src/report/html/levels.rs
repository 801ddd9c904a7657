//! Levels of each arm: throughput, processor time, memory, bytes. A table with bars in its cells.
//!
//! A bar begins at zero, so that lengths can be compared. The processor time of client and server is one bar in two
//! parts.

use maud::{Markup, html};
use tithe_model::experiment::Metric;

use super::{
    heading, is_abridged,
    marks::{doubt_class, doubt_mark},
    markup::{at, breakable, concat, is_empty, section, wide},
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Figure, Level,
    figures::{Counter, Size},
    report::number,
};

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 12.0;

/// Up to this number of columns there is room for figures side by side.
const FEW: usize = 4;

/// Columns by level, with their titles; those that no arm has are left out.
const COLUMNS: [(Figure, &str); 14] = [
    (Figure::Throughput, "throughput"),
    (Figure::NewOrders, "New-Orders"),
    (CPU, "processor time per op"),
    (Figure::Size(Size::Memory), "memory of the server"),
    (Figure::Size(Size::Disk), "size on disk"),
    (Figure::CounterLevel(Counter::WrittenBytes), "written to storage per op"),
    (Figure::CounterLevel(Counter::ReadBytes), "read from storage per op"),
    (Figure::CounterLevel(Counter::WalBytes), "journal per op"),
    (Figure::CounterLevel(Counter::LogBytes), "server and audit log per op"),
    (Figure::CounterLevel(Counter::SentBytes), "sent per op"),
    (Figure::CounterLevel(Counter::ReceivedBytes), "received per op"),
    (Figure::CounterLevel(Counter::Statements), "statements per op"),
    (Figure::CounterLevel(Counter::Switches), "context switches per op"),
    (Figure::Connect, "time to connect"),
];

/// The level whose bar consists of two others.
const CPU: Figure = Figure::MetricLevel(Metric::Cpu);

/// The section; empty without measurements or with many cells.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> Markup {
    if is_abridged(analysis) {
        return html! {};
    }
    let of_cell = |(cell, name): (&CellAnalysis, &String)| {
        let bars = bars(cell);
        html! { @if !is_empty(&bars) { (heading(names, name)) (bars) } }
    };
    let bars = concat(analysis.cells.iter().zip(names).map(of_cell));
    if is_empty(&bars) {
        return bars;
    }
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for part in analysis.cells.iter().flat_map(|cell| &cell.arms).flat_map(processor_parts) {
        if !keys.contains(&(part.class, part.title)) {
            keys.push((part.class, part.title));
        }
    }
    let body = html! {
        (bars)
        @if !keys.is_empty() {
            p.legend {
                "Processor time: "
                @for (index, (class, title)) in keys.iter().enumerate() {
                    @if index > 0 { " " }
                    i class={ "key " (class) } {} (title)
                }
                "."
            }
        }
    };
    let lead =
        "Medians over frames with their intervals. They are for orientation: they hold for this machine and this time.";
    section("levels", "What each arm did and took", lead, &body)
}

/// The table of a cell; empty without measurements.
fn bars(cell: &CellAnalysis) -> Markup {
    let columns: Vec<(Figure, &str, f64)> = COLUMNS
        .into_iter()
        .filter_map(|(name, title)| {
            let highest = cell.arms.iter().filter_map(|arm| level(arm, &name)).map(longest).reduce(f64::max)?;
            (highest > 0.0).then_some((name, title, highest))
        })
        .collect();
    if columns.is_empty() {
        return html! {};
    }
    let table = html! {
        table.bars.few[columns.len() <= FEW] {
            thead { tr { th scope="col" { "arm" } @for (_, title, _) in &columns { th scope="col" { (title) } } } }
            tbody {
                @for arm in &cell.arms {
                    tr class=[doubt_class(arm)] {
                        th scope="row" { (breakable(&arm.name)) (doubt_mark(arm)) }
                        @for (name, title, highest) in &columns { (place(arm, name, title, *highest)) }
                    }
                }
            }
        }
    };
    wide("levels of every arm", &table)
}

fn level<'a>(arm: &'a ArmAnalysis, name: &Figure) -> Option<&'a Level> {
    arm.levels.iter().find(|level| level.name == *name && level.value.is_finite())
}

/// Where the drawing of a level ends: at the upper end of its interval, unless that is far away.
fn longest(level: &Level) -> f64 {
    if level.high.is_finite() { level.high.min(level.value * 1.5) } else { level.value }
}

/// A part of the processor time per operation.
struct Part {
    /// `client` or `server`.
    of: &'static str,
    class: &'static str,
    title: &'static str,
    /// In the unit of the whole.
    value: f64,
}

/// Client and server, each in user mode and in the kernel as far as known; empty without a server.
fn processor_parts(arm: &ArmAnalysis) -> Vec<Part> {
    const SIDES: [(&str, [Figure; 3], [&str; 2]); 2] = [
        (
            "client",
            [
                Figure::MetricLevel(Metric::ClientCpu),
                Figure::CounterLevel(Counter::ClientUserCpu),
                Figure::CounterLevel(Counter::ClientSystemCpu),
            ],
            ["client, user mode", "client, kernel"],
        ),
        (
            "server",
            [
                Figure::MetricLevel(Metric::ServerCpu),
                Figure::CounterLevel(Counter::ServerUserCpu),
                Figure::CounterLevel(Counter::ServerSystemCpu),
            ],
            ["server, user mode", "server, kernel"],
        ),
    ];
    let mut parts = Vec::new();
    for (of, [whole, user, system], [user_title, system_title]) in SIDES {
        let Some(whole) = level(arm, &whole).map(|level| level.value).filter(|value| *value > 0.0) else { continue };
        let modes = level(arm, &user).zip(level(arm, &system)).map(|(user, system)| (user.value, system.value));
        let (class, kernel_class) =
            if of == "client" { ("client", "client kernel") } else { ("server", "server kernel") };
        match modes.filter(|(user, system)| user + system > 0.0) {
            // Modes are counted more coarsely than the whole, so they give only the shares.
            Some((user, system)) => {
                let share = user / (user + system);
                parts.push(Part { of, class, title: user_title, value: whole * share });
                parts.push(Part { of, class: kernel_class, title: system_title, value: whole * (1.0 - share) });
            }
            None => parts.push(Part { of, class, title: of, value: whole }),
        }
    }
    parts
}

fn place(arm: &ArmAnalysis, name: &Figure, title: &str, highest: f64) -> Markup {
    let Some(of_arm) = level(arm, name) else { return html! { td.none { span.v { "–" } } } };
    let width = |value: f64| at((value / highest).clamp(0.0, 1.0) * WIDTH);
    let parts = if *name == CPU { processor_parts(arm) } else { Vec::new() };
    let figure = number::level(of_arm.value, of_arm.low, of_arm.high, &of_arm.unit).to_string();
    let (lead, range) = figure.split_once(" [").map_or((figure.as_str(), None), |(lead, rest)| (lead, Some(rest)));
    html! {
        td data-of=(title) {
            svg width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } aria-hidden="true" {
                title { (lead) }
                @if parts.is_empty() {
                    path.bar d={ "M0 2H" (width(of_arm.value)) "V10H0z" } {}
                } @else {
                    (split(of_arm, &parts, width))
                }
                @if of_arm.low.is_finite() && of_arm.high.is_finite() && of_arm.high > of_arm.low {
                    path.spread d={ "M" (width(of_arm.low)) " 6H" (width(longest(of_arm))) } {}
                }
            }
            span.v {
                (lead) " "
                @if let Some(range) = range { small { "[" (range) } }
                @for parts in parts.chunk_by(|one, other| one.of == other.of) { " " small { (told(of_arm, parts)) } }
            }
        }
    }
}

/// The bar of `level` in its parts. The parts are separate medians, so they are drawn by their shares of the whole.
fn split(level: &Level, parts: &[Part], width: impl Fn(f64) -> String) -> Markup {
    let whole: f64 = parts.iter().map(|part| part.value).sum();
    let mut from = 0.0;
    let path = |part: &Part| {
        let to = from + level.value * part.value / whole;
        let (left, right) = (width(from), width(to));
        from = to;
        html! {
            path class=(part.class) d={ "M" (left) " 2H" (right) "V10H" (left) "z" } {
                title { (part.title) " " (number::amount(part.value, &level.unit)) }
            }
        }
    };
    concat(parts.iter().map(path))
}

/// The processor time of client or server, and how much of it was in the kernel.
fn told(level: &Level, parts: &[Part]) -> String {
    let sum = number::amount(parts.iter().map(|part| part.value).sum(), &level.unit);
    match parts {
        [user, system] => {
            let whole = user.value + system.value;
            format!("{} {sum}, {} in the kernel", user.of, number::share(system.value / whole))
        }
        _ => format!("{} {sum}", parts[0].of),
    }
}
