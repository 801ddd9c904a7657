//! What each arm did and took: throughput, processor time, memory, bytes. A table whose places hold bars.
//!
//! A bar begins at nothing, so that lengths compare. The processor time of client and server are one bar in two
//! parts.

use std::fmt::Write;

use super::{
    costs::proof_mark,
    latency::figure,
    markup::{at, text, wide},
};
use crate::{ArmAnalysis, CellAnalysis, Level, NEW_ORDERS, Proof, report::number};

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 12.0;

/// Columns by the name of their level, with what they are called; those that no arm has are left out.
const COLUMNS: [(&str, &str); 14] = [
    ("throughput", "throughput"),
    (NEW_ORDERS, "New-Orders"),
    (CPU, "processor time per op"),
    ("memory_bytes", "memory of the server"),
    ("disk_bytes", "size on disk"),
    ("written_bytes_per_op", "written to storage per op"),
    ("read_bytes_per_op", "read from storage per op"),
    ("wal_bytes_per_op", "journal per op"),
    ("log_bytes_per_op", "server and audit log per op"),
    ("sent_bytes_per_op", "sent per op"),
    ("received_bytes_per_op", "received per op"),
    ("statements_per_op", "statements per op"),
    ("switches_per_op", "context switches per op"),
    ("connect", "time to connect"),
];

/// The level whose bar is made of two others.
const CPU: &str = "cpu_per_op";

/// The table of a cell; nothing where nothing was measured.
pub(super) fn bars(cell: &CellAnalysis) -> String {
    let columns: Vec<(&str, &str, f64)> = COLUMNS
        .into_iter()
        .filter_map(|(name, title)| {
            let highest = cell.arms.iter().filter_map(|arm| level(arm, name)).map(longest).reduce(f64::max)?;
            (highest > 0.0).then_some((name, title, highest))
        })
        .collect();
    if columns.is_empty() {
        return String::new();
    }
    let mut html = String::from("<table class=\"bars\"><thead><tr><th scope=\"col\">arm</th>");
    for (_, title, _) in &columns {
        let _ = write!(html, "<th scope=\"col\">{title}</th>");
    }
    html.push_str("</tr></thead><tbody>\n");
    for arm in &cell.arms {
        let class = if matches!(arm.proof, Proof::Baseline | Proof::Proven) { "" } else { " class=\"doubted\"" };
        let mark = if class.is_empty() { String::new() } else { format!(" {}", proof_mark(&arm.proof)) };
        let _ = write!(html, "<tr{class}><th scope=\"row\">{}{mark}</th>", text(&arm.name));
        for (name, _, highest) in &columns {
            html.push_str(&place(arm, name, *highest));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
    let split = cell.arms.iter().any(|arm| level(arm, "server_cpu_per_op").is_some());
    let note = if split {
        "<p class=\"legend\">Processor time: <i class=\"key client\"></i> client, <i class=\"key server\"></i> server. \
         Absolute levels are for orientation: they belong to this machine and hour.</p>\n"
    } else {
        "<p class=\"legend\">Absolute levels are for orientation: they belong to this machine and hour.</p>\n"
    };
    format!("<h3>What each arm did and took</h3>\n{}{note}", wide("levels of every arm", &html))
}

fn level<'a>(arm: &'a ArmAnalysis, name: &str) -> Option<&'a Level> {
    arm.levels.iter().find(|level| level.name == name && level.value.is_finite())
}

/// Where the drawing of a level ends: at the upper end of its interval, unless that is far away.
fn longest(level: &Level) -> f64 {
    if level.high.is_finite() { level.high.min(level.value * 1.5) } else { level.value }
}

fn place(arm: &ArmAnalysis, name: &str, highest: f64) -> String {
    let Some(of_arm) = level(arm, name) else {
        return "<td><span class=\"v\">–</span></td>".to_owned();
    };
    let width = |value: f64| at((value / highest).clamp(0.0, 1.0) * WIDTH);
    let parts = match (name, level(arm, "client_cpu_per_op"), level(arm, "server_cpu_per_op")) {
        (CPU, Some(client), Some(server)) => {
            // The parts are medians of their own: they are drawn by their shares of the whole.
            let boundary = of_arm.value * client.value / (client.value + server.value);
            format!(
                "<path class=\"client\" d=\"M0 2H{0}V10H0z\"/><path class=\"server\" d=\"M{0} 2H{1}V10H{0}z\"/>",
                width(boundary),
                width(of_arm.value)
            )
        }
        _ => format!("<path class=\"bar\" d=\"M0 2H{}V10H0z\"/>", width(of_arm.value)),
    };
    let spread = if of_arm.low.is_finite() && of_arm.high.is_finite() && of_arm.high > of_arm.low {
        format!("<path class=\"spread\" d=\"M{} 6H{}\"/>", width(of_arm.low), width(longest(of_arm)))
    } else {
        String::new()
    };
    let split = match (name, level(arm, "client_cpu_per_op"), level(arm, "server_cpu_per_op")) {
        (CPU, Some(client), Some(server)) => format!(
            "<small>client {}, server {}</small>",
            number::amount(client.value, client.unit),
            number::amount(server.value, server.unit)
        ),
        _ => String::new(),
    };
    let (lead, rest) = {
        let figure = figure(of_arm);
        figure.split_once(" [").map_or((figure.clone(), String::new()), |(lead, rest)| {
            (lead.to_owned(), format!("<small>[{rest}</small>"))
        })
    };
    let rest = if split.is_empty() { rest } else { split };
    format!(
        "<td><svg width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\"><title>{lead}</title>{parts}{spread}</svg>\
         <span class=\"v\">{lead} {rest}</span></td>"
    )
}
