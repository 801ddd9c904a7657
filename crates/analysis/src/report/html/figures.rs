//! Every figure of a cell, as a table that can be opened: arm by arm, the deciding one first.

use maud::{Markup, html};

use super::{
    marks::{class, doubt_mark, outcome},
    markup::{details, heads, notes, wide},
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate,
    report::{connecting, idle, number, words},
};

/// The columns of the table.
const COLUMNS: [&str; 8] =
    ["figure", "cost", "difference", "every stall counted", "n", "plain → protected", "verdict", "flags"];

/// The table of a cell; empty without figures.
pub(super) fn all(analysis: &Analysis, cell: &CellAnalysis) -> Markup {
    if cell.arms.iter().all(|arm| arm.estimates.is_empty()) {
        return html! {};
    }
    let table = html! {
        table.data {
            (heads(COLUMNS))
            @for arm in cell.arms.iter().filter(|arm| !arm.estimates.is_empty()) {
                tbody {
                    tr { th scope="rowgroup" colspan=(COLUMNS.len()) { b { (arm.name) } (doubt_mark(arm)) } }
                    @for estimate in &arm.estimates { (row(analysis, arm, estimate)) }
                }
            }
        }
    };
    details("Every figure", &wide("every figure of this cell", &table))
}

/// The log per operation from the first frame of a start to the last; empty if it does not change.
pub(super) fn log_over_start(cell: &CellAnalysis) -> Markup {
    if cell.log_over_start.is_empty() {
        return html! {};
    }
    let amount = |bytes: &Option<f64>| bytes.map_or("–".to_owned(), |bytes| number::amount(bytes, words::LOG_UNIT));
    let table = html! {
        table.data {
            (heads(["place in the start"].into_iter().chain(cell.arms.iter().map(|arm| arm.name.as_str()))))
            tbody {
                @for at in &cell.log_over_start {
                    tr { th scope="row" { (at.place) } @for bytes in &at.arms { td { (amount(bytes)) } } }
                }
            }
        }
    };
    details(words::LOG_OVER_START, &wide("log per operation over a start", &table))
}

/// Usage of the servers without clients; empty if it was not observed.
pub(super) fn idle(cell: &CellAnalysis) -> Markup {
    by_arm("Idle", idle::heading(cell), idle::lines(cell))
}

/// Time to open a connection; empty if unknown.
pub(super) fn connecting(cell: &CellAnalysis) -> Markup {
    by_arm("Connecting", connecting::heading(cell), connecting::lines(cell))
}

/// A heading, and a line for each arm below it; empty without a heading.
fn by_arm(label: &str, heading: Option<String>, lines: Vec<String>) -> Markup {
    html! {
        @if let Some(heading) = heading {
            p.note { (label) ": " (heading) "." }
            (notes(lines))
        }
    }
}

fn row(analysis: &Analysis, arm: &ArmAnalysis, estimate: &Estimate) -> Markup {
    let proven = arm.proof.stands();
    let told = |figure: String| if proven || figure.is_empty() { figure } else { format!("({figure})") };
    let (of, unit) = (estimate.difference.as_ref(), &estimate.unit);
    let (figure, difference) = match number::both(&estimate.change(), of, unit, estimate.verdict) {
        (figure, None) if estimate.effect.estimate.is_infinite() => (String::new(), Some(figure)),
        both => (both.0.to_string(), both.1),
    };
    let (figure, difference) = (told(figure), told(difference.map_or(String::new(), |it| it.to_string())));
    let total = estimate.total_change().map_or(String::new(), |total| {
        number::in_line(&total, estimate.total_difference.as_ref(), unit, crate::Outcome::Costs)
    });
    let count = number::count(estimate.values() as u64);
    let count = if estimate.batch > 1 { format!("{count} × {}", estimate.batch) } else { count };
    let count = match estimate.spread {
        Some(spread) => format!(
            "{count} in {}, which differ by {}",
            words::plural(estimate.starts as u64, "start"),
            number::spread(&spread)
        ),
        None => count,
    };
    let change =
        estimate.levels.map_or(String::new(), |(plain, protected)| number::change(plain, protected, &estimate.unit));
    let flags: Vec<&str> = estimate.flags.iter().map(|flag| words::flag_code(*flag)).collect();
    html! {
        tr class={ (class(estimate.verdict)) @if !proven { " doubted" } } {
            th scope="row" { @if estimate.primary { b { (estimate.title) } } @else { (estimate.title) } }
            @for told in [&figure, &difference, &total, &count, &change] { td { (told) } }
            td { (outcome(estimate, arm, analysis.margin)) }
            td { (flags.join(", ")) }
        }
    }
}
