//! Every figure of a cell, as a table to be opened: arm by arm, the deciding one first.

use std::fmt::Write;

use super::{
    marks::{class, doubt_mark, outcome},
    markup::{details, text, wide},
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate,
    report::{number, words},
};

/// The table of a cell; nothing where there is no figure.
pub(super) fn all(analysis: &Analysis, cell: &CellAnalysis) -> String {
    if cell.arms.iter().all(|arm| arm.estimates.is_empty()) {
        return String::new();
    }
    let mut html = String::from(
        "<table class=\"data\"><thead><tr><th scope=\"col\">figure</th><th scope=\"col\">cost</th><th scope=\"col\">difference</th><th scope=\"col\">every stall counted</th>\
         <th scope=\"col\">n</th><th scope=\"col\">plain → protected</th><th scope=\"col\">verdict</th><th scope=\"col\">flags</th></tr></thead>\n",
    );
    for arm in cell.arms.iter().filter(|arm| !arm.estimates.is_empty()) {
        let _ = writeln!(
            html,
            "<tbody><tr><th scope=\"rowgroup\" colspan=\"8\"><b>{}</b>{}</th></tr>",
            text(&arm.name),
            doubt_mark(arm)
        );
        html.extend(arm.estimates.iter().map(|estimate| row(analysis, arm, estimate)));
        html.push_str("</tbody>\n");
    }
    details("Every figure", &wide("every figure of this cell", &(html + "</table>\n")))
}

/// The log per operation from the first frame of a start to the last; nothing where it stays the same.
pub(super) fn log_over_start(cell: &CellAnalysis) -> String {
    if cell.log_over_start.is_empty() {
        return String::new();
    }
    let mut html = String::from("<table class=\"data\"><thead><tr><th scope=\"col\">place in the start</th>");
    for arm in &cell.arms {
        let _ = write!(html, "<th scope=\"col\">{}</th>", text(&arm.name));
    }
    html.push_str("</tr></thead><tbody>\n");
    for at in &cell.log_over_start {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", text(&at.place));
        for bytes in &at.arms {
            let amount = bytes.map(|bytes| number::amount(bytes, words::LOG_UNIT));
            let _ = write!(html, "<td>{}</td>", amount.as_deref().unwrap_or("–"));
        }
        html.push_str("</tr>\n");
    }
    details(words::LOG_OVER_START, &wide("log per operation over a start", &(html + "</tbody></table>\n")))
}

fn row(analysis: &Analysis, arm: &ArmAnalysis, estimate: &Estimate) -> String {
    let proven = arm.proof.stands();
    let verdict = text(&outcome(estimate, arm, analysis.margin));
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
            "{count} in {}, between which it differs by {}",
            words::plural(estimate.starts as u64, "start"),
            number::spread(&spread)
        ),
        None => count,
    };
    let change =
        estimate.levels.map_or(String::new(), |(plain, protected)| number::change(plain, protected, &estimate.unit));
    let flags: Vec<&str> = estimate.flags.iter().map(|flag| words::flag_code(*flag)).collect();
    let title = text(&estimate.title);
    let title = if estimate.primary { format!("<b>{title}</b>") } else { title };
    format!(
        "<tr class=\"{}{}\"><th scope=\"row\">{title}</th><td>{figure}</td><td>{difference}</td><td>{total}</td><td>{count}</td><td>{change}</td><td>{verdict}</td><td>{}</td></tr>\n",
        class(estimate.verdict),
        if proven { "" } else { " doubted" },
        flags.join(", ")
    )
}
