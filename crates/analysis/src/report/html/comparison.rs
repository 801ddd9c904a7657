//! A comparison of runs as a page: the sentence, then one chart with a group for each arm and a row for each run.

use super::{
    answer::listed,
    costs,
    markup::{section, text, wide},
    page,
};
use crate::{
    Analysis, ArmAnalysis, CellAnalysis,
    compare::{Comparison, Match, Side},
    report::comparison::{answer, figure, rests_on, sentences},
};

/// The page on a comparison of `subjects`.
pub fn comparison(comparison: &Comparison, subjects: &[Analysis]) -> String {
    let Some(first) = subjects.first() else { return String::new() };
    let runs: Vec<&str> = comparison.runs.iter().map(String::as_str).collect();
    let question = format!("Which loses less by its protection: {}?", listed(&runs, "or"));
    let mut body = costs::chart(&as_analysis(comparison, first));
    let reported: String = comparison.matches.iter().map(|matched| reported(comparison, matched)).collect();
    body.push_str(&section("told", "Run against run", "", &reported));
    for (id, title, texts) in
        [("refused", "Not compared", &comparison.refused), ("notes", "To know", &comparison.notes)]
    {
        if !texts.is_empty() {
            let items: String = texts.iter().map(|it| format!("<li>{}</li>\n", text(it))).collect();
            body.push_str(&section(id, title, "", &format!("<ul class=\"notes\">\n{items}</ul>\n")));
        }
    }
    let titles: Vec<&str> = subjects.iter().map(|subject| subject.run.as_str()).collect();
    let header = format!(
        "<p class=\"over\">{}</p>\n<h1>{}</h1>\n<p class=\"question\">{}</p>\n<p class=\"answer\">{}</p>\n",
        text(&titles.join(" · ")),
        text(&listed(&runs, "and")),
        text(&question),
        text(&answer(comparison)),
    );
    page(&listed(&runs, "and"), &header, &body, &titles.join(" · "))
}

fn reported(comparison: &Comparison, matched: &Match) -> String {
    let row = |side: &Side| {
        let run = text(&comparison.runs[side.run]);
        format!(
            "<tr><th scope=\"row\">{run}</th><td>{}</td><td>{}</td></tr>\n",
            text(&figure(side)),
            text(&rests_on(side))
        )
    };
    let rows: String = matched.sides.iter().map(row).collect();
    let table = format!(
        "<table class=\"data\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">cost, {}</th>\
         <th scope=\"col\">plain → protected, starts</th></tr></thead><tbody>\n{rows}</tbody></table>\n",
        text(&matched.title)
    );
    let table = wide(&format!("{} · {}", matched.cell, matched.arm), &table);
    let items: String = sentences(comparison, matched).iter().map(|it| format!("<li>{}</li>\n", text(it))).collect();
    format!("<h3>{} · {}</h3>\n{table}<ul class=\"notes\">\n{items}</ul>\n", text(&matched.cell), text(&matched.arm))
}

/// The matches as the chart of costs takes them: a cell for each match, an arm for each run.
fn as_analysis(comparison: &Comparison, first: &Analysis) -> Analysis {
    let cell = |matched: &Match| {
        let like = first.cells.iter().find(|cell| cell.id == matched.cell);
        let arms = matched.sides.iter().map(|side| arm(comparison, side, like)).collect();
        let id = format!("{} · {}", matched.cell, matched.arm);
        like.map(|cell| CellAnalysis { id, arms, ..cell.clone() })
    };
    Analysis { cells: comparison.matches.iter().filter_map(cell).collect(), ..first.clone() }
}

fn arm(comparison: &Comparison, side: &Side, like: Option<&CellAnalysis>) -> ArmAnalysis {
    let facts = like.and_then(|cell| cell.arms.first()).map(|arm| arm.facts.clone()).unwrap_or_default();
    let mut estimate = side.estimate.clone();
    estimate.primary = true;
    ArmAnalysis {
        name: comparison.runs[side.run].clone(),
        aa: false,
        protections: Vec::new(),
        facts,
        difference: Vec::new(),
        proof: side.proof.clone(),
        findings: Vec::new(),
        levels: Vec::new(),
        estimates: vec![estimate],
        published: Vec::new(),
    }
}
