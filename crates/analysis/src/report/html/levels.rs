//! What each arm did and took: throughput, processor time, memory, bytes. A table whose places hold bars.
//!
//! A bar begins at nothing, so that lengths compare. The processor time of client and server are one bar in two
//! parts.

use std::fmt::Write;

use tithe_model::experiment::Metric;

use super::{
    heading, is_abridged,
    marks::{doubt_class, doubt_mark},
    markup::{at, section, text, wide},
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Figure, Level,
    figures::{Counter, Size},
    report::number,
};

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 12.0;

/// Columns up to which there is room for figures beside each other.
const FEW: usize = 4;

/// Columns by their level, with what they are called; those that no arm has are left out.
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

/// The level whose bar is made of two others.
const CPU: Figure = Figure::MetricLevel(Metric::Cpu);

/// The section; nothing where nothing was measured, and of many cells.
pub(super) fn chart(analysis: &Analysis, names: &[String]) -> String {
    if is_abridged(analysis) {
        return String::new();
    }
    let of_cell = |(cell, name): (&CellAnalysis, &String)| match bars(cell) {
        bars if bars.is_empty() => bars,
        bars => heading(names, name) + &bars,
    };
    let body: String = analysis.cells.iter().zip(names).map(of_cell).collect();
    if body.is_empty() {
        return body;
    }
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for part in analysis.cells.iter().flat_map(|cell| &cell.arms).flat_map(processor_parts) {
        if !keys.contains(&(part.class, part.title)) {
            keys.push((part.class, part.title));
        }
    }
    let keys: Vec<String> = keys.iter().map(|(class, title)| format!("<i class=\"key {class}\"></i>{title}")).collect();
    let keys = if keys.is_empty() {
        String::new()
    } else {
        format!("<p class=\"legend\">Processor time: {}.</p>\n", keys.join(" "))
    };
    let lead =
        "Medians over frames with their intervals. They are for orientation: they belong to this machine and hour.";
    section("levels", "What each arm did and took", lead, &(body + &keys))
}

/// The table of a cell; nothing where nothing was measured.
fn bars(cell: &CellAnalysis) -> String {
    let columns: Vec<(Figure, &str, f64)> = COLUMNS
        .into_iter()
        .filter_map(|(name, title)| {
            let highest = cell.arms.iter().filter_map(|arm| level(arm, &name)).map(longest).reduce(f64::max)?;
            (highest > 0.0).then_some((name, title, highest))
        })
        .collect();
    if columns.is_empty() {
        return String::new();
    }
    let few = if columns.len() <= FEW { " few" } else { "" };
    let mut html = format!("<table class=\"bars{few}\"><thead><tr><th scope=\"col\">arm</th>");
    for (_, title, _) in &columns {
        let _ = write!(html, "<th scope=\"col\">{title}</th>");
    }
    html.push_str("</tr></thead><tbody>\n");
    for arm in &cell.arms {
        let _ = write!(html, "<tr{}><th scope=\"row\">{}{}</th>", doubt_class(arm), text(&arm.name), doubt_mark(arm));
        for (name, title, highest) in &columns {
            html.push_str(&place(arm, name, title, *highest));
        }
        html.push_str("</tr>\n");
    }
    wide("levels of every arm", &(html + "</tbody></table>\n"))
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

/// Client and server, each in user mode and in the kernel as far as that was seen; nothing without a server.
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
            // Modes are counted more coarsely than the whole: they give the shares, not the amount.
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

fn place(arm: &ArmAnalysis, name: &Figure, title: &str, highest: f64) -> String {
    let Some(of_arm) = level(arm, name) else {
        return "<td class=\"none\"><span class=\"v\">–</span></td>".to_owned();
    };
    let width = |value: f64| at((value / highest).clamp(0.0, 1.0) * WIDTH);
    let split = if *name == CPU { processor_parts(arm) } else { Vec::new() };
    let parts = if split.is_empty() {
        format!("<path class=\"bar\" d=\"M0 2H{}V10H0z\"/>", width(of_arm.value))
    } else {
        // The parts are medians of their own: they are drawn by their shares of the whole.
        let whole: f64 = split.iter().map(|part| part.value).sum();
        let mut from = 0.0;
        let mut path = |part: &Part| {
            let to = from + of_arm.value * part.value / whole;
            let path = format!(
                "<path class=\"{}\" d=\"M{1} 2H{2}V10H{1}z\"><title>{3} {4}</title></path>",
                part.class,
                width(from),
                width(to),
                part.title,
                number::amount(part.value, &of_arm.unit)
            );
            from = to;
            path
        };
        split.iter().map(&mut path).collect()
    };
    let spread = if of_arm.low.is_finite() && of_arm.high.is_finite() && of_arm.high > of_arm.low {
        format!("<path class=\"spread\" d=\"M{} 6H{}\"/>", width(of_arm.low), width(longest(of_arm)))
    } else {
        String::new()
    };
    let (lead, rest) = {
        let figure = number::level(of_arm.value, of_arm.low, of_arm.high, &of_arm.unit).to_string();
        figure.split_once(" [").map_or((figure.clone(), String::new()), |(lead, rest)| {
            (lead.to_owned(), format!("<small>[{rest}</small>"))
        })
    };
    let parts_told: Vec<String> = split
        .chunk_by(|one, other| one.of == other.of)
        .map(|parts| {
            let sum = number::amount(parts.iter().map(|part| part.value).sum(), &of_arm.unit);
            match parts {
                [user, system] => {
                    let whole = user.value + system.value;
                    format!("<small>{} {sum}, {} in the kernel</small>", user.of, number::share(system.value / whole))
                }
                _ => format!("<small>{} {sum}</small>", parts[0].of),
            }
        })
        .collect();
    let rest = format!("{rest} {}", parts_told.join(" "));
    format!(
        "<td data-of=\"{title}\"><svg width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\"><title>{lead}</title>{parts}{spread}</svg>\
         <span class=\"v\">{lead} {rest}</span></td>"
    )
}
