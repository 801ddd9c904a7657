//! The costs of each of the user's statements, as a table.

use maud::{Markup, html};

use super::{
    marks::is_doubted,
    markup::{concat, heads, wide},
};
use crate::{
    ArmAnalysis, CellAnalysis, Estimate,
    report::{
        number,
        statements::{Row, rows},
    },
};

/// The statements of a cell, the most expensive first; empty if the workload has none.
pub(super) fn table(cell: &CellAnalysis) -> Markup {
    let all = rows(cell);
    let Some(first) = all.first() else { return html! {} };
    let names = first.costs.iter().map(|(arm, _)| arm.name.as_str());
    let row = |row: &Row<'_>| {
        html! {
            tr {
                th scope="row" { code { (row.statement.text) } br; small { (row.statement.operation) } }
                td { (number::share(row.statement.time_share)) }
                td { (number::count(row.statement.calls)) }
                @for (arm, cost) in &row.costs { td { (told(arm, *cost)) } }
            }
        }
    };
    let table = html! {
        table.data {
            (heads(["statement", "share of the time", "calls"].into_iter().chain(names)))
            tbody { (concat(all.iter().map(row))) }
        }
    };
    wide("cost of every statement", &table)
}

fn told(arm: &ArmAnalysis, cost: Option<&Estimate>) -> String {
    let Some(estimate) = cost else { return "–".to_owned() };
    let (cost, difference) =
        number::both(&estimate.change(), estimate.difference.as_ref(), &estimate.unit, estimate.verdict);
    let figures = difference.map_or(cost.to_string(), |difference| format!("{cost}, {difference}"));
    if is_doubted(arm) { format!("({figures})") } else { figures }
}
