//! A comparison of runs, or of gathered matrices, as a page: the sentence, then for each arm the costs of all on one
//! scale, and what can be said of them.

use tithe_model::record::ArmFacts;

use super::{
    answer::listed,
    first_screen::{framed, row, scale},
    markup::{section, text},
    page,
    scale::Scale,
};
use crate::{
    Analysis, ArmAnalysis, CONFIDENCE,
    compare::{Comparison, Counted, Match, Side},
    matrix::against::Named,
    report::{
        comparison::{answer, rests_on, sentences},
        number,
    },
};

/// The page on a comparison of `subjects`.
pub fn comparison(comparison: &Comparison, subjects: &[Analysis]) -> String {
    let Some(first) = subjects.first() else { return String::new() };
    let titles: Vec<&str> = subjects.iter().map(|subject| subject.run.as_str()).collect();
    told(comparison, first.confidence, &titles)
}

/// The page on a comparison of gathered `matrices`.
pub fn compared_matrices(comparison: &Comparison, matrices: &[Named]) -> String {
    let sources: Vec<&str> = matrices.iter().map(|matrix| matrix.source.as_str()).collect();
    told(comparison, CONFIDENCE, &sources)
}

/// The page on a comparison of intervals of that `confidence`, of what `sources` name.
fn told(comparison: &Comparison, confidence: f64, sources: &[&str]) -> String {
    let runs: Vec<&str> = comparison.runs.iter().map(String::as_str).collect();
    let of_match = |matched: &Match| matched.sides.iter().map(|side| arm(comparison, side)).collect::<Vec<_>>();
    let arms: Vec<Vec<ArmAnalysis>> = comparison.matches.iter().map(of_match).collect();
    let decided = arms.iter().flatten().flat_map(|arm| arm.estimates.iter().map(move |estimate| (arm, estimate)));
    let scale = scale(comparison.margin, decided);
    let plot = |(matched, arms): (&Match, &Vec<ArmAnalysis>)| plot(comparison, matched, arms, &scale);
    let plots: String = comparison.matches.iter().zip(&arms).map(plot).collect();
    let mut body = String::new();
    if !plots.is_empty() {
        let lead = format!(
            "Dot: what an operation costs more than on the plain arm {}; bar: its {} interval; hatched: too noisy to \
             tell. Shaded: up to the margin of {}%.",
            if over_hosts(comparison) { "of the same host, on the mean of hosts of a kind" } else { "of the same run" },
            number::share(confidence),
            number::digits(number::percent(comparison.margin))
        );
        body.push_str(&section("told", "Run against run", &lead, &format!("<div class=\"plots\">\n{plots}</div>\n")));
    }
    for (id, title, texts) in
        [("refused", "Not compared", &comparison.reasons()), ("notes", "To know", &comparison.notes)]
    {
        if !texts.is_empty() {
            body.push_str(&section(id, title, "", &notes(texts)));
        }
    }
    let header = format!(
        "<p class=\"over\">{}</p>\n<h1>{}</h1>\n<p class=\"answer\">{}</p>\n",
        text(&format!("Which loses less by its protection: {}?", listed(&runs, "or"))),
        text(&listed(&runs, "and")),
        text(&answer(comparison)),
    );
    page(&listed(&runs, "and"), &header, &body, &sources.join(" · "))
}

/// True where the costs are those of gathered matrices.
fn over_hosts(comparison: &Comparison) -> bool {
    comparison.matches.iter().flat_map(|matched| &matched.sides).any(|side| side.counted != Counted::Frames)
}

/// One arm in every run that has it, with its sentences.
fn plot(comparison: &Comparison, matched: &Match, arms: &[ArmAnalysis], scale: &Scale) -> String {
    let head = if over_hosts(comparison) { "rests on" } else { "plain → protected" };
    let row = |(side, arm): (&Side, &ArmAnalysis)| {
        let levels = format!("<td class=\"of\" data-of=\"{head}\">{}</td>", text(&rests_on(side)));
        row(comparison.margin, arm, &side.estimate, scale, &levels)
    };
    let rows: String = matched.sides.iter().zip(arms).map(row).collect();
    let heads = format!("<th scope=\"col\" class=\"of\">{head}</th>");
    let plot = framed(&format!("{} · {}", matched.cell, matched.arm), &matched.title, &heads, &rows, scale);
    format!("<div class=\"compared\">\n{plot}{}</div>\n", notes(&sentences(comparison, matched)))
}

fn notes(texts: &[String]) -> String {
    let items: String = texts.iter().map(|it| format!("<li>{}</li>\n", text(it))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"notes\">\n{items}</ul>\n") }
}

/// The cost of one run as the plot takes it.
fn arm(comparison: &Comparison, side: &Side) -> ArmAnalysis {
    ArmAnalysis {
        name: comparison.runs[side.run].clone(),
        aa: false,
        protections: Vec::new(),
        facts: ArmFacts::default(),
        difference: Vec::new(),
        proof: side.proof.clone(),
        findings: Vec::new(),
        levels: Vec::new(),
        estimates: vec![side.estimate.clone()],
        published: Vec::new(),
        course: Vec::new(),
    }
}
